"""The written files read again, as a stranger would, before anybody can see them.

This knows no schema: every text in every file is looked at, names of fields, ids and hashes too,
and keys are also looked for in the bytes as they are. What is found here holds its file back.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

from pydantic import JsonValue

from qualeval.publish.checker import Checker, Place, record_names
from qualeval.publish.rules import SEVERITY, TextClass
from qualeval.publish.schema import BLIND_FIELDS

BLOCK = 1 << 20


def left_in(path: Path, checker: Checker, part: str, *, blind: bool) -> list[tuple[str, int, str]]:
    """(rule, line, field) of everything that should not be in a written file."""
    answers = path.name == f"{part}.jsonl"
    kind: TextClass = "model_text" if answers else "operator_text"
    checker = replace(checker, book=checker.book.at_least("redact", kind), _clean=set())
    found = []
    for number, field, text in _texts_of(path):
        first = field.partition(".")[0]
        hidden = blind and answers and first in BLIND_FIELDS
        checked = checker.check(text, Place(part, field, kind, hidden))
        found += [
            (finding.rule, number, finding.field)
            for finding in checked.findings
            if SEVERITY[finding.action] >= SEVERITY["redact"]
        ]
    keys = [v.value for v in checker.literals.values if v.kind == "key"]
    found += [("local-literal", 0, "bytes")] * _holds_any(path, keys)
    return found


def _texts_of(path: Path) -> Iterator[tuple[int, str, str]]:
    """(line, field, text) of every text in a file."""
    if path.suffix == ".json":
        for field, text in _leaves(json.loads(path.read_bytes()), "", set()):
            yield 1, field, text
        return
    names: set[str] = set()
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if path.suffix == ".jsonl":
                for field, text in _leaves(json.loads(line), "", names):
                    yield number, field, text
            elif path.suffix == ".log":
                time, _, rest = line.decode().rstrip("\n").partition(" ")
                tag, _, message = rest.partition(" ")
                yield number, "time", time
                yield number, "tag", tag
                yield number, "message", message
            else:
                yield number, "line", line.decode().rstrip("\n")


def _leaves(value: JsonValue, field: str, names: set[str]) -> Iterator[tuple[str, str]]:
    """(field, text) of every text in a JSON value, fields named as when it was built.

    Names of fields are texts too, each of them once: `names` are those that were seen.
    """
    if isinstance(value, str):
        yield field, value
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _leaves(inner, f"{field}[{number}]", names)
    elif isinstance(value, dict):
        for name, inner in value.items():
            if name not in names and name not in record_names():
                names.add(name)
                yield f"{field}.(name)".lstrip("."), name
            yield from _leaves(inner, f"{field}.{name}".lstrip("."), names)


def _holds_any(path: Path, keys: list[str]) -> bool:
    """Whether the bytes of a file hold a key: as it is, or escaped for JSON or for an address."""
    forms = set(keys) | {json.dumps(key)[1:-1] for key in keys}
    forms |= {quote(key, safe="").lower() for key in keys}
    wanted = [form.encode() for form in forms]
    if not wanted:
        return False
    overlap = max(map(len, wanted))
    before = b""
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            text = (before + block).lower()
            if any(form in text for form in wanted):
                return True
            before = block[-overlap:]
    return False
