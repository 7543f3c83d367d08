"""A run of the part `lcb`, from the model's reply to the table: real requests, real programs.

End to end, against the project's test server and in the sandbox that this machine has.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from code_runs import (
    ALL_RIGHT,
    MIXED,
    in_fence,
    key_of,
    lab_of,
    limit,
    nothing_left,
    own_lab,
    problem,
    samples,
    this_sandbox,
    use_this_sandbox,
    words,
)
from engine import PATIENCE, Lab, ended, ending, json_lines, qualeval, until, whole_lines
from lcb_solutions import SOLUTIONS
from model_server import RunningServer, running

from qualeval.client import ModelClient
from qualeval.errors import SandboxError
from qualeval.records import Completion, Item, Request, Verdict
from qualeval.sandbox import Limits, Ran, Sandbox, ladder
from qualeval.sandbox.canaries import Canary
from qualeval.sandbox.values import RunCode
from qualeval.sandbox.watch import descendants
from qualeval.tasks.lcb import CodeTask

IDS = tuple(samples())
REPLIES = {id: reply for id, (reply, _) in MIXED.items()}
WORDS = {id: word for id, (_, word) in MIXED.items()}
ENDLESS = "import time\nwhile True:\n    time.sleep(1)"
UNSAFE = "--unsafe-no-sandbox"


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with running(slots=4) as started:
        yield started


@pytest.fixture(autouse=True)
def sandbox(monkeypatch: pytest.MonkeyPatch) -> str:
    """Commands in this process use the sandbox of this machine; a program has 0.6 s of CPU."""
    limit(monkeypatch)
    return use_this_sandbox(monkeypatch).name


@pytest.fixture
def lab(tmp_path: Path, server: RunningServer) -> Lab:
    return lab_of(tmp_path, server, ALL_RIGHT)


def ask_again(lab: Lab, *options: str) -> Any:
    """The same command once more, which must not ask anything."""
    assert lab.server is not None
    lab.server.reset()
    done = lab.run(*options, parts="lcb")
    assert lab.requests() == 0, "what is on disk is never asked again"
    return done


# ------------------------------------------------------------------ verdicts and numbers


def test_reference_programs_are_all_right(lab: Lab, sandbox: str) -> None:
    """Ten of ten, in files, on the screen and in the public copy; nothing is left behind."""
    with nothing_left():
        done = lab.run(parts="lcb")
    assert done.code == 0, done.screen
    job = lab.job()
    assert words(job.answers("lcb")) == dict.fromkeys(IDS, "accepted")
    assert "lcb: 10 / 10, 10 right of 10 now, 0 cut off, 0 errors" in done.err
    assert "10 / 10" in done.out and "LiveCodeBench" in done.out
    assert "once more" not in job.log
    summary = job.summary("lcb")
    assert (summary["status"], summary["right"], summary["n"]) == ("ok", 10, 10)
    assert summary["sandbox"] == sandbox and "NONE" not in sandbox
    assert summary["sample_list"] is True
    assert not [warning for warning in summary["warnings"] if "sandbox" in warning]
    whole = json.loads((job.folder / "summary.json").read_bytes())
    assert whole["parts"]["lcb"] == summary
    public = {path.name for path in (job.folder / "public").iterdir()}
    assert {"lcb.jsonl", "lcb.contract.json", "lcb.summary.json"} <= public


def test_every_verdict_but_infra_error_comes_out_as_its_word(
    tmp_path: Path, server: RunningServer, sandbox: str
) -> None:
    """And is counted under it; a cut-off answer is counted apart."""
    lab = lab_of(tmp_path, server, REPLIES)
    done = lab.run(parts="lcb")
    assert done.code == 0, done.screen
    job = lab.job()
    answers = job.answers("lcb")
    assert words(answers) == WORDS
    assert list(answers) == list(IDS), "in the order of the list"
    right = [id for id, line in answers.items() if line["right"]]
    assert right == [id for id, word in WORDS.items() if word == "accepted"]
    for id, line in answers.items():
        assert line["rule"] == WORDS[id], id
        assert line["stratum"] == samples()[id]["difficulty"]
        assert line["gold"] is None, "there is no answer to give away"
    summary = job.summary("lcb")
    assert (summary["right"], summary["cut_off"], summary["errors"]) == (2, 1, 0)
    assert summary["rules"] == dict.fromkeys(WORDS.values(), 1) | {"accepted": 2}
    assert {name: count["n"] for name, count in summary["strata"].items()} == {
        "easy": 5,
        "medium": 5,
    }
    assert "lcb: 10 / 10, 2 right of 10 now, 1 cut off, 0 errors" in done.err


def test_contract_names_the_list_the_sandbox_and_the_deviations(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, sandbox: str
) -> None:
    """On disk before the first request, and as it was afterwards."""
    contract = lab.job().folder / "lcb.contract.json"
    seen: list[dict[str, Any]] = []
    original = ModelClient.complete

    async def complete(self: ModelClient, request: Request, extra: Any) -> Completion:
        seen.append(json.loads(contract.read_bytes()))
        return await original(self, request, extra)

    monkeypatch.setattr(ModelClient, "complete", complete)
    lab.script()
    assert lab.run(parts="lcb").code == 0
    assert len(seen) == 10
    conditions = seen[0]["conditions"]
    assert conditions == lab.job().contract("lcb")["conditions"]
    assert conditions["sandbox"] == sandbox
    assert conditions["grader"] == "code 1" and len(conditions["grader_notes"]) > 5
    assert conditions["max_tokens"] == 4096 and conditions["thinking"] == "off"
    assert conditions["list"]["kind"] == "sample" and conditions["list"]["items"] == 10
    assert len(conditions["list"]["sha256"]) == 64
    assert "standard input" in conditions["prompt"]["template"]


def test_cut_off_answer_with_a_right_program_is_wrong_and_never_run(
    tmp_path: Path, server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """trc-01."""
    ran: list[str] = []
    original = Sandbox.run

    def run(self: Sandbox, code: str, stdin: bytes, limits: Limits) -> Ran:
        ran.append(code)
        return original(self, code, stdin, limits)

    monkeypatch.setattr(Sandbox, "run", run)
    cut = {"text": in_fence("print(2)"), "finish_reason": "length"}
    lab = own_lab(tmp_path, server, [problem("cut", ("1", "2"))], {"cut": cut})
    assert lab.run(parts="lcb").code == 0
    answer = lab.job().answers("lcb")["cut"]
    assert (answer["right"], answer["cut_off"], answer["rule"]) == (False, True, "cut_off")
    assert answer["extracted"] is None and ran == []
    assert lab.job().summary("lcb")["cut_off"] == 1


def test_prompts_are_told_apart_by_style_and_hold_no_hidden_test(
    tmp_path: Path, server: RunningServer
) -> None:
    """What the server was sent: the statement, and the starter code where there is one."""
    lab = lab_of(tmp_path, server, {id: {"text": "?"} for id in IDS})
    assert lab.run(parts="lcb").code == 0
    bodies = {record["item"]: record["body"] for record in lab.asked()}
    for id, row in samples().items():
        [message] = bodies[key_of(id)]["messages"]
        assert message["role"] == "user"
        functional = bool(row["starter_code"].strip())
        assert ("Write a complete program." in message["content"]) is not functional
        assert ("Complete this code." in message["content"]) is functional
        assert row["starter_code"].strip("\n") in message["content"]
        hidden = json.loads(row["private_test_cases"])[-1]["input"]
        assert hidden.strip() not in message["content"]
        assert bodies[key_of(id)]["max_tokens"] == 4096
        assert bodies[key_of(id)]["stream"] is True


# ------------------------------------------------------------------ beside the run


def test_programs_are_judged_while_other_answers_are_generated(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One answer comes only when the verdict on another is there: nothing waits for the pool."""
    judged = threading.Event()
    grade, complete = CodeTask.grade, ModelClient.complete

    def seen(
        self: CodeTask, item: Item, completion: Completion, run_code: RunCode | None = None
    ) -> Verdict:
        verdict = grade(self, item, completion, run_code)
        judged.set()
        return verdict

    async def held_back(self: ModelClient, request: Request, extra: Any) -> Completion:
        completion = await complete(self, request, extra)
        if request.id == IDS[0]:
            assert await anyio.to_thread.run_sync(judged.wait, PATIENCE), "no verdict yet"
        return completion

    monkeypatch.setattr(CodeTask, "grade", seen)
    monkeypatch.setattr(ModelClient, "complete", held_back)
    assert lab.run(parts="lcb").code == 0
    assert lab.job().summary("lcb")["right"] == 10


