"""What the letter tasks share: item, prompt, verdict.

One user message, no system message, no examples, no prefill. The letters really present are named,
and the request for the letter is repeated at the end, because long questions bury the first one.
The same prompt serves with thinking on, so that the difference between two rows is thinking alone.
"""

import string
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from qualeval.graders import letter
from qualeval.records import Answer, Completion, Item, Json, ThinkingMode, Verdict, sha256_of
from qualeval.sandbox.values import RunCode
from qualeval.tasks.base import Draw, OneRow, ReadOnly, Row, Source
from qualeval.tasks.verdicts import wrong_unread

TEMPLATE = """\
Choose the best answer to the question below. Reply with exactly one capital letter, \
{letters}, and no other words.

Question:
{question}

{options}

Reply with the letter only: {letters}."""


class LetterItem(Item):
    """A question with its option texts in the order shown; `gold` is the right letter."""

    question: str
    options: tuple[str, ...]


_GIVEN = {"id", "stratum", "gold", "question", "options", "sha256"}


@dataclass(frozen=True, slots=True)
class LetterTask(OneRow, ReadOnly):
    """A task whose answer is one letter."""

    name: str
    title: str
    subtitle: str
    max_tokens: int
    thinking: ThinkingMode
    source: Source
    draw: Draw
    from_official: Callable[[Row], LetterItem]
    grader: str = letter.VERSION
    grader_notes: tuple[str, ...] = ()
    template: str = TEMPLATE
    verdict_fields: tuple[str, ...] = ("right", "extracted", "rule", "cut_off", "reason")

    def prepare(self) -> None:
        """Letters need nothing."""

    def official_item(self, row: Row) -> LetterItem:
        """The item of an official row."""
        return self.from_official(row)

    def item(self, row: Row) -> LetterItem:
        """The item of a row {"id" or "question_id", "question", "options", "answer"}."""
        return item_of_row(row)

    def beside(self, answer: Answer) -> dict[str, tuple[int, int]]:
        """Nothing is shown beside the score."""
        return {}

    def messages(self, item: Item) -> tuple[Json, ...]:
        """One user message."""
        assert isinstance(item, LetterItem)
        return ({"role": "user", "content": prompt(item)},)

    def grade(self, item: Item, completion: Completion, run_code: RunCode | None = None) -> Verdict:
        """Right when the one letter of a finished answer is the key."""
        assert isinstance(item, LetterItem)
        return grade_letter(item, completion, last_line_wins=self.thinking == "on")


def prompt(item: LetterItem) -> str:
    """The message that asks `item`."""
    letters = string.ascii_uppercase[: len(item.options)]
    return TEMPLATE.format(
        letters=", ".join(letters[:-1]) + " or " + letters[-1],
        question=item.question.strip(),
        options="\n".join(f"{a}. {b}" for a, b in zip(letters, item.options, strict=True)),
    )


def grade_letter(item: LetterItem, completion: Completion, *, last_line_wins: bool) -> Verdict:
    """Verdict on one answer: cut off is wrong whatever the text says, then the letter counts."""
    reading = letter.read_letter(completion.text, item.options, last_line_wins=last_line_wins)
    if unread := wrong_unread(completion):
        rule, reason = unread
        details: Json | None = {"letter_seen": reading.letter} if completion.cut_off else None
        return Verdict(
            right=False, cut_off=completion.cut_off, rule=rule, reason=reason, details=details
        )
    return Verdict(
        right=reading.letter is not None and reading.letter == item.gold,
        cut_off=False,
        extracted=reading.letter,
        rule=reading.rule,
        reason=reading.reason,
        details={"span": list(reading.span)} if reading.span else None,
    )


def item_of_row(row: Row) -> LetterItem:
    """The item of a row in the format of `grade-file`, sample lists and users' own lists.

    Options keep their order; unknown columns are allowed; `category` is the stratum. Raises
    ValueError naming the field that is missing or wrong.
    """
    id = row.get("id", row.get("question_id"))
    if not isinstance(id, int | str) or isinstance(id, bool):
        raise ValueError("field 'id' (or 'question_id') must be a text or a whole number")
    question, options, answer = row.get("question"), row.get("options"), row.get("answer")
    if not isinstance(question, str) or not question.strip():
        raise ValueError("field 'question' must be a text")
    if not isinstance(options, list) or not 2 <= len(options) <= 26:
        raise ValueError("field 'options' must be a list of 2 to 26 texts")
    if not all(isinstance(option, str) and option.strip() for option in options):
        raise ValueError("field 'options' holds something that is no text, or an empty one")
    if not isinstance(answer, str) or answer not in tuple(string.ascii_uppercase[: len(options)]):
        last = string.ascii_uppercase[len(options) - 1]
        raise ValueError(f"field 'answer' must be one capital letter from A to {last}")
    index = row.get("answer_index")
    if index is not None and index != string.ascii_uppercase.index(answer):
        raise ValueError("fields 'answer' and 'answer_index' name different options")
    # Every field is checked above. One set of names for all items: a set each is 0.7 kB.
    return LetterItem.model_construct(
        _fields_set=_GIVEN,
        id=id,
        stratum=_text_or_none(row.get("category")),
        gold=answer,
        question=question,
        options=tuple(option.strip() for option in options),
        sha256=sha256_of(dict(row)),
    )


def _text_or_none(value: Any) -> str | None:
    return value if isinstance(value, str) else None
