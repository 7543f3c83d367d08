"""What `grade`, `verify` and `show` share: a run folder read again, by a program that may be newer.

Nothing here writes, and nothing here goes to the network: an official list is used when it is on
this machine and missed, with words, when it is not.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from qualeval.contract import Conditions, conditions_of
from qualeval.errors import ListError, RunFolderError, did_you_mean
from qualeval.newest_list import lock_path
from qualeval.pins import rows_path
from qualeval.plan import PartPlan
from qualeval.records import Contract, Json, key_of
from qualeval.reopen import contract_of, parts_of, reopen
from qualeval.tasks import TASKS
from qualeval.tasks.base import Newest

Key = tuple[str, int]


@dataclass(frozen=True, slots=True)
class StoredPart:
    """A part as its contract tells it, and the plan it was asked by."""

    contract: Contract
    conditions: Conditions
    plan: PartPlan


def started_parts(run: Path) -> tuple[str, ...]:
    """Names of the parts of a run, in the order of the table. Raises RunFolderError when `run` is
    none: it holds no contract.
    """
    if not run.is_dir():
        nearest = did_you_mean(run.name, _neighbours(run))
        raise RunFolderError(f"{run}: there is no such folder{nearest}")
    names = parts_of(run)
    if not names:
        raise RunFolderError(f"{run}: is no run of this version: it holds no <part>.contract.json")
    return names


def _neighbours(run: Path) -> list[str]:
    try:
        return [path.name for path in run.parent.iterdir() if path.is_dir()]
    except OSError:
        return []


def open_part(run: Path, part: str) -> StoredPart:
    """A part ready to be graded or asked about.

    Raises RunFolderError, or ListError when its list is not the one asked or not on this machine.
    """
    contract, conditions = contract_of(run, part)
    if why := list_not_here(part, conditions):
        raise ListError(f"{run}: {why}")
    return StoredPart(contract, conditions, reopen(run, part))


def list_not_here(part: str, conditions: Conditions) -> str | None:
    """Why the questions are not on this machine; None when they are, or should be."""
    source = TASKS[part].source
    rows = rows_path(source)
    draw = TASKS[part].draw
    here = rows.exists() and (not isinstance(draw, Newest) or lock_path(source).exists())
    if here or TASKS[part].maker is not None or conditions.list.kind != "official":
        return None
    return (
        f"part '{part}': the questions of its list '{conditions.list.id}' are not on this machine "
        f"({rows}); get them with: qualeval lists fetch {part}"
    )


def conditions_now(stored: Conditions, plan: PartPlan) -> Conditions:
    """The conditions that this program makes of the plan.

    What no plan can tell is taken as stored: where the sampling comes from, how a user's list file
    was called, and the tokenizer.
    """
    made = conditions_of(plan, stored.sampling_source)
    kept = stored.list.kind == "file" or plan.task.maker is not None
    named = {"id": stored.list.id, "kind": stored.list.kind} if kept else {}
    as_stored = {
        "list": made.list.model_copy(update=named),
        "token_counts": stored.token_counts,
        "tokenizer_sha256": stored.tokenizer_sha256,
    }
    return made.model_copy(update=as_stored)


def tells_its_limit(part: str, conditions: Conditions) -> bool:
    """Whether `limits` names a max_tokens that is not the method's, and only then."""
    told = any(limit.startswith("max_tokens ") for limit in conditions.limits)
    return told == (conditions.max_tokens != TASKS[part].max_tokens)


def label_of(run: Path) -> str:
    """The label of the run's card; the folder's name where no card can be read."""
    try:
        label = json.loads((run / "card.json").read_bytes())["label"]
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return run.resolve().name
    return label if isinstance(label, str) and label else run.resolve().name


def json_object(text: bytes, where: str) -> Json:
    """A JSON object in which no name occurs twice. Raises RunFolderError."""
    try:
        value = json.loads(text, object_pairs_hook=no_double_names)
    except (ValueError, RecursionError):
        raise RunFolderError(f"{where}: is not JSON") from None
    if not isinstance(value, dict):
        raise RunFolderError(f"{where}: is no JSON object")
    return value


def object_in(path: Path) -> Json:
    """The JSON object that a file holds. Raises RunFolderError."""
    try:
        return json_object(path.read_bytes(), str(path))
    except OSError as error:
        raise RunFolderError(f"{path}: cannot be read: {error.strerror}") from None


def no_double_names(pairs: list[tuple[str, JsonValue]]) -> Json:
    """The object of these pairs. Raises ValueError: a second value would hide the first."""
    value = dict(pairs)
    if len(value) < len(pairs):
        raise ValueError("a name occurs twice")
    return value


def is_torn(path: Path) -> bool:
    """Whether a file ends inside a line."""
    try:
        with path.open("rb") as file:
            if not file.seek(0, 2):
                return False
            file.seek(-1, 2)
            return file.read(1) != b"\n"
    except FileNotFoundError:
        return False
    except OSError as error:
        raise RunFolderError(f"{path}: cannot be read: {error.strerror}") from None


def whole_lines(path: Path) -> int:
    """Whole lines of a file; 0 when it is not there."""
    count = 0
    try:
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                count += block.count(b"\n")
    except OSError:
        return 0
    return count


class AnswerLines:
    """The lines of an answer file as they stand there, found by key, not held in memory.

    `broken` names the lines that are no answer, `doubled` those whose key stood there before.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offsets: dict[Key, int] = {}
        self.broken: list[str] = []
        self.doubled: list[str] = []
        for number, offset, line in self._lines():
            key = self._key(line, number)
            if key in self._offsets:
                self.doubled.append(f"line {number}, id {key[0]}")
            elif key is not None:
                self._offsets[key] = offset

    def _lines(self) -> Iterator[tuple[int, int, bytes]]:
        offset = 0
        try:
            with self._path.open("rb") as file:
                for number, line in enumerate(file, start=1):
                    yield number, offset, line
                    offset += len(line)
        except FileNotFoundError:
            return
        except OSError as error:
            raise RunFolderError(f"{self._path}: cannot be read: {error.strerror}") from None

    def _key(self, line: bytes, number: int) -> Key | None:
        try:
            answer = json_object(line, f"line {number}")
        except RunFolderError as error:
            self.broken.append(str(error))
            return None
        id, repeat = answer.get("id"), answer.get("repeat")
        if not isinstance(id, int | str) or not isinstance(repeat, int):
            self.broken.append(f"line {number}: has no id or no repeat")
            return None
        return key_of(id, repeat)

    def __len__(self) -> int:
        return len(self._offsets)

    def in_order(self) -> list[Key]:
        """Keys in the order of the file."""
        return list(self._offsets)

    def get(self, key: Key) -> Json | None:
        """The answer with this key as it is stored."""
        if key not in self._offsets:
            return None
        with self._path.open("rb") as file:
            file.seek(self._offsets[key])
            return json_object(file.readline(), f"{self._path}: id {key[0]}")
