"""What a checker hands back, and the few ways all checkers count, compare and quote."""

import re
import warnings
from functools import lru_cache
from threading import Lock
from typing import NamedTuple

LESS = "less than"
AT_LEAST = "at least"
RELATIONS = (LESS, AT_LEAST)

_QUOTED_CHARS = 40
_warnings_lock = Lock()


class Finding(NamedTuple):
    """Followed or not, and the count or the fact that decided."""

    followed: bool
    why: str


def at_least(found: int, wanted: float, things: str) -> Finding:
    """Followed when `found` is `wanted` or more."""
    return compared(found, AT_LEAST, wanted, things)


def exactly(found: int, wanted: float, things: str) -> Finding:
    """Followed when `found` is `wanted`."""
    return Finding(found == wanted, f"found {found} {things}, wanted {plain(wanted)}")


def compared(found: int, relation: str, wanted: float, things: str) -> Finding:
    """Followed when `found` is less than, or at least, `wanted`."""
    followed = found < wanted if relation == LESS else found >= wanted
    return Finding(followed, f"found {found} {things}, wanted {relation} {plain(wanted)}")


def plain(number: float) -> str:
    """Return a threshold as a person writes it: 3 for 3, 3.0 and True."""
    return str(int(number)) if number == int(number) else str(number)


def quoted(text: str) -> str:
    """Return the first characters in quotes; safe to write, whatever the text holds."""
    return repr(text) if len(text) <= _QUOTED_CHARS else f"{text[:_QUOTED_CHARS]!r}..."


@lru_cache(maxsize=1024)
def pattern(source: str, *, ignore_case: bool) -> re.Pattern[str] | None:
    """Return `source` compiled, or None when it is no pattern.

    The reference uses keywords as they are, unescaped: a keyword such as `a[` ends it with an
    error. Here the instruction is not followed, and the finding says why.
    """
    flags = re.IGNORECASE if ignore_case else 0
    try:
        # Only brackets make `re` warn. The filters are the process's own: touched only then.
        if "[" not in source:
            return re.compile(source, flags)
        with _warnings_lock, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return re.compile(source, flags)
    except (re.error, ValueError, OverflowError, RecursionError):
        return None


def no_pattern(source: str) -> Finding:
    """Not followed, because the kwarg cannot be searched for."""
    return Finding(False, f"{quoted(source)} is not a valid pattern; counted as not followed")
