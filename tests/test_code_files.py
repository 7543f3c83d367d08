"""What is done with programs from files: `grade`, `verify`, `grade-file`, `publish`.

One run with every kind of verdict is made and copied; each test spoils one thing.
"""

from __future__ import annotations

import base64
import dataclasses
import json
import pickle
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from code_runs import (
    ALL_RIGHT,
    MIXED,
    in_fence,
    lab_of,
    limit,
    own_lab,
    problem,
    samples,
    use_this_sandbox,
    words,
)
from engine import Job, Lab, json_lines, qualeval
from lcb_solutions import SOLUTIONS
from model_server import RunningServer, running
from stored_runs import copied, edit_line, hashes, set_in_line, set_in_object

from qualeval.errors import SandboxError
from qualeval.pins import rows_path
from qualeval.records import sha256_of
from qualeval.sandbox import Chosen, Limits, Ran, Sandbox, ladder
from qualeval.sandbox.canaries import Canary
from qualeval.tasks import TASKS, lcb

Json = dict[str, Any]

REPLIES = {id: reply for id, (reply, _) in MIXED.items()}
WORDS = {id: word for id, (_, word) in MIXED.items()}
OUT_FIELDS = ["id", "right", "verdict", "failed_test", "cpu_ms", "wall_ms", "sandbox"]


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with running(slots=4) as started:
        yield started


@pytest.fixture(autouse=True)
def sandbox(monkeypatch: pytest.MonkeyPatch) -> Chosen:
    limit(monkeypatch)
    return use_this_sandbox(monkeypatch)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, server: RunningServer) -> Path:
    """The run with every verdict."""
    lab = lab_of(tmp_path_factory.mktemp("made"), server, REPLIES)
    with pytest.MonkeyPatch.context() as patch:
        limit(patch)
        use_this_sandbox(patch)
        assert lab.run(parts="lcb").code == 0
    return lab.job().folder


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Path:
    return copied(made, tmp_path)


def without_any_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(ladder, "attack", lambda sandbox: iter([Canary("network", False, "open")]))


def broken_sandbox(monkeypatch: pytest.MonkeyPatch, marker: str) -> None:
    """A sandbox that fails on every program that holds this text."""
    original = Sandbox.run

    def run(self: Sandbox, code: str, stdin: bytes, limits: Limits) -> Ran:
        if marker in code:
            raise SandboxError("sandbox (test): is broken")
        return original(self, code, stdin, limits)

    monkeypatch.setattr(Sandbox, "run", run)


# ------------------------------------------------------------------ grade


def test_grading_again_changes_no_verdict(run: Path) -> None:
    """Times are measured anew, which is no change; no other byte moves."""
    measured_then = {"cpu_ms": 1, "wall_ms": 99999, "max_rss_mib": 7}
    edit_line(run / "lcb.jsonl", "sample-1", lambda line: line["details"].update(measured_then))
    before, files = Job(run).answers("lcb"), hashes(run)
    done = qualeval("grade", str(run))
    assert done.code == 0
    first, second, *_ = done.out.splitlines()
    assert (first, second) == ("lcb: none of 10 verdicts changed", "")
    after = Job(run).answers("lcb")
    measured = {"cpu_ms", "wall_ms", "max_rss_mib"}
    assert measured == set(lcb.MEASURED)
    for side in (before, after):
        for line in side.values():
            line["details"] = {k: v for k, v in line["details"].items() if k not in measured}
    assert before == after
    changed = {name for name, sha256 in hashes(run).items() if files.get(name) != sha256}
    assert changed == {"lcb.jsonl"}


def test_verdict_follows_the_raw_reply(run: Path) -> None:
    """Another program in the raw file is another verdict; a forged one becomes true again."""
    set_in_line(run / "lcb.gen.jsonl", "sample-1", text=in_fence(SOLUTIONS["sample-1"].right))
    set_in_line(run / "lcb.jsonl", "sample-3", right=False, rule="wrong_answer")
    done = qualeval("grade", str(run))
    assert done.code == 0
    lines = done.out.splitlines()
    assert lines[0] == "lcb: 2 of 10 verdicts changed"
    assert (
        "  1 x wrong (wrong_answer) -> right (accepted): the stored answer was not its raw reply; "
        "id sample-1" in lines
    )
    assert (
        "  1 x wrong (wrong_answer) -> right (accepted): that is what code 1 says; id sample-3"
        in lines
    )
    assert Job(run).summary("lcb")["right"] == 3


