"""The official lists, drawn again from the real data.

Skipped where the data is not. A failure prints ids and hashes and never a text: rows travel inside
`Hidden`, because pytest prints the arguments of a failing test, and errors are caught in `quietly`,
because it prints those of the functions on the way too.
"""

import csv
import io
import json
import os
import shutil
import string
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from qualeval.errors import ListError
from qualeval.lists import draw_key, import_rows, load_list, make_pin, pin_of, quotas
from qualeval.pins import Lock, Pin
from qualeval.records import sha256_of
from qualeval.tasks import TASKS, gpqa, mmlupro
from qualeval.tasks.base import Row
from qualeval.tasks.letters import LetterItem

ROOT = Path(__file__).parents[1]
LETTERS = string.ascii_uppercase


@dataclass(frozen=True)
class Hidden:
    """Rows or items of the benchmarks, which nothing may print."""

    all: Sequence[Any] = field(repr=False)


@contextmanager
def quietly() -> Iterator[None]:
    """Whatever goes wrong inside is told by its kind; a ListError names ids only, and is told."""
    try:
        yield
    except Exception as error:
        told = str(error) if isinstance(error, ListError) else "its text is withheld"
        # From None, or pytest prints the first error, with its text, as the cause of this one.
        raise pytest.fail.Exception(f"{type(error).__name__}: {told}", pytrace=False) from None


def faulty(found: Hidden, is_right: Callable[[Any], bool]) -> list[Any]:
    """Ids of what breaks a rule or cannot be checked."""
    ids = []
    for one in found.all:
        try:
            right = is_right(one)
        except Exception:
            right = False
        if not right:
            ids.append(one.id if isinstance(one, LetterItem) else id_of(one))
    return ids


def id_of(row: Row) -> Any:
    return row.get("question_id", row.get("Record ID"))


def reference_data(name: str) -> Path:
    folder = Path(os.environ.get("QUALEVAL_REFERENCE_DATA") or ROOT.parent / "shared" / "data")
    if not (folder / name).is_file():
        pytest.skip(f"no reference data: {name} (set QUALEVAL_REFERENCE_DATA to its folder)")
    return folder / name


@pytest.fixture(scope="module")
def gpqa_rows() -> Hidden:
    with quietly(), zipfile.ZipFile(reference_data("gpqa/dataset.zip")) as archive:
        password = (gpqa.SOURCE.archive_password or "").encode()
        text = archive.read("dataset/gpqa_diamond.csv", password).decode("utf-8")
        return Hidden(list(csv.DictReader(io.StringIO(text, newline=""))))


@pytest.fixture(scope="module")
def mmlupro_rows() -> Hidden:
    with quietly():
        lines = reference_data("mmlupro/questions.jsonl").read_bytes().split(b"\n")
        return Hidden([json.loads(line) for line in lines if line])


@pytest.fixture(scope="module")
def rows_of(gpqa_rows: Hidden, mmlupro_rows: Hidden) -> dict[str, Hidden]:
    return {"mmlupro": mmlupro_rows, "gpqa": gpqa_rows, "think": gpqa_rows}


@pytest.fixture(scope="module")
def items_of(
    tmp_path_factory: pytest.TempPathFactory, rows_of: dict[str, Hidden]
) -> dict[str, Hidden]:
    """The official lists as a user has them after an import of the files as they were published.

    The cache goes at once: no text of a gated list stays behind in the folder of the tests.
    """
    cache = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch, quietly():
        patch.setenv("QUALEVAL_CACHE", str(cache))
        import_rows(gpqa.SOURCE, reference_data("gpqa/dataset.zip"))
        import_rows(mmlupro.SOURCE, reference_data("mmlupro/questions.jsonl"))
        loaded = {part: load_list(TASKS[part], "official", Path()) for part in rows_of}
    shutil.rmtree(cache)
    return {part: Hidden(found.items) for part, found in loaded.items()}


each_part = pytest.mark.parametrize("part", ["mmlupro", "gpqa", "think"])


def test_failure_withholds_the_text_and_its_cause() -> None:
    with pytest.raises(pytest.fail.Exception) as caught, quietly():
        raise KeyError("What is the question?")
    assert str(caught.value) == "KeyError: its text is withheld"
    assert caught.value.__suppress_context__


@each_part
def test_pin_is_what_the_recipe_draws_from_the_data(part: str, rows_of: dict[str, Hidden]) -> None:
    with quietly():
        drawn = make_pin(TASKS[part], rows_of[part].all, pin_of(part).revision)
    assert drawn == pin_of(part)


@each_part
def test_pin_does_not_depend_on_the_order_of_the_data(
    part: str, rows_of: dict[str, Hidden]
) -> None:
    with quietly():
        drawn = make_pin(TASKS[part], rows_of[part].all[::-1], pin_of(part).revision)
    assert drawn == pin_of(part)


def pooled(part: str) -> tuple[int, dict[str, int]]:
    return pin_of(part).pool, pin_of(part).left_out


def test_pool_of_mmlupro_leaves_out_duplicates_and_one_contradiction(mmlupro_rows: Hidden) -> None:
    """12,032 questions; row 3983 names C and the second option."""
    reasons = {"key contradicts itself": 1, "N/A before the key": 0, "duplicate": 159}
    assert pooled("mmlupro") == (11_872, reasons)
    with quietly():
        kept = {row["question_id"] for row in mmlupro.clean(mmlupro_rows.all).rows}
        contradictory = mmlupro.clean([r for r in mmlupro_rows.all if r["question_id"] == 3983])
    assert (len(mmlupro_rows.all), len(kept), 3983 in kept) == (12_032, 11_872, False)
    assert {k: n for k, n in contradictory.left_out.items() if n} == {"key contradicts itself": 1}


