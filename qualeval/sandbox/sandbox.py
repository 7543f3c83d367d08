"""One sandbox: a process on the other side that runs one program at a time.

    with Sandbox("bubblewrap", this_interpreter()) as sandbox:
        ran = sandbox.run("print(input())", b"7", Limits())

The other side is started once and stays warm; it is started anew after it failed. Nothing that a
program should print is ever given to it.
"""

import contextlib
import fcntl
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
from dataclasses import asdict
from importlib.resources import files
from threading import Lock
from time import monotonic
from typing import Any, Literal

from qualeval.errors import SandboxError
from qualeval.sandbox.interpreter import PACKAGES, Interpreter
from qualeval.sandbox.values import Limits, Ran, RunStatus
from qualeval.sandbox.watch import (
    Watch,
    descendants,
    tasks_are_counted_by_namespace,
    tasks_of_user,
)

RungName = Literal["bubblewrap", "namespaces", "landlock", "none"]
"""How programs are held, strongest first; `none` only holds them to limits and is never chosen."""

HIDDEN = ("bubblewrap", "namespaces")
"""Rungs on which a program has namespaces of its own."""

_HELD_APART = contextlib.nullcontext()
_ONE_AT_A_TIME = Lock()
"""Elsewhere the kernel counts the tasks of all programs together, and one would take another's."""

SOURCES = ("kernel", "landlock", "seccomp", "prelude", "launch", "zygote")

LOADER = """\
import json, sys, types
for name, text in json.loads(sys.argv[1]).items():
    module = sys.modules[name] = types.ModuleType(name)
    exec(compile(text, name, "exec"), vars(module))
try:
    sys.modules[sys.argv[2]].main(json.loads(sys.argv[3]))
except OSError as error:
    sys.exit(str(error))
"""
"""Nothing of ours is on the file system of a sandbox: its sources come as an argument."""

INTERPRETER_OPTIONS = ("-S", "-s", "-P")
ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MALLOC_ARENA_MAX": "2",
}

READY_SECONDS = 30.0
"""How long a sandbox may take to start, on a machine that is busy."""

ANSWER_SECONDS = 10.0
"""How long it may take to end a program that it was told to end."""

LOOK_EVERY = 0.05
"""Seconds between two looks at what a program uses."""

LOOK_AT_LEAST_EVERY = 0.25
"""However long a look takes: what is not seen in between grows by gigabytes a second."""

SHOWN_STDERR = 4096


