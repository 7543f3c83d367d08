"""What `verify` found: differences between stored and recomputed values, each told in one line.

A line never shows the text of a question or a reply, only its length and hash.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from pydantic import JsonValue

from qualeval.records import sha256_text

LINES_OF_A_KIND = 10
"""Differences shown of one field in one file; of the rest the number is told."""

SHOWN_CHARACTERS = 40
"""A longer text is shown as its length and hash: it may be a question, or a reply with one."""

TEXTS = frozenset(("text", "reasoning", "gold"))
"""Fields of an answer that are never shown."""

EXPLANATIONS = frozenset(("reason", "details"))
"""Fields of an answer that may quote it; of a gated list only their numbers are shown."""

NOTHING = object()
"""Stands for a field that is not there."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that is not as it should be: file, place in it, what, stored and recomputed."""

    file: str
    where: str
    what: str
    told: str

    def __str__(self) -> str:
        return ": ".join(filter(None, (self.file, self.where, self.what, self.told)))


@dataclass(slots=True)
class Findings:
    """What was compared, what differs, and what could not be checked."""

    parts: int = 0
    answers: int = 0
    numbers: int = 0
    differences: list[Difference] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def fault(self, file: str, where: str, what: str, told: str = "") -> None:
        """Note something that is wrong by itself."""
        self.differences.append(Difference(file, where, what, told))

    def values(
        self,
        file: str,
        where: str,
        what: str,
        stored: object,
        recomputed: object,
        *,
        gated: bool = False,
    ) -> None:
        """Note a value that is not what it should be; `gated` when it may hold words of a list
        whose text is never shown.
        """
        show = _how_to_show(what, gated=gated)
        told = f"stored {show(stored)}, recomputed {show(recomputed)}"
        self.differences.append(Difference(file, where, what, told))

    def same(
        self,
        file: str,
        where: str,
        stored: JsonValue,
        recomputed: JsonValue,
        *,
        gated: bool = False,
    ) -> None:
        """Compare two JSON values leaf by leaf; counts the numbers among them."""
        for path, there, here in leaves(stored, recomputed):
            self.numbers += isinstance(here, int | float) and not isinstance(here, bool)
            if not equal(there, here):
                self.values(file, where, path, there, here, gated=gated)


def lines_of(differences: list[Difference]) -> list[str]:
    """A line each; many of one kind are cut short, with their number."""
    kinds: dict[tuple[str, str], list[Difference]] = {}
    for one in differences:
        kinds.setdefault((one.file, one.what), []).append(one)
    lines = []
    for (file, what), ones in kinds.items():
        lines += [str(one) for one in ones[:LINES_OF_A_KIND]]
        if len(ones) > LINES_OF_A_KIND:
            lines.append(f"{file}: {what}: and {len(ones) - LINES_OF_A_KIND:,} more of this kind")
    return lines


def leaves(
    stored: object, recomputed: object, path: str = ""
) -> Iterator[tuple[str, object, object]]:
    """(path, stored, recomputed) of each value in either of two JSON values; a list is one."""
    if isinstance(stored, dict) and isinstance(recomputed, dict) and (stored or recomputed):
        for name in dict.fromkeys((*recomputed, *stored)):
            inner = f"{path}.{name}" if path else str(name)
            yield from leaves(stored.get(name, NOTHING), recomputed.get(name, NOTHING), inner)
    else:
        yield path, stored, recomputed


def equal(stored: object, recomputed: object) -> bool:
    """Whether two JSON values are one and the same: true is not 1, and 1 is 1.0."""
    if isinstance(stored, dict) and isinstance(recomputed, dict):
        names = {*stored, *recomputed}
        return all(equal(stored.get(n, NOTHING), recomputed.get(n, NOTHING)) for n in names)
    if isinstance(stored, list) and isinstance(recomputed, list):
        same_length = len(stored) == len(recomputed)
        return same_length and all(map(equal, stored, recomputed))
    return stored == recomputed and isinstance(stored, bool) == isinstance(recomputed, bool)


def excerpts(stored: str | None, recomputed: str | None) -> tuple[object, object]:
    """Two lines of text from just before the place where they part; None is no line."""
    pairs = enumerate(zip(stored or "", recomputed or "", strict=False))
    same = next((place for place, (there, here) in pairs if there != here), 0)
    start = max(0, same - SHOWN_CHARACTERS // 4)
    stored_end, recomputed_end = (
        NOTHING if line is None else line[start : start + SHOWN_CHARACTERS]
        for line in (stored, recomputed)
    )
    return stored_end, recomputed_end


def number_of(count: int, what: str) -> str:
    """`1 part`, `2 parts`."""
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def _how_to_show(what: str, *, gated: bool) -> Callable[[object], str]:
    name = what.partition(".")[0]
    if name in TEXTS:
        return _hidden
    return _number_or_hidden if gated and name in EXPLANATIONS else shown


def shown(value: object) -> str:
    """A value as it may be printed: short, no control character, never a long text."""
    if value is NOTHING:
        return "nothing"
    text = json.dumps(value, ensure_ascii=not isinstance(value, str) or not value.isprintable())
    return text if len(text) <= SHOWN_CHARACTERS + 2 else _hidden(value)


def _hidden(value: object) -> str:
    if value is NOTHING or value is None:
        return "nothing"
    text = value if isinstance(value, str) else json.dumps(value)
    return f"{number_of(len(text), 'character')} (sha256 {sha256_text(text)[:12]})"


def _number_or_hidden(value: object) -> str:
    return shown(value) if isinstance(value, int | float) else _hidden(value)
