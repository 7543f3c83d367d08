"""Which sandbox this machine has: the strongest rung that holds against every attack."""

import platform
import shutil
import sys
from dataclasses import dataclass
from time import monotonic

from qualeval.errors import NoSandboxError
from qualeval.records import NO_SANDBOX
from qualeval.sandbox.canaries import Canary, attack
from qualeval.sandbox.interpreter import Interpreter, this_interpreter
from qualeval.sandbox.sandbox import RungName, Sandbox

RUNGS: dict[RungName, str] = {
    "bubblewrap": "bubblewrap, and namespaces for every program",
    "namespaces": "namespaces by system calls of our own",
    "landlock": "Landlock, seccomp and resource limits, no namespaces",
}
"""Strongest first."""

MACHINES = ("x86_64", "aarch64")
"""Where the numbers of system calls are known, and so which of them may be made."""

UNSAFE = "--unsafe-no-sandbox"


@dataclass(frozen=True, slots=True)
class Rung:
    """A way to hold programs, and how it fared on this machine."""

    name: RungName
    canaries: tuple[Canary, ...]
    seconds: float

    @property
    def holds(self) -> bool:
        """Whether every attack was held."""
        return all(canary.held for canary in self.canaries)


@dataclass(frozen=True, slots=True)
class Chosen:
    """The sandbox of a run. `tried` are the rungs that were looked at, the chosen one last."""

    rung: RungName
    interpreter: Interpreter
    tried: tuple[Rung, ...]

    @property
    def name(self) -> str:
        """As contract, summary and report name it."""
        rung = f"{NO_SANDBOX} ({UNSAFE})" if self.rung == "none" else self.rung
        return f"{rung}, {self.interpreter.name}"

    def sandbox(self) -> Sandbox:
        """A sandbox of this kind, for one thread at a time."""
        return Sandbox(self.rung, self.interpreter)


def refuse_strange_machines() -> None:
    """Raise NoSandboxError where there is no Linux, or one whose calls have unknown numbers."""
    machine = platform.machine()
    if sys.platform != "linux" or machine not in MACHINES:
        raise NoSandboxError(
            f"programs that a model wrote can be run on Linux on {' and '.join(MACHINES)} only; "
            f"this is {sys.platform} on {machine}; leave the part `lcb` out (--parts)"
        )


def check_rung(name: RungName, interpreter: Interpreter) -> Rung:
    """Attack one rung."""
    started = monotonic()
    if name == "bubblewrap" and shutil.which("bwrap") is None:
        missing = Canary("programs run", False, "bwrap is not installed")
        return Rung(name, (missing,), monotonic() - started)
    with Sandbox(name, interpreter) as sandbox:
        return Rung(name, tuple(attack(sandbox)), monotonic() - started)


def choose_sandbox(*, unsafe: bool = False) -> Chosen:
    """The strongest rung that holds here; with `unsafe` none, and no attack is tried.

    Raises NoSandboxError saying what each rung failed at and what to install.
    """
    refuse_strange_machines()
    interpreter = this_interpreter()
    if unsafe:
        return Chosen("none", interpreter, ())
    tried: list[Rung] = []
    for name in RUNGS:
        tried.append(check_rung(name, interpreter))
        if tried[-1].holds:
            return Chosen(name, interpreter, tuple(tried))
    failed = "\n".join(
        f"  {rung.name}: {rung.canaries[-1].name}: {rung.canaries[-1].detail}" for rung in tried
    )
    raise NoSandboxError(
        "nothing on this machine can hold a program that may be hostile:\n"
        f"{failed}\n"
        "install bubblewrap (Debian and Ubuntu: apt install bubblewrap) and allow unprivileged "
        "user namespaces, or leave the part `lcb` out (--parts); "
        f"`{UNSAFE}` runs programs unprotected, and the results say so"
    )


def check_lines(*, every: bool = False) -> tuple[list[str], int]:
    """Each rung with what its attacks met, a line each, and what a run would take; 0 when there is
    a rung that holds, else 2. Weaker rungs than that are looked at only with `every`.
    """
    refuse_strange_machines()
    interpreter = this_interpreter()
    lines: list[str] = []
    found: RungName | None = None
    for name, what in RUNGS.items():
        if found is not None and not every:
            break
        rung = check_rung(name, interpreter)
        said = "holds" if rung.holds else "does not hold"
        lines.append(f"{name}: {what}: {said} ({rung.seconds:.1f} s)")
        width = max(len(canary.name) for canary in rung.canaries)
        for canary in rung.canaries:
            state = "held" if canary.held else "NOT HELD"
            lines.append(f"  {state:<8}  {canary.name:<{width}}  {canary.detail}")
        if rung.holds and found is None:
            found = name
    if found is None:
        return [*lines, "no program of a model will be run here"], 2
    return [*lines, f"programs run in: {Chosen(found, interpreter, ()).name}"], 0
