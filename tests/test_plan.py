"""Card and task to requests: exactly what is sent, in which order, before anything is sent."""

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from made_up import card

from qualeval.errors import ListError, OptionError
from qualeval.plan import (
    STREAM_FROM,
    PartPlan,
    chosen_parts,
    groups,
    merged,
    plan_part,
)
from qualeval.tasks import TASKS


def plan_of(part: str = "mmlupro", limit: int | None = None, **fields: Any) -> PartPlan:
    return plan_part(card(**fields), part, Path(), "sample", limit)


def server(**fields: Any) -> dict[str, Any]:
    return card().server.model_dump() | fields


# Requests


def test_request_is_one_user_message_with_the_fixed_fields() -> None:
    """DESIGN 6: card sampling, seed, max_tokens, the mode's thinking object, cache off."""
    plan = plan_of(
        sampling={"temperature": 1.0, "top_p": 0.95},
        thinking={"off": {"chat_template_kwargs": {"enable_thinking": False}}},
    )
    request = next(plan.requests())
    messages = request.body["messages"]
    assert isinstance(messages, list)
    assert ["user"] == [m["role"] for m in messages if isinstance(m, dict)]
    assert {
        "messages": messages,
        "seed": 42,
        "model": "m",
        "max_tokens": 48,
        "temperature": 1.0,
        "top_p": 0.95,
        "chat_template_kwargs": {"enable_thinking": False},
    } == request.body


def test_no_field_is_sent_that_nobody_named() -> None:
    """A card without sampling and thinking sends neither; `extra_body` never appears (thk-07)."""
    body = next(plan_of().requests()).body
    assert {"messages", "seed", "model", "max_tokens"} == set(body)


def test_each_mode_sends_its_own_switch_and_sampling() -> None:
    """thk-09: thinking off is sent for every part without thinking."""
    fields: dict[str, Any] = {
        "thinking": {"off": {"reasoning_effort": "low"}, "on": {"reasoning_effort": "high"}},
        "sampling": {"off": {"temperature": 0.7}, "on": {"temperature": 0.6}},
    }
    said = []
    for part in ("gpqa", "think"):
        body = next(plan_of(part, **fields).requests()).body
        said.append((body["reasoning_effort"], body["temperature"]))
    assert [("low", 0.7), ("high", 0.6)] == said


@pytest.mark.parametrize(
    ("dialect", "switch", "salted"),
    [
        ("vllm", None, True),
        ("sglang", None, True),
        ("llama.cpp", False, False),
        ("openai", None, False),
    ],
)
def test_prompt_cache_is_off_the_way_each_dialect_knows(
    dialect: str, switch: bool | None, salted: bool
) -> None:
    """A switch is part of the request; a fresh salt is added when it is sent."""
    plan = plan_of(server=server(dialect=dialect))
    body = next(plan.requests()).body
    assert (switch, salted) == (body.get("cache_prompt"), plan.salted)
    assert "cache_salt" not in body


@pytest.mark.parametrize(
    ("max_tokens", "streamed"), [(STREAM_FROM - 1, False), (STREAM_FROM, True), (16_384, True)]
)
def test_long_answers_are_streamed_with_their_usage(max_tokens: int, streamed: bool) -> None:
    """DESIGN 6: from 2,048 tokens on; without include_usage no token is counted."""
    plan = plan_of(parts={"mmlupro": {"max_tokens": max_tokens}})
    body = next(plan.requests()).body
    expected = (True, {"include_usage": True}) if streamed else (None, None)
    assert expected == (body.get("stream"), body.get("stream_options"))
    assert max_tokens == body["max_tokens"] == next(plan.requests()).max_tokens


def test_seed_grows_with_the_repeat_and_all_else_stays() -> None:
    """DESIGN 5: request seed = card seed + repeat; whole passes over the list."""
    plan = plan_of(seed=7, parts={"mmlupro": {"repeats": 2}}, limit=2)
    made = list(plan.requests())
    ids = [item.id for item in plan.items]
    assert [(i, r) for r in (0, 1) for i in ids] == [(m.id, m.repeat) for m in made]
    assert [7, 7, 8, 8] == [m.body["seed"] for m in made]
    assert made[0].body == made[2].body | {"seed": 7}


def test_same_card_makes_the_same_requests() -> None:
    """Rule 3: nothing is random."""
    first, second = list(plan_of().requests()), list(plan_of().requests())
    assert [r.sha256 for r in first] == [r.sha256 for r in second]
    assert len(first) == len({r.sha256 for r in first})


def test_requests_are_made_one_at_a_time() -> None:
    """Memory does not grow with the list."""
    made = 0

    def endless() -> Iterator[int]:
        nonlocal made
        while True:
            made += 1
            yield 0

    plan = plan_of()
    lazy = replace(plan, items=())
    object.__setattr__(lazy, "items", (plan.items[0] for _ in endless()))
    assert 3 == len(list(islice(lazy.requests(), 3)))
    assert 3 == made


# Lists and limits


