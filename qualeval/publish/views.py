"""One text read in the ways in which something can hide in it, each position mapped back.

    plain     as it stands
    decoded   full-width and other compatibility characters, percent signs and JSON escapes undone
    joined    decoded, with line breaks and invisible characters taken out
    bare      decoded, with all white space taken out

Only the ways that change a text are made. A match in any of them is a span of the text itself.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["plain", "decoded", "joined", "bare"]
Span = tuple[int, int]
Changes = Callable[[str], Iterator[tuple[int, int, str]]]

ROUNDS = 3
"""How often one escape may stand inside another."""

# Each begins with one character, or one class of them, which makes a search for it cheap.
_BACKSLASH = re.compile(r"\\(?:u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}|[nrt\"/\\])")
_PERCENT = re.compile(r"%[0-9A-Fa-f]{2}(?:%[0-9A-Fa-f]{2})*")
_FOREIGN = re.compile(r"[^\x00-\x7f]+")
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "/": "/", "\\": "\\"}
_INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff"
)
_BREAK = re.compile(rf"[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029{_INVISIBLE}][\s{_INVISIBLE}]*")
_SPACE = re.compile(rf"[\s{_INVISIBLE}]+")


@dataclass(slots=True)
class View:
    """One reading of a text, made of the one below it by putting other characters in some places.

    `changes` says which, and is asked only when a position is wanted.
    """

    kind: Kind
    text: str
    below: "View | None" = None
    changes: "Changes | None" = None
    _lower: str | None = None
    _starts: list[int] = field(default_factory=list)
    _ends: list[int] = field(default_factory=list)

    @property
    def lower(self) -> str:
        """The text in lower case, for substrings that a rule needs; not for positions."""
        if self._lower is None:
            self._lower = self.text.lower()
        return self._lower

    def span(self, start: int, end: int) -> Span:
        """Where characters `start` to `end` of this reading stand in the text itself."""
        if self.below is None:
            return start, end
        if not self._starts:
            self._map()
        return self.below.span(self._starts[start], self._ends[max(start, end - 1)])

    def begins_word(self, start: int) -> bool:
        """Whether no letter and no digit stands left of `start`; a line break is a border."""
        text, at = self._beside(start)
        return at == 0 or not text[at - 1].isalnum()

    def ends_word(self, end: int) -> bool:
        """Whether no letter and no digit stands right of `end`; a line break is a border."""
        text, at = self._beside(end - 1)
        at = self._ends[end - 1] if text is not self.text else end
        return at >= len(text) or not text[at].isalnum()

    def _beside(self, at: int) -> tuple[str, int]:
        """The reading in which line breaks still stand, and where a character is there."""
        if self.below is None or self.kind not in ("joined", "bare"):
            return self.text, at
        if not self._starts:
            self._map()
        return self.below.text, self._starts[at]

    def _map(self) -> None:
        """Positions of every character in the reading below."""
        assert self.below is not None
        assert self.changes is not None
        at = 0
        for start, end, new in self.changes(self.below.text):
            self._same(at, start)
            one_by_one = end - start == 3 * len(new)
            for place in range(len(new)):
                first = start + 3 * place if one_by_one else start
                self._starts.append(first)
                self._ends.append(first + 3 if one_by_one else end)
            at = end
        self._same(at, len(self.below.text))

    def _same(self, start: int, end: int) -> None:
        self._starts.extend(range(start, end))
        self._ends.extend(range(start + 1, end + 1))


def views(text: str) -> list[View]:
    """The readings of a text that differ, the text itself first."""
    plain = View("plain", text)
    found = [plain]
    decoded = _decoded(plain)
    if decoded is not plain:
        found.append(decoded)
    joined = _joined(decoded)
    if joined is not decoded:
        found.append(joined)
    return found


def bare(view: View) -> View:
    """The reading without any white space, of a plain or decoded one."""
    text = _SPACE.sub("", view.text)
    return view if text == view.text else View("bare", text, view, _all_space)


def _decoded(view: View) -> View:
    for _ in range(ROUNDS):
        before = view
        if "\\" in view.text:
            view = _with(view, _BACKSLASH, _unescaped)
        if "%" in view.text:
            view = _with(view, _PERCENT, _percent_undone)
        if not view.text.isascii():
            view = _with(view, _FOREIGN, _compatible)
        if view is before:
            break
    return view


def _with(view: View, pattern: re.Pattern[str], plain: Callable[[str], str]) -> View:
    text = pattern.sub(lambda match: plain(match[0]), view.text)
    if text == view.text:
        return view

    def changes(below: str) -> Iterator[tuple[int, int, str]]:
        for match in pattern.finditer(below):
            if plain is not _compatible:
                yield *match.span(), plain(match[0])
                continue
            for at, character in enumerate(match[0], start=match.start()):
                yield at, at + 1, _compatible(character)

    return View("decoded", text, view, changes)


def _unescaped(old: str) -> str:
    return chr(int(old[2:], 16)) if old[1] in "ux" else _ESCAPES[old[1]]


def _percent_undone(old: str) -> str:
    return bytes.fromhex(old.replace("%", "")).decode("utf-8", "replace")


def _compatible(old: str) -> str:
    """Full-width and other forms of a character as the character itself, one by one."""
    if unicodedata.is_normalized("NFKC", old):
        return old
    return "".join(unicodedata.normalize("NFKC", character) for character in old)


def _joined(view: View) -> View:
    """Lines put together, the white space around the break and what cannot be seen gone too."""
    if view.text.isascii() and "\r" not in view.text:
        pieces, changes = map(str.strip, view.text.split("\n")), _ascii_breaks
    else:
        pieces, changes = map(str.rstrip, _BREAK.split(view.text)), _breaks
    text = "".join(pieces)
    return view if text == view.text else View("joined", text, view, changes)


def _ascii_breaks(text: str) -> Iterator[tuple[int, int, str]]:
    """White space with a line feed in it, and that at both ends."""
    for match in _SPACE.finditer(text):
        start, end = match.span()
        if "\n" in match[0] or start == 0 or end == len(text):
            yield start, end, ""


def _breaks(text: str) -> Iterator[tuple[int, int, str]]:
    """Breaks with the white space before them, and white space at the end."""
    at = 0
    for match in _BREAK.finditer(text):
        yield at + len(text[at : match.start()].rstrip()), match.end(), ""
        at = match.end()
    yield at + len(text[at:].rstrip()), len(text), ""


def _all_space(text: str) -> Iterator[tuple[int, int, str]]:
    return ((*match.span(), "") for match in _SPACE.finditer(text))
