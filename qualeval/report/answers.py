"""Answers -> the data behind a page's list, within a size.

A page holds an index with a few words for each answer, and the texts in blocks that are read only
when one of their answers is opened or searched:

    index    one row an answer: id, repeat, part, outcome, stratum, rule, what was read, first words
    records  for each row the sides shown (one for a run, two for a comparison), in blocks of 100
    prompts  each prompt once, in blocks of 20

Texts are kept whole as long as everything fits into BUDGET. Else each is kept up to the largest
number of characters with which it does (of two significant digits, so that it can be said), as its
first and last halves of that, and the page says that the rest is in the raw files.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from qualeval.report.embed import embedded
from qualeval.report.sides import Side

BUDGET = 18_500_000
"""Bytes that index, texts and prompts of a page may take, as they stand in it; a page is then
smaller than 20 MB. Only the index of very many answers, 500 bytes each, can take more.
"""

A_ROW = 200
"""Bytes that one row of the index takes, by and large."""

SHORT = 2_000
"""Characters of any value beside the texts, such as a reason."""

FIRST_WORDS = 90
A_BLOCK, A_PROMPT_BLOCK = 100, 20

OUTCOMES = ("right", "wrong", "cut off", "error")
PAIR_OUTCOMES = ("lost", "gained", "both right", "both wrong")

Text = str | list[Any]
"""A text as it is, or its pieces: a string, ["mark", string], or ["cut", characters left out]."""


class Entry(NamedTuple):
    """One row of the list: the item, and the sides that answer it."""

    id: str
    repeat: int
    part: str
    outcome: str
    stratum: str
    sides: tuple[Side, ...]
    prompt: str | None


@dataclass(slots=True)
class Data:
    """The blocks of a page, as text that can stand in it; `limit` is None where nothing is cut."""

    index: str
    records: list[str] = field(default_factory=list)
    prompts: list[str] = field(default_factory=list)
    count: int = 0
    limit: int | None = None


def data_of(
    kind: str,
    titles: Sequence[tuple[str, str]],
    outcomes: Sequence[str],
    entries: Iterable[Entry],
    *,
    sides: Sequence[str] = (),
    no_prompt: dict[str, str] | None = None,
) -> Data:
    """The blocks of a page. `titles` are name and title of its parts, `no_prompt` says for some of
    them why they have no prompts.
    """
    kept = list(entries)
    limit = _limit(kept)
    prompts: dict[tuple[str, str], int] = {}
    prompt_texts: list[Text] = []
    strata: list[list[str]] = [[] for _ in titles]
    places = {name: place for place, (name, _) in enumerate(titles)}
    rules: dict[str, int] = {}
    names: dict[str, int] = {}
    rows, records = [], []
    for entry in kept:
        part = places[entry.part]
        known = (entry.part, entry.id)
        if entry.prompt is not None and known not in prompts:
            prompts[known] = len(prompt_texts)
            prompt_texts.append(_cut(entry.prompt, limit))
        if entry.stratum and entry.stratum not in strata[part]:
            strata[part].append(entry.stratum)
        several = len(entry.sides) > 1
        told = (side.brief if several else side.given for side in entry.sides)
        given = " → ".join(dict.fromkeys(told))
        given += ", " * bool(entry.sides[-1].wanted) + entry.sides[-1].wanted
        rule = " → ".join(dict.fromkeys(side.rule for side in entry.sides))
        rows.append(
            (_brief(entry.id, 200), entry.repeat, part, outcomes.index(entry.outcome))
            + (strata[part].index(entry.stratum) if entry.stratum else -1,)
            + (rules.setdefault(_brief(rule, 120), len(rules)), _brief(given, 120))
            + (_first_words(entry.sides[-1]), prompts.get(known, -1))
        )  # fmt: skip
        records.append([_record(side, limit, names) for side in entry.sides])
    index = {
        "kind": kind,
        "sides": [_brief(side, 200) for side in sides],
        "parts": [
            {"name": name, "title": title, "strata": sorted(own), "order": own}
            for (name, title), own in zip(titles, strata, strict=True)
        ],
        "outcomes": list(outcomes),
        "rules": list(rules),
        "names": list(names),
        "no_prompt": no_prompt or {},
        "block": A_BLOCK,
        "prompt_block": A_PROMPT_BLOCK,
        "rows": rows,
    }
    return Data(
        index=embedded(index),
        records=[embedded(block) for block in _blocks(records, A_BLOCK)],
        prompts=[embedded(block) for block in _blocks(prompt_texts, A_PROMPT_BLOCK)],
        count=len(rows),
        limit=limit,
    )


def _blocks(values: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    return (values[start : start + size] for start in range(0, len(values), size))


def _limit(entries: Sequence[Entry]) -> int | None:
    """Characters that every text may have, so that all fit; None when nothing must be cut."""
    seen: set[tuple[str, str]] = set()
    sizes: list[tuple[int, int]] = []
    rest = 0
    for entry in entries:
        texts = [text for side in entry.sides for text in side.texts()]
        if entry.prompt is not None and (entry.part, entry.id) not in seen:
            seen.add((entry.part, entry.id))
            texts.append(entry.prompt)
        sizes += ((len(text), _size(text)) for text in texts)
        rest += A_ROW + sum(_size(_record(side, 0, {})) for side in entry.sides)
    if rest + sum(size for _, size in sizes) <= BUDGET:
        return None

    def fits(limit: int) -> bool:
        return rest + sum(size * min(1.0, limit / length) for length, size in sizes) <= BUDGET

    least, most = 0, max(length for length, _ in sizes)  # the first fits, the last does not
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (middle, most) if fits(middle) else (least, middle)
    unit: int = 10 ** max(0, len(str(least)) - 2)
    return least // unit * unit


def _size(value: object) -> int:
    return len(embedded(value).encode())


def _record(side: Side, limit: int | None, names: dict[str, int]) -> dict[str, object]:
    """A side as the page's script reads it; what is empty is left out. `names` collects the names
    of facts, which are told by their number.
    """
    fields: dict[str, object] = {
        "outcome": side.outcome,
        "reason": _brief(side.reason, SHORT),
        "text": None if side.text is None else _cut(side.text, limit, side.span),
        "reasoning": side.reasoning and _cut(side.reasoning, limit),
        "source": side.reasoning_source if side.reasoning is not None else "",
        "code": side.code and _cut(side.code, limit),
        "facts": [
            (names.setdefault(name, len(names)), _brief(value, SHORT)) for name, value in side.facts
        ],
        "instructions": [
            (_brief(id, 200), strict, loose, _brief(why, SHORT))
            for id, strict, loose, why in side.instructions
        ],
        "values": [(title, [_brief(v, 200) for v in values]) for title, values in side.values],
        "note": side.note,
    }
    return {name: value for name, value in fields.items() if value not in (None, "", [])} | (
        {"text": ""} if side.text == "" else {}
    )


def _cut(text: str, limit: int | None, span: tuple[int, int] | None = None) -> Text:
    """A text with its span marked; of one that is longer than `limit` its two ends."""
    if limit is None or len(text) <= limit:
        return _marked(text, 0, span)
    head = limit // 2
    tail = limit - head
    left_out = len(text) - limit
    ends = _pieces(_marked(text[:head], 0, span))
    rest = _pieces(_marked(text[len(text) - tail :], len(text) - tail, span)) if tail else []
    return [*ends, ["cut", left_out], *rest]


def _pieces(text: Text) -> list[Any]:
    return text if isinstance(text, list) else [text]


def _marked(text: str, start: int, span: tuple[int, int] | None) -> Text:
    """A piece that begins at `start` of the whole, with the part of the span that is in it."""
    if span is None:
        return text
    low, high = max(0, span[0] - start), min(len(text), span[1] - start)
    if low >= high:
        return text
    return [text[:low], ["mark", text[low:high]], text[high:]]


def _brief(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def _first_words(side: Side) -> str:
    text = side.text if side.text is not None else side.note or side.reason
    return _brief(" ".join(text[: 4 * FIRST_WORDS].split()), FIRST_WORDS)
