"""What an IFEval item must hold, how a reply is taken apart, and what a grade says."""

import inspect

import pytest

from qualeval.errors import InputError
from qualeval.graders.ifeval import (
    INSTRUCTION_TYPES,
    VERSION,
    Grade,
    InstructionError,
    InstructionVerdict,
    check_item,
    grade,
)
from qualeval.graders.ifeval.table import _ROWS

WORDS = "length_constraints:number_words"
BULLETS = "detectable_format:number_bullet_lists"
COMMA = "punctuation:no_comma"
QUOTES = "startend:quotation"
LETTER = "keywords:letter_frequency"
NTH = "length_constraints:nth_paragraph_first_word"


def test_version_names_the_verdict_rules() -> None:
    assert VERSION == "ifeval 1"


def test_there_are_25_types_and_each_names_the_kwargs_of_its_checker() -> None:
    assert len(INSTRUCTION_TYPES) == 25
    for checker, readers in _ROWS.values():
        assert ["text", *readers] == list(inspect.signature(checker).parameters)


def test_good_item_passes_and_null_kwargs_are_as_good_as_absent() -> None:
    check_item([COMMA, WORDS], [{"keyword": None}, {"num_words": 3, "relation": "at least"}])


@pytest.mark.parametrize(
    ("instruction", "kwargs", "message"),
    [
        ("punctuation:no_coma", {}, "unknown instruction type 'punctuation:no_coma' (did you mean"),
        (WORDS, {"relation": "at least"}, "missing kwarg 'num_words'"),
        (WORDS, {"num_words": None, "relation": "at least"}, "missing kwarg 'num_words'"),
        (WORDS, {"num_words": 3}, "missing kwarg 'relation'"),
        (WORDS, {"num_words": -1, "relation": "at least"}, "'num_words' must not be negative"),
        (WORDS, {"num_words": "3", "relation": "at least"}, "'num_words' must be a number"),
        (WORDS, {"num_words": float("nan"), "relation": "at least"}, "must be a number"),
        (WORDS, {"num_words": 3, "relation": "at most"}, "'relation' must be one of 'less than'"),
        (WORDS, {"num_words": 3, "relation": []}, "'relation' must be one of"),
        (COMMA, {"num_words": 3}, "takes no kwarg 'num_words'"),
        ("keywords:existence", {"keywords": []}, "'keywords' must be a list of texts"),
        ("keywords:existence", {"keywords": "tea"}, "'keywords' must be a list of texts"),
        ("keywords:existence", {"keywords": [1]}, "'keywords' must be a text"),
        ("combination:repeat_prompt", {"prompt_to_repeat": ""}, "must not be empty"),
        (LETTER, {"letter": "ab", "let_frequency": 1, "let_relation": "at least"}, "one character"),
        ("language:response_language", {"language": "english"}, "not a known language"),
        (NTH, {"num_paragraphs": 2, "nth_paragraph": 3, "first_word": "a"}, "is beyond"),
        (NTH, {"num_paragraphs": 2, "nth_paragraph": 0, "first_word": "a"}, "from 1 on"),
        (NTH, {"num_paragraphs": 2, "nth_paragraph": 1.5, "first_word": "a"}, "from 1 on"),
    ],
)
def test_unusable_item_is_an_error_that_names_the_kwarg(
    instruction: str, kwargs: dict[str, object], message: str
) -> None:
    """ife-21: whatever the reference replaces by a random draw is refused at load."""
    with pytest.raises(InstructionError) as caught:
        check_item([instruction], [kwargs])
    assert message in str(caught.value)
    with pytest.raises(InstructionError):
        grade("Tea and milk.", [instruction], [kwargs])


def test_missing_letter_is_an_error_at_load() -> None:
    """ife-21"""
    nothing = {"letter": None, "let_frequency": None, "let_relation": None}
    with pytest.raises(InstructionError, match="missing kwarg 'letter'"):
        check_item([LETTER], [nothing])


@pytest.mark.parametrize(("ids", "kwargs"), [([], []), ([COMMA], []), ([COMMA], [{}, {}])])
def test_each_instruction_needs_its_kwargs(ids: list[str], kwargs: list[dict[str, object]]) -> None:
    with pytest.raises(InstructionError, match="sets of kwargs"):
        check_item(ids, kwargs)


