"""The command line: what each command prints, where, and the code it ends with."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from made_up import answers, card, failure, summary
from typer.testing import CliRunner

from qualeval import __version__, cli
from qualeval.errors import (
    CardError,
    ContractError,
    DiskError,
    InputError,
    JobInUseError,
    ListError,
    OptionError,
    QualevalError,
    ReplyFileError,
    RunFolderError,
    ServerGoneError,
)
from qualeval.job import RunOptions
from qualeval.run import RunOutcome
from qualeval.summarize import summarize_run
from qualeval.tasks import TASKS

GONE = "http://127.0.0.1:9/v1"
"""Nobody listens on the discard port of a test machine."""

SAMPLE_PARTS = {name: {"list": "sample"} for name in TASKS}


@pytest.fixture(autouse=True)
def own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every command runs in an empty folder, with a list cache of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("QUALEVAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "200")
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


def call(*arguments: str) -> Any:
    return CliRunner().invoke(cli.app, list(arguments))


def write_card(**fields: Any) -> Path:
    path = Path("card.json")
    path.write_text(card(parts=SAMPLE_PARTS, **fields).model_dump_json())
    return path


def commands() -> list[tuple[str, ...]]:
    """Every command and group that can be called, as words."""

    def below(command: object, words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        yield words
        for name, inner in getattr(command, "commands", {}).items():
            yield from below(inner, (*words, name))

    return list(below(typer.main.get_command(cli.app), ()))


# Help


@pytest.mark.parametrize("words", commands(), ids=lambda words: " ".join(words) or "qualeval")
def test_every_command_explains_itself(words: tuple[str, ...]) -> None:
    """llm, datasette: a command line that documents itself; every option has a sentence."""
    ended = call(*words, "--help")
    assert 0 == ended.exit_code
    assert ended.stdout.startswith(f"Usage: qualeval {' '.join(words)}".rstrip())
    described = ended.stdout.split("\n\n")[1].strip()
    assert described.endswith("."), described
    assert "" == ended.stderr


@pytest.mark.parametrize("words", commands(), ids=lambda words: " ".join(words) or "qualeval")
def test_every_option_of_every_command_has_a_help_text(words: tuple[str, ...]) -> None:
    """No option that a reader must guess at."""
    command: Any = typer.main.get_command(cli.app)
    for word in words:
        command = command.commands[word]
    if not command.hidden:
        silent = [p.name for p in command.params if not getattr(p, "help", None)]
        assert [] == silent


@pytest.mark.parametrize("words", [(), ("card",), ("lists",)])
def test_group_alone_shows_its_help(words: tuple[str, ...]) -> None:
    """Nobody is left with an empty screen."""
    ended = call(*words)
    assert 2 == ended.exit_code
    assert "Usage: qualeval" in ended.stdout + ended.stderr


def test_version_is_printed() -> None:
    """For a bug report."""
    ended = call("--version")
    assert (0, f"qualeval {__version__}\n") == (ended.exit_code, ended.stdout)


@pytest.mark.parametrize(
    "arguments",
    [
        ("nonsense",),
        ("run",),
        ("run", "card.json", "--limit", "0"),
        ("run", "card.json", "--schedule", "random"),
        ("run", "card.json", "--lists", "mine"),
        ("grade-file", "gpqa"),
    ],
)
def test_wrong_call_ends_with_2(arguments: tuple[str, ...]) -> None:
    """DESIGN 10: 2 for a bad option."""
    ended = call(*arguments)
    assert (2, "") == (ended.exit_code, ended.stdout)
    assert "Error" in ended.stderr


# Errors and codes


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        *((kind, 2) for kind in (InputError, CardError, ListError, ReplyFileError, OptionError)),
        *((kind, 2) for kind in (ContractError, JobInUseError, RunFolderError, QualevalError)),
        *((kind, 1) for kind in (DiskError, ServerGoneError)),
        (KeyboardInterrupt, 130),
    ],
)
def test_error_is_its_message_and_its_code(
    kind: type[BaseException], code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DESIGN 10: no traceback, nothing on stdout."""

    def failing(*_: object) -> None:
        raise kind("what, where, what next")

    monkeypatch.setattr("qualeval.run.run", failing)
    ended = call("run", str(write_card()))
    assert (code, "") == (ended.exit_code, ended.stdout)
    said = "interrupted" if kind is KeyboardInterrupt else "what, where, what next"
    assert f"qualeval: {said}\n" == ended.stderr


def test_bad_card_ends_with_2_and_every_fault() -> None:
    """The nearest known name of a part is told."""
    Path("c.json").write_text('{"label": "x", "server": {"model": "m"}, "parts": {"gqpa": {}}}')
    ended = call("run", "c.json")
    assert (2, "") == (ended.exit_code, ended.stdout)
    assert "parts: unknown part 'gqpa' (did you mean 'gpqa'?)" in ended.stderr
    assert "server: give exactly one of base_url, endpoints, embedded" in ended.stderr


