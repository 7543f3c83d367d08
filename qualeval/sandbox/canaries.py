"""Attacks that a sandbox must hold against before it is trusted, run for real at every start.

Each attack is a program that prints what it achieved; what counts is what is seen from outside.
"""

import os
import secrets
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from qualeval.errors import SandboxError
from qualeval.sandbox.sandbox import Sandbox
from qualeval.sandbox.values import MIB, Limits, Ran
from qualeval.sandbox.watch import descendants

QUICK = Limits(
    cpu_seconds=3, wall_seconds=6, memory_bytes=256 * MIB, output_bytes=MIB, processes=16
)


@dataclass(frozen=True, slots=True)
class Canary:
    """One attack and whether it was held; `detail` says what was seen."""

    name: str
    held: bool
    detail: str


Attack = Callable[[Sandbox], tuple[bool, str]]


def attack(sandbox: Sandbox) -> Iterator[Canary]:
    """The attacks, one after another; the first that is not held is the last."""
    for name, run in ATTACKS.items():
        try:
            held, detail = run(sandbox)
        except (SandboxError, OSError) as error:
            held, detail = False, str(error)
        yield Canary(name, held, detail)
        if not held:
            return


def _says(ran: Ran) -> str:
    return ran.stdout.decode(errors="replace").strip()


def _runs(sandbox: Sandbox) -> tuple[bool, str]:
    """With threads, with what is offered, and by the interpreter that is meant."""
    code = (
        f"import {', '.join(['sys', 'threading', *sandbox.interpreter.packages])}\n"
        "gate = threading.Barrier(9)\n"
        "for _ in range(8):\n"
        "    threading.Thread(target=gate.wait).start()\n"
        "gate.wait()\n"
        "print(int(input()) * 2, sys.version_info[:3], sys.prefix)\n"
    )
    roomy = Limits(cpu_seconds=10, wall_seconds=20, memory_bytes=2048 * MIB)
    ran = sandbox.run(code, b"21\n", roomy)
    prefixes = {sys.base_prefix, os.path.realpath(sys.base_prefix)}
    right = _says(ran) in {f"42 {sys.version_info[:3]} {prefix}" for prefix in prefixes}
    return right, "a program ran" if right else f"{ran.status}: {_says(ran)} {ran.stderr[-200:]!r}"


def _not_root(sandbox: Sandbox) -> tuple[bool, str]:
    inside = [sandbox.pid or 0, *descendants(sandbox.pid or 0)]
    owners = {
        int(Path(f"/proc/{pid}/status").read_text().split("Uid:")[1].split()[0]) for pid in inside
    }
    return 0 not in owners, f"runs as user {', '.join(map(str, sorted(owners)))}"


@contextmanager
def _secret_file() -> Iterator[tuple[Path, str]]:
    secret = secrets.token_hex(16)
    with tempfile.TemporaryDirectory(prefix="qualeval-canary-") as folder:
        Path(folder).chmod(0o777)
        path = Path(folder) / "secret"
        path.write_text(secret)
        path.chmod(0o666)
        yield path, secret


def _reading(sandbox: Sandbox) -> tuple[bool, str]:
    """A file that everybody on this machine may read, the accounts, this process's environment."""
    with _secret_file() as (path, secret):
        code = (
            "import os\n"
            f"for path in {[str(path), '/etc/passwd', f'/proc/{os.getpid()}/environ']!r}:\n"
            "    try:\n"
            "        print(path, open(path).read())\n"
            "    except OSError:\n"
            "        pass\n"
            "print(*os.environ)\n"
        )
        os.environ["QUALEVAL_CANARY"] = secret
        try:
            said = _says(sandbox.run(code, b"", QUICK))
        finally:
            del os.environ["QUALEVAL_CANARY"]
    held = secret not in said and "QUALEVAL_CANARY" not in said and "/etc/passwd" not in said
    return held and bool(said), "no file of this machine" if held else "files can be read"


def _writing(sandbox: Sandbox) -> tuple[bool, str]:
    """A folder that everybody on this machine may write to, and the usual places."""
    with _secret_file() as (path, _):
        places = [
            str(path.parent),
            "/",
            "/etc",
            "/usr/lib",
            "/var/tmp",
            "/dev/shm",
            str(Path.home()),
        ]
        code = (
            f"for place in {places!r}:\n"
            "    try:\n"
            "        open(place + '/qualeval-canary', 'w').write('x')\n"
            "        print('wrote to', place)\n"
            "    except OSError:\n"
            "        pass\n"
            "import os\n"
            f"path = {str(path)!r}\n"
            "for change in (lambda: open(path, 'w').close(), lambda: os.truncate(path, 0),\n"
            "               lambda: os.chmod(path, 0), lambda: os.utime(path)):\n"
            "    try:\n"
            "        change()\n"
            "    except OSError:\n"
            "        pass\n"
            "print('end')\n"
        )
        before = _facts(path)
        said = _says(sandbox.run(code, b"", QUICK))
        touched = _facts(path) != before or len(list(path.parent.iterdir())) > 1
    held = said == "end" and not touched
    return held, "nothing outside" if held else f"files can be written: {said[:200]}"


