"""The letter parts: the prompt word for word, and what is right, cut off or misrouted."""

import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up import answer

from qualeval.graders import letter
from qualeval.records import Completion, CutBy, Usage
from qualeval.tasks import TASKS
from qualeval.tasks.letters import LetterItem, LetterTask, grade_letter, item_of_row, prompt

ROW: dict[str, Any] = {
    "id": "q1",
    "question": "Which is red?",
    "options": ["grass", "blood", "sky", "coal"],
    "answer": "B",
}
PARTS = [name for name, task in TASKS.items() if isinstance(task, LetterTask)]


def item(**fields: Any) -> LetterItem:
    return item_of_row(ROW | fields)


def said(text: str, **fields: Any) -> Completion:
    return Completion.model_validate({"text": text, "finish_reason": "stop"} | fields)


def graded(completion: Completion, last_line_wins: bool = False, **fields: Any) -> Any:
    return grade_letter(item(**fields), completion, last_line_wins=last_line_wins)


# The prompt


def test_prompt_word_for_word() -> None:
    """tasks.md 1.5: frozen; another prompt raises the suite's version."""
    expected = (
        "Choose the best answer to the question below. Reply with exactly one capital letter, "
        "A, B, C or D, and no other words.\n\n"
        "Question:\nWhich is red?\n\n"
        "A. grass\nB. blood\nC. sky\nD. coal\n\n"
        "Reply with the letter only: A, B, C or D."
    )
    assert expected == prompt(item())


@pytest.mark.parametrize(
    ("count", "letters"),
    [(2, "A or B"), (3, "A, B or C"), (10, "A, B, C, D, E, F, G, H, I or J")],
)
def test_prompt_names_the_letters_really_present(count: int, letters: str) -> None:
    """First and last line; no other letter is offered."""
    made = prompt(item(options=[f"option {n}" for n in range(count)], answer="A"))
    first, last = made.split("\n")[0], made.split("\n")[-1]
    assert f"exactly one capital letter, {letters}, and" in first
    assert f"Reply with the letter only: {letters}." == last
    assert f"{string.ascii_uppercase[count - 1]}. option {count - 1}" in made


def test_braces_and_inner_lines_of_a_question_stay() -> None:
    """LaTeX and code are full of braces; ends are stripped, nothing else."""
    made = item(
        question="  {x}\n\nf'{{y}}' ", options=["\\frac{1}{2}", " {0}\n{letters} "], answer="A"
    )
    assert "Question:\n{x}\n\nf'{{y}}'\n\nA. \\frac{1}{2}\nB. {0}\n{letters}\n\nReply" in prompt(
        made
    )


@pytest.mark.parametrize("part", PARTS)
def test_letter_parts_share_one_template_and_one_grader(part: str) -> None:
    """The difference between gpqa and think is thinking alone."""
    task = TASKS[part]
    (message,) = task.messages(item())
    assert {"role": "user", "content": prompt(item())} == message
    assert (TASKS["gpqa"].template, letter.VERSION) == (task.template, task.grader)
    assert {} == task.beside(answer(1))
    task.prepare()


def test_limits_are_those_of_the_method() -> None:
    """DESIGN 1: 48 tokens for a letter, 16,384 with thinking."""
    found = {p: (TASKS[p].max_tokens, TASKS[p].thinking, TASKS[p].draw.size) for p in PARTS}
    expected = {"mmlupro": (48, "off", 400), "gpqa": (48, "off", None), "think": (16_384, "on", 30)}
    assert expected == found


# Grading


@pytest.mark.parametrize(
    ("text", "right", "extracted"),
    [
        ("B", True, "B"),
        ("C", False, "C"),
        ("E", False, None),
        ("", False, None),
        ("hm", False, None),
    ],
)
def test_answer_is_right_when_its_one_letter_is_the_key(
    text: str, right: bool, extracted: str | None
) -> None:
    """A letter beyond the options is none."""
    verdict = graded(said(text))
    assert (right, extracted, False) == (verdict.right, verdict.extracted, verdict.cut_off)
    assert verdict.rule
    assert verdict.reason.endswith(".")


@pytest.mark.parametrize(
    ("cut_by", "words"),
    [
        ("max_tokens", "the token limit"),
        ("context", "the end of the context"),
        ("unclosed_thinking", "thinking that never ended"),
    ],
)
def test_cut_answer_with_right_letter_is_wrong(cut_by: CutBy, words: str) -> None:
    """thk-06, trc-01: the letter is kept beside the verdict and never counted."""
    verdict = graded(said("B", finish_reason="length", cut_by=cut_by))
    assert (False, True, None, "cut_off") == (
        *(verdict.right, verdict.cut_off, verdict.extracted, verdict.rule),
    )
    assert f"The answer was cut off by {words}." == verdict.reason
    assert {"letter_seen": "B"} == verdict.details


def test_cut_answer_is_cut_off_even_when_it_sits_in_the_reasoning_field() -> None:
    """thk-05: cut while thinking is no misrouting."""
    completion = said("", reasoning="B", reasoning_source="reasoning", cut_by="max_tokens")
    assert ("cut_off", {"letter_seen": None}) == (
        graded(completion).rule,
        graded(completion).details,
    )


def test_misrouted_answer_is_wrong_whatever_the_reasoning_says() -> None:
    """tasks.md 2.4: the thinking field is never graded."""
    verdict = graded(said(" \n", reasoning="B", reasoning_source="reasoning_content"))
    assert (False, False, None, "misrouted") == (
        *(verdict.right, verdict.cut_off, verdict.extracted, verdict.rule),
    )