def test_parts_without_programs_are_graded_at_once_beside_it(lab: Lab) -> None:
    """Two parts in one pool: each has its own counts."""
    lab.list_of(3)
    lab.card["parts"]["mmlupro"] = {"list": "mine.jsonl"}
    lab.script({key_of(id): step for id, step in ALL_RIGHT.items()}, default={"text": "B"})
    done = lab.run(parts="mmlupro,lcb")
    assert done.code == 0, done.screen
    assert "lcb: 10 / 10, 10 right of 10 now" in done.err
    assert "mmlupro: 3 / 3, 3 right of 3 now" in done.err
    assert lab.job().summary("mmlupro")["sandbox"] is None
    assert lab.job().contract("mmlupro")["conditions"]["sandbox"] is None


def test_complete_part_is_not_asked_again(tmp_path: Path, server: RunningServer) -> None:
    """The same command prints its table: every verdict is the one that it was."""
    rows = [problem(id, ("1", "2")) for id in ("a", "b")]
    replies = {"a": {"text": in_fence("print(2)")}, "b": {"text": in_fence("print(3)")}}
    lab = own_lab(tmp_path, server, rows, replies)
    assert lab.run(parts="lcb").code == 0
    before = words(lab.job().answers("lcb"))
    assert before == {"a": "accepted", "b": "wrong_answer"}
    done = ask_again(lab)
    assert done.code == 0 and "1 / 2" in done.out
    assert words(lab.job().answers("lcb")) == before
    assert len(lab.job().sessions("lcb")) == 1


