"""`grade-file`: the same verdicts on replies made elsewhere, or a named fault and no file."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qualeval.errors import ListError, ReplyFileError
from qualeval.grade_file import completion_of, grade_file, output_lines
from qualeval.tasks import TASKS

ITEMS: list[dict[str, Any]] = [
    {"id": "a", "question": "Which?", "options": ["w", "x", "y", "z"], "answer": "B"},
    {"question_id": 7, "question": "Which?", "options": ["w", "x", "y"], "answer": "C"},
    {"id": "never asked", "question": "Which?", "options": ["w", "x"], "answer": "A"},
]


def lines(path: Path, *rows: Any) -> Path:
    path.write_text("".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in rows))
    return path


def outcome(folder: Path, *replies: Any, part: str = "mmlupro") -> list[dict[str, Any]]:
    items = lines(folder / "items.jsonl", *ITEMS)
    graded = grade_file(part, lines(folder / "replies.jsonl", *replies), items)
    return [json.loads(line) for line in output_lines(TASKS[part], graded).splitlines()]


def fault(folder: Path, *replies: Any) -> str:
    with pytest.raises(ReplyFileError) as caught:
        outcome(folder, *replies)
    assert 2 == caught.value.exit_code
    return str(caught.value).replace(str(folder) + "/", "")


def test_verdicts_come_in_the_order_of_the_replies(tmp_path: Path) -> None:
    """The fields of OUT are id, right, extracted, rule, cut_off, reason."""
    first, second = outcome(tmp_path, {"id": 7, "text": "C"}, {"id": "a", "text": "The sky."})
    assert {
        "id": 7,
        "right": True,
        "extracted": "C",
        "rule": "bare",
        "cut_off": False,
        "reason": "The whole reply is the letter C.",
    } == first
    assert ["id", "right", "extracted", "rule", "cut_off", "reason"] == list(first)
    assert ("a", False, None, "no_letter") == (
        *(second["id"], second["right"], second["extracted"], second["rule"]),
    )


def test_ids_are_compared_as_text_and_written_as_the_item_has_them(tmp_path: Path) -> None:
    """DESIGN 5."""
    (line,) = outcome(tmp_path, {"id": "7", "text": "C"})
    assert 7 == line["id"]


@pytest.mark.parametrize("finish", [{}, {"finish_reason": None}, {"finish_reason": "stop"}])
def test_missing_finish_reason_means_stop(tmp_path: Path, finish: dict[str, Any]) -> None:
    """DESIGN 10."""
    (line,) = outcome(tmp_path, {"id": "a", "text": "B", **finish})
    assert (True, False) == (line["right"], line["cut_off"])


@pytest.mark.parametrize("finish_reason", ["length", "max_tokens"])
def test_cut_reply_with_right_letter_is_wrong(tmp_path: Path, finish_reason: str) -> None:
    """trc-01."""
    (line,) = outcome(tmp_path, {"id": "a", "text": "B", "finish_reason": finish_reason})
    assert (False, True, None) == (line["right"], line["cut_off"], line["extracted"])


def test_reasoning_is_taken_out_first(tmp_path: Path) -> None:
    """thk-01: tags in the text; an open one leaves the reply cut off (thk-04)."""
    closed, opened = outcome(
        tmp_path,
        {"id": "a", "text": "<think>A</think>B"},
        {"id": 7, "text": "<think>The answer is C"},
    )
    assert (True, False) == (closed["right"], closed["cut_off"])
    assert (False, True) == (opened["right"], opened["cut_off"])


def test_null_text_beside_reasoning_is_misrouted(tmp_path: Path) -> None:
    """tasks.md 2.4."""
    (line,) = outcome(tmp_path, {"id": "a", "text": None, "reasoning": "B"})
    assert (False, "misrouted") == (line["right"], line["rule"])


def test_unknown_columns_are_allowed(tmp_path: Path) -> None:
    """A file of another harness has more in it."""
    (line,) = outcome(tmp_path, {"id": "a", "text": "B", "usage": {"completion_tokens": 1}})
    assert line["right"]


def test_no_reply_makes_an_empty_output(tmp_path: Path) -> None:
    """Missing ids are fine, all of them too."""
    assert [] == outcome(tmp_path)


@pytest.mark.parametrize(
    ("replies", "message"),
    [
        ([{"id": "b", "text": ""}], "replies.jsonl:1: id 'b' is in no item of the list"),
        (
            [{"id": "a", "text": ""}, {"id": "a", "text": ""}],
            "replies.jsonl:2: id 'a' occurs twice",
        ),
        ([{"id": 7, "text": ""}, {"id": "7", "text": ""}], "replies.jsonl:2: id '7' occurs twice"),
        ([{"text": ""}], "replies.jsonl:1: field 'id' must be a text or a whole number"),
        (
            [{"id": True, "text": ""}],
            "replies.jsonl:1: field 'id' must be a text or a whole number",
        ),
        ([{"id": 7.0, "text": ""}], "replies.jsonl:1: field 'id' must be a text or a whole number"),
        (
            [{"id": "a"}],
            "replies.jsonl:1: field 'text' is missing (null stands for no answer)",
        ),
        ([{"id": "a", "text": 7}], "replies.jsonl:1: field 'text' must be a text or null"),
        (
            [{"id": "a", "text": "", "finish_reason": 1}],
            "replies.jsonl:1: field 'finish_reason' must be a text or null",
        ),
        (
            [{"id": "a", "text": "", "reasoning": []}],
            "replies.jsonl:1: field 'reasoning' must be a text or null",
        ),
        (
            [{"id": "a", "text": "B", "finish_reason": "abort"}],
            "replies.jsonl:1: the reply ended with finish_reason 'abort': "
            "such a reply is a failed request, not an answer; leave it out",
        ),
        (["{"], "replies.jsonl:1: is not JSON"),
        (["[]"], "replies.jsonl:1: is no JSON object"),
        (["", {"id": "x", "text": ""}], "replies.jsonl:2: id 'x' is in no item of the list"),
    ],
)
def test_fault_names_file_and_line(tmp_path: Path, replies: list[Any], message: str) -> None:
    """DESIGN 10: unknown or double ids exit 2; so does everything that cannot be graded."""
    assert message == fault(tmp_path, *replies)


def test_missing_file_is_named(tmp_path: Path) -> None:
    """Replies and items alike."""
    items = lines(tmp_path / "items.jsonl", *ITEMS)
    with pytest.raises(ReplyFileError, match=r"none\.jsonl: cannot be read"):
        grade_file("mmlupro", tmp_path / "none.jsonl", items)
    with pytest.raises(ListError, match=r"none\.jsonl: cannot be read"):
        grade_file("mmlupro", items, tmp_path / "none.jsonl")


def test_faulty_item_is_named(tmp_path: Path) -> None:
    """The items are read before the first reply."""
    items = lines(tmp_path / "items.jsonl", ITEMS[0] | {"answer": "E"})
    with pytest.raises(ListError, match=r"items\.jsonl:1: field 'answer' must be one capital"):
        grade_file("mmlupro", lines(tmp_path / "r.jsonl"), items)


@given(
    text=st.none() | st.text(st.characters(codec=None, exclude_categories=()), max_size=30),
    reasoning=st.none() | st.text(max_size=10),
    finish=st.sampled_from(["stop", "length", "content_filter", None, ""]),
)
def test_any_reply_gets_a_verdict_in_ascii(text: Any, reasoning: Any, finish: Any) -> None:
    """log-01: half a surrogate pair too."""
    row = {"id": "a", "text": text, "reasoning": reasoning, "finish_reason": finish}
    completion = completion_of(row, "x:1")
    task = TASKS["mmlupro"]
    verdict = task.grade(task.item(ITEMS[0]), completion)
    assert json.dumps(verdict.model_dump()).isascii()
    assert completion.cut_off == verdict.cut_off
    if finish == "length":
        assert verdict.cut_off
