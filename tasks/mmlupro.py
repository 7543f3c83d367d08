"""MMLU-Pro, 400 fixed questions, letter only.

Wang et al. 2024 (arXiv 2406.01574), data set TIGER-Lab/MMLU-Pro, MIT. Options are never reordered:
the letters are part of the row. The literal option "N/A", a padding of some revisions, goes, as in
the authors' own loader; a row whose key would move by that is left out.
"""

from collections.abc import Iterable

from qualeval.records import sha256_of
from qualeval.tasks.base import Draw, Pool, Row, Source, row_of
from qualeval.tasks.letters import LetterItem, LetterTask, item_of_row

COLUMNS = ("question_id", "question", "options", "answer", "answer_index", "category", "src")


def clean(rows: Iterable[Row]) -> Pool:
    """Rows with one clear key: no contradiction between `answer` and `answer_index`, no key that
    the removal of "N/A" moves, no repeated question (the lowest question_id stays).
    """
    left_out = {"key contradicts itself": 0, "N/A before the key": 0, "duplicate": 0}
    kept: dict[tuple[str, ...], Row] = {}
    for row in sorted(rows, key=lambda row: int(row["question_id"])):
        index, options = row["answer_index"], row["options"]
        content = tuple(" ".join(text.lower().split()) for text in (row["question"], *options))
        if not 0 <= index < len(options) or row["answer"] != chr(ord("A") + index):
            left_out["key contradicts itself"] += 1
        elif "N/A" in options[: index + 1]:
            left_out["N/A before the key"] += 1
        elif content in kept:
            left_out["duplicate"] += 1
        else:
            kept[content] = row
    return Pool(tuple(kept.values()), left_out)


def item(row: Row) -> LetterItem:
    """The item of an official row; its hash is that of the row as stored."""
    shown = {**row, "options": [option for option in row["options"] if option != "N/A"]}
    return item_of_row(shown).model_copy(update={"sha256": sha256_of(SOURCE.canonical(row))})


SOURCE = Source(
    name="mmlupro",
    dataset="TIGER-Lab/MMLU-Pro",
    config=None,
    split="test",
    id_field="question_id",
    columns=COLUMNS,
    canonical=row_of(*COLUMNS),
    stratum=lambda row: str(row["category"]),
    clean=clean,
)

TASK = LetterTask(
    name="mmlupro",
    title="MMLU-Pro",
    subtitle="400 fixed questions, letter only",
    max_tokens=48,
    thinking="off",
    source=SOURCE,
    draw=Draw("mmlu-pro", 400),
    from_official=item,
)
