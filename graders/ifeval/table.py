"""The 25 instruction types: id -> checker and the kwargs it needs, each with its reader.

A reader returns the value to check with or raises ValueError. Whatever the reference would replace
by a random draw (a missing or negative threshold, an empty keyword, a place beyond the paragraphs)
is an error here, raised before any reply is graded.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from qualeval.errors import did_you_mean
from qualeval.graders.ifeval import content, layout
from qualeval.graders.ifeval.errors import InstructionError
from qualeval.graders.ifeval.findings import RELATIONS, Finding
from qualeval.graders.ifeval.language import CODES

Checker = Callable[..., Finding]
Reader = Callable[[object], object]


class Instruction(NamedTuple):
    """One instruction of one item, ready to check."""

    instruction_id: str
    checker: Checker
    kwargs: dict[str, object]

    def check(self, text: str) -> Finding:
        """Return what the checker finds in a text that is not blank."""
        return self.checker(text, **self.kwargs)


def _number(value: object) -> float:
    if not isinstance(value, int | float) or (
        isinstance(value, float) and not math.isfinite(value)
    ):
        raise ValueError("must be a number")
    return value


def _threshold(value: object) -> float:
    number = _number(value)
    if number < 0:
        raise ValueError("must not be negative")
    return number


def _place(value: object) -> float:
    number = _number(value)
    if number < 1 or number != int(number):
        raise ValueError("must be a whole number from 1 on")
    return number


def _relation(value: object) -> str:
    if not isinstance(value, str) or value not in RELATIONS:
        raise ValueError(f"must be one of {', '.join(map(repr, RELATIONS))}")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("must be a text")
    return value


def _filled(value: object) -> str:
    text = _text(value)
    if not text:
        raise ValueError("must not be empty")
    return text


def _character(value: object) -> str:
    text = _text(value)
    if len(text) != 1:
        raise ValueError("must be one character")
    return text


def _words(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not value:
        raise ValueError("must be a list of texts, not empty")
    return tuple(map(_text, value))


def _language(value: object) -> str:
    code = _text(value)
    if code not in CODES:
        raise ValueError(f"is not a known language{did_you_mean(code, CODES)}")
    return code


_ROWS: dict[str, tuple[Checker, dict[str, Reader]]] = {
    "keywords:existence": (content.keywords_exist, {"keywords": _words}),
    "keywords:frequency": (
        content.keyword_frequency,
        {"keyword": _filled, "frequency": _threshold, "relation": _relation},
    ),
    "keywords:forbidden_words": (content.forbidden_words, {"forbidden_words": _words}),
    "keywords:letter_frequency": (
        content.letter_frequency,
        {"letter": _character, "let_frequency": _threshold, "let_relation": _relation},
    ),
    "language:response_language": (content.response_language, {"language": _language}),
    "length_constraints:number_sentences": (
        content.number_sentences,
        {"num_sentences": _threshold, "relation": _relation},
    ),
    "length_constraints:number_paragraphs": (
        layout.number_paragraphs,
        {"num_paragraphs": _threshold},
    ),
    "length_constraints:number_words": (
        content.number_words,
        {"num_words": _threshold, "relation": _relation},
    ),
    "length_constraints:nth_paragraph_first_word": (
        content.nth_paragraph_first_word,
        {"num_paragraphs": _threshold, "nth_paragraph": _place, "first_word": _text},
    ),
    "detectable_content:number_placeholders": (
        layout.number_placeholders,
        {"num_placeholders": _threshold},
    ),
    "detectable_content:postscript": (layout.postscript, {"postscript_marker": _text}),
    "detectable_format:number_bullet_lists": (
        layout.number_bullet_lists,
        {"num_bullets": _threshold},
    ),
    "detectable_format:constrained_response": (layout.constrained_response, {}),
    "detectable_format:number_highlighted_sections": (
        layout.number_highlighted_sections,
        {"num_highlights": _threshold},
    ),
    "detectable_format:multiple_sections": (
        layout.multiple_sections,
        {"section_spliter": _text, "num_sections": _threshold},
    ),
    "detectable_format:json_format": (layout.json_format, {}),
    "detectable_format:title": (layout.title, {}),
    "combination:repeat_prompt": (layout.repeat_prompt, {"prompt_to_repeat": _filled}),
    "combination:two_responses": (layout.two_responses, {}),
    "startend:end_checker": (layout.end_checker, {"end_phrase": _text}),
    "startend:quotation": (layout.quotation, {}),
    "change_case:capital_word_frequency": (
        content.capital_word_frequency,
        {"capital_frequency": _number, "capital_relation": _relation},
    ),
    "change_case:english_capital": (content.english_capital, {}),
    "change_case:english_lowercase": (content.english_lowercase, {}),
    "punctuation:no_comma": (content.no_comma, {}),
}

INSTRUCTION_TYPES: tuple[str, ...] = tuple(_ROWS)


def read_item(
    instruction_ids: Sequence[str], kwargs: Sequence[Mapping[str, object]]
) -> tuple[Instruction, ...]:
    """Return the instructions of an item, in order; raises `InstructionError`."""
    if not instruction_ids or len(instruction_ids) != len(kwargs):
        raise InstructionError(
            f"{len(instruction_ids)} instructions with {len(kwargs)} sets of kwargs"
        )
    return tuple(map(_read, instruction_ids, kwargs))


def _read(instruction_id: str, kwargs: Mapping[str, object]) -> Instruction:
    if instruction_id not in _ROWS:
        nearest = did_you_mean(instruction_id, INSTRUCTION_TYPES)
        raise InstructionError(f"unknown instruction type {instruction_id!r}{nearest}")
    checker, readers = _ROWS[instruction_id]
    given = {key: value for key, value in kwargs.items() if value is not None}
    for key in given:
        if key not in readers:
            raise InstructionError(f"{instruction_id}: takes no kwarg {key!r}")
    values = {}
    for key, reader in readers.items():
        if key not in given:
            raise InstructionError(f"{instruction_id}: missing kwarg {key!r}")
        try:
            values[key] = reader(given[key])
        except ValueError as error:
            raise InstructionError(f"{instruction_id}: kwarg {key!r} {error}") from error
    nth, paragraphs = values.get("nth_paragraph"), values.get("num_paragraphs")
    if isinstance(nth, int | float) and isinstance(paragraphs, int | float) and nth > paragraphs:
        raise InstructionError(
            f"{instruction_id}: kwarg 'nth_paragraph' is beyond 'num_paragraphs'"
        )
    return Instruction(instruction_id, checker, values)
