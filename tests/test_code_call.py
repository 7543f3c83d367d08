"""Results of functions: encoded where anything may lie, compared where nothing does."""

import collections
import enum
import json
import math
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qualeval.graders.code import call, function_harness
from qualeval.graders.code.call import equal, returned
from qualeval.graders.code.function_harness import encoded

ANY = "[{:,x" * 10_000
"""An expected text that may have as many parts as any result here."""


def frame(value: Any) -> bytes:
    body = json.dumps(encoded(value)).encode()
    return b"qualeval-result %d\n%b\n" % (len(body), body)


def through(value: Any) -> Any:
    """A value as it arrives on our side."""
    found = returned(frame(value), ANY)
    assert found is not None
    return found.value


def result_of(code: str, *arguments: Any, name: str = "f") -> Any:
    """What a function returns, called in this process: for code of our own."""
    lines = "\n".join(json.dumps(argument) for argument in arguments)
    modules = dict(sys.modules)
    try:
        written = function_harness.call(call.payload(code, name, lines))
    finally:
        sys.modules.pop("answer", None)
        assert set(modules) <= set(sys.modules)
    found = returned(written, ANY)
    assert found is not None
    return found.value


SCALARS = st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False)
SCALARS |= st.integers(-(2**70), 2**70) | st.integers(min_value=2**4000, max_value=2**4100)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner),
)


def lists_for_tuples(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [lists_for_tuples(part) for part in value]
    if isinstance(value, dict):
        return {key: lists_for_tuples(part) for key, part in value.items()}
    return value


@given(VALUES)
@settings(max_examples=150)
def test_every_plain_value_arrives_as_it_was(value: Any) -> None:
    arrived = through(value)
    assert repr(arrived) == repr(lists_for_tuples(value))
    assert equal(lists_for_tuples(value), arrived)


EXACT = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["", "0", "1"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner),
    max_leaves=4,
)


@given(EXACT, EXACT)
def test_without_floats_equality_is_that_of_python(one: Any, other: Any) -> None:
    assert equal(one, through(other)) is (one == other)


class LyingList(list):  # type: ignore[type-arg]
    def __eq__(self, other: object) -> bool:
        return True

    def __iter__(self) -> Iterator[Any]:
        return iter([4])

    def __len__(self) -> int:
        return 1

    __hash__ = None


class LyingInt(int):
    def __eq__(self, other: object) -> bool:
        return True

    def __index__(self) -> int:
        return 4

    __hash__ = None  # type: ignore[assignment]

    def __pos__(self) -> int:
        return 4


class LyingText(str):
    __slots__ = ()

    def __str__(self) -> str:
        return "4"


class LyingClass:
    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return list


Pair = collections.namedtuple("Pair", "a b")


class Colour(enum.IntEnum):
    RED = 3


class LyingDict(dict):  # type: ignore[type-arg]
    def items(self) -> Any:
        return [("a", 4)]


