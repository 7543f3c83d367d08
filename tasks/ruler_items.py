"""The items of the long-text part: built once, with a tokenizer; their texts made again without.

What an item holds beside its values (`made`) is all that its text depends on, and the sha256 proves
it: a run keeps a row of some hundred bytes for a prompt of a hundred thousand.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from qualeval.errors import ListError
from qualeval.records import Item, Json, Record, sha256_of, sha256_text
from qualeval.tasks.base import Row
from qualeval.tasks.ruler_drafts import DRAFTS, draft_of
from qualeval.tasks.ruler_length import Count, Meter, fit

LENGTHS = (8192, 32768)
PER_TASK = 10


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt as built. `rounds` is how many whole texts were counted."""

    id: str
    task: str
    index: int
    target: int
    text: str
    expected: tuple[str, ...]
    distractors: tuple[str, ...]
    tokens: int
    short_by: int
    exact: bool
    rounds: int
    taken: int
    closing: tuple[int, ...]
    text_sha256: str


def build(task: str, index: int, target: int, count: Count) -> Prompt:
    """One prompt of `target` tokens. Pass a Meter where several are built, so that it learns.

    Raises CardError when the target is too short or the counter is none.
    """
    empty = draft_of(task, index, target)
    fitted = fit(empty, target, Meter.of(count))
    return Prompt(
        id=empty.id,
        task=task,
        index=index,
        target=target,
        text=fitted.text,
        expected=empty.expected,
        distractors=empty.distractors,
        tokens=fitted.tokens,
        short_by=target - fitted.tokens,
        exact=fitted.tokens == target,
        rounds=fitted.rounds,
        taken=fitted.taken,
        closing=fitted.closing,
        text_sha256=sha256_text(fitted.text),
    )


class MadePrompt(Record):
    """How an item's text was made, and the proof that it is the same when made again."""

    index: int
    target: int
    tokens: int
    short_by: int
    rounds: int
    taken: int
    closing: tuple[int, ...]
    prompt_sha256: str
    tokenizer_sha256: str | None = None

    @property
    def exact(self) -> bool:
        """True when the prompt has the wanted number of tokens."""
        return self.short_by == 0


class RulerItem(Item):
    """A long text with values to be named; `gold` and `expected` are these values.

    `made` is None for items graded elsewhere, whose texts are not known here.
    """

    task: str
    expected: tuple[str, ...]
    distractors: tuple[str, ...] = ()
    made: MadePrompt | None = None

    @property
    def target(self) -> int | None:
        """The wanted number of tokens, by which rows are told apart."""
        return self.made.target if self.made else None


def items(
    lengths: Sequence[int] = LENGTHS,
    per_task: int = PER_TASK,
    *,
    count: Count,
    tokenizer_sha256: str | None = None,
) -> Iterator[RulerItem]:
    """All items, length by length, the tasks in turn; one text at a time is in memory.

    Raises CardError when a length is too short or the counter is none.
    """
    meter = Meter.of(count)
    for target in lengths:
        for index in range(per_task):
            for task in DRAFTS:
                yield item_of(build(task, index, target, meter), tokenizer_sha256)


def item_of(prompt: Prompt, tokenizer_sha256: str | None = None) -> RulerItem:
    """The item of a built prompt, without its text."""
    made = MadePrompt(
        index=prompt.index,
        target=prompt.target,
        tokens=prompt.tokens,
        short_by=prompt.short_by,
        rounds=prompt.rounds,
        taken=prompt.taken,
        closing=prompt.closing,
        prompt_sha256=prompt.text_sha256,
        tokenizer_sha256=tokenizer_sha256,
    )
    return item_of_row(
        {
            "id": prompt.id,
            "task": prompt.task,
            "expected": [*prompt.expected],
            "distractors": [*prompt.distractors],
            "made": made.model_dump(mode="json"),
        }
    )


def row_of_item(item: RulerItem) -> Json:
    """The row that `item_of_row` makes the same item of; what a run keeps of its list."""
    row: Json = {
        "id": item.id,
        "task": item.task,
        "expected": [*item.expected],
        "distractors": [*item.distractors],
    }
    return row | ({"made": item.made.model_dump(mode="json")} if item.made else {})


def item_of_row(row: Row) -> RulerItem:
    """The item of a row {"id", "task", "expected", "distractors"?, "made"?}.

    Unknown columns are allowed. Raises ValueError naming the field that is missing or wrong.
    """
    id, task = row.get("id"), row.get("task")
    if not isinstance(id, int | str) or isinstance(id, bool):
        raise ValueError("field 'id' must be a text or a whole number")
    if not isinstance(task, str) or not task:
        raise ValueError("field 'task' must be a text")
    expected = _values(row, "expected", least=1)
    distractors = _values(row, "distractors", least=0)
    if set(expected) & set(distractors):
        raise ValueError("fields 'expected' and 'distractors' share a value")
    made = _made(row, task)
    canonical: dict[str, Any] = {"id": id, "task": task}
    canonical |= {"expected": expected, "distractors": distractors}
    canonical |= {"made": made.model_dump(mode="json")} if made else {}
    return RulerItem(
        id=id,
        stratum=task,
        gold=[*expected],
        task=task,
        expected=expected,
        distractors=distractors,
        made=made,
        sha256=sha256_of(canonical),
    )


def _values(row: Row, field: str, least: int) -> tuple[str, ...]:
    values = row.get(field)
    if values is None and not least:
        return ()
    if not isinstance(values, list | tuple) or len(values) < least:
        raise ValueError(f"field '{field}' must be a list of texts" + ", at least one" * least)
    if not all(isinstance(value, str) and value for value in values):
        raise ValueError(f"field '{field}' holds something that is no text, or an empty one")
    if len(set(values)) != len(values):
        raise ValueError(f"field '{field}' holds a value twice")
    return tuple(values)


def _made(row: Row, task: str) -> MadePrompt | None:
    if row.get("made") is None:
        return None
    try:
        made = MadePrompt.model_validate(row["made"])
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        field = ".".join(map(str, ("made", *fault["loc"])))
        raise ValueError(f"field '{field}': {fault['msg']}") from None
    if task not in DRAFTS:
        raise ValueError(f"field 'task': '{task}' is not one of {', '.join(DRAFTS)}")
    return made


def prompt_of(item: RulerItem) -> str:
    """The text of an item, made again without a tokenizer.

    Raises ListError when its text is not known here, or is not the one that was made first.
    """
    if item.made is None:
        raise ListError(f"item {item.id!r}: its text was made elsewhere; only replies are known")
    made = item.made
    again = draft_of(item.task, made.index, made.target)
    try:
        text = again.text(made.taken, made.closing)
    except IndexError:
        text = ""
    if sha256_text(text) != made.prompt_sha256:
        raise ListError(
            f"item {item.id!r}: the text made again has another sha256 than the one first "
            "made: this is another version, or the row was changed"
        )
    return text
