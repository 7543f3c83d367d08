"""Which wanted values a reply names. Nothing is guessed, nothing is random.

These are the recall rules of qualeval suite 1. The caller has removed the reasoning and decides
about a cut-off reply; only the visible text is read here.

1.  Letters are compared without case. Full-width letters and digits are read as plain ones, and
    characters that show nothing are taken out.
2.  A value counts where it stands by itself: no letter and no digit before or after it, and no
    combining mark after it. Scripts written without spaces between words, and Korean, whose
    particles follow directly, are no letters here: `答案是42107。` names 42107.
3.  A number inside a longer one does not count: 42107 is not in 142107, 42107.5 or 0.42107.
4.  A number counts with its thousands set off (`42,107`) by a comma, an apostrophe, an underscore
    or a narrow or no-break space; not by a full stop or a plain space. Digits that go on in the
    same way (`42,107,000`) are a longer number. A group of three is still a number of its own too,
    because `107,214` can be a list.
5.  Order, form and other words do not matter. Values that were not asked are told (`extra`) and
    change nothing.

`substring_score` is what RULER (`string_match_all`) would give: the share of values that occur
anywhere as a plain substring, without case. Rules 2 and 3 leave it on purpose, and so does 4.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

VERSION = "recall 1"

_SEPARATORS = ",'’_\u00a0\u2009\u202f"
_SPACELESS = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u30ff\u3400-\u9fff\uac00-\ud7a3"
_SPACELESS += r"\uf900-\ufaff\U00020000-\U0003ffff"
_LETTER = rf"[^\W_{_SPACELESS}]"
_NOT_BEFORE = rf"(?<!{_LETTER})"
_NOT_AFTER = rf"(?!{_LETTER}|[\u0300-\u036f])"

_PLAIN: dict[int, int | None] = {0xFF01 + n: 0x21 + n for n in range(94)}  # full-width forms
_PLAIN |= dict.fromkeys(map(ord, "\u00ad\u200b\u200c\u200d\u2060\ufeff"))
_NO_SEPARATORS = dict.fromkeys(map(ord, _SEPARATORS))


@dataclass(frozen=True, slots=True)
class Recall:
    """What a reply names: `found` and `missing` of the wanted values, `extra` of the others."""

    found: tuple[str, ...]
    missing: tuple[str, ...]
    extra: tuple[str, ...]
    substring_score: float

    @property
    def all_found(self) -> bool:
        """True when no wanted value is missing."""
        return not self.missing

    @property
    def partial(self) -> float:
        """The share of wanted values found."""
        return len(self.found) / (len(self.found) + len(self.missing))


def recall(text: str, expected: Sequence[str], distractors: Sequence[str] = ()) -> Recall:
    """Read a reply. `expected` holds at least one value, and none is empty (ValueError)."""
    if not expected or not all((*expected, *distractors)):
        raise ValueError("there must be a wanted value, and no value may be empty")
    reply = _folded(text)
    squeezed = reply.translate(_NO_SEPARATORS)
    named = {value for value in (*expected, *distractors) if _names(reply, squeezed, value)}
    lower = text.lower()
    return Recall(
        found=tuple(value for value in expected if value in named),
        missing=tuple(value for value in expected if value not in named),
        extra=tuple(value for value in distractors if value in named),
        substring_score=sum(value.lower() in lower for value in expected) / len(expected),
    )


def _folded(text: str) -> str:
    return text.translate(_PLAIN).casefold()


def _names(reply: str, squeezed: str, value: str) -> bool:
    """Whether a folded reply names a value. `squeezed` is the reply without separators."""
    folded = _folded(value)
    # A plain look first: most distractors are not there, and it is far faster than a pattern.
    if not folded or folded.translate(_NO_SEPARATORS) not in squeezed:
        return False
    return re.search(_pattern(folded), reply) is not None


def _pattern(value: str) -> str:
    """The pattern of a value standing by itself; its own edges may be no letters, as in `C++`."""
    if not (value.isascii() and value.isdigit()):
        before = _NOT_BEFORE if re.match(_LETTER, value[0]) else ""
        after = _NOT_AFTER if re.match(_LETTER, value[-1]) else ""
        return before + re.escape(value) + after
    before, after = rf"{_NOT_BEFORE}(?<!\d\.)", rf"{_NOT_AFTER}(?!\.\d)"
    pattern = before + value + after
    if len(value) > 3:
        head = len(value) % 3 or 3
        groups = [value[:head], *(value[n : n + 3] for n in range(head, len(value), 3))]
        apart = f"[{_SEPARATORS}]"
        grouped = f"(?<!\\d{apart}){apart.join(groups)}(?!{apart}\\d{{3}}(?!\\d))"
        pattern += f"|{before}{grouped}{after}"
    return pattern