def test_pool_of_gpqa_is_everything(gpqa_rows: Hidden) -> None:
    assert pooled("gpqa") == pooled("think") == (198, {"empty option": 0})
    assert len(gpqa_rows.all) == 198


def pin_by_hand(pin: Pin | Lock, pool: Hidden, stratum: str, size: int) -> list[Any]:
    """Ids drawn by the published recipe alone."""
    assert isinstance(pin, Pin)
    found = Counter(row[stratum] for row in pool.all)
    chosen = []
    for name, seats in sorted(quotas(found, size).items()):
        ids = [id_of(row) for row in pool.all if row[stratum] == name]
        chosen += sorted(ids, key=lambda id: draw_key(pin.namespace, id))[:seats]
    return chosen


def test_draw_can_be_repeated_from_its_description(rows_of: dict[str, Hidden]) -> None:
    """Strata by name, inside one by the hash of namespace and id, seats by largest remainder."""
    with quietly():
        pool = Hidden(mmlupro.clean(rows_of["mmlupro"].all).rows)
        letters = pin_by_hand(pin_of("mmlupro"), pool, "category", 400)
        thinking = pin_by_hand(pin_of("think"), rows_of["think"], "High-level domain", 30)
    assert letters == [row.id for row in pin_of("mmlupro").rows]
    assert thinking == [row.id for row in pin_of("think").rows]


@each_part
def test_pinned_hash_is_that_of_the_row_as_published(part: str, rows_of: dict[str, Hidden]) -> None:
    """JSON of the named columns, keys sorted, no spaces, UTF-8 as it is, whatever their order."""
    source, pinned = TASKS[part].source, {row.id: row.sha256 for row in pin_of(part).rows}

    def is_pinned(row: Row) -> bool:
        turned = dict(reversed(source.canonical(row).items()))
        return sha256_of(turned) == pinned[id_of(row)]

    chosen = Hidden([row for row in rows_of[part].all if id_of(row) in pinned])
    assert len(chosen.all) == len(pinned)
    assert faulty(chosen, is_pinned) == []


@each_part
def test_imported_list_is_the_pinned_one_in_its_order(
    part: str, items_of: dict[str, Hidden]
) -> None:
    found = [(item.id, item.stratum, item.sha256) for item in items_of[part].all]
    assert found == [(row.id, row.stratum, row.sha256) for row in pin_of(part).rows]


@each_part
def test_every_question_makes_a_prompt_with_its_letters(
    part: str, items_of: dict[str, Hidden]
) -> None:
    def is_right(item: LetterItem) -> bool:
        (message,) = TASKS[part].messages(item)
        letters = LETTERS[: len(item.options)]
        named = f"{', '.join(letters[:-1])} or {letters[-1]}"
        text = str(message["content"])
        shown = "\n".join(f"{a}. {b}" for a, b in zip(letters, item.options, strict=True))
        return (
            message["role"] == "user"
            and text.count(named) == 2
            and f"\n\n{shown}\n\n" in text
            and text.endswith(f"Reply with the letter only: {named}.")
            and f"\nQuestion:\n{item.question.strip()}\n" in text
        )

    assert faulty(items_of[part], is_right) == []


def test_mmlupro_options_stay_in_place_and_the_key_is_theirs(
    items_of: dict[str, Hidden], mmlupro_rows: Hidden
) -> None:
    rows = {row["question_id"]: row for row in mmlupro_rows.all}

    def is_right(item: LetterItem) -> bool:
        row = rows[item.id]
        return (
            list(item.options) == [option.strip() for option in row["options"]]
            and item.gold == row["answer"] == LETTERS[row["answer_index"]]
            and item.order is None
        )

    assert faulty(items_of["mmlupro"], is_right) == []


def test_keys_of_gpqa_are_spread_over_the_letters(items_of: dict[str, Hidden]) -> None:
    """gpq-03: an order of its own for each row, and no letter far from a quarter."""
    golds = Counter(item.gold for item in items_of["gpqa"].all)
    assert golds == {"A": 40, "B": 58, "C": 55, "D": 45}
    assert [a for a, n in golds.items() if not 0.15 <= n / 198 <= 0.35] == []


def test_key_of_gpqa_is_the_slot_of_the_correct_answer(
    items_of: dict[str, Hidden], gpqa_rows: Hidden
) -> None:
    """gpq-02: by slot, in the two rows with two equal options as well."""
    rows = {row["Record ID"]: row for row in gpqa_rows.all}

    def is_right(item: LetterItem) -> bool:
        assert item.order is not None and isinstance(item.gold, str)
        row = rows[item.id]
        shown = [row[gpqa.COLUMNS[slot]].strip() for slot in item.order]
        return list(item.options) == shown and item.order["ABCD".index(item.gold)] == 0

    assert faulty(items_of["gpqa"], is_right) == []
    equal = [item.id for item in items_of["gpqa"].all if len(set(item.options)) < 4]
    assert len(equal) == 2


def test_thinking_questions_are_those_of_the_whole_list(items_of: dict[str, Hidden]) -> None:
    """Same question, same option order, same key, same prompt: only thinking differs."""
    whole = {item.id: item for item in items_of["gpqa"].all}

    def is_same(item: LetterItem) -> bool:
        other = whole[item.id]
        return item == other and TASKS["think"].messages(item) == TASKS["gpqa"].messages(other)

    assert len(items_of["think"].all) == 30
    assert faulty(items_of["think"], is_same) == []


def test_strata_of_the_thinking_list(items_of: dict[str, Hidden]) -> None:
    strata = Counter(item.stratum for item in items_of["think"].all)
    assert strata == {"Chemistry": 14, "Physics": 13, "Biology": 3}
