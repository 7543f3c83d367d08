"""GPQA Diamond, all 198 questions, letter only.

Rein et al. 2023 (arXiv 2311.12022), data set Idavidrein/gpqa, CC BY 4.0, gated: its authors ask
that no question appears in plain text online, so its text never leaves this machine.

The four options are shown in an order made from the Record ID alone: independent of row order,
list length and program version. The key is found by slot, never by text: two rows have two equal
options.
"""

import hashlib
from collections.abc import Iterable

from qualeval.records import sha256_of
from qualeval.tasks.base import Draw, Pool, Row, Source, row_of
from qualeval.tasks.letters import LetterItem, LetterTask

SLOTS = ("correct", "inc1", "inc2", "inc3")
COLUMNS = ("Correct Answer", "Incorrect Answer 1", "Incorrect Answer 2", "Incorrect Answer 3")


def clean(rows: Iterable[Row]) -> Pool:
    """Every row with four options that are not empty."""
    kept, empty = [], 0
    for row in rows:
        if all(_text(row[column]) for column in COLUMNS):
            kept.append(row)
        else:
            empty += 1
    return Pool(tuple(kept), {"empty option": empty})


def _text(value: str | None) -> str:
    """The text of a cell, stripped; a cell without one is None in some readers."""
    return (value or "").strip()


def option_order(record_id: str) -> tuple[int, ...]:
    """For each letter the source slot shown there (0 is the correct answer)."""

    def place(slot: int) -> str:
        return hashlib.sha256(f"qualeval/gpqa/v1/42/{record_id}/{SLOTS[slot]}".encode()).hexdigest()

    return tuple(sorted(range(4), key=place))


def item(row: Row) -> LetterItem:
    """The item of an official row. Text is stripped and nothing else is done to it."""
    options = [_text(row[column]) for column in COLUMNS]
    if not all(options):
        raise ValueError("an option is empty")
    record_id = row["Record ID"]
    order = option_order(record_id)
    return LetterItem(
        id=record_id,
        stratum=row["High-level domain"],
        gold="ABCD"[order.index(0)],
        order=order,
        question=str(row["Question"]),
        options=tuple(options[slot] for slot in order),
        sha256=sha256_of(SOURCE.canonical(row)),
    )


SOURCE = Source(
    name="gpqa",
    dataset="Idavidrein/gpqa",
    config="gpqa_diamond",
    split="train",
    id_field="Record ID",
    columns=("Record ID", "Question", *COLUMNS, "High-level domain"),
    canonical=row_of("Record ID", "Question", *COLUMNS),
    stratum=lambda row: str(row["High-level domain"]),
    clean=clean,
    leak_policy="gated",
    # Printed by the authors beside their archive, so that crawlers do not read it by accident.
    archive_password="deserted-untie-orchid",  # noqa: S106
)

TASK = LetterTask(
    name="gpqa",
    title="GPQA Diamond",
    subtitle="198 questions, letter only",
    max_tokens=48,
    thinking="off",
    source=SOURCE,
    draw=Draw("gpqa", None),
    from_official=item,
)
