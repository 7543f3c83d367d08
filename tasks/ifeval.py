"""IFEval, 200 fixed prompts, strict.

Zhou et al. 2023 (arXiv 2311.07911), data set google/IFEval, Apache-2.0. The prompt is sent as it
is. Right when every instruction is followed by the strict check of the reply as the model gave it,
reasoning removed; the other three levels (loose prompt, strict and loose instructions) stand beside
the score and are never mixed into it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from qualeval.graders import ifeval as grader
from qualeval.records import Answer, Completion, Item, Json, ThinkingMode, Verdict, sha256_of
from qualeval.sandbox.values import RunCode
from qualeval.tasks.base import Draw, OneRow, Pool, ReadOnly, Row, Source
from qualeval.tasks.verdicts import listed, wrong_unread

COLUMNS = ("key", "prompt", "instruction_id_list", "kwargs")

LEFT_OUT: Mapping[int, str] = {
    1122: "asks for a character that the reference swaps for a random letter",
    1129: "asks for a character that the reference swaps for a random letter",
    2078: "prompt and check ask for different numbers of bullet points",
    337: "prompt and check ask for different numbers of words",
    30: "asks for lower case, and for one thing twice",
}
"""Keys of rows whose verdict would not be that of their prompt; the grader handles them all."""


class InstructionItem(Item):
    """A prompt and the instructions in it, each with its arguments."""

    prompt: str
    instruction_ids: tuple[str, ...]
    kwargs: tuple[dict[str, JsonValue], ...]


def canonical(row: Row) -> Json:
    """What pins a row: arguments that are null are as good as absent, and some mirrors pad them."""
    return {
        "key": row["key"],
        "prompt": row["prompt"],
        "instruction_id_list": list(row["instruction_id_list"]),
        "kwargs": [_given(arguments) for arguments in row["kwargs"]],
    }


def _given(arguments: Mapping[str, Any]) -> Json:
    return {name: value for name, value in arguments.items() if value is not None}


def family(row: Row) -> str:
    """The family of the first instruction, such as `length_constraints`."""
    return str(row["instruction_id_list"][0]).split(":", maxsplit=1)[0]


def clean(rows: Iterable[Row]) -> Pool:
    """All rows but those of LEFT_OUT."""
    rows = list(rows)
    kept = tuple(row for row in rows if row["key"] not in LEFT_OUT)
    return Pool(kept, {"prompt and check differ, or the check is random": len(rows) - len(kept)})


def item(row: Row) -> InstructionItem:
    """The item of a row in the published format {"key", "prompt", "instruction_id_list", "kwargs"}.

    Raises ValueError naming the field, the unknown instruction or the missing argument.
    """
    for column in COLUMNS:
        if column not in row:
            raise ValueError(f"field '{column}' is missing")
    key, prompt = row["key"], row["prompt"]
    ids, arguments = row["instruction_id_list"], row["kwargs"]
    if not isinstance(key, int | str) or isinstance(key, bool):
        raise ValueError("field 'key' must be a text or a whole number")
    if not isinstance(prompt, str) or not prompt.strip():
        raise ValueError("field 'prompt' must be a text")
    if not isinstance(ids, list) or not ids or not all(isinstance(id, str) for id in ids):
        raise ValueError("field 'instruction_id_list' must be a list of names, at least one")
    if not isinstance(arguments, list) or not all(isinstance(a, dict) for a in arguments):
        raise ValueError("field 'kwargs' must be a list of objects")
    grader.check_item(ids, arguments)
    return InstructionItem(
        id=key,
        stratum=family(row),
        prompt=prompt,
        instruction_ids=tuple(ids),
        kwargs=tuple(_given(a) for a in arguments),
        sha256=sha256_of(canonical(row)),
    )


SOURCE = Source(
    name="ifeval",
    dataset="google/IFEval",
    config=None,
    split="train",
    id_field="key",
    columns=COLUMNS,
    canonical=canonical,
    stratum=family,
    clean=clean,
)

DRAW = Draw("ifeval", 200)


@dataclass(frozen=True, slots=True)
class InstructionTask(OneRow, ReadOnly):
    """The part `ifeval`."""

    name: str = "ifeval"
    title: str = "IFEval"
    subtitle: str = "200 fixed prompts, strict"
    max_tokens: int = 2048
    thinking: ThinkingMode = "off"
    grader: str = grader.VERSION
    grader_notes: tuple[str, ...] = (
        "a character outside a-z in letter_frequency (keys 1122, 1129) counts itself; "
        "the reference draws a random letter",
        "a missing argument is an error; the reference draws a random one",
        "a keyword that is no valid pattern is not followed; the reference stops",
    )
    template: str = "{prompt}"
    verdict_fields: tuple[str, ...] = (
        "right",
        "cut_off",
        "strict_prompt",
        "strict_inst",
        "loose_prompt",
        "loose_inst",
        "why",
    )
    source: Source = SOURCE
    draw: Draw = DRAW

    def prepare(self) -> None:
        """Load language profiles and sentence tables: half a second."""
        grader.prepare()

    def official_item(self, row: Row) -> InstructionItem:
        """The item of an official row."""
        return item(row)

    def item(self, row: Row) -> InstructionItem:
        """The item of a row in the published format."""
        return item(row)

    def messages(self, item: Item) -> tuple[Json, ...]:
        """The prompt as one user message."""
        assert isinstance(item, InstructionItem)
        return ({"role": "user", "content": item.prompt},)

    def grade(self, item: Item, completion: Completion, run_code: RunCode | None = None) -> Verdict:
        """Right when every instruction of a finished answer is followed, strictly.

        A cut-off answer is wrong; what the reference would say of its text is kept beside that.
        """
        assert isinstance(item, InstructionItem)
        grade = grader.grade(completion.text, item.instruction_ids, item.kwargs)
        rule, reason = _said(grade, completion)
        return Verdict(
            right=rule == "all_followed",
            cut_off=completion.cut_off,
            rule=rule,
            reason=reason,
            details={
                "strict_prompt": grade.strict_prompt,
                "strict_inst": [verdict.strict for verdict in grade.instructions],
                "loose_prompt": grade.loose_prompt,
                "loose_inst": [verdict.loose for verdict in grade.instructions],
                "instructions": [verdict.instruction_id for verdict in grade.instructions],
                "why": [verdict.why for verdict in grade.instructions],
            },
        )

    def beside(self, answer: Answer) -> dict[str, tuple[int, int]]:
        """The three other levels, a cut-off answer following nothing in any of them."""
        details = answer.details or {}
        strict, loose = listed(details, "strict_inst"), listed(details, "loose_inst")
        finished = not answer.cut_off
        return {
            "strict instructions": (finished * strict.count(True), len(strict)),
            "loose prompts": (int(finished and details["loose_prompt"] is True), 1),
            "loose instructions": (finished * loose.count(True), len(loose)),
        }


def _said(grade: grader.Grade, completion: Completion) -> tuple[str, str]:
    """The rule that decided, and what ended the answer or was found for each instruction."""
    if unread := wrong_unread(completion):
        return unread
    broken = sum(not verdict.strict for verdict in grade.instructions)
    found = [
        f"{verdict.instruction_id} {'followed' if verdict.strict else 'not followed'}: "
        f"{verdict.why}"
        for verdict in grade.instructions
    ]
    return f"not_followed:{broken}" if broken else "all_followed", "; ".join(found) + "."


TASK = InstructionTask()
