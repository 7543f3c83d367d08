"""`summarize` says the same numbers as a table, as Markdown, as CSV and as JSON."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from engine import Lab
from model_server import running
from stored_runs import change_lines, copied, hashes, record, set_in_object

from qualeval.errors import ListError, OptionError, QualevalError, RunFolderError
from qualeval.summary_formats import summarize_command


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


@pytest.mark.parametrize("format", ["table", "md", "csv", "json"])
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


def test_unknown_format_and_folder_that_is_no_run_are_refused(run: Path) -> None:
    """Exit 2, with the formats there are."""
    with pytest.raises(OptionError, match=r"'jsn' is unknown \(did you mean 'json'\?\)"):
        summarize_command(run, "jsn")
    for folder in (run.parent, run.with_name("nothing")):
        with pytest.raises(QualevalError) as error:
            summarize_command(folder, "table")
        assert error.value.exit_code == 2
