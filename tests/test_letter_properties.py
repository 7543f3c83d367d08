"""What holds for every reply: no exception, no letter beyond the options, linear work."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qualeval.graders.letter import read_letter

OPTIONS = [f"text of option {number}" for number in range(10)]
LETTERS = "ABCDEFGHIJ"
MEGABYTE = 1_000_000

# Pieces that the rules look at, so that random texts reach every one of them.
PIECES = st.sampled_from(
    [
        *("answer", "option", "choice", "is", "not", "or", "and", "wait", "答案", "would be"),
        *("A", "B", "I", "J", "Z", "b", "В", "Ⓑ", "A.", "B)", "II"),
        *("\\boxed{", "\\text{", "}", "$", "*", "**", "_", "`", "```", "```text\n", "'", '"'),
        *(" ", "\n", "\r\n", ",", ".", ":", "?", "/", "(", ")", "[", "]", "<", ">", "-", "=", "—"),
        *("\u200b", "\u0301", "\ud835", "\x00", "\u2028", "\ufdfa", "\ufe0f", "\u202e"),
    ]
)
ANY_TEXT = (
    st.text(st.characters(codec=None, exclude_categories=()), max_size=80)
    | st.lists(PIECES, max_size=40).map("".join)
    | st.lists(PIECES, max_size=40).map(" ".join)
)
WRAPPERS = st.sampled_from(
    [
        ("\\boxed{", "}"),
        ("\\text{", "}"),
        ("\\mathbf{", "}"),
        ("\\(", "\\)"),
        ("\\[", "\\]"),
        ("$", "$"),
        ("*", "*"),
        ("**", "**"),
        ("_", "_"),
        ("`", "`"),
        ("'", "'"),
        ('"', '"'),
        ("“", "”"),
        ("(", ")"),
        ("[", "]"),
        ("{", "}"),
        ("<b>", "</b>"),
    ]
)
SPACES = st.text(" \t\n\r\u00a0\u3000\u2028\u200b", max_size=30)


@given(ANY_TEXT, st.integers(0, 26), st.booleans())
def test_any_text_gives_a_letter_in_range_or_none(text: str, count: int, last: bool) -> None:
    """No text raises; the letter is one of the options; its place lies inside the raw text."""
    options = [f"text {number}" for number in range(count)]
    reading = read_letter(text, options, last_line_wins=last)
    assert reading.letter is None or reading.letter in string.ascii_uppercase[:count]
    assert (reading.letter is None) or (reading.span is not None)
    if reading.span is not None:
        start, end = reading.span
        assert 0 <= start < end <= len(text)
    assert reading.reason.endswith(".")
    assert reading == read_letter(text, options, last_line_wins=last)


@given(ANY_TEXT)
def test_last_line_wins_only_where_letters_are_several(text: str) -> None:
    """The rule for replies after thinking changes no reading that was not "several"."""
    plain = read_letter(text, OPTIONS)
    after_thinking = read_letter(text, OPTIONS, last_line_wins=True)
    assert plain == after_thinking or plain.rule.startswith("several_letters:")


@given(st.sampled_from(LETTERS), st.lists(WRAPPERS, max_size=12))
def test_wrapped_letter_is_still_bare(letter: str, wrappers: list[tuple[str, str]]) -> None:
    """Any stack of wrappers around one letter leaves that letter."""
    text = letter
    for before, after in wrappers:
        text = before + text + after
    reading = read_letter(text, OPTIONS)
    assert (letter, "bare") == (reading.letter, reading.rule)
    assert reading.span is not None and letter == text[slice(*reading.span)]


@given(ANY_TEXT, SPACES, SPACES)
def test_white_space_around_changes_nothing(text: str, before: str, after: str) -> None:
    """Letter and rule do not depend on white space before or after the reply."""
    plain = read_letter(text, OPTIONS)
    padded = read_letter(before + text + after, OPTIONS)
    assert (plain.letter, plain.rule) == (padded.letter, padded.rule)


@given(
    st.lists(
        st.text(string.ascii_lowercase, min_size=2, max_size=9) | st.sampled_from("ai"), max_size=30
    ),
    st.sampled_from([" ", "\n", ", "]),
)
def test_small_letter_prose_gives_no_letter(words: list[str], space: str) -> None:
    """Words in small letters, among them "a" and "i", never make an answer without an anchor."""
    prose = [word for word in words if word not in ("answer", "option", "choice")]
    assert read_letter(space.join(["this", *prose, "end"]), OPTIONS).letter is None


@given(st.permutations(LETTERS))
def test_second_anchored_letter_makes_several(letters: list[str]) -> None:
    """A second, different answer takes the credit away, or wins when the last line does."""
    first, second = letters[:2]
    text = f"Answer: {first}\n\nThe answer is {second}."
    several = read_letter(text, OPTIONS)
    assert (None, "several_letters:" + "".join(sorted((first, second)))) == (
        several.letter,
        several.rule,
    )
    last = read_letter(text, OPTIONS, last_line_wins=True)
    assert (second, "last_line") == (last.letter, last.rule)


@pytest.mark.parametrize(
    "piece",
    [
        "*",
        "$",
        "(",
        "\\",
        "\u200b",
        "- ",
        "\n-",
        "A, ",
        "B\n",
        "A)\nB)\n",
        "```a\n",
        "<|a",
        "answer is ",
        "answer: b          ",
        "if the answer is B, ",
        "\\boxed{",
        "\\boxed{B, ",
    ],
)
def test_a_megabyte_of_anything_ends(piece: str) -> None:
    """One megabyte of one repeated piece is read to its end: no pattern backtracks far."""
    text = (piece * (MEGABYTE // len(piece) + 1))[:MEGABYTE]
    assert read_letter(text, OPTIONS, last_line_wins=True).reason


def test_letter_under_a_hundred_thousand_boxes_is_bare() -> None:
    """Nesting has no depth limit and no cost beyond its length."""
    depth = 100_000
    reading = read_letter("\\boxed{" * depth + "B" + "}" * depth, OPTIONS)
    assert (reading.letter, reading.rule) == ("B", "bare")
    assert (len("\\boxed{") * depth, len("\\boxed{") * depth + 1) == reading.span
