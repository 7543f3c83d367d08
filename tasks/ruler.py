"""RULER-lite: four tasks on long texts of exactly the wanted number of tokens.

After RULER (Hsieh et al. 2024, arXiv 2404.06654): `niah_multikey` asks one of many numbers,
`niah_multivalue` four numbers of one name, `vt` four variables that hold one value (a number and
three hops), `fwe` the three most frequent coded words. All text is ours (`ruler_text`). A length is
that of the user message by the model's own tokenizer; the chat template and the answer come on top.

Right when every wanted value is named in an answer that was not cut off. The share named stands
beside the score and is never mixed into it.

Items are made once, with a tokenizer (`ruler_items.items`); the task then needs none.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from qualeval.graders import recall as grader
from qualeval.records import Answer, Completion, Item, ItemId, Json, ThinkingMode, Verdict
from qualeval.sandbox.values import RunCode
from qualeval.tasks.base import Draw, Maker, Pool, ReadOnly, Row, Source
from qualeval.tasks.ruler_drafts import ABOUT, DRAFTS, HEAD, NEEDLES, QUESTIONS
from qualeval.tasks.ruler_items import RulerItem, item_of_row, items, prompt_of
from qualeval.tasks.verdicts import listed, wrong_unread

TEMPLATE = "\n".join(
    [
        HEAD,
        *(f"{name}: {text}" for part in (ABOUT, NEEDLES, QUESTIONS) for name, text in part.items()),
    ]
)
"""Every wording there is; the list's sha256 is over the whole texts."""


SOURCE = Source(
    name="ruler",
    dataset="",  # nothing to fetch: items are made
    config=None,
    split="",
    id_field="id",
    columns=("id", "task", "expected", "distractors", "made"),
    canonical=dict,
    stratum=lambda row: str(row["task"]),
    clean=lambda rows: Pool(tuple(rows), {}),
)


DRAW = Draw("ruler", None)


@dataclass(frozen=True, slots=True)
class RulerTask(ReadOnly):
    """The part `ruler`."""

    name: str = "ruler"
    title: str = "Long text"
    subtitle: str = "4 tasks x 10 at 8192 / 32768 tokens"
    max_tokens: int = 128
    thinking: ThinkingMode = "off"
    grader: str = grader.VERSION
    grader_notes: tuple[str, ...] = (
        "lengths are those of the user message; chat template and answer come on top "
        "(RULER's include the answer)",
        "right only when every value is named; RULER gives the mean share",
        "values stand by themselves; RULER takes any substring (kept as substring_score)",
        "a number counts with its thousands set off (42,107)",
    )
    template: str = TEMPLATE
    verdict_fields: tuple[str, ...] = (
        "right",
        "cut_off",
        "partial",
        "found",
        "missing",
        "extra",
        "substring_score",
        "rule",
        "reason",
    )
    source: Source = SOURCE
    draw: Draw = DRAW

    @property
    def maker(self) -> Maker:
        """Items are made to length by the model's own tokenizer."""
        return items

    def prepare(self) -> None:
        """Grading needs nothing."""

    def row_of(self, id: ItemId) -> str | None:
        """Ids are task-length-number; each length is a row."""
        words = str(id).split("-")
        return words[1] if len(words) == 3 and words[1].isdigit() else None

    def row_names(self, row: str, items: int) -> tuple[str, str]:
        """The names of the method's table, such as Long text 8K."""
        target = int(row)
        short = f"{target // 1024}K" if target % 1024 == 0 else f"{target:,}"
        per_task = items // len(DRAFTS)
        return f"Long text {short}", f"{len(DRAFTS)} tasks x {per_task} at {target} tokens"

    def prompt_tokens(self, item: Item) -> int | None:
        """As counted when it was made."""
        assert isinstance(item, RulerItem)
        return item.made.tokens if item.made else None

    def official_item(self, row: Row) -> RulerItem:
        """The item of a row that was made and kept."""
        return item_of_row(row)

    def item(self, row: Row) -> RulerItem:
        """The item of a row {"id", "task", "expected", "distractors"?}."""
        return item_of_row(row)

    def messages(self, item: Item) -> tuple[Json, ...]:
        """The text as one user message."""
        assert isinstance(item, RulerItem)
        return ({"role": "user", "content": prompt_of(item)},)

    def grade(self, item: Item, completion: Completion, run_code: RunCode | None = None) -> Verdict:
        """Right when a finished answer names every wanted value.

        What a cut-off answer names is kept beside its being wrong.
        """
        assert isinstance(item, RulerItem)
        recall = grader.recall(completion.text, item.expected, item.distractors)
        rule, reason = _said(recall, completion)
        details: dict[str, JsonValue] = {
            "found": [*recall.found],
            "missing": [*recall.missing],
            "extra": [*recall.extra],
            "substring_score": recall.substring_score,
        }
        if item.made:
            details |= {"target": item.made.target, "tokens": item.made.tokens}
            details |= {"short_by": item.made.short_by, "exact": item.made.exact}
            details |= {"prompt_sha256": item.made.prompt_sha256}
            details |= {"tokenizer_sha256": item.made.tokenizer_sha256}
        return Verdict(
            right=rule == "all_named",
            cut_off=completion.cut_off,
            extracted=", ".join(recall.found) or None,
            rule=rule,
            reason=reason,
            partial=recall.partial,
            details=details,
        )

    def beside(self, answer: Answer) -> dict[str, tuple[int, int]]:
        """The share of values named, exact lengths, and how each task's answers fared."""
        details = answer.details or {}
        found, missing = listed(details, "found"), listed(details, "missing")
        counts = {"values named": (len(found), len(found) + len(missing))}
        if "exact" in details:
            counts["prompts of exactly the wanted length"] = (int(details["exact"] is True), 1)
        fate = "cut off" if answer.cut_off else _how_many(found, missing)
        for one in ("all named", "some named", "none named", "cut off"):
            counts[f"{answer.stratum}: {one}"] = (int(one == fate), 1)
        return counts


def _how_many(found: Sequence[JsonValue], missing: Sequence[JsonValue]) -> str:
    return "all named" if not missing else "some named" if found else "none named"


def _said(recall: grader.Recall, completion: Completion) -> tuple[str, str]:
    """The rule that decided, and one sentence that a person can check."""
    if unread := wrong_unread(completion):
        return unread
    needed = len(recall.found) + len(recall.missing)
    if recall.all_found:
        return "all_named", f"All wanted values are named ({needed})."
    rule = f"missing:{len(recall.missing)}" if recall.found else "none_named"
    return rule, f"{len(recall.found)} of {needed} named; missing {', '.join(recall.missing)}."


TASK = RulerTask()