def test_limit_cuts_the_items_and_not_the_list() -> None:
    """res-03: n stays that of the whole list."""
    plan = plan_of(limit=5)
    assert (5, plan_of().size) == (len(plan.items), plan.size)
    assert plan.items == plan.list.items[:5]


def test_limit_of_the_command_wins_over_that_of_the_card() -> None:
    """Both may be given."""
    parts = {"mmlupro": {"limit": 3}}
    assert (3, 4) == (len(plan_of(parts=parts).items), len(plan_of(parts=parts, limit=4).items))


def test_value_off_the_method_is_recorded() -> None:
    """DESIGN 4: the row is labelled by it; the method's own value is not."""
    changed = plan_of("think", parts={"think": {"max_tokens": 300}})
    assert ("max_tokens 300 instead of 16,384",) == changed.limits
    assert () == plan_of("think", parts={"think": {"max_tokens": 16_384}}).limits


def test_own_list_is_relative_to_the_card(tmp_path: Path) -> None:
    """A card may be anywhere."""
    row = {"id": 1, "question": "Which?", "options": ["a", "b"], "answer": "B"}
    (tmp_path / "mine.jsonl").write_text(json.dumps(row))
    made = plan_part(card(parts={"mmlupro": {"list": "mine.jsonl"}}), "mmlupro", tmp_path)
    assert ("file:mine.jsonl", "file", 1) == (made.list.id, made.list.kind, made.size)
    with pytest.raises(ListError, match=r"nowhere/mine\.jsonl: cannot be read"):
        plan_part(card(parts={"mmlupro": {"list": "nowhere/mine.jsonl"}}), "mmlupro", tmp_path)


def test_lists_of_the_command_win_over_those_of_the_card() -> None:
    """`--lists sample` tries a card out."""
    assert "sample" == plan_of(parts={"mmlupro": {"list": "nowhere.jsonl"}}).list.kind


# Names


def test_all_parts_are_run_in_the_order_of_the_table_when_none_is_named() -> None:
    """And those named come in that order too."""
    assert tuple(TASKS) == chosen_parts(None)
    assert ("mmlupro", "gpqa") == chosen_parts("gpqa, mmlupro,gpqa,")


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("gqpa", "--parts: part 'gqpa' is unknown (did you mean 'gpqa'?); there are: mmlupro"),
        ("mmlupro,x", "--parts: part 'x' is unknown; there are: mmlupro"),
        (",", "--parts: names no part; there are: mmlupro"),
        ("", "--parts: names no part; there are: mmlupro"),
    ],
)
def test_unknown_part_is_refused_with_the_known_ones(names: str, message: str) -> None:
    """Never a run of something else than was asked for."""
    with pytest.raises(OptionError) as caught:
        chosen_parts(names)
    assert str(caught.value).startswith(message)


# Groups


def grouped(schedule: Any, *limits: tuple[str, int]) -> list[list[str]]:
    plans = [plan_of(part, parts={part: {"max_tokens": tokens}}) for part, tokens in limits]
    return [[plan.name for plan in group] for group in groups(plans, schedule)]


ALL = (("mmlupro", 48), ("gpqa", 96), ("think", 16_384))


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("default", [["gpqa", "mmlupro"], ["think"]]),
        ("packed", [["think", "gpqa", "mmlupro"]]),
        ("parts", [["mmlupro"], ["gpqa"], ["think"]]),
    ],
)
def test_schedule_puts_heavy_answers_first_and_thinking_alone(
    schedule: str, expected: list[list[str]]
) -> None:
    """DESIGN 6: no slot idles between parts; the seconds of `think` are a result."""
    assert expected == grouped(schedule, *ALL)


@pytest.mark.parametrize("schedule", ["default", "packed", "parts"])
def test_nothing_to_run_makes_no_group(schedule: str) -> None:
    """Every part is complete already."""
    assert [] == grouped(schedule)


def test_only_thinking_makes_one_group() -> None:
    """No empty group in front of it."""
    assert [["think"]] == grouped("default", ALL[2])


# Merging


@pytest.mark.parametrize(
    ("fields", "more", "expected"),
    [
        ({"a": 1}, {"a": 2, "b": 3}, {"a": 2, "b": 3}),
        ({"k": {"x": 1}}, {"k": {"y": 2}}, {"k": {"x": 1, "y": 2}}),
        ({"k": {"x": {"z": 1}}}, {"k": {"x": {"z": 2, "w": 3}}}, {"k": {"x": {"z": 2, "w": 3}}}),
        ({"k": {"x": 1}}, {"k": None}, {"k": None}),
        ({"k": 1}, {"k": {"x": 1}}, {"k": {"x": 1}}),
        ({"k": [1]}, {"k": [2]}, {"k": [2]}),
    ],
)
def test_objects_are_merged_and_other_values_replaced(
    fields: Any, more: Any, expected: Any
) -> None:
    """chat_template_kwargs may come from sampling and from the thinking switch."""
    before = json.dumps(fields)
    assert expected == merged(fields, more)
    assert before == json.dumps(fields)