def test_item_error_is_a_value_error_and_an_input_error() -> None:
    assert issubclass(InstructionError, ValueError)
    assert issubclass(InstructionError, InputError)


def test_numbers_may_be_floats_as_tables_store_them() -> None:
    found = grade("a b", [WORDS], [{"num_words": 2.0, "relation": "at least"}]).instructions[0]
    assert InstructionVerdict(WORDS, True, True, "found 2 words, wanted at least 2") == found
    half = grade("a b", [WORDS], [{"num_words": 2.5, "relation": "at least"}]).instructions[0]
    assert half.why == "found 2 words, wanted at least 2.5"


@pytest.mark.parametrize("reply", [None, "", " \n\t\u3000\n"])
def test_blank_reply_follows_nothing(reply: str | None) -> None:
    """ife-05: before any checker, also where an empty text would pass."""
    refused = InstructionVerdict(COMMA, False, False, "the reply is blank")
    assert Grade(False, False, (refused,)) == grade(reply, [COMMA], [{}])


def test_prompt_is_followed_when_every_instruction_is() -> None:
    """ife-20: strict and loose, prompt and instruction are four numbers."""
    graded = grade('Sure:\n"no comma"', [COMMA, QUOTES], [{}, {}])
    assert (graded.strict_prompt, graded.loose_prompt) == (False, True)
    assert [found.strict for found in graded.instructions] == [True, False]
    assert [found.loose for found in graded.instructions] == [True, True]
    assert not grade("a, b", [COMMA, QUOTES], [{}, {}]).loose_prompt


@pytest.mark.parametrize(
    ("reply", "change"),
    [
        ('*"a"*', "without stars"),
        ('Sure:\n\n"a"', "without first line"),
        ('"a"\n\nBye.', "without last line"),
        ('Sure:\n"a"\nBye.', "without first and last line"),
        ('Sure:\n**"a"**', "without first line, without stars"),
        ('**"a"**\nBye.', "without last line, without stars"),
        ('Sure:\n*"a"*\nBye.', "without first and last line, without stars"),
    ],
)
def test_each_loose_text_can_pass_and_is_named(reply: str, change: str) -> None:
    found = grade(reply, [QUOTES], [{}]).instructions[0]
    assert (found.strict, found.loose) == (False, True)
    assert f'not wrapped in " "; {change}: wrapped in " "' == found.why


def test_lines_end_at_line_feeds_only() -> None:
    assert not grade('Sure:\u2028"a"', [QUOTES], [{}]).loose_prompt
    assert not grade('Sure:\r"a"', [QUOTES], [{}]).loose_prompt


def test_nothing_is_stripped_again_once_the_stars_are_gone() -> None:
    """Else the text without first line and stars would start with the right paragraph."""
    nth = {"num_paragraphs": 1, "nth_paragraph": 1, "first_word": "a"}
    assert not grade("x\n*\n\na b", [NTH], [nth]).loose_prompt
    assert grade("x\n\na b", [NTH], [nth]).loose_prompt


def test_blank_loose_text_does_not_pass() -> None:
    """A text with no line left has no comma either."""
    assert not grade("a, b\n", [COMMA], [{}]).loose_prompt
    assert not grade("a, b\n*", [COMMA, QUOTES], [{}, {}]).loose_prompt


def test_same_type_may_stand_twice_as_a_range() -> None:
    limits = [{"num_words": 2, "relation": "at least"}, {"num_words": 4, "relation": "less than"}]
    assert grade("a b c", [WORDS, WORDS], limits).strict_prompt
    assert not grade("a b c d", [WORDS, WORDS], limits).strict_prompt


def test_reason_quotes_little_and_nothing_that_cannot_be_written() -> None:
    long = "\ud835" + "k" * 100
    why = grade("text", ["keywords:existence"], [{"keywords": [long]}]).instructions[0].why
    assert len(why) < 70
    assert why.encode("utf-8").startswith(b"missing '\\ud835kkk")
    assert (
        grade("* a", [BULLETS], [{"num_bullets": 2}]).instructions[0].why
        == "found 1 bullet points, wanted 2"
    )
