"""Questions that must not leave this machine, found in a text by their words.

A text is taken as its words, lower case, letters and digits only. It leaks where it shares 13 words
in a row with a question or an option (the length that checks of training data use since Brown et
al. 2020, arXiv 2005.14165), or holds a whole option of 6 to 12 words. Shorter ones are no secret:
they are letters, numbers and names. The canary strings of a list are found wherever they stand.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

SHINGLE = 13
SHORTEST = 6
"""Words from which a whole option is protected; a text of fewer cannot leak any."""

_STEP = SHINGLE - SHORTEST + 1
"""Of 13 words in a row, 6 start at a place that this divides: only those are looked up first."""

_WORD = re.compile(r"[a-z0-9]+")


def words_of(text: str) -> list[str]:
    """The words of a text, as they are compared."""
    return _WORD.findall(_folded(text))


def _folded(text: str) -> str:
    """Lower case of the same length: a letter whose lower case is longer stands for itself."""
    lower = text.lower()
    if len(lower) == len(text):
        return lower
    return "".join(low if len(low := c.lower()) == 1 else c for c in text)


@dataclass(slots=True)
class Protected:
    """The texts of lists that are not public. Filled by `add`, then only read."""

    texts: int = 0
    canaries: set[str] = field(default_factory=set)
    _shingles: set[str] = field(default_factory=set)
    _starts: set[str] = field(default_factory=set)
    _options: dict[str, set[tuple[str, ...]]] = field(default_factory=dict)

    def add(self, text: str) -> None:
        """Protect a question or an option."""
        words = words_of(text)
        self.texts += 1
        if SHORTEST <= len(words) < SHINGLE:
            # Looked up by its longest word, which few other texts hold.
            self._options.setdefault(max(words, key=len), set()).add(tuple(words))
        self._shingles.update(_runs(words, SHINGLE))
        if len(words) >= SHINGLE:
            self._starts.update(_runs(words, SHORTEST))

    def add_row(self, row: Mapping[str, object]) -> None:
        """Protect every text of a row of a list; a column called canary holds a canary string."""
        for column, value in row.items():
            for text in _texts(value):
                if "canary" in column.lower():
                    self.canaries.add(text)
                else:
                    self.add(text)

    def find(self, text: str) -> list[tuple[int, int]]:
        """Spans of a text that are protected, the longest runs there are, in order."""
        if not self.texts:
            return []
        words = words_of(text)
        if not self._suspects(words):
            return []
        marked = [False] * len(words)
        for at in range(len(words) - SHINGLE + 1):
            if " ".join(words[at : at + SHINGLE]) in self._shingles:
                marked[at : at + SHINGLE] = [True] * SHINGLE
        for at, length in self._whole_options(words):
            marked[at : at + length] = [True] * length
        return _spans(text, marked)

    def _suspects(self, words: list[str]) -> bool:
        if len(words) >= SHINGLE:
            for at in range(0, len(words) - SHORTEST + 1, _STEP):
                if " ".join(words[at : at + SHORTEST]) in self._starts:
                    return True
        return not self._options.keys().isdisjoint(words)

    def _whole_options(self, words: list[str]) -> Iterator[tuple[int, int]]:
        for place, word in enumerate(words):
            for option in self._options.get(word, ()):
                at = place - option.index(word)
                if at >= 0 and tuple(words[at : at + len(option)]) == option:
                    yield at, len(option)


def _runs(words: list[str], length: int) -> Iterator[str]:
    return (" ".join(words[at : at + length]) for at in range(len(words) - length + 1))


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)


def _spans(text: str, marked: Iterable[bool]) -> list[tuple[int, int]]:
    """Spans of the marked words in the text; neighbours are one."""
    spans: list[tuple[int, int]] = []
    before = False
    for match, here in zip(_WORD.finditer(_folded(text)), marked, strict=True):
        if here and before:
            spans[-1] = (spans[-1][0], match.end())
        elif here:
            spans.append(match.span())
        before = here
    return spans


def share_of(text: str, spans: Iterable[tuple[int, int]]) -> float:
    """The share of a text that spans cover, by characters."""
    return sum(end - start for start, end in spans) / max(len(text), 1)
