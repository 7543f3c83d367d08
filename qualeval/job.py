"""Which job a command works on: its options, and the folder that they and the card name."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from qualeval.card import Card
from qualeval.contract import conditions_in
from qualeval.errors import OptionError
from qualeval.plan import Schedule
from qualeval.runfolder import RawReplies, read_contract


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What the command line says beyond the card."""

    runs: Path
    command: str
    parts: str | None = None
    job: str | None = None
    lists: str | None = None
    limit: int | None = None
    repetition: bool = False
    schedule: Schedule = "default"
    unsafe_no_sandbox: bool = False


def job_name(label: str) -> str:
    """A label as the name of a folder: lower case, dashes for all else."""
    kept = "".join(c if c.isascii() and (c.isalnum() or c in "._") else "-" for c in label.lower())
    return "-".join(filter(None, kept.split("-"))).strip(".") or "run"


def run_path(card: Card, options: RunOptions, parts: Sequence[str]) -> Path:
    """The folder of the job; with `repetition` the first one that is not complete yet."""
    name = options.job or job_name(card.label)
    if name in (".", "..") or "/" in name or "\\" in name:
        raise OptionError(f"--job: '{name}' is no name of a folder")
    path = options.runs / name
    number = 0
    while options.repetition and (number == 0 or _is_complete(path, parts)):
        number += 1
        path = options.runs / f"{name}-rep{number}"
    return path


def _is_complete(path: Path, parts: Sequence[str]) -> bool:
    return all(_has_all_replies(path, part) for part in parts)


def _has_all_replies(path: Path, part: str) -> bool:
    where = path / f"{part}.contract.json"
    contract = read_contract(where)
    if contract is None:
        return False
    conditions = conditions_in(contract, str(where))
    wanted = conditions.list.items * conditions.repeats
    return len(RawReplies(path / f"{part}.gen.jsonl")) >= wanted