def test_key_in_a_card_is_printed_nowhere() -> None:
    """pub-01: refused before anything is written."""
    Path("c.json").write_text(
        '{"label": "x", "server": {"base_url": "http://u:pw-selfmade@127.0.0.1/v1", "model": "m",'
        ' "api_key": "sk-selfmade-000111222"}}'
    )
    for command in ("run", "doctor"):
        ended = call(command, "c.json")
        assert 2 == ended.exit_code
        assert "selfmade" not in ended.stdout + ended.stderr
    assert ["c.json"] == sorted(os.listdir())


@pytest.mark.parametrize("command", ["run", "doctor"])
def test_missing_card_ends_with_2(command: str) -> None:
    """The path and the system's own word."""
    ended = call(command, "none.json")
    assert (2, "qualeval: none.json: cannot be read: No such file or directory\n") == (
        *(ended.exit_code, ended.stderr),
    )


def test_unknown_part_ends_with_2() -> None:
    """Of `run`, `grade-file` and `lists` alike."""
    assert 2 == call("run", str(write_card()), "--parts", "gqpa").exit_code
    for arguments in (("grade-file", "gqpa", "r.jsonl"), ("lists", "show", "gqpa")):
        ended = call(*arguments)
        assert 2 == ended.exit_code
        assert "part 'gqpa' is unknown (did you mean 'gpqa'?); there are: " in ended.stderr


def test_server_that_is_not_there_ends_with_1() -> None:
    """Of `run`: nothing was asked; the message says where and what next."""
    ended = call("run", str(write_card()), "--parts", "gpqa")
    assert (1, "") == (ended.exit_code, ended.stdout)
    assert f"qualeval: {GONE} does not answer: " in ended.stderr
    assert ended.stderr.endswith("is the server running?\n")


def test_doctor_of_a_server_that_is_not_there_ends_with_1() -> None:
    """The finding names it."""
    ended = call("doctor", str(write_card()))
    assert 1 == ended.exit_code
    assert ended.stdout.startswith("fail ")
    assert "does not answer" in ended.stdout


@pytest.mark.parametrize("name", ["..", "a/b", "a\\b"])
def test_job_is_the_name_of_a_folder(name: str) -> None:
    """No run is written elsewhere."""
    ended = call("run", str(write_card()), "--job", name)
    assert (2, f"qualeval: --job: '{name}' is no name of a folder\n") == (
        *(ended.exit_code, ended.stderr),
    )


# Run


def outcome_of(monkeypatch: pytest.MonkeyPatch, outcome: RunOutcome) -> list[RunOptions]:
    """Let `run` end with this outcome; the options that it was called with."""
    seen: list[RunOptions] = []

    def run(_card: object, _folder: Path, options: RunOptions, _watcher: object) -> RunOutcome:
        seen.append(options)
        return outcome

    monkeypatch.setattr("qualeval.run.run", run)
    return seen


def ended_with(*, done: int = 4, failed: int = 0, n: int = 4, **fields: Any) -> RunOutcome:
    lost = [failure(100 + number) for number in range(failed)]
    part = summary(answers(done), n=n, failures=lost)
    whole = summarize_run("made up", {"mmlupro": part})
    return RunOutcome(Path("runs/made-up"), whole, fields.get("stopped"), "interrupted" in fields)


def test_complete_run_ends_with_0_and_its_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """The table and where the files are."""
    outcome_of(monkeypatch, ended_with())
    ended = call("run", str(write_card()))
    assert (0, "") == (ended.exit_code, ended.stderr)
    assert "100.0 % ± " in ended.stdout
    assert "Files: runs/made-up/" in ended.stdout


def test_incomplete_run_ends_with_1_and_says_how_to_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule 2: a failed request leaves the part incomplete."""
    outcome_of(monkeypatch, ended_with(done=3, failed=1))
    ended = call("run", str(write_card()))
    assert 1 == ended.exit_code
    assert [
        "qualeval: mmlupro is incomplete: 1 failed",
        "qualeval: 3 of 4 done; run the same command again to go on",
    ] == ended.stderr.strip().split("\n")


def test_stopped_run_says_what_stopped_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Server gone, disk full."""
    outcome_of(monkeypatch, ended_with(done=1, stopped="server gone: refused"))
    ended = call("run", str(write_card()))
    assert 1 == ended.exit_code
    assert ended.stderr.startswith("qualeval: server gone: refused\n")


def test_interrupted_run_ends_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    """res-04: never 0, with what is there so far."""
    outcome_of(monkeypatch, ended_with(done=1, stopped="interrupted", interrupted=True))
    ended = call("run", str(write_card()))
    assert 130 == ended.exit_code
    assert "incomplete" in ended.stdout


