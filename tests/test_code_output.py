"""What a program wrote against what was expected: the official comparison and one rule more."""

import tracemalloc
from decimal import Decimal, InvalidOperation
from fractions import Fraction

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from qualeval.graders.code.output import difference


def same(written: str, expected: str) -> bool:
    return difference(written.encode("utf-8", "surrogatepass"), expected) is None


@pytest.mark.parametrize(
    ("written", "expected", "right"),
    [
        ("0.333333\n", "0.3333333333\n", True),
        ("2.50\n", "2.5\n", True),
        ("100000000000000001\n", "100000000000000000\n", False),
        ("1  2\n", "1 2\n", True),
        ("a  b\n", "a b\n", False),
        ("Yes\n", "YES\n", False),
    ],
)
def test_decimals_are_close_integers_exact_words_equal(
    written: str, expected: str, right: bool
) -> None:
    """lcb-11: with all its controls."""
    assert same(written, expected) is right


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("  5\n\n", "5"),
        ("5\r\n6\r\n", "5\n6"),
        ("5 \n 6", "5\n6"),
        ("", "\n"),
        ("1.0", "1"),
        ("1_0", "10"),
        ("Infinity", "inf"),
        ("-Infinity 1", "-inf 1.0"),
        ("nan", "nan"),
        ("0.0000005", "0.0"),
        ("1000000.5", "1000000.0"),
        ("1e5", "100000.0"),
        ("99999.95", "1e5"),
        ("1" + "0" * 5000, "1" + "0" * 5000),
        ("-0.0", "0"),
        ("1e999999999", "1E999999999"),
        ("1e999999999", "1.0000001e999999999"),
    ],
)
def test_right(written: str, expected: str) -> None:
    assert same(written, expected)


@pytest.mark.parametrize(
    ("written", "expected", "says"),
    [
        ("", "5", "wrote nothing"),
        ("5\n5", "5", "another number of lines than expected"),
        ("5\n\n6", "5\n6", "another number of lines than expected"),
        ("5\n7", "5\n6", "line 2 of the output differs"),
        ("1 2 3", "1 2", "line 1 of the output differs"),
        ("1", "1 2", "line 1 of the output differs"),
        ("1.0000001", "1", "line 1 of the output differs"),
        ("0.000002", "0.0", "line 1 of the output differs"),
        ("1000002.0", "1000000.0", "line 1 of the output differs"),
        ("nan", "1.0", "line 1 of the output differs"),
        ("1.0", "nan", "line 1 of the output differs"),
        ("nan 0.50", "nan 0.5", "line 1 of the output differs"),
        ("sNaN", "1.5", "line 1 of the output differs"),
        ("inf", "1e999999999", "line 1 of the output differs"),
        ("1e999999999", "inf", "line 1 of the output differs"),
        ("1e999999999", "1.0", "line 1 of the output differs"),
        ("1e-999999999", "1.0", "line 1 of the output differs"),
        ("1e9999999999999999999", "1.0", "line 1 of the output differs"),
        ("x 0.50", "x 0.5", "line 1 of the output differs"),
        ("abc", "1.0", "line 1 of the output differs"),
    ],
)
def test_wrong_and_no_text_is_told(written: str, expected: str, says: str) -> None:
    """Reasons are published: a line number, never a piece of an output."""
    assert difference(written.encode(), expected) == says


def test_bytes_that_are_no_text_are_equal_to_nothing() -> None:
    assert difference(b"\xff\xfe5\n", "5") == "line 1 of the output differs"
    assert difference(b"\xff", "\\xff") == "line 1 of the output differs"
    assert difference("é\n".encode(), "é") is None
    assert difference(b"\xed\xa0\x80", "?") == "line 1 of the output differs"


@pytest.mark.parametrize("hostile", [b"\n" * 8, b"1 ", b"1\n", b"9", b"\xff", b"1e9 ", b" \n"])
@pytest.mark.parametrize("expected", ["1 2", "1.5", "1\n2"])
def test_endless_output_takes_memory_in_proportion(hostile: bytes, expected: str) -> None:
    """Cutting 4 MiB into lines or tokens first would take about 200 MiB."""
    written = b"x" + hostile * (4 * 1024**2 // len(hostile)) + b"x"
    tracemalloc.start()
    try:
        assert difference(written, expected) is not None
        assert tracemalloc.get_traced_memory()[1] < 12 * len(written)
    finally:
        tracemalloc.stop()


def official(written: str, expected: str) -> bool:
    """LiveCodeBench's comparison, written again from its description (method/lcb.md 3.3.6)."""

    def lines(text: str) -> list[str]:
        return [line.strip() for line in text.strip().split("\n")]

    def numbers(line: str) -> list[Decimal] | None:
        try:
            return [Decimal(token) for token in line.split()]
        except InvalidOperation:
            return None

    if len(lines(written)) != len(lines(expected)):
        return False
    for got, want in zip(lines(written), lines(expected), strict=True):
        if got != want:
            left, right = numbers(got), numbers(want)
            if left is None or right is None or left != right:
                return False
    return True


TOKENS = ["1", "1.0", "01", "1e0", "-1", "nan", "inf", "Infinity", "YES", "a", "0.5", "0.50", ".5"]
TOKENS += ["1_0", "10", "1e1", "1000000", "1000000.1", "١", "0.5000001", "0.500002"]
OUTPUTS = st.lists(st.sampled_from([*TOKENS, " ", "  ", "\n", "\r\n", "\t"])).map("".join)
SPACED = st.lists(st.lists(st.sampled_from(TOKENS)).map(" ".join)).map("\n".join)


@given(OUTPUTS | SPACED, OUTPUTS | SPACED)
@settings(max_examples=300)
def test_where_the_official_comparison_says_equal_so_does_ours(written: str, expected: str) -> None:
    if official(written, expected):
        assert same(written, expected)


@given(SPACED, SPACED)
@settings(max_examples=300)
def test_without_points_and_exponents_it_is_the_official_comparison(a: str, b: str) -> None:
    expected = b.replace(".", "").replace("e", "")
    assert same(a, expected) is official(a, expected)


FINITE = st.floats(allow_nan=False, allow_infinity=False)


@given(FINITE, FINITE | st.floats(-1e-5, 1e-5))
def test_tolerance_is_one_millionth_absolute_or_relative(expected: float, off: float) -> None:
    """Against exact fractions, away from the edge itself."""
    written = expected * (1 + off) if abs(off) < 1e-5 else off
    assume(abs(written) < 1e300 and abs(expected) < 1e300)
    share = abs(Fraction(written) - Fraction(expected)) / max(Fraction(1), abs(Fraction(expected)))
    assume(abs(share - Fraction(1, 10**6)) > Fraction(1, 10**15))
    assert same(repr(written), repr(expected)) is (share < Fraction(1, 10**6))


@given(st.binary(), st.text())
def test_never_raises(written: bytes, expected: str) -> None:
    found = difference(written, expected)
    assert found is None or isinstance(found, str)


@given(st.text())
def test_a_text_is_equal_to_itself(text: str) -> None:
    assert same(text, text)
