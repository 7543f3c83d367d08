"""The sample list of programming problems is well formed, and its tests tell right from wrong."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from lcb_solutions import SOLUTIONS

from qualeval.graders.code import Judged, judge
from qualeval.graders.code import Test as Case
from qualeval.sandbox import Limits, choose_sandbox
from qualeval.tasks import lcb_rows

SAMPLES = Path(__file__).parents[1] / "tasks" / "samples" / "lcb.jsonl"
# The columns of the published rows, in their order.
FIELDS = [
    *("question_title", "question_content", "platform", "question_id", "contest_id"),
    *("contest_date", "starter_code", "difficulty", "public_test_cases", "private_test_cases"),
    "metadata",
]
LEAST_PROBLEMS = 8
# A wrong program that is too slow needs a minute or more: a lower limit only makes tests faster.
LIMITS = Limits(cpu_seconds=3.0, wall_seconds=30.0)


def lines() -> list[str]:
    return SAMPLES.read_bytes().decode("utf-8").removesuffix("\n").split("\n")


def rows() -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines()]


def public(row: dict[str, Any]) -> list[dict[str, str]]:
    tests: list[dict[str, str]] = json.loads(row["public_test_cases"])
    return tests


def private(row: dict[str, Any]) -> list[dict[str, str]]:
    tests: list[dict[str, str]] = json.loads(row["private_test_cases"])
    return tests


def is_functional(row: dict[str, Any]) -> bool:
    return "func_name" in json.loads(row["metadata"])


Judge = Callable[[dict[str, Any], str], Judged]


@pytest.fixture(scope="module")
def judged() -> Iterator[Judge]:
    """Judges a program on all tests of a row, in the sandbox of this machine."""
    with choose_sandbox().sandbox() as sandbox:

        def judged(row: dict[str, Any], code: str) -> Judged:
            item = lcb_rows.item(row)
            tests = [Case(given, expected) for given, expected in lcb_rows.tests(item)]
            return judge(code, tests, item.function, sandbox.run, LIMITS)

        yield judged


each_row = pytest.mark.parametrize("row", rows(), ids=lambda row: row["question_id"])


def test_file_ends_with_one_newline_and_every_line_is_one_object_in_unescaped_utf8() -> None:
    content = SAMPLES.read_bytes()
    assert content.endswith(b"\n")
    assert b"\r" not in content
    for number, line in enumerate(lines(), 1):
        assert json.dumps(json.loads(line), ensure_ascii=False) == line, number


def test_file_stays_small_enough_for_a_package() -> None:
    assert SAMPLES.stat().st_size < 200_000


def test_there_are_enough_problems_of_both_styles() -> None:
    styles = Counter(map(is_functional, rows()))
    assert styles.total() >= LEAST_PROBLEMS
    assert min(styles[True], styles[False]) >= 3


def test_ids_are_unique_and_sequential_and_titles_differ() -> None:
    assert [row["question_id"] for row in rows()] == [
        f"sample-{number}" for number in range(1, len(rows()) + 1)
    ]
    assert len({row["question_title"] for row in rows()}) == len(rows())


@each_row
def test_row_has_the_published_columns_as_text(row: dict[str, Any]) -> None:
    assert list(row) == FIELDS
    assert all(isinstance(value, str) for value in row.values())
    assert row["platform"] == "qualeval"
    assert row["difficulty"] in {"easy", "medium", "hard"}


@each_row
def test_style_is_the_same_in_metadata_starter_code_and_tests(row: dict[str, Any]) -> None:
    style = "functional" if is_functional(row) else "stdin"
    assert {test["testtype"] for test in public(row) + private(row)} == {style}
    if style == "functional":
        name = json.loads(row["metadata"])["func_name"]
        assert f"class Solution:\n    def {name}(self, " in row["starter_code"]
    else:
        assert row["starter_code"] == ""


@each_row
def test_tests_are_enough_and_none_stands_twice(row: dict[str, Any]) -> None:
    assert len(public(row)) >= 2
    assert len(private(row)) >= 6
    inputs = [test["input"] for test in public(row) + private(row)]
    assert len(set(inputs)) == len(inputs)


@each_row
def test_statement_shows_every_public_test(row: dict[str, Any]) -> None:
    for number, test in enumerate(public(row), 1):
        if is_functional(row):
            values = [json.loads(line) for line in test["input"].split("\n")]
            assert all(f"= {json.dumps(value)}" in row["question_content"] for value in values)
            assert f"\nOutput: {test['output']}\n" in row["question_content"]
        else:
            shown = row["question_content"] + "\n"
            assert f"Sample Input {number}\n\n{test['input']}\n" in shown
            assert f"Sample Output {number}\n\n{test['output']}" in shown


def test_one_problem_has_several_lines_of_output_and_one_has_a_point() -> None:
    scripts = [row for row in rows() if not is_functional(row)]
    assert any("\n" in public(row)[0]["output"].strip() for row in scripts)
    assert any("." in public(row)[0]["output"] for row in scripts)


def test_every_problem_has_solutions_and_every_kind_of_verdict_occurs() -> None:
    assert list(SOLUTIONS) == [row["question_id"] for row in rows()]
    verdicts = {verdict for solved in SOLUTIONS.values() for verdict, _ in solved.wrong}
    assert verdicts == {"wrong_answer", "runtime_error", "time_limit"}


@each_row
def test_reference_solution_is_accepted(row: dict[str, Any], judged: Judge) -> None:
    result = judged(row, SOLUTIONS[row["question_id"]].right)
    assert result.verdict == "accepted", result.reason
    assert result.tests == len(public(row)) + len(private(row))


@pytest.mark.parametrize(
    ("row", "verdict", "code"),
    [
        pytest.param(row, verdict, code, id=f"{row['question_id']}-{verdict}-{number}")
        for row in rows()
        for number, (verdict, code) in enumerate(SOLUTIONS[row["question_id"]].wrong, 1)
    ],
)
def test_wrong_solution_gets_its_verdict(
    row: dict[str, Any], verdict: str, code: str, judged: Judge
) -> None:
    result = judged(row, code)
    assert result.verdict == verdict, result.reason
    assert result.failed_test is not None
