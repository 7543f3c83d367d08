"""`runs` lists every run and row below a folder, and breaks on none of them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from engine import Lab
from model_server import running
from stored_runs import change_lines, copied, record, set_in_object

from qualeval.errors import OptionError
from qualeval.runs_table import runs_command


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with running(slots=4) as server:
        return record(tmp_path_factory.mktemp("runs"), server)


@pytest.fixture
def runs(made: Path, tmp_path: Path) -> Path:
    """A folder with one run, `job`."""
    return copied(made, tmp_path / "runs").parent


def cells(line: str) -> list[str]:
    """The columns of a line of the table: two blanks or more part them."""
    return [cell.strip() for cell in line.split("  ") if cell.strip()]


def test_rows_of_a_run_are_listed_with_value_status_date_and_model(runs: Path) -> None:
    """Each row once; what keeps a row from being the published one stands in its status."""
    lines = runs_command(runs)
    head, first, second, third, *rest = map(cells, lines)
    assert head == ["run", "row", "result, 95 % margin", "right", "status", "date", "model"]
    date = first[5]
    assert len(date) == len("2026-11-30")
    assert first[:5] == ["job", "MMLU-Pro", "50.0 % ± 28.5 pts", "4/8", "ok, own list"]
    assert second[1:] == ["20.0 % ± 16.8 pts", "4/20", "ok, sample list", date, "test-model"]
    assert third[3] == "ok, own list, not the published limits, 2 answers a question"
    assert all(line[0].startswith("never run: ") for line in rest)


def test_columns_stand_below_each_other(runs: Path) -> None:
    """By width on a terminal."""
    head, first, second, *_ = runs_command(runs)
    assert head.index("status") == first.index("ok, own list") == second.index("ok, sample list")


def test_repetition_stands_below_its_job_and_is_never_merged(tmp_path: Path) -> None:
    """`--repetition` twice; the order is by number, and each has its own value."""
    with running(slots=4) as server:
        lab = Lab(tmp_path, server).list_of(4).script()
        assert lab.run().code == 0
        lab.script({"0": {"text": "C"}})
        assert lab.run("--repetition").code == 0
    folder = lab.job().folder.parent
    shutil.copytree(folder / "job-rep1", folder / "job-rep10")
    shutil.copytree(folder / "job-rep1", folder / "job-rep2")
    shutil.copytree(folder / "job-rep1", folder / "job-b")
    lines = [line for line in runs_command(folder) if "never run" not in line]
    assert [cells(line)[0] for line in lines[1:]] == [
        "job",
        "job-rep1",
        "repetition 1 of job: a measurement of its own, never merged",
        "job-rep2",
        "repetition 2 of job: a measurement of its own, never merged",
        "job-rep10",
        "repetition 10 of job: a measurement of its own, never merged",
        "job-b",
    ]
    assert [cells(line)[3] for line in lines if "MMLU-Pro" in line] == ["4/4"] + ["3/4"] * 4


def test_repetition_under_other_conditions_is_told(runs: Path) -> None:
    """Its name alone makes no repetition."""
    shutil.copytree(runs / "job", runs / "job-rep1")
    set_in_object(runs / "job-rep1" / "gpqa.contract.json", conditions_sha256="0" * 64)
    assert "  but gpqa was asked under other conditions than in job" in runs_command(runs)


def test_repetition_without_its_job_is_a_run(runs: Path) -> None:
    """Nothing is said of a job that is not there."""
    (runs / "job").rename(runs / "job-rep1")
    lines = runs_command(runs)
    assert cells(lines[1])[0] == "job-rep1" and not any("repetition" in line for line in lines)


def test_incomplete_row_has_no_value(tmp_path: Path) -> None:
    """It is named with the reason."""
    with running(slots=4) as server:
        lab = Lab(tmp_path, server).list_of(4).script({"2": {"status": 400}})
        assert lab.run().code == 1
    line = next(line for line in runs_command(lab.job().folder.parent) if "MMLU-Pro" in line)
    assert "%" not in line
    assert cells(line)[1:4] == [
        "MMLU-Pro",
        "3 of 4 answered",
        "incomplete (1 failed), own list",
    ]


def test_row_that_was_never_summarized_is_named(runs: Path) -> None:
    """Its run was killed: no summary, or one that counts fewer replies than there are."""
    (runs / "job" / "mmlupro.summary.json").unlink()
    change_lines(runs / "job" / "gpqa.gen.jsonl", lambda lines: lines[:7])
    (runs / "job" / "think.gen.jsonl").unlink()
    told = "\n".join(runs_command(runs))
    again = "run it again, or qualeval grade"
    assert f"not summarized (8 of 8 replies): {again}" in told
    assert f"not summarized (7 of 20 replies): {again}" in told
    assert f"not summarized (0 of 16 replies): {again}" in told
    assert "%" not in told.partition("\n")[2]


def test_part_with_a_program_that_is_not_judged_yet_is_summarized(runs: Path) -> None:
    """Its summary counts all replies, and answers to fewer of them."""
    path = runs / "job" / "mmlupro.summary.json"
    answered = json.loads(path.read_text())["answered"]
    unjudged = {"answered": answered - 1, "not_judged": 1, "status": "incomplete"}
    set_in_object(path, **unjudged, accuracy=None, margin=None)
    line = next(line for line in runs_command(runs) if "MMLU-Pro" in line)
    assert "not summarized" not in line
    assert f"{answered - 1} of" in line


def test_broken_folder_is_a_line(runs: Path) -> None:
    """The rows that can be read stand there all the same."""
    (runs / "job" / "gpqa.summary.json").write_text("{", encoding="utf-8")
    (runs / "job" / "think.contract.json").write_text("{}", encoding="utf-8")
    (runs / "other").mkdir()
    (runs / ".hidden").mkdir()
    (runs / "README.md").write_text("about")
    lines = runs_command(runs)
    assert cells(lines[1])[:2] == ["job", "MMLU-Pro"]
    assert "  broken: gpqa.summary.json: is not JSON" in lines
    assert "  broken: think.contract.json: field 'conditions': Field required" in lines
    assert lines[-2:] == ["other", "  no run: nothing was asked here"]


def test_part_of_another_version_is_named(runs: Path) -> None:
    """A part that this program does not know."""
    (runs / "job" / "poetry.contract.json").write_text("{}", encoding="utf-8")
    assert "  not in this version of qualeval: poetry" in runs_command(runs)


def test_run_given_in_place_of_a_folder_is_listed_alone(runs: Path) -> None:
    """The nearest thing that can be meant."""
    assert cells(runs_command(runs / "job")[1])[0] == "job"


def test_folder_without_runs_says_so_and_one_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """A sentence, and exit 2."""
    assert runs_command(tmp_path) == [f"{tmp_path}: no run yet"]
    with pytest.raises(OptionError, match="there is no such folder"):
        runs_command(tmp_path / "nothing")