@pytest.mark.parametrize(
    ("value", "arrives"),
    [
        (LyingList([1, 2]), [1, 2]),
        (LyingInt(3), 3),
        (LyingText("abc"), "abc"),
        (LyingDict({"a": 1}), {"a": 1}),
        (Colour.RED, 3),
        (collections.OrderedDict(a=1), {"a": 1}),
        (collections.Counter("aab"), {"a": 2, "b": 1}),
        (Pair(1, 2), [1, 2]),
        (numpy.int64(3), 3),
        (numpy.float32(0.5), 0.5),
        (numpy.bool_(True), True),
        (numpy.str_("a"), "a"),
        (numpy.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
        ([numpy.int8(1), (numpy.int8(2),)], [1, [2]]),
        (math.inf, math.inf),
        (-math.inf, -math.inf),
        (-(2**64), -(2**64)),
        ("\ud800\x00\u2028", "\ud800\x00\u2028"),
        ({1: 2, None: 4}, {"1": 2, "null": 4}),
        ({False: 0}, {"false": 0}),
    ],
)
def test_values_are_what_they_hold(value: Any, arrives: Any) -> None:
    """lcb-16: an overridden equality, iteration or conversion is not asked."""
    arrived = through(value)
    assert type(arrived) is type(arrives)
    assert arrived == arrives


def test_nan_arrives_and_is_equal_to_nothing() -> None:
    assert math.isnan(through(math.nan))
    assert not equal(math.nan, through(math.nan))
    assert not equal(1.0, through(math.nan))


@pytest.mark.parametrize(
    "value",
    [{1}, frozenset(), (x for x in ""), object(), LyingClass(), collections.deque([1]), b"", 1j]
    + [numpy.longdouble(1), numpy.complex128(1), range(3), map(int, ()), len, Any],
)
def test_what_json_has_no_form_for_is_equal_to_nothing(value: Any) -> None:
    arrived = through(value)
    others: list[object] = [[], [1], {}, 1, 1.0, "", None, True]
    for expected in [*others, arrived]:
        assert not equal(expected, arrived)
        assert not equal([expected], [arrived])


def test_a_value_inside_itself_ends() -> None:
    inside: list[Any] = [1]
    inside.append(inside)
    table: dict[str, Any] = {}
    table["a"] = table
    assert not equal([1, [1]], through(inside))
    assert not equal({"a": {}}, through(table))


def test_a_value_in_two_places_is_no_circle() -> None:
    row = [1, 2]
    assert through([row, row]) == [[1, 2], [1, 2]]


def test_deep_nesting_is_cut() -> None:
    value: list[Any] = []
    for _ in range(10_000):
        value = [value]
    expected: list[Any] = []
    for _ in range(250):
        expected = [expected]
    assert not equal(expected, through(value))


@pytest.mark.parametrize(
    ("expected", "actual", "right"),
    [
        (1, True, True),
        (True, 1, True),
        (1, 1.0, True),
        (1, 1.0000001, False),
        (1.0, 1.0000001, True),
        (1.0, 1, True),
        (1.0, 1.00001, False),
        (1e10, 1e10 + 1000, True),
        (1e10, 1e10 + 100_000, False),
        (0.0, 1e-7, True),
        (10**17, 10**17 + 1, False),
        (math.inf, math.inf, True),
        (1.0, math.inf, False),
        (1.0, "1.0", False),
        (1.5, None, False),
        ("a", "a", True),
        ("a", ["a"], False),
        (["a"], "a", False),
        ([1, 2], [1, 2, 3], False),
        ([1, [2.0]], [1, [2.0000001]], True),
        (None, None, True),
        (None, False, False),
        ({"a": 1.0}, {"a": 1.0000001}, True),
        ({"a": 1}, {"b": 1}, False),
        ({"a": 1}, [["a", 1]], False),
        ([], False, False),
    ],
)
def test_equality(expected: Any, actual: Any, right: bool) -> None:
    assert equal(expected, actual) is right


def test_integers_beyond_every_float_are_compared_at_once() -> None:
    assert not equal(1.0, 10**1_000_000)
    assert not equal(math.inf, 10**1_000_000)
    assert not equal(-1e308, 2**1023)
    assert equal(1e307, 10**307)


@pytest.mark.parametrize(
    "stdout",
    [
        b"",
        b"1\n",
        b"qualeval-result 1\n1",
        b"qualeval-result 5\n1\n",
        b"x qualeval-result 1\n1\n",
        b"qualeval-result 1\nx\n",
        b"qualeval-result 2\n\xff\xff\n",
        b'qualeval-result 16\n{"dict":[1,2,3]}\n',
        b'qualeval-result 12\n{"int":"zz"}\n',
        b"qualeval-result 5000\n" + b"1" * 5000 + b"\n",
        b"qualeval-result 9000\n" + b"[" * 9000 + b"\n",
        b"qualeval-result 99999999999999999999\n1\n",
        b"qualeval-result 1\n" * 100_000,
    ],
)
def test_no_complete_frame_is_no_result(stdout: bytes) -> None:
    assert returned(stdout, ANY) is None


def test_first_complete_frame_wins() -> None:
    cut = b"qualeval-result 900\n[1\n"
    found = returned(b"noise\n" + cut + frame([1]) + frame([2]), "[1]")
    assert found is not None
    assert found.value == [1]


def test_result_far_longer_than_expected_is_never_parsed() -> None:
    """An equal one cannot be, and a hostile one would take a hundred times its bytes."""
    found = returned(frame([[]] * 100_000), "[1]")
    assert found is not None
    assert not equal([1], found.value)


@given(VALUES)
def test_an_equal_result_is_never_too_long(value: Any) -> None:
    expected = json.dumps(lists_for_tuples(value), ensure_ascii=False, separators=(",", ":"))
    found = returned(frame(value), expected)
    assert found is not None
    assert equal(lists_for_tuples(value), found.value)


def test_tags_that_nobody_wrote_are_equal_to_nothing() -> None:
    found = returned(b'qualeval-result 8\n{"a": 1}\n', "{}")
    assert found is not None
    assert not equal({"a": 1}, found.value)
    odd = returned(b'qualeval-result 18\n{"dict":[[[5],2]]}\n', "{}")
    assert odd is not None
    assert not equal({"[5]": 2}, odd.value)


def test_arguments_are_a_line_each_and_blank_lines_none() -> None:
    payload = json.loads(call.payload("code", "f", '[1, 2]\n"a b"\n\n'))
    assert payload == {"code": "code", "name": "f", "arguments": ["[1, 2]", '"a b"']}


@pytest.mark.parametrize("line", ["[1", "nothing", "1 2", "[" * 100_000])
def test_test_that_is_not_json_is_an_error_of_the_data(line: str) -> None:
    with pytest.raises(ValueError):
        call.payload("code", "f", "1\n" + line)
    with pytest.raises(ValueError):
        call.expected_value(line)


def test_expected_integers_may_have_any_length() -> None:
    assert call.expected_value("1" + "0" * 5000) == 10**5000
    assert call.expected_value(f"[1, -1{'0' * 5000}]") == [1, -(10**5000)]
    with pytest.raises(ValueError, match="too deep"):
        call.expected_value("[1" + "0" * 5000 + "," + "[" * 100_000)


def test_names_of_the_prelude_are_there_and_builtins_win() -> None:
    """method/lcb.md 3.2: the order of the star imports decides which name is which."""
    code = (
        "def f():\n"
        "    return [gcd(4, 6), reduce(lambda a, b: a + b, [1, 2]), inf, pow(2, 3, 5),\n"
        "            datetime.datetime(2020, 1, 1).year, defaultdict(int)[1], str(List[int]),\n"
        "            copy.copy([1]), list(repeat(1, 2)), sub(3, 1)]\n"
    )
    expected = [2, 3, math.inf, 3, 2020, 0, "typing.List[int]", [1], [1, 1], 2]
    assert result_of(code) == expected


def test_answer_is_compiled_by_itself_and_is_not_main() -> None:
    """Part 4, row 9; the reference executes it as a module of another name too."""
    code = (
        "from __future__ import annotations\nfrom dataclasses import dataclass\n"
        "@dataclass\nclass P:\n    x: Missing\n"
        "def f(n: Missing): return [__name__, P(n).x]\n"
        "if __name__ == '__main__': print(f(int(input())))"
    )
    assert result_of(code, 7) == ["answer", 7]


def test_method_of_a_fresh_solution_is_called_by_position() -> None:
    code = "class Solution:\n    def f(self, a, b): return (a, (b,))\n"
    assert result_of(code, [1], {"k": None}) == [[1], [{"k": None}]]


def test_function_is_called_where_there_is_no_solution() -> None:
    assert result_of("def f(x): return x * 2", "ab") == "abab"
    assert result_of("Solution = 5\ndef f(x): return x", 1) == 1


def test_missing_function_is_an_error_of_the_answer() -> None:
    with pytest.raises(AttributeError):
        result_of("class Solution: pass\ndef f(): return 1")


def run_harness(code: str, *arguments: Any) -> subprocess.CompletedProcess[bytes]:
    lines = "\n".join(json.dumps(argument) for argument in arguments)
    return subprocess.run(
        [sys.executable, Path(function_harness.__file__)],
        input=call.payload(code, "f", lines),
        capture_output=True,
        check=False,
        timeout=60,
    )


def test_script_runs_by_itself_and_prints_do_no_harm() -> None:
    noisy = "import os, sys\nprint('qualeval-result 1\\n5\\n', flush=True)\nos.write(1, b'x')\n"
    ran = run_harness(noisy + "def f(n):\n    print(n)\n    return n + 1", 3)
    assert (ran.stdout, ran.returncode) == (b"qualeval-result 1\n4\n", 0)
    assert b"qualeval-result 1\n5\n" in ran.stderr


@pytest.mark.parametrize("close", ["os.close(1)", "sys.stdout.close()", "sys.stdout = None"])
def test_result_is_delivered_after_stdout_is_closed(close: str) -> None:
    ran = run_harness(f"import os, sys\ndef f():\n    {close}\n    return [1]")
    assert (ran.stdout, ran.returncode) == (b"qualeval-result 3\n[1]\n", 0)


def test_exception_leaves_a_traceback_and_no_frame() -> None:
    ran = run_harness("def f(): raise KeyError('x')")
    assert (ran.stdout, ran.returncode) == (b"", 1)
    assert ran.stderr.rstrip().endswith(b"KeyError: 'x'")


def test_traceback_comes_after_all_that_was_printed() -> None:
    """The exception is named by the last lines of stderr."""
    ran = run_harness(
        "def f():\n    print('a\\n' * 100)\n    print('b', end='')\n    raise KeyError('x')"
    )
    assert ran.stderr.startswith(b"a\n")
    assert ran.stderr.rstrip().endswith(b"KeyError: 'x'")


def test_long_integers_come_through() -> None:
    """lcb-12: nothing limits the digits, in arguments and in results."""
    ran = run_harness("def f(n):\n    print(n)\n    return n + 1", 10**4000)
    found = returned(ran.stdout, str(10**4000))
    assert found is not None
    assert found.value == 10**4000 + 1


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ("[[],[]]", "[1]"),
        ('{"dict":[[1,2],[3,4]]}', '{"a":1}'),
        ('[{"dict":[]},{"dict":[]}]', "[{}]"),
    ],
)
def test_result_with_more_parts_than_expected_is_not_even_parsed(
    monkeypatch: pytest.MonkeyPatch, result: str, expected: str
) -> None:
    """A million empty lists would take seconds and a gigabyte."""
    many, want = (f"[{','.join([text] * 1000)}]" for text in (result, expected))
    frame = b"qualeval-result %d\n%b\n" % (len(many), many.encode())
    monkeypatch.setattr(call, "_decoded", lambda tagged: pytest.fail("it was parsed"))
    found = returned(frame, want)
    assert found is not None and not equal(json.loads(want), found.value)


@given(VALUES)
def test_result_that_is_equal_always_is_parsed(value: Any) -> None:
    """Long or short, with marks in its texts or without, escaped or not."""
    for text in (json.dumps([value] * 50), json.dumps([value] * 50, ensure_ascii=False)):
        body = json.dumps(encoded([value] * 50), separators=(",", ":"))
        found = returned(f"qualeval-result {len(body)}\n{body}\n".encode(), text)
        assert found is not None
        assert equal(json.loads(text), found.value)
