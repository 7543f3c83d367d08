"""Names, addresses and keys of the machine itself, which no pattern knows: found by their value.

A key is found anywhere, even split over white space. A name is found as a word, in any case; one
that is short or a common word (a user called max, a host called node) only where it names a user
or a host: in a home path, an address, beside an at sign. A root is a folder, replaced in what the
operator wrote.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

from qualeval.publish.views import View, bare

SHORTEST_NAME = 5
SHORTEST_KEY = 8

Kind = Literal["key", "name"]

_BEFORE = r"(?:(?<=/home/)|(?<=/users/)|(?<=\\users\\)|(?<=/root/)|(?<=~)|(?<=@)|(?<=://))"
_AFTER = r"(?=@[a-z0-9]|:\d{2,5}\b|\.(?:local|localdomain|lan|internal|home|corp|ts\.net)\b)"


@cache
def common_words() -> frozenset[str]:
    """Words that are found as names only in a path or an address."""
    text = (files("qualeval.publish") / "common-words.txt").read_text(encoding="utf-8")
    lines = (line for line in text.split("\n") if not line.startswith("#"))
    return frozenset(word for line in lines for word in line.split())


@dataclass(frozen=True, slots=True)
class LocalLiteral:
    """One value, in lower case, and how it is found."""

    value: str
    kind: Kind = "name"
    first_word: str = ""
    """What must be in a text for more to be tried."""

    @property
    def in_context_only(self) -> bool:
        """Whether it is too short or too common to be found as a word."""
        stem = self.value.rstrip("0123456789-_")
        plain = re.fullmatch(r"[a-z]+[-_]?\d{0,2}", self.value) is not None
        return len(self.value) < SHORTEST_NAME or (plain and stem in common_words())


@dataclass(frozen=True, slots=True)
class Literals:
    """All values of a machine. `roots` are folders and what stands for them, longest first."""

    values: tuple[LocalLiteral, ...] = ()
    roots: tuple[tuple[str, str], ...] = ()

    def find(self, view: View) -> Iterator[tuple[int, int]]:
        """Where a value stands in one reading of a text."""
        lower = view.lower
        for literal in self.values:
            if literal.first_word in lower:
                yield from self._find(literal, view)

    def find_bare(self, view: View) -> Iterator[tuple[View, int, int]]:
        """Where a key stands in a reading, were its white space not there."""
        keys = [v.value for v in self.values if v.kind == "key"]
        without = bare(view) if keys else view
        if without is view:
            return
        for value in keys:
            if value in without.lower:
                for match in re.finditer(re.escape(value), without.text, re.IGNORECASE):
                    yield without, *match.span()

    def find_roots(self, view: View) -> Iterator[tuple[int, int, str]]:
        """(start, end, what stands for it) of each folder."""
        for root, name in self.roots:
            start = view.text.find(root)
            while start >= 0:
                end = start + len(root)
                following = view.text[end : end + 1]
                if not (following.isalnum() or following in ("-", "_", ".")) and (
                    view.text[start - 1 : start] != "/"
                ):
                    yield start, end, name
                start = view.text.find(root, end)

    def _find(self, literal: LocalLiteral, view: View) -> Iterator[tuple[int, int]]:
        escaped = r"\s+".join(map(re.escape, literal.value.split(" ")))
        if literal.in_context_only:
            pattern = rf"{_BEFORE}{escaped}(?![a-z0-9])|(?<![a-z0-9]){escaped}{_AFTER}"
            if view.kind != "joined":
                for match in re.finditer(pattern, view.text, re.IGNORECASE):
                    yield match.span()
            return
        letters = literal.value.replace(" ", "").isalpha() and literal.kind == "name"
        for match in re.finditer(escaped, view.text, re.IGNORECASE):
            start, end = match.span()
            if not letters or (view.begins_word(start) and view.ends_word(end)):
                yield start, end


def literals_of(
    names: Iterable[str] = (), keys: Iterable[str] = (), roots: Mapping[str, str] | None = None
) -> Literals:
    """Literals of names, keys and folders; what is empty, or would be found everywhere, goes."""
    values: dict[str, LocalLiteral] = {}
    for name in names:
        low = " ".join(name.lower().split())
        if len(low) >= 2 and low not in _NOWHERE:
            values.setdefault(low, LocalLiteral(low, "name", low.partition(" ")[0]))
    for key in keys:
        low = key.strip().lower()
        if len(low) >= SHORTEST_KEY and low not in common_words():
            values[low] = LocalLiteral(low, "key", low.partition(" ")[0])
        elif low and low not in common_words() and low not in _NOWHERE:
            values.setdefault(low, LocalLiteral(low, "name", low.partition(" ")[0]))
    folders = [(r.rstrip("/"), n) for r, n in (roots or {}).items() if len(r.rstrip("/")) >= 4]
    return Literals(
        tuple(sorted(values.values(), key=lambda v: (-len(v.value), v.value))),
        tuple(sorted(folders, key=lambda root: -len(root[0]))),
    )


_NOWHERE = frozenset(("localhost", "localhost.localdomain", "127.0.0.1", "::1", "0.0.0.0", "none"))  # noqa: S104
