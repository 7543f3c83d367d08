"""Runs every program of `threat_programs` in the sandbox of one rung; a JSON line of output each.

A script of its own, because it is started inside an outer process namespace (`in_outer_namespace`):
should a rung not hold, `kill -1` and whatever is left running end with that namespace. It runs
nothing on a rung whose self-test fails.
"""

import json
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

TIMEOUT_SECONDS = 1800
WORKERS = 2


@dataclass(frozen=True, slots=True)
class Held:
    """How all programs fared on a rung; `skipped` says why nothing was run there."""

    faults: dict[str, str | None]
    skipped: str | None


def in_outer_namespace(rung: str) -> Held:
    """Run this file below an init of its own; what it printed."""
    if shutil.which("unshare") is None:
        return Held({}, "there is no `unshare` to make an outer process namespace with")
    command = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    ran = subprocess.run(
        [*command, sys.executable, __file__, rung],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        stdin=subprocess.DEVNULL,
    )
    lines = [json.loads(line) for line in ran.stdout.splitlines()]
    if not lines:
        return Held({}, f"no outer process namespace: {ran.stderr.strip()[-300:]}")
    if "skipped" in lines[0]:
        return Held({}, lines[0]["skipped"])
    assert lines[-1] == {"name": "end", "fault": None}, ran.stderr[-2000:]
    return Held({line["name"]: line["fault"] for line in lines}, None)


Line = dict[str, object]


def results(rung: str) -> Iterator[Line]:
    """A line for the self-test, should it fail, or one for every program."""
    import socket

    from threat_programs import ORDINARY, POISONS, THREATS, Ordinary, Poison, Threat, fault_of

    from qualeval.sandbox import RUNGS, Limits, Ran, Sandbox, check_rung
    from qualeval.sandbox.interpreter import this_interpreter
    from qualeval.sandbox.values import MIB

    (name,) = (known for known in RUNGS if known == rung)
    checked = check_rung(name, this_interpreter())
    if not checked.holds:
        yield {"skipped": f"{rung}: {checked.canaries[-1].name}: {checked.canaries[-1].detail}"}
        return

    def limits_of(threat: Threat) -> Limits:
        """Little time for what may be ended by it; what has to end by itself has plenty."""
        return Limits(
            cpu_seconds=1.5 if "cpu_limit" in threat.expect else 30,
            wall_seconds=3 if "wall_limit" in threat.expect else 60,
            memory_bytes=512 * MIB,
            output_bytes=4 * MIB,
            processes=32,
        )

    roomy = Limits(cpu_seconds=30, wall_seconds=60)
    port = ""

    class Own(threading.local):
        sandbox: Sandbox | None = None

    own = Own()

    def run(code: str, stdin: bytes, limits: Limits) -> Ran:
        if own.sandbox is None:
            own.sandbox = sandboxes.enter_context(Sandbox(name, this_interpreter()))
        return own.sandbox.run(code, stdin, limits)

    def threat(threat: Threat) -> Line:
        stdin = port.encode() if threat.name == "network" else threat.stdin
        ran = run(threat.code, stdin, limits_of(threat))
        return {"name": threat.name, "fault": fault_of(threat, ran)}

    def poison(pair: Poison) -> Line:
        """Both in the same sandbox."""
        faults = [
            fault_of(one, run(one.code, one.stdin, limits_of(one)))
            for one in (pair.first, pair.second)
        ]
        return {"name": f"after {pair.name}", "fault": faults[0] or faults[1]}

    def ordinary(program: Ordinary) -> Line:
        ran = run(program.code, program.stdin, roomy)
        right = (ran.status, ran.exit_code, ran.stdout) == ("exited", 0, program.stdout)
        said = f"{ran.status} {ran.exit_code} {ran.stdout[-200:]!r} {ran.stderr[-300:]!r}"
        return {"name": f"ordinary {program.name}", "fault": None if right else said}

    with ExitStack() as sandboxes, ThreadPoolExecutor(WORKERS) as pool:
        server = sandboxes.enter_context(socket.create_server(("", 0)))
        port = f"{server.getsockname()[1]}\n"
        yield from pool.map(threat, THREATS)
        yield from pool.map(poison, POISONS)
        yield from pool.map(ordinary, ORDINARY)
    yield {"name": "end", "fault": None}


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    for line in results(sys.argv[1]):
        print(json.dumps(line), flush=True)
