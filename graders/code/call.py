"""Tests of functions: what goes to the harness in the sandbox, and what its result is worth.

Results are compared by value, as `==` does, with these rules of suite 1:

1.  Tuples equal lists, at any depth.
2.  Where the expected value is a float, a number may be off by 1e-6, absolute or relative. Where it
    is an int, a number must be equal (`True` is 1, `1.0` is 1).
3.  nan is equal to nothing, inf to itself.
4.  The expected value is JSON, whose keys are text: a key that is an int, a bool or None is read as
    JSON would write it.
5.  What JSON has no form for (a set, a generator, an object) is equal to nothing.
"""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from qualeval.graders.code.output import within_tolerance

_FRAME = re.compile(rb"^qualeval-result (\d{1,9})\n", re.MULTILINE)

# The shortest JSON of a value against the longest form that an equal result can have: a bool for
# the expected `0`, `{"dict":[["` for `{"`, `\ud83d\ude00` for one character. Anything beyond is
# not equal and is never parsed.
_LONGEST_FACTOR = 32
_LONGEST_FLOOR = 1024
_FLOAT_BITS = 1023  # fewer bits than the longest float has, so that `math.isfinite` takes it


class Unsupported:
    """Stands for a result that JSON has no form for; equal to nothing, itself included."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class Returned:
    """What a function returned, as far as it can be told apart from other values."""

    value: Any


def payload(code: str, name: str, test_input: str) -> bytes:
    """Standard input of the harness. `test_input`: one argument a line, as JSON.

    Raises ValueError when a line is not JSON: the test is wrong, not the answer.
    """
    arguments = [line for line in test_input.split("\n") if line.strip()]
    for line in arguments:
        _loads(line)
    return json.dumps({"code": code, "name": name, "arguments": arguments}).encode("ascii")


def expected_value(text: str) -> Any:
    """The expected result of a test. Raises ValueError when it is not JSON."""
    return _loads(text)


def _loads(text: str) -> Any:
    try:
        try:
            return json.loads(text)
        except json.JSONDecodeError:
            raise
        except ValueError:  # an integer of more than 4,300 digits; six times slower to read
            return json.loads(text, parse_int=_integer)
    except RecursionError:
        raise ValueError("a test is nested too deep to be read") from None


def _integer(digits: str) -> int:
    # Decimal has no limit of digits.
    return int(Decimal(digits))


def returned(stdout: bytes, expected: str) -> Returned | None:
    """The result in the first complete frame, or None when there is none that can be read."""
    for found in _FRAME.finditer(stdout):
        end = found.end() + int(found[1])
        if stdout[end : end + 1] != b"\n":
            continue
        frame = stdout[found.end() : end]
        if len(frame) > _LONGEST_FACTOR * len(expected) + _LONGEST_FLOOR:
            return Returned(Unsupported())
        if len(frame) > _LONGEST_FLOOR and _has_more_parts(frame, expected):
            return Returned(Unsupported())
        try:
            return Returned(json.loads(frame, object_hook=_decoded))
        except (ValueError, TypeError, RecursionError):
            return None
    return None


def _has_more_parts(frame: bytes, expected: str) -> bool:
    """Whether a result has more lists, keys or elements than an equal one can have: a pair of a
    dict is a list of two, and texts have the same marks in both, where none is escaped. A million
    empty lists take long to parse, and a hundred times their length.
    """
    if "\\u" in expected:
        return False
    commas, colons = expected.count(","), expected.count(":")
    lists = expected.count("[") + expected.count("{") + colons
    return frame.count(b",") > commas + colons or frame.count(b"[") > lists


def _decoded(tagged: Mapping[str, Any]) -> Any:
    match tagged:
        case {"int": str(digits)}:
            return int(digits, 16)
        case {"float": "nan" | "inf" | "-inf" as word}:
            return float(word)
        case {"dict": list(pairs)}:
            return {_key(key): value for key, value in pairs}
        case _:
            return Unsupported()


def _key(key: Any) -> Any:
    if isinstance(key, str):
        return key
    if key is None or isinstance(key, bool | int | float):
        return json.dumps(key)
    return object()  # equal to no key


def equal(expected: Any, actual: Any) -> bool:
    """Whether a result is the expected value."""
    if isinstance(expected, list):
        return (
            isinstance(actual, list)
            and len(actual) == len(expected)
            and all(map(equal, expected, actual))
        )
    if isinstance(expected, dict):
        return (
            isinstance(actual, dict)
            and actual.keys() == expected.keys()
            and all(equal(value, actual[key]) for key, value in expected.items())
        )
    if isinstance(expected, float) and isinstance(actual, int | float):
        return _close(expected, actual)
    return bool(expected == actual)


def _close(expected: float, actual: float) -> bool:
    if not math.isfinite(expected):
        return expected == actual
    # An integer may be beyond every float, and must not be written out to be compared with one.
    if isinstance(actual, int) and actual.bit_length() > _FLOAT_BITS:
        return False
    return math.isfinite(actual) and within_tolerance(Decimal(actual), Decimal(expected))