def test_options_of_run_reach_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them."""
    seen = outcome_of(monkeypatch, ended_with())
    words = "--parts gpqa --job j --runs r --lists sample --limit 5 --repetition --schedule packed"
    assert 0 == call("run", str(write_card()), *words.split()).exit_code
    (options,) = seen
    assert ("gpqa", "j", Path("r"), "sample", 5, True, "packed") == (
        *(options.parts, options.job, options.runs, options.lists),
        *(options.limit, options.repetition, options.schedule),
    )


# Dry run


def test_dry_run_writes_requests_and_contracts_and_sends_nothing() -> None:
    """DESIGN 10: the server is not even asked whether it is there."""
    ended = call("run", str(write_card()), "--dry-run", "--parts", "gpqa,think", "--limit", "3")
    assert (0, "") == (ended.exit_code, ended.stderr)
    folder = Path("runs/made-up/dry-run")
    assert [
        f"{folder}/gpqa.requests.jsonl: 3 requests, none sent",
        f"{folder}/think.requests.jsonl: 3 requests, none sent",
    ] == ended.stdout.strip().split("\n")
    assert {".lock", "gpqa.contract.json", "gpqa.requests.jsonl"} | {
        "think.contract.json",
        "think.requests.jsonl",
    } == set(os.listdir(folder))
    (first, *_) = (folder / "think.requests.jsonl").read_text().split("\n")
    request = json.loads(first)
    assert (0, 16_384, True) == (
        *(request["repeat"], request["body"]["max_tokens"], request["body"]["stream"]),
    )
    assert 64 == len(request["request_sha256"])


def test_dry_run_touches_no_answer() -> None:
    """A job that runs at the same time is not disturbed."""
    job = Path("runs/made-up")
    job.mkdir(parents=True)
    (job / "gpqa.gen.jsonl").write_text("torn")
    assert 0 == call("run", str(write_card()), "--dry-run", "--parts", "gpqa").exit_code
    assert "torn" == (job / "gpqa.gen.jsonl").read_text()
    assert {"dry-run", "gpqa.gen.jsonl"} == set(os.listdir(job))


# Grade-file


def grade_files() -> tuple[str, str]:
    item = {"id": 1, "question": "Which?", "options": ["x", "y"], "answer": "B"}
    Path("items.jsonl").write_text(json.dumps(item) + "\n")
    Path("replies.jsonl").write_text('{"id": 1, "text": "B"}\n')
    return "replies.jsonl", "items.jsonl"


def test_grade_file_prints_verdicts_and_counts_apart() -> None:
    """Verdicts on stdout, for the next program; counts on stderr, for a person."""
    replies, items = grade_files()
    ended = call("grade-file", "mmlupro", replies, "--items", items)
    assert (0, "mmlupro: 1 right of 1 replies, 0 cut off\n") == (ended.exit_code, ended.stderr)
    assert {"id": 1, "right": True} == {k: json.loads(ended.stdout)[k] for k in ("id", "right")}


def test_grade_file_writes_its_output_whole() -> None:
    """Into a file, with nothing left beside it."""
    replies, items = grade_files()
    ended = call("grade-file", "mmlupro", replies, "--items", items, "--out", "out.jsonl")
    assert (0, "") == (ended.exit_code, ended.stdout)
    assert json.loads(Path("out.jsonl").read_text())["right"]
    assert ["items.jsonl", "out.jsonl", "replies.jsonl"] == sorted(os.listdir())


def test_grade_file_that_fails_writes_nothing() -> None:
    """DESIGN 10: unknown ids exit 2; the old output stays."""
    replies, items = grade_files()
    Path("out.jsonl").write_text("old")
    Path(replies).write_text('{"id": 1, "text": "B"}\n{"id": 2, "text": "B"}\n')
    ended = call("grade-file", "mmlupro", replies, "--items", items, "--out", "out.jsonl")
    assert (2, "") == (ended.exit_code, ended.stdout)
    assert "qualeval: replies.jsonl:2: id 2 is in no item of the list\n" == ended.stderr
    assert "old" == Path("out.jsonl").read_text()


def test_output_that_cannot_be_written_ends_with_2() -> None:
    """A folder that is not there."""
    replies, items = grade_files()
    ended = call("grade-file", "mmlupro", replies, "--items", items, "--out", "no/out.jsonl")
    assert (2, "qualeval: no/out.jsonl: cannot be written: No such file or directory\n") == (
        *(ended.exit_code, ended.stderr),
    )


# Cards and lists


def test_card_check_says_what_a_card_means() -> None:
    """Each setting with its source; a missing one is said to be missing."""
    path = write_card(
        sampling={"temperature": 1.0},
        sampling_source="model card",
        setup={"deviations": [{"what": "x"}]},
    )
    ended = call("card", "check", str(path))
    assert 0 == ended.exit_code
    for words in (
        'sampling  {"temperature": 1.0} (source: model card)',
        "slots     4 (source: not stated)",
        "thinking  off: nothing sent (warned in each row)",
        "run with 1 deviation from the recipe",
        "the card is good",
    ):
        assert words in ended.stdout


def test_card_check_explains_every_fault() -> None:
    """And ends with 2."""
    Path("c.json").write_text('{"lable": "x", "server": {}}')
    ended = call("card", "check", "c.json")
    assert (2, "") == (ended.exit_code, ended.stdout)
    assert "lable: unknown field (did you mean 'label'?)" in ended.stderr


def test_tokenizer_that_is_not_there_is_a_fault_of_the_card() -> None:
    """Found before a run needs it."""
    ended = call("card", "check", str(write_card(tokenizer="tokenizer.json")))
    assert 2 == ended.exit_code
    assert "tokenizer: there is no file tokenizer.json" in ended.stderr


def test_list_that_is_not_there_is_a_fault_of_the_card() -> None:
    """Every one is named, beside the tokenizer."""
    parts = {"gpqa": {"list": "none.jsonl"}, "lcb": {"list": "offical"}, "ifeval": {}}
    parts |= {"ruler": {"list": "mine.jsonl"}, "mmlupro": {"list": "sample"}}
    Path("card.json").write_text(card(parts=parts, tokenizer="t.json").model_dump_json())
    ended = call("card", "check", "card.json")
    assert (2, "") == (ended.exit_code, ended.stdout)
    assert ended.stderr.splitlines() == [
        "qualeval: tokenizer: there is no file t.json",
        "parts.gpqa.list: there is no file none.jsonl",
        "parts.lcb.list: there is no file offical (did you mean 'official'?)",
        "parts.ruler.list: takes no list of its own; set lengths and per_task",
    ]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ((GONE,), 1, f"{GONE} does not answer: "),
        (("http://u:pw-selfmade@a/v1",), 2, "URL: must hold no user, password or query"),
        (("nonsense",), 2, "URL: must start with http"),
        ((GONE, "--out", "there.json"), 2, "--out: there.json is there already"),
    ],
)
def test_card_new_that_fails_writes_nothing(
    arguments: tuple[str, ...], code: int, message: str
) -> None:
    """Never over another card, never with a password printed."""
    Path("there.json").write_text("old")
    ended = call("card", "new", *arguments)
    assert (code, "") == (ended.exit_code, ended.stdout)
    assert message in ended.stderr
    assert "selfmade" not in ended.stderr
    assert (["there.json"], "old") == (sorted(os.listdir()), Path("there.json").read_text())


@pytest.mark.parametrize("part", [n for n, task in TASKS.items() if task.maker is None])
def test_lists_show_says_what_the_list_is_and_that_it_is_not_here(part: str) -> None:
    """And how to get it."""
    ended = call("lists", "show", part)
    assert 0 == ended.exit_code
    assert f"list      qualeval/{part}-" in ended.stdout
    assert f"qualeval lists fetch {part}" in ended.stdout


def test_lists_import_of_nothing_ends_with_2() -> None:
    """There is no such file."""
    ended = call("lists", "import", "lcb", "")
    assert (2, "qualeval: PATH: is empty; name a file or a folder\n") == (
        *(ended.exit_code, ended.stderr),
    )
    ended = call("lists", "import", "gpqa", "none.csv")
    assert (2, "qualeval: none.csv: there is no such file or folder\n") == (
        *(ended.exit_code, ended.stderr),
    )


# As a process


def process(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "qualeval", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(("--help",), 0), (("nonsense",), 2), (("card", "check", "none.json"), 2)],
)
def test_code_is_that_of_the_process(arguments: tuple[str, ...], code: int) -> None:
    """What a shell sees; no warning, no traceback."""
    ended = process(*arguments)
    assert code == ended.returncode
    assert "Traceback" not in ended.stderr
    assert (code == 0) == bool(ended.stdout)


def test_output_that_nobody_reads_is_no_traceback() -> None:
    """`qualeval lists show gpqa | head -1`."""
    code = f'"{sys.executable}" -m qualeval lists show gpqa | true'
    ended = subprocess.run(
        ["/bin/sh", "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    assert "Traceback" not in ended.stderr


def test_messages_name_only_commands_of_the_design() -> None:
    """A hint that cannot be followed is worse than none."""
    planned = {"grade", "show", "summarize", "verify", "runs", "compare", "publish", "report"}
    known = {" ".join(words) for words in commands()} | planned
    text = "".join(path.read_text() for path in Path(cli.__file__).parent.glob("*.py"))
    named = set(re.findall(r"`qualeval ([a-z][a-z-]+(?: (?:show|fetch|import|new|check))?)", text))
    assert {"lists fetch", "lists import"} <= named <= known