# ------------------------------------------------------------------ without a sandbox


def test_unsafe_is_stamped_wherever_the_number_stands(lab: Lab) -> None:
    """Contract, summary, table, page, public copy."""
    done = lab.run(UNSAFE, parts="lcb")
    assert done.code == 0, done.screen
    job = lab.job()
    said = job.contract("lcb")["conditions"]["sandbox"]
    assert said.startswith("NONE (--unsafe-no-sandbox)")
    summary = job.summary("lcb")
    assert summary["sandbox"] == said
    assert summary["right"] == 10, "verdicts are the same"
    warned = "programs ran without a sandbox (--unsafe-no-sandbox)"
    assert [w for w in summary["warnings"] if w.startswith(warned)]
    assert warned in done.out
    assert warned in (job.folder / "summary.md").read_text(encoding="utf-8")
    shown = qualeval("summarize", str(job.folder))
    assert shown.code == 0 and warned in shown.out
    page = lab.folder / "page.html"
    assert qualeval("report", str(job.folder), "--out", str(page)).code == 0
    text = page.read_text(encoding="utf-8")
    assert warned.capitalize() in text and said in text
    public = json.loads((job.folder / "public" / "lcb.summary.json").read_bytes())
    assert public["sandbox"] == said


def test_run_started_in_a_sandbox_does_not_go_on_without_one(lab: Lab, sandbox: str) -> None:
    """Rows of two settings share no file; nothing is touched."""
    assert lab.run("--limit", "2", parts="lcb").code == 1
    before = {path: path.read_bytes() for path in lab.job().files() if path.name != "run.log"}
    refused = lab.run(UNSAFE, parts="lcb")
    assert refused.code == 2
    assert f"sandbox: there '{sandbox}', here 'NONE (--unsafe-no-sandbox)" in refused.err
    assert "--job NAME" in refused.err
    assert lab.requests() == 2
    assert {p: p.read_bytes() for p in lab.job().files() if p.name != "run.log"} == before


