"""Which candidate is the program: the first that is Python, and has the function that is called.
Asked in the sandbox, read here.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from qualeval.graders.code.extraction import MOST_CANDIDATES
from qualeval.sandbox.values import Limits, Ran, RunCode

_LONGEST_MESSAGE = 120


@cache
def script(name: str) -> str:
    """The source of a module of this package that runs inside the sandbox."""
    return resources.files(__package__).joinpath(f"{name}.py").read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Choice:
    """Index of the program among the candidates, or None and why the first one is none."""

    index: int | None
    why: str


def choose(
    codes: Sequence[str], run_code: RunCode, limits: Limits, function: str | None = None
) -> Choice:
    """Ask for the first program among at most eight texts; where a function is called, for the
    first that has it.

    A check that a limit or a signal ends chooses none: the texts were made to end it. Raises
    SandboxError as `run_code` does, and ValueError for no text or more than eight.
    """
    if not 0 < len(codes) <= MOST_CANDIDATES:
        raise ValueError(f"there must be 1 to {MOST_CANDIDATES} candidates, not {len(codes)}")
    asked = json.dumps({"texts": list(codes), "function": function}).encode("ascii")
    ran = run_code(script("compile_check"), asked, limits)
    return _read(ran, len(codes))


def _read(ran: Ran, candidates: int) -> Choice:
    if ran.status != "exited" or ran.exit_code != 0:
        return Choice(None, f"the compiler was ended ({ran.status.replace('_', ' ')})")
    try:
        said = json.loads(ran.stdout)
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict):
        return Choice(None, "the compiler gave no answer")
    chosen = said.get("chosen")
    if isinstance(chosen, int) and 0 <= chosen < candidates:
        return Choice(chosen, "")
    return Choice(None, _error(said.get("error")))


def _error(error: Any) -> str:
    if not isinstance(error, dict):
        return "does not compile"
    line = error.get("line")
    place = f" in line {line}" if isinstance(line, int) else ""
    message = "".join(c for c in str(error.get("message")) if c.isprintable())[:_LONGEST_MESSAGE]
    return f"{error.get('kind')}{place}: {message}"
