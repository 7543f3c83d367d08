"""`summarize` says the same numbers as a table, as Markdown, as CSV and as JSON."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from engine import Lab
from huggingface_hub import ModelCard, ModelCardData
from huggingface_hub.repocard_data import model_index_to_eval_results
from model_server import running
from stored_runs import change_lines, copied, hashes, record, set_in_object

from qualeval.errors import ListError, OptionError, QualevalError, RunFolderError
from qualeval.records import RunSummary, Summary
from qualeval.summary_formats import model_index, run_summary, summarize_command

Json = dict[str, Any]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with running(slots=4) as server:
        return record(tmp_path_factory.mktemp("formats"), server)


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Path:
    return copied(made, tmp_path)


def test_markdown_and_json_are_the_files_of_the_run(run: Path) -> None:
    """Byte for byte; nothing is written."""
    before = hashes(run)
    for format, file in (("md", "summary.md"), ("json", "summary.json")):
        text, code = summarize_command(run, format)
        assert (text, code) == ((run / file).read_text(encoding="utf-8"), 0)
    assert hashes(run) == before


def test_table_is_the_published_row(run: Path) -> None:
    """One row a part, with right / n and cut off."""
    text, code = summarize_command(run, "table")
    row = next(line for line in text.splitlines() if line.startswith("MMLU-Pro"))
    assert code == 0 and text.endswith("\n")
    assert "50.0 % ± 28.5 pts" in row and "4 / 8" in row


def test_csv_has_one_line_a_part_with_the_fields_own_names(run: Path) -> None:
    """Shares as in summary.json; objects as JSON; what is not known is empty."""
    text, code = summarize_command(run, "csv")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert code == 0
    assert [row["part"] for row in rows] == ["mmlupro", "gpqa", "think"]
    stored = json.loads((run / "summary.json").read_bytes())["parts"]
    for row in rows:
        part = stored[row["part"]]
        for name in ("accuracy", "margin", "ci_low", "ci_high", "median_seconds", "wall_time"):
            assert float(row[name]) == part[name]
        for name in ("n", "right", "cut_off", "errors", "repeats", "seed", "max_tokens"):
            assert int(row[name]) == part[name]
        assert json.loads(row["sampling"]) == part["sampling"]
        assert row["incomplete_because"] == ""
        assert row["suite"] == "qualeval suite 1"
        assert row["note"].endswith("not comparable with results on other lists or prompts")
        assert float(row["in_flight_mean"]) == part["in_flight"]["mean"]
    assert rows[1]["sample_list"] == "true"
    assert rows[1]["note"].startswith("sample list, not a benchmark result; ")
    assert rows[2]["limits"] == "max_tokens 64 instead of 16,384"


@pytest.mark.parametrize("format", ["table", "md", "csv", "json", "model-index"])
def test_incomplete_part_has_no_number_and_exit_1(tmp_path: Path, format: str) -> None:
    """In every format."""
    with running(slots=4) as server:
        lab = Lab(tmp_path, server).list_of(4).script({"2": {"status": 400}})
        assert lab.run().code == 1
    text, code = summarize_command(lab.job().folder, format)
    assert code == 1
    if format == "csv":
        [row] = csv.DictReader(io.StringIO(text))
        assert (row["status"], row["accuracy"], row["margin"]) == ("incomplete", "", "")
    elif format == "json":
        assert json.loads(text)["parts"]["mmlupro"]["accuracy"] is None
    elif format == "model-index":
        assert "model-index:" not in text  # the hub's own reader falls over an empty list
        assert "# Left out, incomplete: MMLU-Pro (1 failed)." in text
    else:
        assert "incomplete (1 failed)" in text and " pts" not in text


def test_part_of_a_killed_run_is_summarized_from_its_raw_replies(run: Path) -> None:
    """Without a summary, or with one older than the replies; nothing is written."""
    whole, _ = summarize_command(run, "json")
    (run / "mmlupro.summary.json").unlink()
    set_in_object(run / "gpqa.summary.json", answered=3, right=3)
    before = hashes(run)
    assert summarize_command(run, "json") == (whole, 0)
    change_lines(run / "think.gen.jsonl", lambda lines: lines[:5])
    text, code = summarize_command(run, "table")
    assert code == 1 and "5 of 16 answered" in text
    assert set(hashes(run)) == set(before)


def test_killed_part_of_another_grader_or_list_is_refused(run: Path) -> None:
    """No number is made by rules that the contract does not name."""
    (run / "mmlupro.summary.json").unlink()
    contract = run / "mmlupro.contract.json"
    text = contract.read_text(encoding="utf-8")
    contract.write_text(text.replace('"letter 1"', '"letter 0"'), encoding="utf-8")
    with pytest.raises(RunFolderError, match="grade it first: qualeval grade"):
        summarize_command(run, "table")
    (run / "mmlupro.items.jsonl").unlink()
    with pytest.raises(ListError, match=r"mmlupro\.items\.jsonl"):
        summarize_command(run, "table")


def model_index_of(text: str) -> Json:
    """The one model of a block."""
    (model,) = yaml.safe_load(text)["model-index"]
    assert isinstance(model, dict)
    return model


def test_model_index_is_read_by_the_hubs_own_library(run: Path) -> None:
    """Every value is the percent of the table, under the name of its row and suite."""
    text, code = summarize_command(run, "model-index")
    block = yaml.safe_load(text)
    name, results = model_index_to_eval_results(block["model-index"])
    assert (code, name) == (0, "test-model")
    assert [result.metric_value for result in results] == [50.0, 20.0, 50.0]
    assert {result.task_type for result in results} == {"text-generation"}
    assert {result.metric_type for result in results} == {"accuracy"}
    assert all("qualeval suite 1" in result.dataset_name for result in results)
    assert results[0].dataset_name == "MMLU-Pro (own list; qualeval suite 1)"
    assert all(result.verified is None and result.source_url is None for result in results)
    first = results[0].metric_args
    assert first is not None
    assert (first["right"], first["n"], first["cut_off"]) == (4, 8, 2)
    assert (first["ci_low"], first["ci_high"]) == (21.5, 78.5)
    card = ModelCard(f"---\n{text}---\n# A model\n")
    assert isinstance(card.data, ModelCardData) and card.data.eval_results is not None
    assert len(card.data.eval_results) == 3


def test_model_index_calls_a_sample_list_one_and_never_the_benchmark(run: Path) -> None:
    """Not in the name of the data set, and not in its id; nor for a list of the user's own."""
    results = model_index_of(summarize_command(run, "model-index")[0])["results"]
    sets = [result["dataset"] for result in results]
    assert "sample list, not a benchmark result" in sets[1]["name"]
    assert sets[1]["type"] == "sample/gpqa"
    assert not {"TIGER-Lab/MMLU-Pro", "Idavidrein/gpqa"} & {one["type"] for one in sets}
    limits = results[2]["metrics"][0]["args"]["not_the_published_limits"]
    assert limits == ["max_tokens 64 instead of 16,384"]


