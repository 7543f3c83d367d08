"""Whatever is changed in a run folder by hand, `verify` finds it and names it first.

Real runs, asked once and copied; each test spoils one thing.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from engine import Lab, ended, ending, until, whole_lines
from model_server import running
from stored_runs import (
    Json,
    change_lines,
    copied,
    edit_line,
    first_id,
    hashes,
    record,
    set_in_line,
    set_in_object,
)

from qualeval.card import load_card
from qualeval.errors import RunFolderError
from qualeval.list_rows import write_jsonl
from qualeval.pins import Pin, PinnedRow, list_sha256
from qualeval.records import sha256_of
from qualeval.regrade import grade_command
from qualeval.tasks import gpqa
from qualeval.verify import verify_command

Spoil = Callable[[Path], object]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with running(slots=4) as server:
        return record(tmp_path_factory.mktemp("verify"), server)


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Path:
    return copied(made, tmp_path)


def found(run: Path) -> list[str]:
    """The lines of a verification that must find something; the last one names the first."""
    lines, code = verify_command(run)
    assert code == 1
    assert lines[-1].startswith("3 parts, ")
    return lines


def test_untouched_run_is_equal_and_stays_untouched(run: Path) -> None:
    """Failures answered later, two sessions, an own list, a sample list and repeats among it."""
    before = hashes(run)
    lines, code = verify_command(run)
    assert code == 0
    [line] = lines
    assert line.startswith("3 parts, 44 answers, ") and line.endswith("recomputed: all equal")
    assert int(line.split(", ")[2].split()[0]) > 150
    assert hashes(run) == before


def test_card_hash_of_the_session_is_that_of_the_stored_card(run: Path) -> None:
    """What the check of the label rests on."""
    contract = json.loads((run / "gpqa.contract.json").read_bytes())
    assert contract["sessions"][-1]["card_sha256"] == load_card(run / "card.json").sha256


ANSWERS = "mmlupro.jsonl"
RAW = "mmlupro.gen.jsonl"


def answer(**fields: Any) -> Spoil:
    return lambda run: set_in_line(run / ANSWERS, 0, **fields)


def raw(id: int = 0, **fields: Any) -> Spoil:
    return lambda run: set_in_line(run / RAW, id, **fields)


def lines_of(name: str, change: Callable[[list[str]], list[str]]) -> Spoil:
    return lambda run: change_lines(run / name, change)


def number(**fields: Any) -> Spoil:
    return lambda run: set_in_object(run / "mmlupro.summary.json", **fields)


def foreign(lines: list[str]) -> list[str]:
    """A line of an item that nobody has."""
    return [*lines, json.dumps({**json.loads(lines[0]), "id": "stranger"})]


def gated_details(run: Path) -> None:
    id = first_id(run, "gpqa")
    set_in_line(run / "gpqa.jsonl", id, details={"word": "blue", "tests": 3})


SPOILED: dict[str, tuple[Spoil, str]] = {
    "verdict": (answer(right=False), f"{ANSWERS}: id 0: right: stored false, recomputed true"),
    "rule": (answer(rule="lucky"), f'{ANSWERS}: id 0: rule: stored "lucky", recomputed "bare"'),
    "extracted": (answer(extracted="C"), f'{ANSWERS}: id 0: extracted: stored "C", recomputed "B"'),
    "gold": (answer(gold="C"), f"{ANSWERS}: id 0: gold: stored 1 character (sha256 "),
    "reason": (answer(reason="because"), f'{ANSWERS}: id 0: reason: stored "because", recomputed'),
    "reason_of_a_gated_list": (
        lambda run: set_in_line(run / "gpqa.jsonl", first_id(run, "gpqa"), reason="because"),
        ": reason: stored 7 characters (sha256 ",
    ),
    "detail": (
        answer(details={"span": [0, 1], "tests": 3}),
        f"{ANSWERS}: id 0: details.tests: stored 3, recomputed nothing",
    ),
    "detail_of_a_gated_list": (gated_details, ": details.word: stored 4 characters (sha256 "),
    "number_of_a_gated_list": (gated_details, ": details.tests: stored 3, recomputed nothing"),
    "text": (answer(text="C"), f"{ANSWERS}: id 0: text: stored 1 character (sha256 "),
    "finish_reason": (
        answer(finish_reason="length"),
        f'{ANSWERS}: id 0: finish_reason: stored "length", recomputed "stop"',
    ),
    "cut_by": (
        answer(cut_by="max_tokens"),
        f'{ANSWERS}: id 0: cut_by: stored "max_tokens", recomputed null',
    ),
    "seconds": (answer(seconds=0.5), f"{ANSWERS}: id 0: seconds: stored 0.5, recomputed"),
    "verdict_as_number": (answer(right=1), f"{ANSWERS}: id 0: right: stored 1, recomputed true"),
    "unknown_field": (answer(bonus=1), f"{ANSWERS}: id 0: bonus: stored 1, recomputed nothing"),
    "field_gone": (
        lambda run: edit_line(run / ANSWERS, 0, lambda line: line.pop("rule")),
        f'{ANSWERS}: id 0: rule: stored nothing, recomputed "bare"',
    ),
    "answer_removed": (
        lines_of(ANSWERS, lambda lines: lines[1:]),
        f"{ANSWERS}: id 0: is missing; {RAW} has it",
    ),
    "answer_doubled": (
        lines_of(ANSWERS, lambda lines: [*lines, lines[0]]),
        f"{ANSWERS}: line 9, id 0: is there twice",
    ),
    "answer_foreign": (
        lines_of(ANSWERS, foreign),
        f"{ANSWERS}: id stranger: has no raw line in {RAW}",
    ),
    "answers_reordered": (
        lines_of(ANSWERS, lambda lines: lines[::-1]),
        f"{ANSWERS}: lines are not in the order of the list",
    ),
    "answer_no_json": (
        lines_of(ANSWERS, lambda lines: [lines[0][:-1], *lines[1:]]),
        f"{ANSWERS}: line 1: is not JSON",
    ),
    "answer_names_twice": (
        lines_of(ANSWERS, lambda lines: ['{"right":true,' + lines[0][1:], *lines[1:]]),
        f"{ANSWERS}: line 1: is not JSON",
    ),
    "answer_without_id": (
        lines_of(ANSWERS, lambda lines: ["{}", *lines[1:]]),
        f"{ANSWERS}: line 1: has no id or no repeat",
    ),
    "answers_torn": (
        lambda run: (run / ANSWERS).write_bytes((run / ANSWERS).read_bytes()[:-9]),
        f"{ANSWERS}: ends inside a line",
    ),
    "answers_gone": (
        lambda run: (run / ANSWERS).unlink(),
        f"{ANSWERS}: is missing; qualeval grade",
    ),
    "raw_text": (raw(text="C"), f"{ANSWERS}: id 0: text: stored 1 character (sha256 "),
    "raw_request": (
        raw(request_sha256="0" * 64),
        f'{RAW}: line 1, id 0: request_sha256: stored "000000000000", recomputed "',
    ),
    "raw_cut_hidden": (
        raw(4, cut_by=None),
        f'{RAW}: line 5, id 4: cut_by: stored null, recomputed "max_tokens"',
    ),
    "raw_finish_unknown": (
        raw(finish_reason="tired"),
        "id 0: finish_reason: the reply ended with finish_reason 'tired'",
    ),
    "raw_removed": (
        lines_of(RAW, lambda lines: [line for line in lines if '"id":0,' not in line]),
        f"{ANSWERS}: id 0: has no raw line in {RAW}",
    ),
    "raw_doubled": (
        lines_of(RAW, lambda lines: [*lines, lines[0]]),
        "line 9, id 0: is there twice",
    ),
    "raw_foreign": (
        lines_of(RAW, foreign),
        f"{RAW}: line 9, id stranger: is not in the list of this part",
    ),
    "raw_broken": (lines_of(RAW, lambda lines: ["{}", *lines[1:]]), f"{RAW}:1: field 'id'"),
    "raw_torn": (
        lambda run: (run / RAW).write_bytes((run / RAW).read_bytes()[:-9]),
        f"{RAW}: ends inside a line",
    ),
    "error_foreign": (
        lines_of("mmlupro.errors.jsonl", foreign),
        "mmlupro.errors.jsonl: line 2, id stranger: is not in the list of this part",
    ),
    "list": (
        lambda run: set_in_line(run / "mmlupro.items.jsonl", 0, answer="A"),
        "mmlupro: list 'file:mine.jsonl': ",
    ),
    "list_gone": (
        lambda run: (run / "mmlupro.items.jsonl").unlink(),
        "mmlupro: list 'file:mine.jsonl': mmlupro.items.jsonl: cannot be read",
    ),
    "right": (number(right=5), "mmlupro.summary.json: right: stored 5, recomputed 4"),
    "accuracy": (number(accuracy=0.75), "mmlupro.summary.json: accuracy: stored 0.75, recomputed"),
    "right_as_text": (number(right="4"), 'mmlupro.summary.json: right: stored "4", recomputed 4'),
    "number_gone": (
        number(margin=None),
        "mmlupro.summary.json: margin: stored null, recomputed 0.",
    ),
    "cut_off": (number(cut_off=0), "mmlupro.summary.json: cut_off: stored 0, recomputed 2"),
    "wall_time": (number(wall_time=1e9), "mmlupro.summary.json: wall_time: stored 1000000000.0"),
    "in_flight": (
        number(in_flight={"mean": 4.0, "most": 9}),
        "mmlupro.summary.json: in_flight.mean: stored 4.0",
    ),
    "alone": (number(alone=True), "mmlupro.summary.json: alone: stored true, recomputed false"),
    "warnings": (number(warnings=[]), "mmlupro.summary.json: warnings: stored [], recomputed"),
    "label": (number(label="better"), 'mmlupro.summary.json: label: stored "better", recomputed'),
    "title": (
        number(title="MMLU"),
        'mmlupro.summary.json: title: stored "MMLU", recomputed "MMLU-',
    ),
    "summary_gone": (
        lambda run: (run / "mmlupro.summary.json").unlink(),
        "mmlupro.summary.json: is missing; qualeval grade",
    ),
    "totals": (
        lambda run: set_in_object(run / "summary.json", one_server_start="no"),
        'summary.json: one_server_start: stored "no", recomputed "yes"',
    ),
    "part_left_out": (
        lambda run: set_in_object(run / "summary.json", parts={}),
        "summary.json: parts.mmlupro: stored nothing, recomputed",
    ),
    "summary_no_json": (
        lambda run: (run / "summary.json").write_text("[]"),
        "summary.json: is no JSON object",
    ),
    "table": (
        lambda run: (run / "summary.md").write_text(
            (run / "summary.md").read_text("utf-8").replace("| 50.0 %", "| 75.0 %"), "utf-8"
        ),
        'summary.md: line 5: stored " 75.0 % | 75.0 %',
    ),
    "table_longer": (
        lines_of("summary.md", lambda lines: [*lines, "Best of all."]),
        'stored "Best of all.", recomputed ""',
    ),
    "table_no_text": (
        lambda run: (run / "summary.md").write_bytes(b"\xff"),
        "summary.md: cannot be read as text",
    ),
    "table_gone": (lambda run: (run / "summary.md").unlink(), "summary.md: is missing; "),
    "card_gone": (lambda run: (run / "card.json").unlink(), 'stored "job", recomputed'),
    "contract_gone": (
        lambda run: (run / "mmlupro.contract.json").unlink(),
        "mmlupro.gen.jsonl: is there without mmlupro.contract.json",
    ),
    "contract_no_json": (
        lambda run: (run / "mmlupro.contract.json").write_text("{"),
        "mmlupro.contract.json: is not JSON",
    ),
}


@pytest.mark.parametrize("what", SPOILED)
def test_what_was_changed_by_hand_is_named(run: Path, what: str) -> None:
    """One line of the form file: place: field: stored .., recomputed .. tells it."""
    spoil, told = SPOILED[what]
    if what == "card_gone":
        run = run.rename(run.with_name("other"))
    spoil(run)
    if what == "contract_gone":
        lines, code = verify_command(run)
        assert code == 1
    else:
        lines = found(run)
    assert any(told in line for line in lines[:-1]), lines
    many = "s" if lines[-1].count(": 1 differs, ") else ""
    assert f"differ{many}, first {lines[0]}" in lines[-1]


def test_changed_summary_of_a_part_does_not_speak_against_true_files(run: Path) -> None:
    """summary.json and summary.md are what the raw files give, and only the wrong file is told."""
    number(right=5)(run)
    [line, last] = found(run)
    assert line == "mmlupro.summary.json: right: stored 5, recomputed 4"
    assert last.endswith(f"recomputed: 1 differs, first {line}")
    whole = json.loads((run / "summary.json").read_bytes())
    whole["parts"]["mmlupro"]["right"] = 5
    set_in_object(run / "summary.json", parts=whole["parts"])
    assert found(run)[:-1] == [
        line,
        "summary.json: parts.mmlupro.right: stored 5, recomputed 4",
    ]


HIDDEN = "Everybody knows that this sentence was the question of a list which is never to be shown"


@pytest.mark.parametrize("field", ["text", "reasoning", "reason", "extracted", "rule", "gold"])
@pytest.mark.parametrize("file", ["mmlupro.jsonl", "mmlupro.gen.jsonl"])
def test_text_of_questions_and_replies_is_never_shown(run: Path, field: str, file: str) -> None:
    """Of a long text its length and hash are told."""
    set_in_line(run / file, 0, **{field: HIDDEN})
    lines = "\n".join(found(run))
    assert "Everybody" not in lines and "never to be shown" not in lines


def contract_with(run: Path, change: Callable[[Json], object], *, hash_too: bool = True) -> None:
    """Change the conditions of mmlupro; with their hash made to fit in contract and summary."""
    path = run / "mmlupro.contract.json"
    contract = json.loads(path.read_bytes())
    change(contract["conditions"])
    if hash_too:
        contract["conditions_sha256"] = sha256_of(contract["conditions"])
        set_in_object(run / "mmlupro.summary.json", conditions_sha256=contract["conditions_sha256"])
    path.write_text(json.dumps(contract), encoding="utf-8")


def test_changed_condition_breaks_the_hash_of_the_conditions(run: Path) -> None:
    """The contract holds the sha256 of its own conditions."""
    contract_with(run, lambda c: c.update(sampling_source="elsewhere"), hash_too=False)
    assert "mmlupro.contract.json: conditions_sha256: stored " in found(run)[0]


FORGED: dict[str, tuple[Json, str]] = {
    "seed": ({"seed": 43}, "request_sha256: stored"),
    "model": ({"model": "better-model"}, "request_sha256: stored"),
    "sampling": ({"sampling": {"temperature": 0.0}}, "request_sha256: stored"),
    "thinking": ({"thinking_object": None}, "request_sha256: stored"),
    "max_tokens": ({"max_tokens": 49}, "conditions.limits: stored [] with max_tokens 49"),
    "limits": ({"limits": ["max_tokens 9 instead of 48"]}, "which does not fit"),
    "request": ({"request": {}}, "conditions: request.model: stored nothing, recomputed"),
    "prompt": (
        {"prompt": {"template": "{question}", "sha256": "0" * 64}},
        "conditions: prompt.template: stored ",
    ),
    "part": ({"part": "gpqa"}, 'conditions: part: stored "gpqa", recomputed "mmlupro"'),
    "cache": ({"prompt_cache": "on"}, 'conditions: prompt_cache: stored "on", recomputed'),
    "thinking_mode": ({"thinking": "on"}, 'conditions: thinking: stored "on", recomputed "off"'),
    "repeats": ({"repeats": 2}, "mmlupro.summary.json: status: stored "),
    "items": (
        {"list": {"id": "file:mine.jsonl", "kind": "file", "sha256": "0" * 64, "items": 8}},
        "mmlupro: list 'file:mine.jsonl': ",
    ),
}


@pytest.mark.parametrize("what", FORGED)
def test_condition_forged_together_with_its_hash_is_found(run: Path, what: str) -> None:
    """The conditions are made again from list and program, and the requests from the conditions."""
    fields, told = FORGED[what]
    contract_with(run, lambda conditions: conditions.update(fields))
    assert any(told in line for line in found(run))


def test_contract_without_a_condition_is_named(run: Path) -> None:
    """A field that is missing is no crash."""
    contract_with(run, lambda conditions: conditions.pop("seed"))
    assert any("field 'conditions.seed': Field required" in line for line in found(run))


def test_many_differences_of_one_kind_are_cut_short(run: Path) -> None:
    """Ten of them, then their number; the count at the end has them all."""
    change_lines(
        run / "gpqa.jsonl",
        lambda lines: [json.dumps({**json.loads(line), "seconds": 9.0}) for line in lines],
    )
    lines = found(run)
    assert sum(": seconds: stored" in line for line in lines[:-1]) == 10
    assert "gpqa.jsonl: seconds: and 10 more of this kind" in lines
    assert ": 20 differ, first gpqa.jsonl: id " in lines[-1]


def test_answers_of_another_grader_are_not_called_wrong(run: Path) -> None:
    """What this program cannot check it names; exit 1 all the same, for nothing is proved."""
    contract_with(run, lambda c: c.update(grader="letter 0", suite="qualeval suite 0"))
    set_in_object(run / "mmlupro.summary.json", suite="qualeval suite 0")
    set_in_object(
        run / "summary.json",
        parts={
            name: json.loads((run / f"{name}.summary.json").read_bytes())
            for name in ("mmlupro", "gpqa", "think")
        },
    )
    lines = found(run)
    ours = "this program of qualeval suite 1, letter 1: what that changed"
    assert f"not checked: part 'mmlupro' is of qualeval suite 0, letter 0, {ours}" in lines
    assert {line.split(":")[0] for line in lines[:-2]} == {"summary.md"}, "its footer names suites"


def test_details_without_form_are_named_where_no_grader_can_tell(tmp_path: Path) -> None:
    """Figures beside the score are made of them."""
    row = {"key": 1, "prompt": "[[item:1]] No comma.", "kwargs": [{}]}
    row["instruction_id_list"] = ["punctuation:no_comma"]
    with running(slots=4) as server:
        lab = Lab(tmp_path, server).script()
        (tmp_path / "mine.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
        lab.card["parts"] = {"ifeval": {"list": "mine.jsonl"}}
        assert lab.run(parts="ifeval").code == 0
    run = lab.job().folder
    assert verify_command(run)[1] == 0
    set_in_line(run / "ifeval.jsonl", 1, details={})
    lacking = "ifeval.jsonl: details lack what this part's figures are made of"
    assert lacking not in verify_command(run)[0], "the grader makes them again"
    contract, items = run / "ifeval.contract.json", run / "ifeval.items.jsonl"
    kept, text = items.read_bytes(), contract.read_text(encoding="utf-8")
    items.write_bytes(kept.replace(b"No comma", b"No dash"))
    lines, code = verify_command(run)
    assert code == 1 and lacking in lines
    items.write_bytes(kept)
    contract.write_text(text.replace('"ifeval 1"', '"ifeval 0"'), encoding="utf-8")
    lines, code = verify_command(run)
    assert code == 1 and lacking in lines


def test_program_of_another_version_is_noted(run: Path) -> None:
    """Its table may be worded otherwise; that alone is no difference."""
    contract = run / "gpqa.contract.json"
    text = contract.read_text(encoding="utf-8")
    version = json.loads(text)["sessions"][-1]["qualeval"]
    contract.write_text(text.replace(f'"{version}"', '"0.0.1"'), encoding="utf-8")
    lines, code = verify_command(run)
    assert code == 0
    assert lines[0] == f"note: gpqa was run by qualeval 0.0.1, this is {version}"


def test_part_of_another_version_is_named(run: Path) -> None:
    """A contract of a part that this program does not know is not passed over."""
    shutil.copy(run / "gpqa.contract.json", run / "poetry.contract.json")
    assert "not checked: part 'poetry' is not in this version of qualeval" in found(run)


def test_incomplete_part_is_equal_too(tmp_path: Path) -> None:
    """A failure left and a limit are no difference: the summary says the same."""
    with running(slots=4) as server:
        lab = Lab(tmp_path, server).list_of(6).script({"2": {"status": 400}})
        assert lab.run("--limit", "4").code == 1
    lines, code = verify_command(lab.job().folder)
    assert (lines[0].split(":")[1], code) == (" all equal", 0)


def test_run_that_was_killed_says_what_is_missing_and_is_equal_once_resumed(tmp_path: Path) -> None:
    """A session that never ended counts up to its last answer, the same way each time."""
    with running(slots=2, service=0.02) as server:
        lab = Lab(tmp_path, server).list_of(40).script()
        gen = lab.job().folder / "mmlupro.gen.jsonl"
        with ending(lab.start()) as process:
            until(lambda: whole_lines(gen) >= 4, "four answers")
            process.kill()
        lines, code = verify_command(lab.job().folder)
        assert code == 1 and lines[0].startswith("mmlupro.jsonl: is missing; qualeval grade")
        assert ended(lab.start()).code == 0
    assert len(lab.job().sessions()) == 2 and lab.job().sessions()[0]["wall_time"] is None
    lines, code = verify_command(lab.job().folder)
    assert code == 0, lines


def test_part_asked_under_an_older_card_keeps_its_label(tmp_path: Path) -> None:
    """Parts of one job may come from two states of a card; that is no difference."""
    with running(slots=4) as server:
        lab = Lab(tmp_path, server).list_of(3).script()
        lab.card["parts"]["gpqa"] = {"list": "mine.jsonl"}
        assert lab.run().code == 0
        lab.card["label"] = "renamed"
        assert lab.run("--job", "job", parts="gpqa").code == 0
    lines, code = verify_command(lab.job().folder)
    assert code == 0, lines


@pytest.mark.parametrize("name", ["nothing", "empty", "file"])
def test_folder_that_is_no_run_is_refused(tmp_path: Path, name: str) -> None:
    """Exit 2, with a sentence."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("x")
    with pytest.raises(RunFolderError) as error:
        verify_command(tmp_path / name)
    assert error.value.exit_code == 2 and str(tmp_path / name) in str(error.value)