class Sandbox:
    """Runs programs on one rung. Not for several threads at once; each wants its own."""

    def __init__(self, rung: RungName, interpreter: Interpreter) -> None:
        self.rung = rung
        self.interpreter = interpreter
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._zygote = 0
        self._interrupted = False

    def __enter__(self) -> "Sandbox":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def pid(self) -> int | None:
        """The process to which everything inside belongs; None before the first program."""
        return self._process.pid if self._process else None

    def run(self, code: str, stdin: bytes, limits: Limits) -> Ran:
        """Run a program to its end.

        Raises SandboxError when the sandbox could not be started, or ended before the program did;
        the next run starts another one.
        """
        try:
            if self._control is None:
                self._start()
            if self._interrupted:
                raise SandboxError(f"sandbox ({self.rung}): interrupted")
            with _HELD_APART if self.rung in HIDDEN else _ONE_AT_A_TIME:
                return self._run(code.encode("utf-8", "surrogatepass"), stdin, limits)
        except OSError as error:
            self.close()
            raise SandboxError(f"sandbox ({self.rung}): {error}") from None
        except BaseException:  # Ctrl-C too: nothing may go on running inside
            self.close()
            raise

    def interrupt(self) -> None:
        """End the program that is running now, and let no other begin: `run` raises SandboxError.
        The one method that another thread may call.
        """
        self._interrupted = True
        control = self._control
        if control is not None:
            with contextlib.suppress(OSError):
                control.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """End everything inside; harmless when there is nothing."""
        if self._control is not None:
            self._control.close()
            self._control = None
        process, self._process = self._process, None
        if process is None:
            return
        try:
            process.wait(timeout=1)  # it ends when its socket does
        except subprocess.TimeoutExpired:
            for pid in (*descendants(process.pid), process.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            process.wait()
        if process.stderr is not None:
            process.stderr.close()

    # Starting

    def _start(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._control = ours
            ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
            settings = self._settings(theirs.fileno())
            self._process = subprocess.Popen(
                _python(sys.executable, "launch", settings),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                pass_fds=[theirs.fileno()],
                env=ENVIRONMENT,
                cwd="/",
                start_new_session=True,
            )
        ours.settimeout(READY_SECONDS)
        try:
            hello, credentials, _, _ = ours.recvmsg(4096, socket.CMSG_SPACE(12))
        except TimeoutError:
            raise SandboxError(f"sandbox ({self.rung}): did not start") from None
        if not hello:
            raise SandboxError(f"sandbox ({self.rung}): did not start: {self._last_words()}")
        # The kernel translates the sender's process id into the one it has out here.
        self._zygote = int.from_bytes(credentials[0][2][:4], sys.byteorder)

    def _settings(self, control: int) -> dict[str, Any]:
        site = [PACKAGES] if self.rung in HIDDEN else list(self.interpreter.site)
        zygote = {
            "rung": self.rung,
            "socket": control,
            "readable": list(self.interpreter.shown.values()),
            "site": site,
        }
        return {
            "rung": self.rung,
            "shown": self.interpreter.shown,
            "bubblewrap": shutil.which("bwrap"),
            "environment": ENVIRONMENT,
            "command": _python(self.interpreter.executable, "zygote", zygote),
        }

    def _last_words(self) -> str:
        process, self._process = self._process, None
        assert process is not None
        _, words = process.communicate()
        return words.decode(errors="replace").strip()[-300:] or f"status {process.returncode}"

    # Running

    def _run(self, code: bytes, stdin: bytes, limits: Limits) -> Ran:
        assert self._control is not None
        with contextlib.ExitStack() as stack:
            ours = []
            for name, content in (
                ("code", code),
                ("stdin", stdin),
                ("stdout", b""),
                ("stderr", b""),
            ):
                ours.append(_file(name, content, read_only=name in ("code", "stdin")))
                stack.callback(os.close, ours[-1])
            started = monotonic()
            order = json.dumps(self._order(code, limits)).encode()
            socket.send_fds(self._control, [order], ours)
            answer, broken = self._answer(limits, started)
            wall = monotonic() - started
            status = _status(answer, broken, limits, ours[2:])
            written = b"" if status == "output_limit" else _content(ours[2], 0)
            return Ran(
                status=status,
                exit_code=answer["code"] if status == "exited" else None,
                signal=answer["signal"] if status == "signaled" else None,
                stdout=written,
                stderr=_content(ours[3], max(0, os.fstat(ours[3]).st_size - SHOWN_STDERR)),
                cpu_seconds=answer["cpu"],
                wall_seconds=wall,
                max_rss_bytes=answer["rss"],
                waited_seconds=answer["waited"],
            )

    def _order(self, code: bytes, limits: Limits) -> dict[str, Any]:
        counted_apart = self.rung in HIDDEN and tasks_are_counted_by_namespace()
        others = 0 if counted_apart else tasks_of_user(self._zygote)
        return {
            **asdict(limits),
            "tasks": limits.processes + others + 2,  # the zygote and the init beside it count
            "address_space": 2 * limits.memory_bytes,
            "last_resort": 10 * limits.wall_seconds + 10,
            "packages": [name for name in self.interpreter.packages if name.encode() in code],
        }

    def _answer(self, limits: Limits, started: float) -> tuple[dict[str, Any], RunStatus | None]:
        """What the zygote says of a program, and the limit that we ended it at, if we did."""
        assert self._control is not None
        watch = Watch(self._zygote, limits, started)
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        broken: RunStatus | None = None
        wait = LOOK_EVERY
        while not poll.poll(wait * 1000):
            if broken is not None:
                raise SandboxError(f"sandbox ({self.rung}): a program could not be ended")
            broken = watch.broken_limit()
            wait = min(max(LOOK_EVERY, watch.seconds_of_a_look * 20), LOOK_AT_LEAST_EVERY)
            if broken is not None:
                self._control.send(b"kill")
                wait = ANSWER_SECONDS
        reply = self._control.recv(4096)
        if not reply:
            raise SandboxError(f"sandbox ({self.rung}): ended in the middle of a program")
        answer: dict[str, Any] = json.loads(reply)
        answer["cpu"] = max(answer["cpu"], watch.cpu_seconds)
        answer["rss"] = max(answer["rss"], watch.memory_bytes)
        answer["waited"] = watch.seconds_without_a_core
        if answer["code"] is None and broken is None:
            # Its init was ended by a stranger: the kernel, short of memory, or somebody's kill.
            raise SandboxError(f"sandbox ({self.rung}): a program was ended from outside")
        return answer, broken


def _python(executable: str, module: str, settings: dict[str, Any]) -> list[str]:
    return [
        *(executable, *INTERPRETER_OPTIONS, "-c", LOADER),
        *(json.dumps(_sources()), module, json.dumps(settings)),
    ]


def _sources() -> dict[str, str]:
    folder = files("qualeval.sandbox") / "inside"
    return {name: (folder / f"{name}.py").read_text(encoding="utf-8") for name in SOURCES}


def _file(name: str, content: bytes, *, read_only: bool) -> int:
    """A file in memory, at its start; one that is read-only can be changed by nobody any more."""
    file = os.memfd_create(name, os.MFD_CLOEXEC | (os.MFD_ALLOW_SEALING if read_only else 0))
    view = memoryview(content)
    while view:
        view = view[os.write(file, view) :]
    os.lseek(file, 0, os.SEEK_SET)
    if read_only:
        seals = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
        fcntl.fcntl(file, fcntl.F_ADD_SEALS, seals)
    return file


def _content(file: int, start: int) -> bytes:
    size = os.fstat(file).st_size
    parts = []
    while start < size and (part := os.pread(file, size - start, start)):
        parts.append(part)
        start += len(part)
    return b"".join(parts)


def _status(
    answer: dict[str, Any], broken: RunStatus | None, limits: Limits, outputs: list[int]
) -> RunStatus:
    """How a program ended, from what was measured: what it says itself counts for nothing."""
    if any(os.fstat(file).st_size >= limits.output_bytes for file in outputs):
        return "output_limit"
    if broken is not None:
        return broken
    if answer["cpu"] > limits.cpu_seconds or answer["signal"] == signal.SIGXCPU:
        return "cpu_limit"
    if answer["signal"] == signal.SIGXFSZ:
        return "output_limit"
    if answer["signal"] == signal.SIGKILL and answer["rss"] > limits.memory_bytes / 2:
        return "memory_limit"  # ended by the kernel
    return "signaled" if answer["signal"] else "exited"
