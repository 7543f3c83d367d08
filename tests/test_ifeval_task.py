"""The part `ifeval`: items, prompt, verdict, figures beside the score, pinned list."""

import json
import os
import re
from pathlib import Path

import pytest

from qualeval.lists import items_of_file, load_list, make_pin, pin_of
from qualeval.records import Answer, Completion, RawReply, Request
from qualeval.tasks import TASKS
from qualeval.tasks.base import Row
from qualeval.tasks.ifeval import LEFT_OUT, TASK, InstructionItem, item

ROW: Row = {
    "key": 7,
    "prompt": "Write two short lines about rain without a comma.",
    "instruction_id_list": ["punctuation:no_comma", "length_constraints:number_words"],
    "kwargs": [{}, {"num_words": 5, "relation": "at least", "letter": None}],
}
GOOD = "Rain falls on the roof tonight.\nThe street is shining."


def answer_to(text: str, **facts: object) -> Answer:
    completion = Completion(text=text, finish_reason="stop").model_copy(update=facts)
    question = item(ROW)
    raw = RawReply.of(Request(id=question.id, max_tokens=2048, body={}), completion)
    return Answer.of_verdict(raw, question, TASK.grade(question, completion))


def official_rows() -> list[dict[str, object]]:
    here = Path(__file__).parents[1]
    data = Path(os.environ.get("QUALEVAL_REFERENCE_DATA", here.parent / "shared" / "data"))
    path = data / "ifeval" / "input_data.jsonl"
    if not path.exists():
        pytest.skip(f"the 541 official prompts are not here ({path})")
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_prompt_is_sent_as_it_is() -> None:
    """One user message, the prompt and nothing else."""
    expected = ({"role": "user", "content": ROW["prompt"]},)
    assert expected == TASK.messages(item(ROW))


def test_null_arguments_are_as_good_as_absent() -> None:
    """A mirror that pads arguments with null pins and grades the same."""
    padded = {**ROW, "kwargs": [{"num_words": None}, ROW["kwargs"][1]]}
    assert item(ROW).sha256 == item(padded).sha256
    assert item(ROW).kwargs == item(padded).kwargs


def test_answer_that_follows_everything_is_right() -> None:
    """Right is the strict prompt level, with one reason for all instructions."""
    answer = answer_to(GOOD)
    assert (True, "all_followed", False) == (answer.right, answer.rule, answer.cut_off)
    assert answer.reason.count("followed") == 2


def test_answer_that_breaks_one_instruction_is_wrong() -> None:
    """The rule says how many were not followed, the reason which."""
    answer = answer_to(GOOD.replace("tonight", "tonight, again"))
    assert (False, "not_followed:1") == (answer.right, answer.rule)
    assert "punctuation:no_comma not followed" in answer.reason


def test_cut_answer_is_wrong_with_the_reference_verdict_beside_it() -> None:
    """Rule 1 of the method: whatever its text says."""
    answer = answer_to(GOOD, finish_reason="length", cut_by="max_tokens")
    assert (False, True, "cut_off") == (answer.right, answer.cut_off, answer.rule)
    assert answer.details is not None
    assert answer.details["strict_prompt"] is True


def test_cut_answer_follows_nothing_in_the_figures_beside_the_score() -> None:
    """A cut answer that the reference would pass counts in no level."""
    expected = {
        "strict instructions": (0, 2),
        "loose prompts": (0, 1),
        "loose instructions": (0, 2),
    }
    cut = answer_to(GOOD, finish_reason="length", cut_by="max_tokens")
    assert expected == TASK.beside(cut)


def test_details_of_another_form_are_refused() -> None:
    answer = answer_to(GOOD)
    details = {**(answer.details or {}), "loose_inst": "true"}
    with pytest.raises(ValueError, match=r"details\.loose_inst"):
        TASK.beside(answer.model_copy(update={"details": details}))


def test_levels_are_counted_apart() -> None:
    """ife-20: prompt and instruction level, strict and loose, never mixed."""
    expected = {
        "strict instructions": (1, 2),
        "loose prompts": (0, 1),
        "loose instructions": (1, 2),
    }
    assert expected == TASK.beside(answer_to(GOOD.replace("Rain", "Rain,").replace("is", "is,")))


def test_answer_in_the_reasoning_field_is_wrong() -> None:
    """An empty content with a finished answer in the reasoning field is `misrouted`."""
    answer = answer_to("", reasoning=GOOD, reasoning_source="reasoning")
    assert (False, "misrouted") == (answer.right, answer.rule)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"prompt": ""}, "prompt"),
        ({"key": 1.5}, "key"),
        ({"key": True}, "key"),
        ({"instruction_id_list": []}, "instruction_id_list"),
        ({"instruction_id_list": [1]}, "instruction_id_list"),
        ({"instruction_id_list": ["punctuation:no_coma"], "kwargs": [{}]}, "no_comma"),
        ({"kwargs": None}, "kwargs"),
        ({"kwargs": [{}, {"relation": "at least"}]}, "num_words"),
    ],
)
def test_bad_row_is_an_error_that_names_the_field(change: dict[str, object], named: str) -> None:
    """ife-21: nothing is ever drawn for what a row does not say."""
    with pytest.raises(ValueError, match=named):
        item({**ROW, **change})


@pytest.mark.parametrize("column", ["key", "prompt", "instruction_id_list", "kwargs"])
def test_missing_field_is_an_error_that_names_it(column: str) -> None:
    """A row without one of its four fields."""
    with pytest.raises(ValueError, match=column):
        item({name: value for name, value in ROW.items() if name != column})


def test_sample_list_loads() -> None:
    """The sample list ships with the package and needs nothing else."""
    sample = load_list(TASKS["ifeval"], "sample", Path())
    assert len(sample.items) >= 25
    families = {stratum for i in sample.items if (stratum := i.stratum)}
    assert len(families) > 5


def test_official_file_loads_whole(tmp_path: Path) -> None:
    """All 541 published rows make items, the five of LEFT_OUT included."""
    path = tmp_path / "input_data.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in official_rows()))
    assert 541 == len(items_of_file(TASK, path))


def test_pin_is_what_the_draw_gives() -> None:
    """The shipped list of 200 is drawn from the official rows by hash, without LEFT_OUT."""
    pin = pin_of("ifeval")
    assert pin == make_pin(TASK, official_rows(), None)
    assert (200, 536) == (len(pin.rows), pin.pool)
    assert not {row.id for row in pin.rows} & set(LEFT_OUT)


def test_no_pinned_prompt_has_a_keyword_that_is_read_as_a_pattern() -> None:
    """ife-09: the reference searches keywords as unescaped patterns; none of the 200 differs."""
    pinned = {row.id for row in pin_of("ifeval").rows}
    words = [
        word
        for row in official_rows()
        if row["key"] in pinned
        for arguments in item(row).kwargs
        for name in ("keyword", "keywords", "forbidden_words")
        for word in (lambda v: v if isinstance(v, list) else [v] if v else [])(arguments.get(name))
    ]
    assert words
    assert [] == [word for word in words if re.search(r"[.^$*+?{}\[\]\\|()]", str(word))]


def test_item_is_closed() -> None:
    """An item holds what prompt and grader need and nothing else."""
    assert isinstance(item(ROW), InstructionItem)
    with pytest.raises(ValueError, match="Extra inputs"):
        InstructionItem.model_validate({**dict(item(ROW)), "answer": "x"})
