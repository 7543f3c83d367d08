"""Runs every program of `threat_programs` in the sandbox of one rung; a JSON line of output each.

A script of its own, because it is started inside an outer process namespace (`in_outer_namespace`):
should a rung not hold, `kill -1` and whatever is left running end with that namespace. It runs
nothing on a rung whose self-test fails.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

TIMEOUT_SECONDS = 600


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


def results(rung: str) -> Iterator[dict[str, object]]:
    """A line for the self-test, should it fail, or one for every program."""
    import socket

    from threat_programs import ORDINARY, POISONS, THREATS, fault_of

    from qualeval.sandbox import Limits, Sandbox, check_rung
    from qualeval.sandbox.interpreter import this_interpreter
    from qualeval.sandbox.values import MIB

    checked = check_rung(rung, this_interpreter())
    if not checked.holds:
        yield {"skipped": f"{rung}: {checked.canaries[-1].name}: {checked.canaries[-1].detail}"}
        return
    limits = Limits(
        cpu_seconds=1.5, wall_seconds=3, memory_bytes=512 * MIB, output_bytes=4 * MIB, processes=32
    )
    roomy = Limits(cpu_seconds=10, wall_seconds=60)
    with Sandbox(rung, this_interpreter()) as sandbox, socket.create_server(("", 0)) as server:
        port = f"{server.getsockname()[1]}\n".encode()
        for threat in THREATS:
            stdin = port if threat.name == "network" else threat.stdin
            yield {
                "name": threat.name,
                "fault": fault_of(threat, sandbox.run(threat.code, stdin, limits)),
            }
        for poison in POISONS:
            first = fault_of(
                poison.first, sandbox.run(poison.first.code, poison.first.stdin, limits)
            )
            second = fault_of(
                poison.second, sandbox.run(poison.second.code, poison.second.stdin, limits)
            )
            yield {"name": f"after {poison.name}", "fault": first or second}
        for program in ORDINARY:
            ran = sandbox.run(program.code, program.stdin, roomy)
            right = (ran.status, ran.exit_code, ran.stdout) == ("exited", 0, program.stdout)
            fault = (
                None
                if right
                else f"{ran.status} {ran.exit_code} {ran.stdout[-200:]!r} {ran.stderr[-300:]!r}"
            )
            yield {"name": f"ordinary {program.name}", "fault": fault}
    yield {"name": "end", "fault": None}


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    for line in results(sys.argv[1]):
        print(json.dumps(line), flush=True)
