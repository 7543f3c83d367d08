"""`compare` from the files of runs: what is read, what is refused, what is printed.

Folders are written by the project's own run folder, grader and summary; see compare_folders.py.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from compare_folders import Made, letters

from qualeval.compare_runs import compare_command, read_run, run_names
from qualeval.errors import ContractError, OptionError, QualevalError, RunFolderError

Json = dict[str, Any]


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return Made(tmp_path)


def ask(base: Path | list[Path], new: Path | list[Path], **changed: Any) -> tuple[str, int]:
    options: dict[str, Any] = {"gate": None, "allow": [], "unpaired": False, "format": "table"}
    sides = [side if isinstance(side, list) else [side] for side in (base, new)]
    return compare_command(*sides, **(options | changed))


def as_json(base: Path | list[Path], new: Path | list[Path], **changed: Any) -> Json:
    result: Json = json.loads(ask(base, new, format="json", **changed)[0])
    return result


def refusal(base: Path | list[Path], new: Path | list[Path], **changed: Any) -> str:
    """The message of a refusal, which ends the command with 2."""
    with pytest.raises(QualevalError) as refused:
        ask(base, new, **changed)
    assert 2 == refused.value.exit_code
    return str(refused.value)


def changed_json(path: Path, change: Callable[[Json], object]) -> Path:
    value = json.loads(path.read_text(encoding="utf-8"))
    change(value)
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


# ------------------------------------------------------------------ what is printed


def test_table_holds_everything_of_a_part(made: Made) -> None:
    old = made.run("old", letters([("r", 150), ("w", 40), ("c", 10)]))
    moved = letters([("r", 130), ("c", 15), ("w", 5), ("r", 5), ("w", 35), ("c", 10)])
    new = made.run("new", moved, model="m2")

    text, code = ask(old, new)

    row = next(line for line in text.splitlines() if line.startswith("MMLU-Pro "))
    assert [
        "MMLU-Pro",
        "75.0 % 150/200",
        "67.5 % 135/200",
        "-7.5",
        "-12.8 to -2.8",
        "20 : 5",
        "0.002 (0.002)",
        "10 -> 25 (< 0.001)",
        "7.0 pts",
        "worse",
    ] == [cell.strip() for cell in row.split("   ") if cell.strip()]
    assert 0 == code
    for line in (
        "base  old: old · m",
        "new   new: new · m2",
        "MMLU-Pro, old -> new: lost 20 (15 cut off, 5 wrong)",
        "  right -> wrong: 145, 146, 147, 148, 149",
        "MMLU-Pro, old -> new: gained 5 (5 wrong)",
        "Same except:",
        "  model: m -> m2",
    ):
        assert line in text.splitlines()
    assert "not comparable with results on other lists or prompts" in text
    assert "within 5 points (the default;" in text


def test_markdown_is_one_table_with_flips_folded(made: Made) -> None:
    old, new = made.run("old", "rrrw"), made.run("n|w", "rrcr")

    text, _ = ask(old, new, format="md")

    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert {11} == {line.replace("\\|", "").count("|") for line in rows}
    assert "<details><summary>Flips</summary>" in text
    assert "n\\|w" in text
    assert text.endswith("\n")


def test_markdown_without_flips_folds_nothing(made: Made) -> None:
    old = made.run("old", "rrrw")

    assert "<details>" not in ask(old, old, format="md")[0]


def test_json_holds_every_number_and_all_flips(made: Made) -> None:
    old, new = made.run("old", "r" * 60), made.run("new", "w" * 60)

    (row,) = as_json(old, new)["rows"]

    (pair,) = row["pairs"]
    assert (60, 0, -1.0) == (pair["lost"], pair["gained"], pair["difference"])
    assert [*range(60)] == [flip["id"] for flip in pair["flips"]]
    assert "tango" == pair["ci_method"]
    assert "and 40 more (--format json has all)" in ask(old, new)[0]


def test_equal_runs_print_same_or_cannot_tell(made: Made) -> None:
    few, many = made.run("few", "rw" * 10), made.run("many", "rw" * 100)

    assert "can't tell" in ask(few, few)[0]
    assert "> 25.0 pts" in ask(few, few)[0]
    assert "same within 5 pts" in ask(many, many)[0]
    assert "Same except: nothing that is known." in ask(many, many)[0]


def test_five_questions_can_show_nothing(made: Made) -> None:
    old = made.run("old", "rrrww")

    assert "   nothing   " in ask(old, old)[0]


def test_gate_prints_its_word_and_the_smallest_margin(made: Made) -> None:
    old = made.run("old", "r" * 380 + "w" * 20)
    worse, few = made.run("worse", "r" * 372 + "w" * 28), made.run("few", "rw")

    text, code = ask(old, worse, gate=5.0)
    assert "Gate, no part worse by 5 points: PASS: WORSE, WITHIN 5 POINTS." in text
    assert "the smallest margin that these 400 questions can prove is 2.0 points" in text
    assert 0 == code
    text, code = ask(few, few, gate=5.0)
    assert "INCONCLUSIVE." in text
    assert "Note, MMLU-Pro: not enough data for this gate" in text
    assert 3 == code
    assert 1 == ask(old, made.run("bad", "w" * 400), gate=5.0)[1]


def test_margin_of_the_cards_defines_same(made: Made) -> None:
    old, new = made.run("old", "rw" * 50, gate=8.0), made.run("new", "rw" * 50)

    text, code = ask(old, new)

    assert "same within 8 pts" in text
    assert "(gate.margin_points of the card)" in text
    assert 0 == code
    assert "Note: this gate is 9 points; the card set 8 before the run." in ask(old, new, gate=9)[0]


def test_sample_list_and_limits_off_the_method_are_marked(made: Made) -> None:
    old = made.run("old", "r" * 48, list="sample", max_tokens=64)

    text = ask(old, old)[0]

    assert "MMLU-Pro (sample list)" in text
    assert "SAMPLE LIST" in text
    assert "not the published limits: max_tokens 64 instead of 48" in text


def test_figures_beside_the_score_are_shown_without_a_test(made: Made) -> None:
    old = made.run("old", "r" * 30, part="ifeval", list="sample")

    text = ask(old, old)[0]

    assert "beside it, not tested: strict instructions" in text


def test_several_runs_a_side_show_each_pair_and_the_spread(made: Made) -> None:
    runs = [made.run(f"a{n}", "r" * n + "w" * (200 - n)) for n in (150, 120, 90)]

    text, code = ask(runs[:2], runs[2], gate=5.0)

    assert "  a150 -> a90 " in text
    assert "  a120 -> a90 " in text
    assert (
        "  spread: base 60.0 to 75.0 % (2 runs, 15.0 pts apart); new 45.0 % (one run); "
        "no runs are merged"
    ) in text
    assert "Note, MMLU-Pro: runs of one side lie as far apart as the two sides do." in text
    assert 3 == code


def test_more_than_two_runs_are_a_table_against_the_first(made: Made) -> None:
    old, one, two = (made.run(name, "rrww", part="gpqa") for name in ("old", "n1", "n2"))

    text, _ = ask(old, [one, two], gate=5.0)

    assert 1 == text.count("GPQA Diamond: own list")
    assert "\n  n1 " in text
    assert "\n  n2 " in text
    assert "  GPQA Diamond, n1: inconclusive" in text


def test_repeats_are_shown_as_answers_of_a_question(made: Made) -> None:
    old, new = made.run("old", "rr", "rw", "rw"), made.run("new", "rr", "cw", "wr")

    text, _ = ask(old, new)

    assert "  3 of 3 right -> 1 of 3 right (1 cut off, 1 wrong): 0" in text
    assert "  1 of 3 right (2 wrong) -> 2 of 3 right (1 wrong): 1" in text


def test_what_a_terminal_would_obey_is_not_printed(made: Made) -> None:
    old = made.run("old", "rw", label="\x1b[31mred\nline")

    text = ask(old, old)[0]

    assert "\x1b" not in text
    assert "base  old: \N{REPLACEMENT CHARACTER}[31mred\N{REPLACEMENT CHARACTER}line · m" in text


def test_allowed_field_and_part_left_out_are_said(made: Made) -> None:
    old, new = made.run("old", "rw"), made.run("new", "rw", seed=1)
    made.run("old", "rw", part="gpqa")

    text, _ = ask(old, new, allow=["seed", "parts"])

    assert "ALLOWED TO DIFFER, so the scores answer different questions:" in text
    assert "  seed: 42 -> 1" in text
    assert "Left out, not in every run: gpqa." in text


def test_difference_in_some_parts_names_them(made: Made) -> None:
    old, new = made.run("old", "rw"), made.run("new", "rw")
    made.run("old", "rw", part="gpqa")
    made.run("new", "rw", part="gpqa", session={"slots": 1})

    assert "  slots (gpqa): 4 -> 1" in ask(old, new)[0].splitlines()


# ------------------------------------------------------------------ fields, as cards set them


@pytest.mark.parametrize(
    "word, changed, field",
    [
        ("seed", {"seed": 7}, "seed"),
        ("sampling", {"sampling": {"temperature": 0.0}}, "sampling.temperature"),
        ("limits", {"max_tokens": 64}, "max_tokens"),
        ("max_tokens", {"max_tokens": 64}, "max_tokens"),
        ("thinking", {"thinking": {"off": {"think": 2}}}, "thinking_object.think"),
    ],
)
def test_cards_that_differ_are_refused_and_can_be_allowed(
    made: Made, word: str, changed: Json, field: str
) -> None:
    old, new = made.run("old", "rw"), made.run("new", "rw", **changed)

    assert f"{field} (mmlupro): old " in refusal(old, new)
    assert [field] == [d["field"] for d in as_json(old, new, allow=[word])["allowed"]]


def test_other_list_is_refused_and_its_questions_cannot_be_paired(made: Made) -> None:
    old, new = made.run("old", "rw"), made.run("new", "rww")

    assert "list.sha256 (mmlupro): old " in refusal(old, new)
    assert "questions in one run only: 1, the first is '2'" in refusal(old, new, allow=["list"])
    assert "newcombe-10" in ask(old, new, allow=["list"], unpaired=True)[0]


def test_repeats_that_differ_are_refused(made: Made) -> None:
    assert "repeats (mmlupro): old 1; new 2" in refusal(
        made.run("old", "rw"), made.run("new", "rw", "rw")
    )


# ------------------------------------------------------------------ summary files


def test_summary_file_in_its_run_is_that_part_of_the_run(made: Made) -> None:
    old, new = made.run("old", "rw"), made.run("new", "rr")
    made.run("old", "rw", part="gpqa")

    text, _ = ask(old / "mmlupro.summary.json", new / "mmlupro.summary.json")

    assert "0 : 1" in text
    assert "GPQA" not in text


def test_summary_of_the_whole_run_is_the_run(made: Made) -> None:
    old, new = made.run("old", "rw"), made.run("new", "rr")

    whole = as_json(old / "summary.json", new / "summary.json")

    assert as_json(old, new)["rows"][0]["pairs"][0]["p"] == whole["rows"][0]["pairs"][0]["p"]
    assert ["old/summary.json", "new/summary.json"] == whole["runs"]


@pytest.mark.parametrize("name", ["mmlupro.summary.json", "summary.json"])
def test_summary_alone_is_compared_unpaired(made: Made, tmp_path: Path, name: str) -> None:
    old, new = made.run("old", "rrrw"), made.run("new", "rrww")
    page = tmp_path / "page"
    page.mkdir()
    shutil.copy(old / name, page / name)

    assert "only its counts are known" in refusal(page / name, new)
    text, _ = ask(page / name, new, unpaired=True)

    assert "UNPAIRED: two scores by their counts alone" in text
    assert "75.0 % 3/4" in text
    assert "newcombe-10" in text
    assert "Not known to be the same" not in text, "both have the same sha256 of conditions"
    assert ask(page, new, unpaired=True)[0].count("75.0 % 3/4") == 1, "a folder of summaries too"


def test_summary_of_another_model_leaves_prompt_and_grader_unknown(
    made: Made, tmp_path: Path
) -> None:
    old, new = made.run("old", "rrrw"), made.run("new", "rrww", model="m2")
    page = Path(shutil.copy(old / "mmlupro.summary.json", tmp_path / "page.summary.json"))

    text, _ = ask(page, new, unpaired=True)

    assert "Not known to be the same: list.sha256, prompt, grader." in text
    assert "  model: m -> m2" in text
    assert "seed (mmlupro)" in refusal(page, made.run("n2", "rrww", seed=1), unpaired=True)


def test_summary_under_another_name_is_not_taken_for_the_run_beside_it(made: Made) -> None:
    """A downloaded page.summary.json in a run folder is not that run."""
    old, new = made.run("old", "rrrw"), made.run("new", "rrww")
    page = Path(shutil.copy(old / "mmlupro.summary.json", new / "page.summary.json"))

    assert "only its counts are known" in refusal(page, new / "mmlupro.summary.json")
    assert "part 'mmlupro' is there twice" in refusal(old, new)


# ------------------------------------------------------------------ bad input


def test_missing_folder_is_said(made: Made, tmp_path: Path) -> None:
    assert "there is no such run folder or file" in refusal(made.run("old", "rw"), tmp_path / "no")


def test_folder_without_a_run_is_said(made: Made, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()

    assert "holds no part of a run" in refusal(tmp_path / "empty", made.run("new", "rw"))


@pytest.mark.parametrize("name", ["card.json", "mmlupro.jsonl", "mmlupro.contract.json"])
def test_file_that_is_no_summary_is_said(made: Made, name: str) -> None:
    old = made.run("old", "rw")

    assert "is no run folder, and no summary.json" in refusal(old / name, old)


@pytest.mark.parametrize("name", ["mmlupro.summary.json", "mmlupro.contract.json", "card.json"])
@pytest.mark.parametrize(
    "text",
    [b'{"part": "mmlu', b"", b"\xff\xfe", b"[" * 100_000],
    ids=["half", "empty", "x", "deep"],
)
def test_half_written_json_is_said(made: Made, name: str, text: bytes) -> None:
    old, new = made.run("old", "rw"), made.run("new", "rw")
    (new / name).write_bytes(text)

    said = refusal(old, new)

    assert f"{name}: is not JSON, or only half of it" in said


def test_whole_summary_that_is_half_written_or_empty_is_said(made: Made) -> None:
    old = made.run("old", "rw")
    whole = old / "summary.json"
    changed_json(whole, lambda value: value.update(parts={}))

    assert "holds no part" in refusal(whole, old)
    whole.write_text("{")
    assert "is not JSON" in refusal(whole, old)


@pytest.mark.parametrize("name", ["mmlupro.summary.json", "mmlupro.contract.json"])
def test_file_of_another_version_is_said_with_the_field(made: Made, name: str) -> None:
    old, new = made.run("old", "rw"), made.run("new", "rw")
    changed_json(new / name, lambda value: value.update(colour="blue"))

    said = refusal(old, new)

    assert f"{name}: is no " in said
    assert "of this version of qualeval" in said
    assert "field 'colour': Extra inputs are not permitted" in said


def test_list_as_summary_is_said(made: Made) -> None:
    old, new = made.run("old", "rw"), made.run("new", "rw")
    (new / "mmlupro.summary.json").write_text("[]")

    assert "is no summary of this version" in refusal(old, new)


def test_conditions_of_another_version_are_said(made: Made) -> None:
    old, new = made.run("old", "rw"), made.run("new", "rw")
    changed_json(new / "mmlupro.contract.json", lambda value: value["conditions"].pop("seed"))

    assert "is no contract of this version" in refusal(old, new)


def test_hand_edited_conditions_are_said(made: Made) -> None:
    old, new = made.run("old", "rw", seed=7), made.run("new", "rw")
    changed_json(new / "mmlupro.contract.json", lambda value: value["conditions"].update(seed=7))

    assert "are not those that their sha256 was made of" in refusal(old, new)


def test_summary_of_other_conditions_beside_a_contract_is_said(made: Made) -> None:
    old, new = made.run("old", "rw", seed=7), made.run("new", "rw")
    shutil.copy(old / "mmlupro.summary.json", new / "mmlupro.summary.json")

    assert "belongs to other conditions than mmlupro.contract.json" in refusal(old, new)


def test_part_without_summary_was_never_finished(made: Made) -> None:
    old, new = made.run("old", "rw"), made.run("new", "rw")
    (new / "mmlupro.summary.json").unlink()

    assert "part 'mmlupro' was started and never finished" in refusal(old, new)


@pytest.mark.parametrize("unpaired", [False, True])
def test_incomplete_part_is_refused(made: Made, unpaired: bool) -> None:
    old, new = made.run("old", "rrw"), made.run("new", "r w")

    said = refusal(old, new, unpaired=unpaired)

    assert "new: part 'mmlupro' is incomplete (1 not asked yet)" in said
    assert "%" not in said


def test_summary_that_calls_a_part_with_a_missing_answer_ok_is_refused(made: Made) -> None:
    old, new = made.run("old", "rrw"), made.run("new", "rrw")
    changed_json(new / "mmlupro.summary.json", lambda value: value.update(answered=2))

    assert "is incomplete (2 of 3 answered)" in refusal(old, new)


def test_missing_answer_file_leaves_counts_alone(made: Made) -> None:
    old, new = made.run("old", "rrw"), made.run("new", "rrw")
    (new / "mmlupro.jsonl").unlink()

    assert "new: part 'mmlupro': only its counts are known" in refusal(old, new)
    assert "UNPAIRED" in ask(old, new, unpaired=True)[0]


def edited(folder: Path, change: Callable[[list[Json]], object]) -> None:
    path = folder / "mmlupro.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    change(rows)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


EDITS: dict[str, tuple[Callable[[list[Json]], object], str]] = {
    "a removed line": (lambda rows: rows.pop(), "holds 2 answers, 2 right, 0 cut off, but its"),
    "a verdict": (lambda rows: rows[0].update(right=False), "holds 3 answers, 1 right"),
    "a cut off flag": (lambda rows: rows[2].update(cut_off=True), "1 cut off, but"),
    "a doubled line": (lambda rows: rows.append(rows[0]), "repeat 0: is there twice"),
    "another repeat": (lambda rows: rows[0].update(repeat=1), "repeat 1: is there twice"),
    "another id": (lambda rows: rows[0].update(id=99), "questions in one run only: 2"),
    "a right cut-off": (lambda rows: rows[0].update(cut_off=True), "a cut-off answer is marked"),
    "a new field": (lambda rows: rows[0].update(colour=1), "field 'colour': Extra inputs"),
}


@pytest.mark.parametrize("edit", EDITS)
def test_answers_that_do_not_fit_the_summary_are_refused(made: Made, edit: str) -> None:
    old, new = made.run("old", "rrw"), made.run("new", "rrw")
    change, said = EDITS[edit]
    edited(new, change)

    assert said in refusal(old, new)


def test_torn_last_answer_is_refused(made: Made) -> None:
    old, new = made.run("old", "rrw"), made.run("new", "rrw")
    path = new / "mmlupro.jsonl"
    path.write_bytes(path.read_bytes()[:-20])

    assert "holds 2 answers" in refusal(old, new)


def test_repeat_moved_to_another_question_is_refused(made: Made) -> None:
    """The totals fit, but one question has three answers and one has one."""
    old, new = made.run("old", "rr", "rr"), made.run("new", "rr", "rr")
    edited(new, lambda rows: rows[3].update(id=7))

    assert "but its summary counts 4 answers" in refusal(old, new)


def test_folder_under_the_name_of_a_file_is_said(made: Made) -> None:
    old, new = made.run("old", "rw"), made.run("new", "rw")
    (new / "mmlupro.contract.json").unlink()
    (new / "mmlupro.contract.json").mkdir()

    assert "cannot be read: Is a directory" in refusal(old, new)


def test_run_of_another_suite_is_refused(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    old = made.run("old", "rw")
    monkeypatch.setattr("qualeval.contract.SUITE", "qualeval suite 2")
    new = made.run("new", "rw")

    assert "suite (mmlupro): old qualeval suite 1; new qualeval suite 2" in refusal(old, new)


def test_unknown_format_is_refused_with_the_nearest(made: Made) -> None:
    old = made.run("old", "rw")

    with pytest.raises(OptionError, match=r"'jsn' is unknown.*did you mean 'json'"):
        ask(old, old, format="jsn")


def test_side_without_a_run_is_refused(made: Made) -> None:
    with pytest.raises(OptionError, match="at least one new run"):
        ask(made.run("old", "rw"), [])


def test_run_given_twice_on_one_side_is_refused(made: Made) -> None:
    old, new = made.run("old", "rw"), made.run("new", "rw")

    with pytest.raises(OptionError, match="is given twice"):
        ask(old, [new, new / "." / ""])


def test_messages_are_errors_of_their_kind(made: Made) -> None:
    old, new = made.run("old", "rw"), made.run("new", "rw", seed=1)

    with pytest.raises(ContractError):
        ask(old, new)
    with pytest.raises(RunFolderError):
        ask(old, old / "nothing")


# ------------------------------------------------------------------ reading


def test_runs_of_one_name_are_shown_by_their_paths(tmp_path: Path) -> None:
    one, two, other = (tmp_path / name for name in ("a/run", "b/run", "c"))
    for path in (one, two, other):
        path.mkdir(parents=True)

    assert [str(one), str(two), "c"] == run_names([one, two, other])
    assert ["run", "run"] == run_names([one, one])


def test_answers_are_read_by_key_in_list_order(made: Made) -> None:
    folder = made.run("old", "rcn", "mrs")

    part = read_run(folder, "old").parts["mmlupro"]

    assert part.questions is not None
    assert ["0", "1", "2"] == [*part.questions]
    assert ["right", "misrouted"] == [o.cause for o in part.questions["0"].outcomes]
    assert ["no letter", "several letters"] == [o.cause for o in part.questions["2"].outcomes]
    assert (6, 2, 1, 2) == (part.n, part.right, part.cut_off, part.repeats)