def test_sandbox_that_programs_run_in_now_stands_in_the_contract(
    run: Path, sandbox: Chosen
) -> None:
    """The verdicts that now stand there were given in it; run.log says so."""
    change_sandbox(run, "landlock, cpython 3.12.1, no numpy, aarch64")
    done = qualeval("grade", str(run))
    assert done.code == 0 and "none of 10 verdicts changed" in done.out
    contract = Job(run).contract("lcb")
    assert contract["conditions"]["sandbox"] == sandbox.name
    assert contract["conditions_sha256"] == sha256_of(contract["conditions"])
    assert len(contract["sessions"]) == 1
    assert Job(run).summary("lcb")["sandbox"] == sandbox.name
    assert f"in {sandbox.name}" in Job(run).log
    assert "landlock, cpython 3.12.1" in Job(run).log, "the old name is kept there"
    assert qualeval("verify", str(run)).code == 0


def change_sandbox(run: Path, name: str) -> None:
    path = run / "lcb.contract.json"
    contract = json.loads(path.read_bytes())
    contract["conditions"]["sandbox"] = name
    contract["conditions_sha256"] = sha256_of(contract["conditions"])
    path.write_text(json.dumps(contract), encoding="utf-8")


def test_grade_without_any_sandbox_writes_nothing(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_any_sandbox(monkeypatch)
    before = hashes(run)
    refused = qualeval("grade", str(run))
    assert refused.code == 2 and "apt install bubblewrap" in refused.err
    assert hashes(run) == before


def test_grade_without_a_sandbox_when_asked_to_is_stamped(run: Path) -> None:
    """As in a run."""
    done = qualeval("grade", str(run), "--unsafe-no-sandbox")
    assert done.code == 0 and "programs ran without a sandbox" in done.out
    assert Job(run).summary("lcb")["sandbox"].startswith("NONE (--unsafe-no-sandbox)")
    assert words(Job(run).answers("lcb")) == WORDS


# ------------------------------------------------------------------ verify


def test_run_with_other_times_is_equal_and_stays_as_it_is(run: Path) -> None:
    """Every program is run again, with a time of its own; nothing is written."""
    before = hashes(run)
    edit_line(run / "lcb.jsonl", "sample-9", lambda line: line["details"].update(cpu_ms=12345))
    before["lcb.jsonl"] = hashes(run)["lcb.jsonl"]
    done = qualeval("verify", str(run))
    assert done.code == 0, done.screen
    [line] = done.out.splitlines()
    assert line.startswith("1 part, 10 answers, ") and line.endswith("recomputed: all equal")
    assert hashes(run) == before


def test_whatever_is_forged_in_a_line_is_found(run: Path) -> None:
    """Verdict, program, reason, a detail; what is measured may differ."""
    path = run / "lcb.jsonl"
    set_in_line(path, "sample-1", right=True, rule="accepted")
    set_in_line(path, "sample-2", extracted="print(1)")
    set_in_line(path, "sample-3", reason="Passed.")
    edit_line(path, "sample-8", lambda line: line["details"].update(failed_test=9))
    measured = {"cpu_ms": 1, "wall_ms": 99999, "max_rss_mib": 7}
    edit_line(path, "sample-9", lambda line: line["details"].update(measured))
    done = qualeval("verify", str(run))
    assert done.code == 1
    lines = done.out.splitlines()
    for place in ("1: rule: stored", "2: extracted: stored", "3: reason: stored", "8: details"):
        assert any(line.startswith(f"lcb.jsonl: id sample-{place}") for line in lines), place
    assert "id sample-9" not in done.out


def test_verify_without_a_sandbox_checks_the_rest_and_says_so(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not checked is not equal: exit 1. What needs no program is checked all the same."""
    without_any_sandbox(monkeypatch)
    done = qualeval("verify", str(run))
    assert done.code == 1 and "Traceback" not in done.screen
    lines = done.out.splitlines()
    assert lines[0].startswith("not checked: part 'lcb': its programs were not run again")
    assert lines[-1].endswith("no difference in what could be checked")
    set_in_line(run / "lcb.jsonl", "sample-1", text="print(1)")
    assert "lcb.jsonl: id sample-1: text" in qualeval("verify", str(run)).out


def test_verify_names_the_answer_that_a_broken_sandbox_kept_from_it(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken_sandbox(monkeypatch, SOLUTIONS["sample-3"].right.strip())
    done = qualeval("verify", str(run))
    assert done.code == 1
    assert "not checked: part 'lcb': id sample-3: the sandbox failed" in done.out
    assert "differ" not in done.out.replace("no difference", "")


def test_verify_runs_no_program_for_a_run_without_any(
    tmp_path: Path, server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = Lab(tmp_path, server).list_of(3).script()
    assert lab.run().code == 0
    without_any_sandbox(monkeypatch)
    assert qualeval("verify", str(lab.job().folder)).code == 0


# ------------------------------------------------------------------ a list of the newest


@pytest.fixture
def official(tmp_path: Path, server: RunningServer, monkeypatch: pytest.MonkeyPatch) -> Lab:
    """A list of the two newest problems, locked in a list cache of its own."""
    monkeypatch.setenv("QUALEVAL_CACHE", str(tmp_path / "cache"))
    task = dataclasses.replace(lcb.TASK, draw=dataclasses.replace(lcb.DRAW, size=2))
    monkeypatch.setitem(TASKS, "lcb", task)
    rows = [
        problem(id, ("1", "2"), ("2", "3"), contest_date=f"2026-01-0{day}T00:00:00")
        for id, day in (("old", 1), ("middle", 2), ("new", 3))
    ]
    right = {"text": in_fence("print(int(input()) + 1)")}
    lab = own_lab(tmp_path, server, rows, {"middle": right, "new": right})
    lab.card["parts"] = {"lcb": {"list": "official"}}
    assert qualeval("lists", "import", "lcb", str(tmp_path / "mine.jsonl")).code == 0
    return lab


def test_official_list_is_the_newest_and_the_contract_says_which(official: Lab) -> None:
    assert official.run(parts="lcb").code == 0
    job = official.job()
    assert list(job.answers("lcb")) == ["new", "middle"]
    there = job.contract("lcb")["conditions"]["list"]
    assert there["kind"] == "official" and there["items"] == 2
    assert there["dates"] == ["2026-01-02T00:00:00", "2026-01-03T00:00:00"]
    assert there["release"] == "3 problems"
    said = "the newest of 3 problems, 2026-01-02 to 2026-01-03"
    for format in ("table", "md", "model-index"):
        assert said in qualeval("summarize", str(job.folder), "--format", format).out
    assert qualeval("verify", str(job.folder)).code == 0


def test_verify_without_the_rows_of_an_official_list_says_how_to_get_them(official: Lab) -> None:
    assert official.run(parts="lcb").code == 0
    rows_path(lcb.SOURCE).unlink()
    done = qualeval("verify", str(official.job().folder))
    assert done.code == 1 and "Traceback" not in done.screen
    assert "not checked: " in done.out and "qualeval lists fetch lcb" in done.out
    assert "no difference in what could be checked" in done.out


def test_verify_without_the_lock_of_an_official_list_checks_what_it_can(official: Lab) -> None:
    """A lock that this machine never had is no difference in the run."""
    assert official.run(parts="lcb").code == 0
    (rows_path(lcb.SOURCE).parent / "lcb.lock.json").unlink()
    done = qualeval("verify", str(official.job().folder))
    assert done.code == 1 and "Traceback" not in done.screen
    assert "not checked: " in done.out and "lists fetch lcb" in done.out
    assert "no difference in what could be checked" in done.out


# ------------------------------------------------------------------ grade-file


@dataclasses.dataclass
class Files:
    """REPLIES, PROBLEMS and OUT of a `grade-file`."""

    folder: Path
    problems: list[Json]

    def grade(self, *replies: Json, code: int = 0) -> list[Json]:
        done = self.command(*replies)
        assert done.code == code, done.screen
        text = (self.folder / "out.jsonl").read_text(encoding="utf-8")
        return [json.loads(line) for line in text.splitlines()]

    def command(self, *replies: Json) -> Any:
        for name, rows in (("replies", replies), ("problems", self.problems)):
            text = "".join(json.dumps(row) + "\n" for row in rows)
            (self.folder / f"{name}.jsonl").write_text(text, encoding="utf-8")
        out, problems = self.folder / "out.jsonl", self.folder / "problems.jsonl"
        arguments = ["--items", str(problems), "--out", str(out)]
        return qualeval("grade-file", "lcb", str(self.folder / "replies.jsonl"), *arguments)

    def refused(self, *replies: Json) -> str:
        """The message of a fault; the output file of an earlier time is as it was."""
        out = self.folder / "out.jsonl"
        out.write_text("kept\n")
        done = self.command(*replies)
        assert done.code == 2 and "Traceback" not in done.screen, done.screen
        assert out.read_text() == "kept\n"
        assert not list(self.folder.glob("*.new"))
        return str(done.err).replace(f"{self.folder}/", "")


PLUS = "print(int(input()) + 1)"


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path, [problem("a", ("1", "2"), ("2", "3")), problem("b", ("1", "2"))])


def test_output_has_exactly_its_fields(files: Files, sandbox: Chosen) -> None:
    right, wrong = files.grade(
        {"id": "a", "text": in_fence(PLUS)}, {"id": "b", "text": in_fence("print(3)")}
    )
    assert list(right) == list(wrong) == OUT_FIELDS
    assert (right["id"], right["right"], right["verdict"], right["failed_test"]) == (
        *("a", True, "accepted", None),
    )
    assert (wrong["id"], wrong["right"], wrong["verdict"], wrong["failed_test"]) == (
        *("b", False, "wrong_answer", 0),
    )
    assert right["sandbox"] == wrong["sandbox"] == sandbox.name
    assert all(isinstance(right[name], int) and right[name] >= 0 for name in OUT_FIELDS[4:6])


def test_failed_test_counts_public_ones_before_hidden_ones(files: Files) -> None:
    (line,) = files.grade({"id": "a", "text": in_fence("print(2)")})
    assert line["failed_test"] == 1


def test_all_sample_problems_come_out_as_in_a_run(tmp_path: Path, made: Path) -> None:
    files = Files(tmp_path, list(samples().values()))
    replies = [{"id": id, **reply} for id, reply in REPLIES.items()]
    graded = files.grade(*replies)
    assert {line["id"]: line["verdict"] for line in graded} == WORDS
    stored = Job(made).answers("lcb")
    for line in graded:
        assert line["right"] is stored[line["id"]]["right"]
        assert line["failed_test"] == stored[line["id"]]["details"]["failed_test"]


IN_BACKTICKS = (
    'shown = """\n```python\nprint("no")\n```\n"""\n'
    "number = int(input())  # as `1` or ``1``\nprint(number + 1)\n"
)


@pytest.mark.parametrize(
    "code",
    [
        PLUS,
        IN_BACKTICKS,
        "# ````\n" + IN_BACKTICKS,
        'text = """\n~~~\n~~~~\n"""\n' + PLUS,
        "def main():\n    print(int(input()) + 1)\n\n\nmain()",
        "number = int(input())\r\nif number:\r\n    print(number + 1)\r\n",
        "\n\n\n" + PLUS + "\n\n\n",
        "\N{LATIN SMALL LETTER E WITH ACUTE} = int(input())\nprint(\u00e9 + 1)",
    ],
    ids=[
        *("plain", "fence_inside", "longer_fence_inside", "tildes", "function", "crlf"),
        *("blank_lines", "unicode"),
    ],
)
def test_code_is_taken_whole(files: Files, code: str) -> None:
    """Whatever looks like the end of a block in it."""
    (line,) = files.grade({"id": "a", "code": code})
    assert (line["verdict"], line["right"]) == ("accepted", True)


def test_code_that_names_thinking_tags_is_no_reasoning(files: Files) -> None:
    """A program is no reply: nothing is taken out of it."""
    code = f'text = "</think>"\n{PLUS}\nopen_tag = "<think>"\n'
    (line,) = files.grade({"id": "a", "code": code})
    assert line["verdict"] == "accepted"


def test_code_that_is_no_program_is_not_searched_for_one(files: Files) -> None:
    """What stands between backticks in it is a part of it, no other answer."""
    (line,) = files.grade({"id": "a", "code": f"My program:\n```python\n{PLUS}"})
    assert (line["verdict"], line["right"]) == ("compile_error", False)


@pytest.mark.parametrize(
    "code",
    [
        "print('\ud800')",
        "print('\0')",
        "\x1b[2J\x1b]0;title\x07",
        "(" * 100_000,
        "x = 1;" * 200_000 + "print(x)",
        "é = '\u2028'\nprint(é)",
        "# -*- coding: utf-7 -*-\nprint(0)",
        "\f\v\x1c\x85",
    ],
    ids=["surrogate", "nul", "escapes", "deep", "long", "separator", "coding", "spaces"],
)
def test_code_of_any_characters_gets_a_verdict(files: Files, code: str) -> None:
    """As code and as a reply; nothing of it ends the command."""
    graded = files.grade({"id": "a", "code": code}, {"id": "b", "text": code})
    assert [line["right"] for line in graded] == [False, False]
    assert not {line["verdict"] for line in graded} & {"accepted", "infra_error"}


def test_text_goes_before_code(files: Files) -> None:
    """A line with both is a reply and what somebody took out of it."""
    (line,) = files.grade({"id": "a", "text": in_fence(PLUS), "code": "print(0)"})
    assert line["right"]


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        ({"text": in_fence(PLUS), "finish_reason": "length"}, "cut_off"),
        ({"code": PLUS, "finish_reason": "length"}, "cut_off"),
        ({"text": f"<think>{in_fence(PLUS)}"}, "cut_off"),
        ({"text": "No idea."}, "no_code"),
        ({"text": None}, "no_code"),
        ({"text": ""}, "no_code"),
        ({"code": ""}, "no_code"),
        ({"text": None, "reasoning": in_fence(PLUS)}, "no_code"),
        ({"text": f"<think>{in_fence('print(0)')}</think>{in_fence(PLUS)}"}, "accepted"),
    ],
)
def test_what_is_no_finished_program_is_wrong(files: Files, reply: Json, verdict: str) -> None:
    (line,) = files.grade({"id": "a", **reply})
    assert list(line) == OUT_FIELDS
    assert (line["verdict"], line["right"]) == (verdict, verdict == "accepted")
    assert line["failed_test"] is None


def test_replies_that_are_missing_are_fine_and_ids_are_compared_as_text(tmp_path: Path) -> None:
    files = Files(tmp_path, [problem(7, ("1", "2")), problem("8", ("1", "2"))])
    assert files.grade() == []
    (line,) = files.grade({"id": "7", "code": PLUS})
    assert line["id"] == 7 and line["right"]


@pytest.mark.parametrize(
    ("replies", "message"),
    [
        ([{"id": "z", "code": PLUS}], "replies.jsonl:1: id 'z' is in no item of the list"),
        ([{"id": "a", "code": PLUS}] * 2, "replies.jsonl:2: id 'a' occurs twice"),
        ([{"id": "a", "code": 3}], "replies.jsonl:1: field 'code' must be a text"),
        ([{"id": "a", "code": None}], "replies.jsonl:1: field 'code' must be a text"),
        ([{"id": "a"}], "replies.jsonl:1: field 'text' is missing"),
        ([{"code": PLUS}], "replies.jsonl:1: field 'id' must be"),
    ],
)
def test_reply_that_cannot_be_used_is_named_and_nothing_is_written(
    files: Files, replies: list[Json], message: str
) -> None:
    assert message in files.refused(*replies)


def packed(tests: list[Json]) -> str:
    """As the published files hold private tests."""
    return base64.b64encode(zlib.compress(pickle.dumps(json.dumps(tests)))).decode()


HIDDEN = [{"input": "5", "output": "6", "testtype": "stdin"}]


@pytest.mark.parametrize(
    "fields",
    [
        {"private_test_cases": json.dumps(HIDDEN)},
        {"private_test_cases": HIDDEN},
        {"private_test_cases": packed(HIDDEN)},
        {"private_test_cases": HIDDEN, "public_test_cases": []},
        {"private_test_cases": packed(HIDDEN), "public_test_cases": None},
        {"private_test_cases": packed(HIDDEN), "metadata": {}},
    ],
    ids=["json", "list", "packed", "no_public", "null_public", "metadata_object"],
)
def test_tests_come_in_every_published_form(tmp_path: Path, fields: Json) -> None:
    """And the hidden ones count."""
    files = Files(tmp_path, [problem("a", ("1", "2"), **fields)])
    (right,) = files.grade({"id": "a", "code": PLUS})
    (wrong,) = files.grade({"id": "a", "code": "print(2)"})
    assert right["verdict"] == "accepted"
    assert wrong["verdict"] == "wrong_answer"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"public_test_cases": "[]", "private_test_cases": "[]"}, "hold no test"),
        ({"public_test_cases": [], "private_test_cases": None}, "hold no test"),
        ({"private_test_cases": packed([])}, ""),
        ({"private_test_cases": "no tests"}, "field 'private_test_cases'"),
        (
            {"private_test_cases": base64.b64encode(zlib.compress(pickle.dumps(print))).decode()},
            "it was not loaded",
        ),
    ],
    ids=["zero", "null", "none_hidden", "rubbish", "pickle"],
)
def test_problem_without_tests_is_an_error_of_the_data(
    tmp_path: Path, fields: Json, message: str
) -> None:
    """Never a pass."""
    files = Files(tmp_path, [problem("a", ("1", "2"), **fields)])
    if not message:
        assert files.grade({"id": "a", "code": PLUS})[0]["right"], "the public one is a test"
        return
    told = files.refused({"id": "a", "code": PLUS})
    assert "problems.jsonl:1: " in told and message in told


def test_sandbox_that_fails_leaves_no_verdict(
    files: Files, monkeypatch: pytest.MonkeyPatch, sandbox: Chosen
) -> None:
    """Not right and not wrong: null, and exit 1; the other lines are there."""
    broken_sandbox(monkeypatch, "broken here")
    bad, good = files.grade(
        {"id": "a", "code": f"{PLUS}  # broken here"}, {"id": "b", "code": PLUS}, code=1
    )
    assert list(bad) == OUT_FIELDS
    assert (bad["right"], bad["verdict"], bad["failed_test"]) == (None, "infra_error", None)
    assert bad["sandbox"] == sandbox.name
    assert good["right"] is True


def test_grade_file_without_any_sandbox_writes_nothing(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_any_sandbox(monkeypatch)
    assert "apt install bubblewrap" in files.refused({"id": "a", "code": PLUS})


# ------------------------------------------------------------------ publish

SECRETS = {
    "statement": "statementquokka",
    "public_in": "publicinwombat",
    "public_out": "publicoutnumbat",
    "hidden_in": "hiddeninpossum",
    "hidden_out": "hiddenoutbilby",
}
"""Words that stand in a problem and nowhere else."""


def secret_problem(id: str) -> Json:
    return problem(
        id,
        (SECRETS["public_in"], SECRETS["public_out"]),
        (SECRETS["hidden_in"], SECRETS["hidden_out"]),
        question_content=f"[[item:{id}]] {SECRETS['statement']} to print.",
    )


SAYS_ITS_INPUT = {
    "error": "raise ValueError(input())",
    "named_error": "raise type(input() + 'Error', (Exception,), {})()",
    "stderr": "import sys\nsys.stderr.write(sys.stdin.read())\nsys.exit(3)",
    "echo": "print(input())",
    "syntax": "print((",
    "late": "import sys\nfor line in sys.stdin:\n    sys.exit(line)",
}
"""Programs that tell what they were given in every way that a traceback or a status has."""


@pytest.fixture
def told(tmp_path: Path, server: RunningServer) -> Path:
    """A run whose programs say what they were given."""
    rows = [secret_problem(id) for id in SAYS_ITS_INPUT]
    replies = {id: {"text": in_fence(code)} for id, code in SAYS_ITS_INPUT.items()}
    lab = own_lab(tmp_path, server, rows, replies)
    assert lab.run(parts="lcb").code == 0
    assert lab.job().summary("lcb")["right"] == 0
    return lab.job().folder


def holding(folder: Path, word: str) -> list[str]:
    """Files below a folder that hold a word."""
    return sorted(
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and word.encode() in path.read_bytes()
    )


def test_no_text_of_a_problem_is_in_any_published_byte(told: Path, tmp_path: Path) -> None:
    """Nor in the log or in an answer; only in the copy of the list that the run keeps."""
    bundle = tmp_path / "bundle"
    done = qualeval("publish", str(told), "--to", str(bundle))
    assert done.code == 0, done.screen
    assert (bundle / "lcb.jsonl").exists() and (told / "public" / "lcb.jsonl").exists()
    for word in SECRETS.values():
        assert holding(bundle, word) == []
        assert holding(told, word) == ["lcb.items.jsonl"]
        assert word not in done.screen


def test_no_hidden_test_is_in_a_report_page(told: Path, tmp_path: Path) -> None:
    """The page shows what was asked, and that holds no hidden test."""
    page = tmp_path / "pages" / "page.html"
    page.parent.mkdir()
    assert qualeval("report", str(told), "--out", str(page)).code == 0
    for word in (SECRETS["hidden_in"], SECRETS["hidden_out"]):
        assert holding(page.parent, word) == []


def test_published_copy_is_equal_and_is_judged_again(made: Path, tmp_path: Path) -> None:
    bundle = tmp_path / "bundle"
    assert qualeval("publish", str(made), "--to", str(bundle)).code == 0
    done = qualeval("verify", str(bundle))
    assert done.code == 0, done.screen
    assert done.out.splitlines() == ["1 part, 10 answers counted, 10 graded again: all equal"]
    shown = qualeval("summarize", str(bundle))
    assert shown.code == 0 and "2 / 10" in shown.out


def test_forged_verdict_in_a_published_copy_is_found(made: Path, tmp_path: Path) -> None:
    """By running the program, though count and manifest were forged along."""
    bundle = tmp_path / "bundle"
    assert qualeval("publish", str(made), "--to", str(bundle)).code == 0
    edit_line(bundle / "lcb.jsonl", "sample-3", lambda line: line["details"].update(cpu_ms=12345))
    edit_line(bundle / "lcb.jsonl", "sample-1", lambda line: line.update(rule="runtime_error"))
    done = qualeval("verify", str(bundle))
    assert done.code == 1
    assert "lcb.jsonl: id sample-1: rule: stored" in done.out
    assert "id sample-3" not in done.out, "times are measured"


def test_published_copy_without_a_sandbox_is_counted_and_not_judged(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = tmp_path / "bundle"
    assert qualeval("publish", str(made), "--to", str(bundle)).code == 0
    without_any_sandbox(monkeypatch)
    done = qualeval("verify", str(bundle))
    assert "Traceback" not in done.screen
    assert "not graded again: 10 answers: part 'lcb'" in done.out
    assert "0 graded again, 10 could not be: all equal" in done.out


def test_code_is_text_of_the_model_and_checked_as_such(
    tmp_path: Path, server: RunningServer
) -> None:
    """A home folder in a program is redacted wherever the program stands; it is not run again."""
    code = "print(open('/home/quollkeeper/notes.txt').read())"
    rows = [problem("a", ("1", "2")), problem("b", ("1", "2"))]
    replies = {"a": {"text": in_fence(code)}, "b": {"text": in_fence(PLUS)}}
    lab = own_lab(tmp_path, server, rows, replies)
    assert lab.run("--no-public", parts="lcb").code == 0
    folder = lab.job().folder
    (folder / "publish.local.toml").write_text('names = ["quollkeeper"]\nkeys = []\n')
    bundle = tmp_path / "bundle"
    done = qualeval("publish", str(folder), "--to", str(bundle))
    assert done.code == 0, done.screen
    assert holding(bundle, "quollkeeper") == []
    public = {line["id"]: line for line in json_lines(bundle / "lcb.jsonl")}
    assert {r["field"] for r in public["a"]["redactions"]} == {"text", "extracted"}
    assert public["b"]["extracted"].strip() == PLUS
    assert "redacted" in public["a"]["extracted"]
    checked = qualeval("verify", str(bundle))
    assert checked.code == 0
    assert "not graded again: 1 answer: part 'lcb': redacted" in checked.out.splitlines()


def test_all_right_run_and_mixed_run_can_be_compared(
    made: Path, tmp_path: Path, server: RunningServer
) -> None:
    """Item by item; in another sandbox the difference is told."""
    lab = lab_of(tmp_path, server, ALL_RIGHT)
    assert lab.run(parts="lcb").code == 0
    done = qualeval("compare", str(made), str(lab.job().folder))
    assert done.code == 0, done.screen
    assert "sample-1" in done.out
    folder = lab.job().folder
    change_sandbox(folder, "landlock, cpython 3.12.1, no numpy, aarch64")
    changed = lab.job().contract("lcb")["conditions_sha256"]
    set_in_object(folder / "lcb.summary.json", conditions_sha256=changed)
    other = qualeval("compare", str(made), str(folder))
    assert "sandbox" in other.screen
