"""The sample lists are well formed, balanced, and not copied from the benchmarks."""

import csv
import io
import json
import os
import re
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
SAMPLES = ROOT / "tasks" / "samples"
FIELDS = ["id", "question", "options", "answer", "category"]
LETTERS = "ABCDEFGHIJ"
GPQA_SUBJECTS = {"biology", "chemistry", "physics"}
MMLUPRO_SUBJECTS = GPQA_SUBJECTS | {
    *("business", "computer science", "economics", "engineering", "health", "history"),
    *("law", "math", "other", "philosophy", "psychology"),
}
SUBJECTS = {"mmlupro": MMLUPRO_SUBJECTS, "gpqa": GPQA_SUBJECTS}
LEAST_QUESTIONS = {"mmlupro": 40, "gpqa": 16}
LEAST_SUBJECTS = {"mmlupro": 10, "gpqa": 3}
OPTION_COUNTS = {"mmlupro": set(range(4, 11)), "gpqa": {4}}
# The authors publish it beside the file, to keep the text out of plain web crawls.
GPQA_ZIP_PASSWORD = b"deserted-untie-orchid"
RUN = 8

each_list = pytest.mark.parametrize("name", ["mmlupro", "gpqa"])


def raw_lines(name: str) -> list[str]:
    # Not splitlines(): it also splits at U+2028 and U+0085, which may stand inside a line.
    return (SAMPLES / f"{name}.jsonl").read_bytes().decode("utf-8").removesuffix("\n").split("\n")


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in raw_lines(name)]


def faulty(name: str, is_right: Callable[[dict[str, Any]], bool]) -> list[str]:
    """Ids of the rows that break a rule, so that a failure names the question and not its text."""
    return [row["id"] for row in rows(name) if not is_right(row)]


@each_list
def test_file_ends_with_one_newline_and_has_no_blank_line(name: str) -> None:
    content = (SAMPLES / f"{name}.jsonl").read_bytes()
    assert content.endswith(b"\n")
    assert b"\r" not in content
    assert [n for n, line in enumerate(raw_lines(name), 1) if not line.strip()] == []


@each_list
def test_every_line_is_one_object_in_unescaped_utf8(name: str) -> None:
    def is_canonical(line: str) -> bool:
        return json.dumps(json.loads(line), ensure_ascii=False) == line

    assert [n for n, line in enumerate(raw_lines(name), 1) if not is_canonical(line)] == []


@each_list
def test_every_line_has_the_five_fields_in_order(name: str) -> None:
    assert [n for n, row in enumerate(rows(name), 1) if list(row) != FIELDS] == []


@each_list
def test_every_field_is_text_and_stripped(name: str) -> None:
    def is_right(row: dict[str, Any]) -> bool:
        texts = [row["id"], row["question"], row["answer"], row["category"], *row["options"]]
        return all(isinstance(text, str) and text and text == text.strip() for text in texts)

    assert faulty(name, is_right) == []


@each_list
def test_ids_are_unique_and_sequential(name: str) -> None:
    ids = [row["id"] for row in rows(name)]
    assert ids == [f"sample-{name}-{n:02d}" for n in range(1, len(ids) + 1)]


@each_list
def test_no_question_stands_twice(name: str) -> None:
    counts = Counter(row["question"] for row in rows(name))
    assert faulty(name, lambda row: counts[row["question"]] == 1) == []


@each_list
def test_answer_is_the_letter_of_an_option(name: str) -> None:
    def is_right(row: dict[str, Any]) -> bool:
        return row["answer"] in list(LETTERS[: len(row["options"])])

    assert faulty(name, is_right) == []


@each_list
def test_options_are_distinct_whatever_their_case(name: str) -> None:
    def is_right(row: dict[str, Any]) -> bool:
        return len({text.casefold() for text in row["options"]}) == len(row["options"])

    assert faulty(name, is_right) == []


