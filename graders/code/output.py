"""Whether what a program wrote is what was expected.

The comparison of LiveCodeBench (testing_util.grade_stdio at 28fef95) with one rule more: a number
whose expected form has a point or an exponent may be off by 1e-6, absolute or relative.

1.  Space around the whole text and around every line does not matter. The number of lines does.
2.  A line is right when it is equal as text.
3.  Else every token of both lines must be a number as `Decimal` reads it, as many in both, and each
    pair equal by value (`0.50` is `0.5`, `1.0` is `1`), or within the tolerance where that is
    allowed. Integers are exact, `nan` is equal to no number, `inf` only to itself.
"""

from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, InvalidOperation

TOLERANCE = Decimal("1e-6")

# Exponents as large as Decimal itself allows, nothing trapped: no number that a program can write
# raises here, and none is ever written out in full.
_WIDE = Context(prec=50, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])


def difference(written: bytes, expected: str) -> str | None:
    """None when right, else what differs: a line number from 1, nothing of either text.

    Bytes that are not UTF-8 are no error and equal to nothing. Never raises. Takes memory in
    proportion to `written`, however it is cut into lines and tokens.
    """
    actual = written.decode("utf-8", "surrogateescape").strip()
    wanted = expected.strip()
    if actual == wanted:
        return None
    if not actual:
        return "wrote nothing"
    # Counted before it is cut: millions of empty lines would take fifty times their bytes.
    if actual.count("\n") != wanted.count("\n"):
        return "another number of lines than expected"
    for number, (got, want) in enumerate(
        zip(actual.split("\n"), wanted.split("\n"), strict=True), start=1
    ):
        if not _same_line(got.strip(), want.strip()):
            return f"line {number} of the output differs"
    return None


def _same_line(got: str, want: str) -> bool:
    if got == want:
        return True
    wanted = want.split()
    tokens = got.split(maxsplit=len(wanted))
    return len(tokens) == len(wanted) and all(map(_same_number, tokens, wanted))


def _same_number(got: str, want: str) -> bool:
    try:
        actual, expected = Decimal(got), Decimal(want)
    except InvalidOperation:
        return False
    if actual.is_nan() or expected.is_nan():
        return False
    if actual == expected:
        return True
    if not (actual.is_finite() and expected.is_finite()):
        return False
    inexact = "." in want or "e" in want.lower()
    return inexact and within_tolerance(actual, expected)


def within_tolerance(actual: Decimal, expected: Decimal) -> bool:
    """Whether two finite numbers differ by 1e-6 at most, absolute or relative to the expected."""
    off = _WIDE.abs(_WIDE.subtract(actual, expected))
    allowed = _WIDE.multiply(TOLERANCE, _WIDE.max(Decimal(1), _WIDE.abs(expected)))
    return bool(off <= allowed)