def _facts(path: Path) -> tuple[int, int, int]:
    facts = path.stat()
    return facts.st_mode, facts.st_size, facts.st_mtime_ns


def _network(sandbox: Sandbox) -> tuple[bool, str]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        code = (
            "import socket\n"
            "try:\n"
            f"    s = socket.create_connection(('127.0.0.1', {server.getsockname()[1]}), 1)\n"
            "    print('connected')\n"
            "except OSError:\n"
            "    print('refused')\n"
        )
        said = _says(sandbox.run(code, b"", QUICK))
        try:
            server.accept()[0].close()
            reached = True
        except BlockingIOError:
            reached = False
    return said == "refused" and not reached, "none" if not reached else "can be reached"


def _signals(sandbox: Sandbox) -> tuple[bool, str]:
    """A process of ours, which a signal would end."""
    waits = [sys.executable, "-I", "-S", "-c", "import sys; sys.stdin.read()"]
    with subprocess.Popen(waits, stdin=subprocess.PIPE) as victim:
        code = (
            "import os, signal\n"
            "try:\n"
            f"    os.kill({victim.pid}, signal.SIGTERM)\n"
            "except OSError:\n"
            "    pass\n"
        )
        sandbox.run(code, b"", QUICK)
        assert victim.stdin is not None
        victim.stdin.close()
        held = victim.wait() == 0
    return held, "reach nobody" if held else "a process outside was ended"


def _fork_bomb(sandbox: Sandbox) -> tuple[bool, str]:
    code = (
        "import os, time\n"
        "made = 0\n"
        "for _ in range(100):\n"
        "    try:\n"
        "        if os.fork() == 0:\n"
        "            time.sleep(60)\n"
        "            os._exit(0)\n"
        "        made += 1\n"
        "    except OSError:\n"
        "        pass\n"
        "print(made)\n"
    )
    said = _says(sandbox.run(code, b"", QUICK))
    before = len(list(descendants(sandbox.pid or 0)))
    sandbox.run("", b"", QUICK)
    left = before - len(list(descendants(sandbox.pid or 0)))
    held = said.isdigit() and int(said) <= 2 * QUICK.processes and before <= 3 and left == 0
    return held, f"stopped at {said} processes" if held else f"{said} processes, {before} left"


def _memory(sandbox: Sandbox) -> tuple[bool, str]:
    """Too much in one process, and in several that are each small."""
    alone = sandbox.run("x = bytearray(1 << 30)\nprint(len(x))", b"", QUICK)
    each = QUICK.memory_bytes // 3
    code = (
        "import os, time\n"
        "for _ in range(5):\n"
        "    if os.fork() == 0:\n"
        f"        x = bytearray(b'x') * {each}\n"
        "        time.sleep(60)\n"
        "time.sleep(60)\n"
    )
    together = sandbox.run(code, b"", QUICK)
    held = not alone.stdout and together.status == "memory_limit"
    return held, "limited" if held else f"{alone.status}, {together.status}"


def _output(sandbox: Sandbox) -> tuple[bool, str]:
    ran = sandbox.run("while True:\n    print('x' * 1000)\n", b"", QUICK)
    return ran.status == "output_limit", f"ended ({ran.status})"


def _time(sandbox: Sandbox) -> tuple[bool, str]:
    """A loop that ignores every signal that it can."""
    code = (
        "import signal\n"
        "for number in range(1, 65):\n"
        "    try:\n"
        "        signal.signal(number, signal.SIG_IGN)\n"
        "    except (OSError, ValueError):\n"
        "        pass\n"
        "while True:\n"
        "    pass\n"
    )
    ran = sandbox.run(code, b"", Limits(cpu_seconds=0.2, wall_seconds=5))
    return ran.status == "cpu_limit", f"ended ({ran.status})"


def _next_test(sandbox: Sandbox) -> tuple[bool, str]:
    """A file and a process left for the program that comes next."""
    code = (
        "import os, time\n"
        "try:\n"
        "    open('/tmp/left', 'w').write('x')\n"
        "except OSError:\n"
        "    pass\n"
        "if os.fork() == 0:\n"
        "    if os.fork() == 0:\n"
        "        time.sleep(60)\n"
        "    os._exit(0)\n"
    )
    sandbox.run(code, b"", QUICK)
    left = len(list(descendants(sandbox.pid or 0)))
    said = _says(sandbox.run("import os\nprint(os.path.exists('/tmp/left'))", b"", QUICK))
    held = said == "False" and left <= 3
    return held, "starts clean" if held else f"file left: {said}, processes: {left}"


ATTACKS: dict[str, Attack] = {
    "programs run": _runs,
    "no root": _not_root,
    "files are hidden": _reading,
    "files are safe": _writing,
    "network": _network,
    "signals": _signals,
    "fork bomb of 100": _fork_bomb,
    "memory": _memory,
    "endless output": _output,
    "swallowed signals": _time,
    "the next program": _next_test,
}
