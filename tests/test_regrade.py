"""`grade` makes verdicts and numbers again from the raw replies, and touches nothing else."""

from __future__ import annotations

import fcntl
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from engine import Lab
from model_server import running
from stored_runs import change_lines, copied, first_id, hashes, record, set_in_line, set_in_object

from qualeval.errors import ContractError, JobInUseError, ListError, OptionError, RunFolderError
from qualeval.records import Completion, Item, Verdict, sha256_of
from qualeval.regrade import grade_command
from qualeval.sandbox.values import RunCode
from qualeval.tasks import TASKS
from qualeval.tasks.letters import LetterTask
from qualeval.verify import verify_command

WRITTEN = {"summary.json", "summary.md"} | {
    f"{part}.{kind}" for part in ("mmlupro", "gpqa", "think") for kind in ("jsonl", "summary.json")
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with running(slots=4) as server:
        return record(tmp_path_factory.mktemp("regrade"), server)


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Path:
    return copied(made, tmp_path)


def test_grading_again_changes_no_byte_and_no_verdict(run: Path) -> None:
    """The run's own files come out as the run wrote them."""
    before = hashes(run)
    lines, code = grade_command(run, None)
    assert code == 0
    assert lines[:3] == [
        "mmlupro: none of 8 verdicts changed",
        "gpqa: none of 20 verdicts changed",
        "think: none of 16 verdicts changed",
    ]
    assert any(line.startswith("MMLU-Pro") and "4 / 8" in line for line in lines)
    assert hashes(run) == before


def test_only_answers_and_summaries_are_written(run: Path) -> None:
    """They may all be gone: raw replies, contracts and lists bring them back; no byte of those
    moves.
    """
    before = hashes(run)
    for name in WRITTEN:
        (run / name).unlink()
    lines, code = grade_command(run, None)
    assert code == 0 and "  8 answers had no verdict before" in lines
    assert hashes(run) == before


def test_hand_edited_verdict_is_made_right_and_told(run: Path) -> None:
    """From what to what, why, and which."""
    set_in_line(run / "mmlupro.jsonl", 0, right=False, rule="no_letter")
    set_in_line(run / "mmlupro.jsonl", 1, right=True)
    set_in_line(run / "mmlupro.jsonl", 7, reason="Because.")
    lines, code = grade_command(run, "mmlupro")
    assert code == 0
    assert lines[:4] == [
        "mmlupro: 2 of 8 verdicts changed",
        "  1 x right (bare) -> wrong (bare): that is what letter 1 says; id 1",
        "  1 x wrong (no_letter) -> right (bare): that is what letter 1 says; id 0",
        "  1 reason is worded anew",
    ]
    assert verify_command(run)[1] == 0


def test_hand_edited_reply_is_told_as_such(run: Path) -> None:
    """An answer that was not its raw reply gives a verdict of its own: that is the why."""
    set_in_line(run / "mmlupro.jsonl", 1, text="B", right=True, extracted="B")
    set_in_line(run / "mmlupro.jsonl", 0, seconds=0.001)
    lines, _ = grade_command(run, "mmlupro")
    why = "the stored answer was not its raw reply"
    assert lines[1] == f"  1 x right (bare) -> wrong (bare): {why}; id 1"
    assert lines[2] == "  1 answer was not its raw reply and is again"
    assert verify_command(run)[1] == 0


def test_lines_without_a_raw_reply_go_and_broken_ones_come_back(run: Path) -> None:
    """The answer file is made of the raw one, whatever stood in it."""
    change_lines(
        run / "mmlupro.jsonl",
        lambda lines: [
            "{no json",
            *lines[1:],
            json.dumps({**json.loads(lines[1]), "id": "stranger"}),
        ],
    )
    lines, _ = grade_command(run, None)
    assert lines[:3] == [
        "mmlupro: none of 7 verdicts changed",
        "  1 answer had no verdict before",
        "  1 verdict had no raw reply and is gone",
    ]
    assert verify_command(run)[1] == 0


def test_many_changes_of_one_kind_are_one_line(run: Path) -> None:
    """Five ids, then their number."""
    change_lines(
        run / "gpqa.jsonl",
        lambda lines: [json.dumps({**json.loads(line), "rule": "old"}) for line in lines],
    )
    lines, _ = grade_command(run, "gpqa")
    assert lines[0] == "gpqa: 20 of 20 verdicts changed"
    assert sum(int(line.split()[0]) for line in lines[1:5] if " x " in line) == 20
    assert any(line.endswith(" more") and line.count(",") >= 4 for line in lines[1:5])


def test_one_part_leaves_the_others_alone_and_the_summary_whole(run: Path) -> None:
    """`--parts gpqa`: two files of that part, and the two of the run."""
    before = hashes(run)
    for part in ("gpqa", "mmlupro"):
        set_in_line(run / f"{part}.jsonl", first_id(run, part), right="edited")
    edited = hashes(run)
    lines, _ = grade_command(run, "gpqa")
    after = hashes(run)
    assert {name for name in after if after[name] != edited[name]} == {"gpqa.jsonl"}
    assert after["summary.json"] == before["summary.json"]
    assert not any("MMLU-Pro" in line for line in lines)


def test_incomplete_part_exits_1_and_names_why(tmp_path: Path) -> None:
    """A failed request stays a failed request."""
    with running(slots=4) as server:
        lab = Lab(tmp_path, server).list_of(4).script({"2": {"status": 400}})
        assert lab.run().code == 1
    lines, code = grade_command(lab.job().folder, None)
    assert code == 1
    assert lines[0] == "mmlupro: none of 3 verdicts changed"
    assert lines[-1] == "mmlupro is incomplete: 1 failed"


# ------------------------------------------------------------------ graders and suites


class Lenient(LetterTask):
    """A letter task whose grader takes every finished reply."""

    def grade(self, item: Item, completion: Completion, run_code: RunCode | None = None) -> Verdict:
        right = not completion.cut_off
        return Verdict(right=right, cut_off=not right, rule="lenient", reason="Why not.")


@pytest.fixture
def lenient(monkeypatch: pytest.MonkeyPatch) -> None:
    """This program has another grader for mmlupro."""
    old = TASKS["mmlupro"]
    assert isinstance(old, LetterTask)
    fields = {name: getattr(old, name) for name in LetterTask.__dataclass_fields__}
    task = replace(Lenient(**fields), grader="letter 2")
    monkeypatch.setitem(TASKS, "mmlupro", task)


def contract(run: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((run / "mmlupro.contract.json").read_bytes())
    return value


@pytest.mark.usefixtures("lenient")
def test_new_grader_grades_and_the_contract_says_so(run: Path) -> None:
    """The contract names the grader of the verdicts that stand there; nothing else of it moves,
    the log keeps the old name, and the run is equal to itself afterwards.
    """
    old, before = contract(run), hashes(run)
    lines, code = grade_command(run, None)
    assert code == 0
    assert lines[0] == "mmlupro: 8 of 8 verdicts changed"
    why = "letter 2 in place of letter 1"
    assert f"  1 x wrong (bare) -> right (lenient): {why}; id 1" in lines
    new, after = contract(run), hashes(run)
    assert new["conditions"] == old["conditions"] | {"grader": "letter 2"}
    assert new["conditions_sha256"] == sha256_of(new["conditions"])
    assert new["sessions"] == old["sessions"]
    told = "graded again with letter 2 (qualeval suite 1) in place of letter 1"
    assert f" mmlupro {told}" in (run / "run.log").read_text(encoding="utf-8")
    changed = {name for name in after if after[name] != before[name]}
    assert changed - WRITTEN == {"mmlupro.contract.json", "run.log"}
    assert verify_command(run)[1] == 0
    assert grade_command(run, None)[0][0] == "mmlupro: none of 8 verdicts changed"


@pytest.mark.usefixtures("lenient")
def test_new_grader_may_come_with_its_suite(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A verdict rule that changed raises the suite; lists, prompts and limits of this part are the
    same, or it would be refused.
    """
    monkeypatch.setattr("qualeval.contract.SUITE", "qualeval suite 2")
    assert grade_command(run, "mmlupro")[1] == 0
    assert contract(run)["conditions"]["suite"] == "qualeval suite 2"
    summary = json.loads((run / "mmlupro.summary.json").read_bytes())
    assert summary["suite"] == "qualeval suite 2"
    assert summary["conditions_sha256"] == contract(run)["conditions_sha256"]


def refused(run: Path, kind: type[Exception], parts: str | None = None) -> str:
    """The message of a refusal, which writes nothing and exits 2."""
    before = hashes(run)
    with pytest.raises(kind) as error:
        grade_command(run, parts)
    assert hashes(run) == before
    assert getattr(error.value, "exit_code", None) == 2
    return str(error.value)


def test_other_suite_alone_is_refused(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Something of the answers may have changed that this program cannot know."""
    monkeypatch.setattr("qualeval.contract.SUITE", "qualeval suite 2")
    said = refused(run, ContractError)
    assert "suite: there 'qualeval suite 1', here 'qualeval suite 2'" in said
    assert "use the version of qualeval that made the run" in said


@pytest.mark.usefixtures("lenient")
def test_other_prompt_is_refused_even_with_a_new_grader(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answers to another question are no answers to this one."""
    other = replace(TASKS["mmlupro"], template="{question}")  # type: ignore[type-var]
    monkeypatch.setitem(TASKS, "mmlupro", other)
    assert "prompt.template: there " in refused(run, ContractError)


@pytest.mark.usefixtures("lenient")
def test_other_limit_of_the_method_is_refused(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run under the old limit must not pass for one under the new."""
    other = replace(TASKS["mmlupro"], max_tokens=64)  # type: ignore[type-var]
    monkeypatch.setitem(TASKS, "mmlupro", other)
    assert "max_tokens: the method's is 64" in refused(run, ContractError)


def test_contract_of_another_part_is_refused(run: Path) -> None:
    """Files that were renamed."""
    conditions = contract(run)["conditions"] | {"part": "gpqa"}
    set_in_object(run / "mmlupro.contract.json", conditions=conditions)
    assert "part: there 'gpqa', here 'mmlupro'" in refused(run, ContractError)


# ------------------------------------------------------------------ bad input


def test_changed_list_is_refused(run: Path) -> None:
    """The answers were given to other questions."""
    set_in_line(run / "mmlupro.items.jsonl", 0, answer="A")
    assert "but the one at hand has" in refused(run, ListError)


def test_unreadable_files_are_refused_with_their_name(run: Path) -> None:
    """Before anything is written."""
    (run / "think.summary.json").write_text("{}", encoding="utf-8")
    assert "think.summary.json: field 'part'" in refused(run, RunFolderError, "mmlupro")
    set_in_object(run / "gpqa.contract.json", conditions={})
    assert "gpqa.contract.json: field 'conditions.suite'" in refused(run, RunFolderError)
    (run / "gpqa.contract.json").write_text("{}", encoding="utf-8")
    assert "gpqa.contract.json: field 'conditions'" in refused(run, RunFolderError)


def test_part_that_was_never_run_is_named(run: Path) -> None:
    """So is one that does not exist."""
    (run / "gpqa.contract.json").unlink()
    assert "part 'gpqa' was never run in" in refused(run, OptionError, "gpqa")
    assert "did you mean 'think'" in refused(run, OptionError, "thinks")


def test_folder_that_is_no_run_is_refused(run: Path) -> None:
    """With the nearest name."""
    with pytest.raises(RunFolderError, match="no such folder \\(did you mean 'job'"):
        grade_command(run.with_name("jobs"), None)
    with pytest.raises(RunFolderError, match="is no run of this version"):
        grade_command(run.parent, None)


def test_job_that_is_being_written_is_refused(run: Path) -> None:
    """Two writers never share a folder."""
    with (run / ".lock").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert "another qualeval is writing" in refused(run, JobInUseError)


def test_label_is_the_cards_and_the_folders_where_no_card_is_left(run: Path) -> None:
    """A run without its card can still be graded."""
    (run / "card.json").unlink()
    run = run.rename(run.with_name("somewhere"))
    assert grade_command(run, None)[1] == 0
    assert json.loads((run / "summary.json").read_bytes())["label"] == "somewhere"