def without_any(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which an attack succeeds on every rung."""
    monkeypatch.undo()
    monkeypatch.setattr(ladder, "attack", lambda sandbox: iter([Canary("network", False, "open")]))


@pytest.mark.parametrize("options", [(), ("--dry-run",)], ids=["run", "dry-run"])
def test_machine_without_a_sandbox_refuses_before_the_first_request(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    """It says what failed, what to install, how to leave the part out, how to insist."""
    without_any(monkeypatch)
    refused = lab.run(*options, parts="lcb")
    assert refused.code == 2 and "Traceback" not in refused.screen
    for words_of_it in ("network: open", "apt install bubblewrap", "--parts", UNSAFE):
        assert words_of_it in refused.err
    assert lab.requests() == 0
    assert not lab.job().folder.exists()


def test_machine_without_a_sandbox_runs_all_other_parts(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_any(monkeypatch)
    lab.list_of(3).script()
    lab.card["parts"]["mmlupro"] = {"list": "mine.jsonl"}
    assert lab.run(parts="mmlupro").code == 0


# ------------------------------------------------------------------ a sandbox that fails


def broken_for(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    """A sandbox that fails whenever it is given this program."""
    original = Sandbox.run

    def run(self: Sandbox, given: str, stdin: bytes, limits: Limits) -> Ran:
        if given == code:
            raise SandboxError("sandbox (test): is broken")
        return original(self, given, stdin, limits)

    monkeypatch.setattr(Sandbox, "run", run)


def test_answer_whose_sandbox_fails_is_never_wrong_and_is_judged_later(
    tmp_path: Path, server: RunningServer
) -> None:
    """Incomplete, exit 1, no line; the same command judges it without asking."""
    bad = "print(int(input()) + 1)  # broken here"
    rows = [problem("bad", ("1", "2"), ("2", "3")), problem("good", ("1", "2"), ("2", "3"))]
    replies = {
        "bad": {"text": in_fence(bad)},
        "good": {"text": in_fence("print(int(input()) + 1)")},
    }
    lab = own_lab(tmp_path, server, rows, replies)
    with pytest.MonkeyPatch.context() as patch:
        broken_for(patch, bad)
        done = lab.run(parts="lcb")
        assert done.code == 1 and "Traceback" not in done.screen
        again = ask_again(lab)
        assert again.code == 1, "it is broken still"
        shown = qualeval("summarize", str(lab.job().folder))
        assert shown.code == 1
    job = lab.job()
    assert list(job.answers("lcb")) == ["good"]
    summary = job.summary("lcb")
    assert (summary["status"], summary["accuracy"]) == ("incomplete", None)
    assert (summary["errors"], summary["error_kinds"]) == (1, {"infra_error": 1})
    assert (summary["answered"], summary["right"], summary["n"]) == (1, 1, 2)
    assert "lcb is incomplete: " in done.err
    assert "not asked" not in summary["incomplete_because"]
    assert job.errors("lcb") == [], "no request failed"
    assert job.log.count("tried once more") == 2, "once in each session"
    assert "no verdict on id bad: sandbox (test): is broken" in job.log
    assert not (job.folder / "public" / "lcb.jsonl").exists()
    page = tmp_path / "page.html"
    assert qualeval("report", str(job.folder), "--out", str(page)).code == 0
    assert "infra_error" in page.read_text(encoding="utf-8")

    healed = ask_again(lab)
    assert healed.code == 0, healed.screen
    assert words(job.answers("lcb")) == {"bad": "accepted", "good": "accepted"}
    assert job.summary("lcb")["status"] == "ok"
    assert len(job.gen("lcb")) == 2
    assert (job.folder / "public" / "lcb.jsonl").exists()


def test_grade_says_what_it_could_not_judge(tmp_path: Path, server: RunningServer) -> None:
    """An answer that had a verdict loses it rather than become wrong."""
    code = "print(int(input()) + 1)"
    lab = own_lab(tmp_path, server, [problem("a", ("1", "2"))], {"a": {"text": in_fence(code)}})
    assert lab.run(parts="lcb").code == 0
    with pytest.MonkeyPatch.context() as patch:
        broken_for(patch, code)
        graded = qualeval("grade", str(lab.job().folder))
    assert graded.code == 1 and "lcb is incomplete" in graded.out
    assert lab.job().summary("lcb")["error_kinds"] == {"infra_error": 1}
    assert lab.job().answers("lcb") == {}
    assert qualeval("grade", str(lab.job().folder)).code == 0
    assert lab.job().summary("lcb")["right"] == 1


# ------------------------------------------------------------------ ended from outside


def slow_lab(folder: Path, server: RunningServer) -> Lab:
    """A program without end between two that end at once."""
    rows = [problem(id, ("1", "2"), ("2", "3")) for id in ("a", "b", "c")]
    code = {"a": "print(int(input()) + 1)", "b": ENDLESS, "c": "print(1)"}
    replies = {id: {"text": in_fence(text)} for id, text in code.items()}
    return own_lab(folder, server, rows, replies)


def in_the_middle_of_judging(lab: Lab, process: Any, replies: int = 3) -> None:
    """Wait until every reply is on disk and a program is running."""
    folder = lab.job().folder

    def reached() -> bool:
        assert process.poll() is None, "the run ended before it could be stopped"
        contract = folder / "lcb.contract.json"
        over = contract.exists() and b'"wall_time": null' not in contract.read_bytes()
        there = whole_lines(folder / "lcb.gen.jsonl") == replies
        return there and over and is_judging(process.pid)

    until(reached, "all replies on disk, and a program running")


def is_judging(pid: int) -> bool:
    """Whether a program runs in a sandbox of a worker: the attacks at the start know no thread."""
    return len(os.listdir(f"/proc/{pid}/task")) > 1 and len(list(descendants(pid))) > 3


def assert_all_gone(below: set[int]) -> None:
    """Processes end on their own once the run is dead; a zombie of somebody else's is gone too."""
    until(lambda: not any(map(alive, below)), "nothing of the sandboxes is left")


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def test_sandbox_killed_in_the_middle_of_a_test_changes_no_verdict(
    tmp_path: Path, server: RunningServer
) -> None:
    """From outside, everything in it: one retry in the log, and the run is complete."""
    this_sandbox()
    waits = (
        "import resource, time\nnumber = int(input())\n"
        "while resource.getrlimit(resource.RLIMIT_MSGQUEUE)[0]: time.sleep(0.01)\n"
        "print(number + 1)"
    )
    rows = [problem("slow", ("1", "2"))]
    lab = own_lab(tmp_path, server, rows, {"slow": {"text": in_fence(waits)}})
    with ending(lab.start(parts="lcb")) as process:
        in_the_middle_of_judging(lab, process, replies=1)
        # What tells the second try of the program that it is the second: a new sandbox inherits
        # this limit (bytes of message queues, which nobody here has), the one that runs keeps its.
        _, hard = resource.prlimit(process.pid, resource.RLIMIT_MSGQUEUE)
        resource.prlimit(process.pid, resource.RLIMIT_MSGQUEUE, (0, hard))
        for pid in set(descendants(process.pid)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        done = ended(process)
    assert done.code == 0, done.screen
    assert "1 / 1" in done.out
    assert words(lab.job().answers("lcb")) == {"slow": "accepted"}
    assert lab.job().summary("lcb")["errors"] == 0
    assert lab.job().log.count("tried once more") == 1
    assert lab.requests() == 1


def test_each_repeat_of_a_question_has_a_verdict_of_its_own(
    tmp_path: Path, server: RunningServer
) -> None:
    steps = [{"text": in_fence("print(2)")}, {"text": in_fence("print(3)")}]
    lab = own_lab(tmp_path, server, [problem("a", ("1", "2"))], {"a": steps})
    lab.card["parts"]["lcb"]["repeats"] = 2
    lab.card["server"]["slots"] = 1
    assert lab.run(parts="lcb").code == 0
    lines = json_lines(lab.job().folder / "lcb.jsonl")
    assert [(line["repeat"], line["right"]) for line in lines] == [(0, True), (1, False)]
    assert lab.job().summary("lcb")["right"] == 1


def test_run_killed_in_the_middle_of_judging_goes_on_without_asking(
    tmp_path: Path, server: RunningServer
) -> None:
    """`kill -9`: no program outlives the run, and what cannot be told before `grade` says so."""
    this_sandbox()
    lab = slow_lab(tmp_path, server)
    with ending(lab.start(parts="lcb")) as process:
        in_the_middle_of_judging(lab, process)
        below = set(descendants(process.pid))
        process.kill()
        process.communicate()
    assert below
    assert_all_gone(below)
    job = lab.job()
    assert not (job.folder / "lcb.jsonl").exists()
    assert not (job.folder / "summary.json").exists()
    for command in (("summarize",), ("report",)):
        refused = qualeval(*command, str(job.folder))
        assert refused.code == 2, command
        assert f"qualeval grade {job.folder}" in refused.err
        assert "Traceback" not in refused.screen
    shown = qualeval("show", str(job.folder), "lcb", "a")
    assert shown.code == 0 and f"not graded yet: qualeval grade {job.folder}" in shown.out
    assert not (job.folder / "lcb.jsonl").exists(), "nobody ran programs without being asked to"

    done = ask_again(lab)
    assert done.code == 0, done.screen
    assert words(job.answers("lcb")) == {
        "a": "accepted",
        "b": "time_limit",
        "c": "wrong_answer",
    }
    assert job.summary("lcb")["status"] == "ok"
    assert qualeval("summarize", str(job.folder)).code == 0


def test_grade_judges_a_run_that_was_killed(tmp_path: Path, server: RunningServer) -> None:
    """What the messages advise is enough."""
    rows = [problem(id, ("1", "2")) for id in ("a", "b")]
    replies = {"a": {"text": in_fence("print(2)")}, "b": {"text": in_fence("print(3)")}}
    lab = own_lab(tmp_path, server, rows, replies)
    assert lab.run(parts="lcb").code == 0
    folder = lab.job().folder
    whole = words(lab.job().answers("lcb"))
    for name in ("lcb.jsonl", "lcb.summary.json", "summary.json", "summary.md"):
        (folder / name).unlink()
    assert qualeval("summarize", str(folder)).code == 2
    graded = qualeval("grade", str(folder))
    assert graded.code == 0 and "2 answers had no verdict before" in graded.out
    assert words(lab.job().answers("lcb")) == whole
    assert qualeval("verify", str(folder)).code == 0


def test_interrupt_in_the_middle_of_judging_ends_at_once_and_goes_on(
    tmp_path: Path, server: RunningServer
) -> None:
    """Status 130, the verdicts that were there kept, no program left; later nothing is asked."""
    this_sandbox()
    lab = slow_lab(tmp_path, server)
    with ending(lab.start(parts="lcb")) as process:
        in_the_middle_of_judging(lab, process)
        below = set(descendants(process.pid))
        process.send_signal(signal.SIGINT)
        done = ended(process)
    assert done.code == 130, done.screen
    assert "Traceback" not in done.screen
    assert "run the same command again to go on" in done.err
    assert_all_gone(below)
    summary = lab.job().summary("lcb")
    assert summary["status"] == "incomplete" and summary["error_kinds"] == {}
    assert "b" not in lab.job().answers("lcb"), "no verdict was made up"
    shown = qualeval("summarize", str(lab.job().folder))
    assert (shown.code, "not judged yet" in shown.out) == (1, True)
    assert qualeval("report", str(lab.job().folder)).code == 0
    finished = ask_again(lab)
    assert finished.code == 0
    assert words(lab.job().answers("lcb"))["b"] == "time_limit"


def test_interrupted_run_says_that_programs_were_not_judged(
    tmp_path: Path, server: RunningServer
) -> None:
    """All was asked: "not asked yet" would be untrue."""
    this_sandbox()
    lab = slow_lab(tmp_path, server)
    with ending(lab.start(parts="lcb")) as process:
        in_the_middle_of_judging(lab, process)
        process.send_signal(signal.SIGINT)
        done = ended(process)
    assert done.code == 130
    assert "not asked" not in lab.job().summary("lcb")["incomplete_because"]


def test_interrupt_while_a_later_session_judges_ends_at_once(
    tmp_path: Path, server: RunningServer
) -> None:
    """Nothing is left to ask, so the programs are all there is to wait for."""
    this_sandbox()
    lab = slow_lab(tmp_path, server)
    for number in (signal.SIGKILL, signal.SIGTERM):
        with ending(lab.start(parts="lcb")) as process:
            in_the_middle_of_judging(lab, process)
            below = set(descendants(process.pid))
            process.send_signal(number)
            done = ended(process)
        assert_all_gone(below)
    assert done.code == 130 and "Traceback" not in done.screen
    assert "run the same command again to go on" in done.err
    assert "b" not in lab.job().answers("lcb"), "no verdict was made up"
    assert len(lab.job().gen("lcb")) == 3


def test_part_whose_programs_were_all_run_is_printed_whatever_holds_programs_now(
    tmp_path: Path, server: RunningServer
) -> None:
    """Nothing is left to run, and so nothing to be held."""
    this_sandbox()
    replies = {"a": {"text": in_fence("print(input())")}}
    lab = own_lab(tmp_path, server, [problem("a", ("1", "1"))], replies)
    assert lab.run(parts="lcb").code == 0
    held_by = lab.job().contract("lcb")["conditions"]["sandbox"]
    files = sorted(lab.job().folder.glob("lcb.*"))
    for path in files:
        path.write_text(path.read_text().replace(held_by, "a rung of another machine"))
    there = [path.read_bytes() for path in files]
    again = lab.run(parts="lcb")
    assert again.code == 0 and "100.0 %" in again.out, again.screen
    assert there == [path.read_bytes() for path in files]


def test_run_killed_before_its_first_answer_is_incomplete_like_any_other(
    tmp_path: Path, server: RunningServer
) -> None:
    """Nothing was answered, so nothing waits to be judged."""
    lab = own_lab(tmp_path, server, [problem("a", ("1", "2"))], {"a": {"fault": "hang"}})
    with ending(lab.start(parts="lcb")) as process:
        until(lambda: lab.requests() == 1, "the request is in flight")
        process.kill()
        process.communicate()
    shown = qualeval("summarize", str(lab.job().folder))
    assert shown.code == 1, shown.screen
    assert "1 not asked yet" in shown.screen


def test_sample_solutions_cover_the_whole_list() -> None:
    assert set(SOLUTIONS) == set(IDS) == set(MIXED)
