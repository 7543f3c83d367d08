"""The files of a run, opened to be read alone, with their sha256 before and after."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from qualeval.errors import RunFolderError
from qualeval.recheck import no_double_names
from qualeval.records import Json

LONGEST_LINE = 8_000_000
Fault = Literal["oversize", "not-utf8", "schema"]


class UnreadableError(Exception):
    """A line that cannot be read, and the rule that says so."""

    def __init__(self, rule: Fault, line: int) -> None:
        super().__init__(rule)
        self.rule = rule
        self.line = line


@dataclass(slots=True)
class Sources:
    """Originals that were read, each with its sha256 when it was first looked at."""

    run: Path
    sha256: dict[str, str] = field(default_factory=dict)

    def path(self, name: str) -> Path:
        """The path of an original; its hash is taken before anything is read from it."""
        path = self.run / name
        if name not in self.sha256:
            self.sha256[name] = file_sha256(path)
        return path

    def changed(self) -> list[str]:
        """Originals that are not what they were."""
        return [name for name, was in self.sha256.items() if file_sha256(self.run / name) != was]


def file_sha256(path: Path) -> str:
    """sha256 of a file; of nothing when it is not there. Raises RunFolderError."""
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise RunFolderError(f"{path}: cannot be read: {error.strerror}") from None
    return digest.hexdigest()


def lines_of(path: Path) -> Iterator[tuple[int, str]]:
    """(number, text without its feed) of each line. Raises UnreadableError, RunFolderError."""
    try:
        with path.open("rb") as file:
            number = 0
            while line := file.readline(LONGEST_LINE + 1):
                number += 1
                if len(line) > LONGEST_LINE:
                    raise UnreadableError("oversize", number)
                try:
                    yield number, line.decode("utf-8").removesuffix("\n")
                except UnicodeDecodeError:
                    raise UnreadableError("not-utf8", number) from None
    except OSError as error:
        raise RunFolderError(f"{path}: cannot be read: {error.strerror}") from None


def objects_of(path: Path) -> Iterator[tuple[int, Json]]:
    """(number, JSON object) of each line. Raises UnreadableError, RunFolderError."""
    for number, line in lines_of(path):
        yield number, _object(line, number)


def object_of(path: Path) -> Json:
    """The JSON object that a file holds. Raises UnreadableError, RunFolderError."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise RunFolderError(f"{path}: cannot be read: {error.strerror}") from None
    if len(data) > LONGEST_LINE:
        raise UnreadableError("oversize", 1)
    try:
        return _object(data.decode("utf-8"), 1)
    except UnicodeDecodeError:
        raise UnreadableError("not-utf8", 1) from None


def _object(data: str, number: int) -> Json:
    """A JSON object in which no name occurs twice."""
    try:
        value = json.loads(data, object_pairs_hook=no_double_names)
    except (ValueError, RecursionError):
        raise UnreadableError("schema", number) from None
    if not isinstance(value, dict):
        raise UnreadableError("schema", number)
    return value


def pretty(value: object) -> str:
    """A JSON file for people."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