# ------------------------------------------------------------------ an official list

ROWS: list[Mapping[str, Any]] = [
    {
        "Record ID": f"rec{n}",
        "Question": f"[[item:rec{n}]] Which of these four words is the one?",
        "Correct Answer": "this",
        "Incorrect Answer 1": "that",
        "Incorrect Answer 2": "those",
        "Incorrect Answer 3": "these",
        "High-level domain": "Words",
    }
    for n in range(5)
]


@pytest.fixture
def official(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run of gpqa on an official list of five questions of our own."""
    rows = tuple(
        PinnedRow(
            id=str(row["Record ID"]),
            stratum="Words",
            sha256=sha256_of(gpqa.SOURCE.canonical(row)),
        )
        for row in ROWS
    )
    shape = dict.fromkeys(("config", "split", "revision", "namespace", "quota_rule"), "test")
    pin = Pin.model_validate(
        shape
        | {"list": "qualeval/gpqa-5/v1", "dataset": "Idavidrein/gpqa", "seed": 42, "pool": 5}
        | {"left_out": {}, "sha256": list_sha256(row.sha256 for row in rows), "rows": rows}
    )
    monkeypatch.setattr("qualeval.lists.pin_of", lambda part: pin)
    monkeypatch.setattr("qualeval.verify.pin_of", lambda part: pin)
    monkeypatch.setenv("QUALEVAL_CACHE", str(tmp_path / "cache"))
    (tmp_path / "cache" / "lists").mkdir(parents=True)
    (tmp_path / "cache" / "lists" / "gpqa.jsonl").write_bytes(write_jsonl(ROWS))
    with running(slots=4) as server:
        lab = Lab(tmp_path, server)
        lab.card["parts"] = {"gpqa": {"list": "official"}}
        lab.script()
        assert lab.run(parts="gpqa").code == 0
    return lab.job().folder


def test_official_list_is_proved_and_equal(official: Path) -> None:
    """With the questions on this machine everything is checked."""
    lines, code = verify_command(official)
    assert code == 0, lines
    assert lines[0].startswith("1 part, 5 answers, ")


def test_missing_official_list_is_said_and_all_else_is_checked(
    official: Path, tmp_path: Path
) -> None:
    """Nothing is fetched; exit 1, since verdicts are not proved."""
    (tmp_path / "cache" / "lists" / "gpqa.jsonl").unlink()
    lines, code = verify_command(official)
    assert code == 1
    assert lines[0].startswith("not checked: requests, verdicts, keys. part 'gpqa': ")
    assert "qualeval lists fetch gpqa" in lines[0]
    assert lines[-1].endswith("recomputed: no difference in what could be checked")
    set_in_line(official / "gpqa.jsonl", "rec1", text="A")
    set_in_object(official / "gpqa.summary.json", right=5)
    change_lines(official / "gpqa.gen.jsonl", foreign)
    told = "\n".join(verify_command(official)[0])
    assert "gpqa.jsonl: id rec1: text: stored" in told
    assert "gpqa.summary.json: right: stored 5" in told
    assert "gpqa.gen.jsonl: line 6, id stranger: is not in the list of this part" in told


def test_answer_that_is_none_is_named_without_the_list(official: Path, tmp_path: Path) -> None:
    """A verdict that cannot be made again must at least be one."""
    (tmp_path / "cache" / "lists" / "gpqa.jsonl").unlink()
    set_in_line(official / "gpqa.jsonl", "rec1", right="perhaps")
    assert any("gpqa.jsonl: id rec1: right: " in line for line in verify_command(official)[0])


def test_changed_row_of_the_list_cache_is_named_by_its_id(official: Path, tmp_path: Path) -> None:
    """Its text is never shown."""
    path = tmp_path / "cache" / "lists" / "gpqa.jsonl"
    path.write_text(path.read_text().replace("four words", "4 words", 1))
    lines, code = verify_command(official)
    assert code == 1
    assert "row rec0 differs from the pinned one" in lines[0]
    assert "words" not in "".join(lines)


def test_grading_without_the_official_list_says_how_to_get_it(
    official: Path, tmp_path: Path
) -> None:
    """`grade` goes to no network either."""
    (tmp_path / "cache" / "lists" / "gpqa.jsonl").unlink()
    before = hashes(official)
    with pytest.raises(Exception, match="qualeval lists fetch gpqa") as error:
        grade_command(official, None)
    assert getattr(error.value, "exit_code", None) == 2
    assert hashes(official) == before