def test_empty_answer_behind_thinking_tags_is_empty_not_misrouted() -> None:
    """The model thought and then said nothing: no field was mixed up."""
    assert "empty" == graded(said("", reasoning="B", reasoning_source="tags")).rule


def test_letter_is_never_taken_from_the_thinking() -> None:
    """thk-01."""
    verdict = graded(said("C", reasoning="The answer is B.", reasoning_source="tags"))
    assert (False, "C") == (verdict.right, verdict.extracted)


def test_last_line_wins_only_with_thinking_on() -> None:
    """tasks.md 1.6, last rule."""
    text = "Answer: A\nOn reflection:\nAnswer: B"
    by_part = {part: TASKS[part].grade(item(), said(text)).rule for part in ("gpqa", "think")}
    assert {"gpqa": "several_letters:AB", "think": "last_line"} == by_part


def test_place_of_the_letter_is_kept() -> None:
    """A person can check the verdict."""
    verdict = graded(said("**Answer: B**"))
    assert {"span": [10, 11]} == verdict.details


@given(
    text=st.text(max_size=40) | st.sampled_from(["B", "Answer: B", "\\boxed{B}", "A or B"]),
    cut_by=st.sampled_from([None, "max_tokens", "context", "unclosed_thinking"]),
    source=st.sampled_from(["none", "tags", "reasoning"]),
    gold=st.sampled_from("ABCD"),
)
def test_verdict_keeps_its_promises_for_any_reply(
    text: str, cut_by: CutBy | None, source: str, gold: str
) -> None:
    """Right means: finished, one letter, the key; a verdict is a pure function."""
    completion = said(text, cut_by=cut_by, reasoning="hm", reasoning_source=source, usage=Usage())
    verdict = graded(completion, answer=gold)
    assert verdict == graded(completion, answer=gold)
    assert verdict.cut_off == completion.cut_off
    if verdict.right:
        assert (gold, False) == (verdict.extracted, verdict.cut_off)


# Rows


@pytest.mark.parametrize("part", PARTS)
def test_official_row_makes_an_item_of_its_part(part: str) -> None:
    """gpqa and think show the same options in the same order; mmlupro shows them as stored."""
    stored: dict[str, Any] = {"question_id": 7, "question": "Which?", "options": ["x", "N/A", "y"]}
    stored |= {"answer": "A", "answer_index": 0, "category": "law", "src": "s"}
    stored |= {"Record ID": "rec1", "Question": "Which?", "High-level domain": "Physics"}
    wrong = {f"Incorrect Answer {n}": f"wrong {n}" for n in (1, 2, 3)}
    made = TASKS[part].official_item({"Correct Answer": " right ", **wrong, **stored})
    assert isinstance(made, LetterItem)
    if part == "mmlupro":
        assert (7, "law", "A", ("x", "y")) == (made.id, made.stratum, made.gold, made.options)
    else:
        assert ("rec1", "Physics") == (made.id, made.stratum)
        assert "right" == made.options["ABCD".index(str(made.gold))]
        again = TASKS["gpqa"].official_item({"Correct Answer": "right", **wrong, **stored})
        assert isinstance(again, LetterItem)
        assert (again.options, again.order) == (made.options, made.order)


def test_row_makes_an_item_as_it_stands() -> None:
    """Options keep their order; extra columns are allowed and count in the hash."""
    made = item(category="art", note="x")
    assert ("q1", "art", "B", None) == (made.id, made.stratum, made.gold, made.order)
    assert ("grass", "blood", "sky", "coal") == made.options
    assert made.sha256 != item(category="art").sha256


def test_question_id_stands_for_id() -> None:
    """The column name of MMLU-Pro."""
    row = {name: value for name, value in ROW.items() if name != "id"}
    assert 7 == item_of_row(row | {"question_id": 7}).id


def test_stratum_is_a_text_or_none() -> None:
    """A number in `category` is no name."""
    assert item(category=7).stratum is None


def test_answer_index_that_agrees_is_fine() -> None:
    """MMLU-Pro rows have both."""
    assert "B" == item(answer_index=1).gold


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"id": None}, "field 'id' (or 'question_id') must be a text or a whole number"),
        ({"id": True}, "field 'id' (or 'question_id') must be a text or a whole number"),
        ({"id": 1.5}, "field 'id' (or 'question_id') must be a text or a whole number"),
        ({"question": " "}, "field 'question' must be a text"),
        ({"question": 1}, "field 'question' must be a text"),
        ({"options": "AB"}, "field 'options' must be a list of 2 to 26 texts"),
        ({"options": ["a"]}, "field 'options' must be a list of 2 to 26 texts"),
        ({"options": ["a"] * 27}, "field 'options' must be a list of 2 to 26 texts"),
        (
            {"options": ["a", " "]},
            "field 'options' holds something that is no text, or an empty one",
        ),
        ({"options": ["a", 2]}, "field 'options' holds something that is no text, or an empty one"),
        ({"answer": "E"}, "field 'answer' must be one capital letter from A to D"),
        ({"answer": "b"}, "field 'answer' must be one capital letter from A to D"),
        ({"answer": ""}, "field 'answer' must be one capital letter from A to D"),
        ({"answer": "AB"}, "field 'answer' must be one capital letter from A to D"),
        ({"answer": 1}, "field 'answer' must be one capital letter from A to D"),
        ({"answer_index": 2}, "fields 'answer' and 'answer_index' name different options"),
    ],
)
def test_row_that_makes_no_item_is_explained(fields: dict[str, Any], message: str) -> None:
    """The field and what it must be."""
    with pytest.raises(ValueError, match=r"^field") as caught:
        item(**fields)
    assert message == str(caught.value)