def with_official_gpqa(run: Path) -> tuple[RunSummary, Summary]:
    """The summary of a run, and its `gpqa` as if the official list had been asked."""
    summary = run_summary(run)
    named = {"list": "qualeval/gpqa-198/v1", "sample_list": False}
    return summary, summary.parts["gpqa"].model_copy(update=named)


def test_model_index_names_the_data_set_of_an_official_list(run: Path) -> None:
    """With config and split, where it has them; made texts have none."""
    summary, official = with_official_gpqa(run)
    made = official.model_copy(update={"part": "ruler", "list": "qualeval/ruler-lite/v1"})
    text = model_index(summary.model_copy(update={"parts": {"gpqa": official, "ruler": made}}))
    first, second = (result["dataset"] for result in model_index_of(text)["results"])
    assert (first["type"], first["config"], first["split"]) == (
        *("Idavidrein/gpqa", "gpqa_diamond", "train"),
    )
    assert second["type"] == "qualeval/ruler-lite/v1" and "split" not in second


@pytest.mark.parametrize(
    "name", ["yes", "1e3", "a: b # c", "- x", "\u202e\u2028\x07é", "'\"\n---\n", ""]
)
def test_model_index_is_safe_for_any_name(run: Path, name: str) -> None:
    """It comes out as the same text, and as ASCII."""
    summary = run_summary(run)
    parts = {key: part.model_copy(update={"model": name}) for key, part in summary.parts.items()}
    text = model_index(summary.model_copy(update={"parts": parts}))
    assert model_index_of(text)["name"] == name
    assert text.isascii() and "\n---" not in text


def test_unknown_format_and_folder_that_is_no_run_are_refused(run: Path) -> None:
    """Exit 2, with the formats there are."""
    with pytest.raises(OptionError, match=r"'jsn' is unknown \(did you mean 'json'\?\)"):
        summarize_command(run, "jsn")
    for folder in (run.parent, run.with_name("nothing")):
        with pytest.raises(QualevalError) as error:
            summarize_command(folder, "table")
        assert error.value.exit_code == 2


def test_model_index_keeps_rows_of_one_data_set_apart(run: Path) -> None:
    """`gpqa` and `think` ask one data set; the hub's tools merge what has one configuration."""
    from huggingface_hub import ModelCard

    summary, official = with_official_gpqa(run)
    thinks = official.model_copy(update={"part": "think", "title": "GPQA 30, thinking on"})
    text = model_index(summary.model_copy(update={"parts": {"gpqa": official, "think": thinks}}))
    saved = ModelCard(f"---\n{text}---\n").data.to_yaml()
    again = model_index_of(saved)["results"]
    assert [result["dataset"]["config"] for result in again] == [
        "gpqa_diamond",
        "gpqa_diamond, GPQA 30, thinking on",
    ]