@each_list
def test_no_option_is_a_filler(name: str) -> None:
    fillers = {"n/a", "na", "none", "null", "-"}
    assert faulty(name, lambda row: fillers.isdisjoint(map(str.casefold, row["options"]))) == []


@each_list
def test_gold_option_neither_holds_nor_lies_in_another(name: str) -> None:
    def is_right(row: dict[str, Any]) -> bool:
        others = list(row["options"])
        gold = others.pop(LETTERS.index(row["answer"]))
        return not any(gold in text or text in gold for text in others)

    assert faulty(name, is_right) == []


@each_list
def test_every_allowed_number_of_options_occurs_and_no_other(name: str) -> None:
    assert {len(row["options"]) for row in rows(name)} == OPTION_COUNTS[name]


def test_most_mmlupro_questions_have_ten_options() -> None:
    counts = [len(row["options"]) for row in rows("mmlupro")]
    assert counts.count(10) > len(counts) / 2


@each_list
def test_there_are_enough_questions_over_enough_subjects(name: str) -> None:
    categories = [row["category"] for row in rows(name)]
    assert len(categories) >= LEAST_QUESTIONS[name]
    assert len(set(categories)) >= LEAST_SUBJECTS[name]
    assert set(categories) <= SUBJECTS[name]


@each_list
def test_every_letter_is_gold_and_none_takes_more_than_a_third(name: str) -> None:
    gold = Counter(row["answer"] for row in rows(name))
    assert set(gold) == set(LETTERS[: max(OPTION_COUNTS[name])])
    assert max(gold.values()) * 3 <= gold.total()


def word_runs(text: str) -> Iterator[tuple[str, ...]]:
    """Every run of RUN words in a row, whatever the case and the punctuation between them."""
    words = re.findall(r"\w+", text.casefold())
    return zip(*(words[start:] for start in range(RUN)), strict=False)


def reference_data(name: str) -> Path:
    folder = Path(os.environ.get("QUALEVAL_REFERENCE_DATA") or ROOT.parent / "shared" / "data")
    path = folder / name
    if not path.is_file():
        pytest.skip(f"no reference data: {name} (set QUALEVAL_REFERENCE_DATA to its folder)")
    return path


def mmlupro_texts() -> Iterator[str]:
    with reference_data("mmlupro/questions.jsonl").open(encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            yield row["question"]
            yield from row["options"]


def gpqa_texts() -> Iterator[str]:
    """Every cell of the csv files, decrypted in memory only."""
    with zipfile.ZipFile(reference_data("gpqa/dataset.zip")) as archive:
        names = [name for name in archive.namelist() if name.endswith(".csv")]
        assert names
        for name in names:
            text = archive.read(name, pwd=GPQA_ZIP_PASSWORD).decode("utf-8")
            for cells in csv.reader(io.StringIO(text, newline="")):
                yield from cells


def ids_with_a_common_run(texts: Iterable[str]) -> list[str]:
    """Ids, and never the text, of the samples that share a run of words with one of the texts."""
    owners: dict[tuple[str, ...], set[str]] = {}
    for row in rows("mmlupro") + rows("gpqa"):
        for text in (row["question"], *row["options"]):
            for run in word_runs(text):
                owners.setdefault(run, set()).add(row["id"])
    found: set[str] = set()
    for text in texts:
        for run in word_runs(text):
            found |= owners.get(run, set())
    return sorted(found)


def test_a_copied_run_is_found_whatever_its_case_and_punctuation() -> None:
    words = re.findall(r"\w+", rows("gpqa")[2]["question"])[:RUN]
    assert ids_with_a_common_run(["Now: " + " - ".join(words).upper() + "?"]) == ["sample-gpqa-03"]
    assert ids_with_a_common_run([" ".join(words[1:])]) == []


@pytest.mark.parametrize("texts", [mmlupro_texts, gpqa_texts])
def test_no_run_of_eight_words_is_shared_with_the_benchmark(texts: Any) -> None:
    copied = ids_with_a_common_run(texts())
    assert copied == []
