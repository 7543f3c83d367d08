"""Which folder a run writes to: a name made of the label, and a fresh one for a repetition."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up import card

from qualeval.contract import conditions_of, new_contract
from qualeval.errors import OptionError, RunFolderError
from qualeval.job import RunOptions, job_name, run_path
from qualeval.plan import PartPlan, plan_part
from qualeval.records import Completion, RawReply, Request
from qualeval.runfolder import RunFolder


def path_of(runs: Path, *, job: str | None = None, repetition: bool = False) -> str:
    options = RunOptions(runs=runs, command="", job=job, repetition=repetition)
    return str(run_path(card(label="DS 41f/tp4"), options, ["gpqa"]).relative_to(runs))


def plan() -> PartPlan:
    return plan_part(card(), "gpqa", Path(), "sample")


def answer_all(folder: Path, count: int | None = None) -> None:
    completion = Completion(text="B", finish_reason="stop")
    with RunFolder(folder) as files:
        contract = new_contract(conditions_of(plan(), card().sampling_source))
        files.write("gpqa.contract.json", contract.model_dump_json())
        for item in plan().items[:count]:
            request = Request(id=item.id, max_tokens=48, body={})
            files.append("gpqa", "gen", RawReply.of(request, completion))


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("ds41f-1107-tp4-ring", "ds41f-1107-tp4-ring"),
        ("DeepSeek V4.1 (Flash)", "deepseek-v4.1-flash"),
        ("a/../b", "a-..-b"),
        ("..", "run"),
        ("---", "run"),
        ("長文", "run"),
        (".hidden", "hidden"),
    ],
)
def test_label_becomes_the_name_of_a_folder(label: str, expected: str) -> None:
    """DESIGN 5: the label as a slug."""
    assert expected == job_name(label)


@given(st.text(min_size=1, max_size=30))
def test_any_label_becomes_one_plain_folder(label: str) -> None:
    """Inside the folder of all runs, never hidden, never above it."""
    name = job_name(label)
    assert name == Path(name).name
    assert name.isascii()
    assert not name.startswith(".")


def test_job_is_the_label_or_the_name_given(tmp_path: Path) -> None:
    """`--job NAME` wins."""
    assert ("ds-41f-tp4", "mine") == (path_of(tmp_path), path_of(tmp_path, job="mine"))


@pytest.mark.parametrize("job", [".", "..", "a/b", "../a", "a\\b"])
def test_job_that_is_no_folder_name_is_refused(tmp_path: Path, job: str) -> None:
    """No run is written elsewhere."""
    with pytest.raises(OptionError, match="is no name of a folder"):
        path_of(tmp_path, job=job)


def test_repetition_has_a_folder_of_its_own(tmp_path: Path) -> None:
    """DESIGN 5: files of its own, never merged; an open one is gone on with."""
    assert "j-rep1" == path_of(tmp_path, job="j", repetition=True)
    answer_all(tmp_path / "j-rep1", count=3)
    assert "j-rep1" == path_of(tmp_path, job="j", repetition=True)


def test_next_repetition_starts_when_the_last_one_is_complete(tmp_path: Path) -> None:
    """One valid value per measurement."""
    answer_all(tmp_path / "j-rep1")
    assert "j-rep2" == path_of(tmp_path, job="j", repetition=True)
    assert "j" == path_of(tmp_path, job="j")
    (tmp_path / "j-rep1" / "gpqa.contract.json").write_text('{"conditions": {}}')
    with pytest.raises(RunFolderError, match=r"gpqa\.contract\.json: field"):
        path_of(tmp_path, job="j", repetition=True)
