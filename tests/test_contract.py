"""The contract: what is a condition, what differs, what a session may never refuse."""

import json
from pathlib import Path
from typing import Any

import pytest
from made_up import LETTERS, card, conditions, contract, session

from qualeval.card import Card
from qualeval.contract import (
    PROMPT_CACHE,
    Conditions,
    conditions_of,
    differences,
    new_contract,
    new_session,
    same_conditions,
    with_last_session,
    with_session,
)
from qualeval.errors import ContractError
from qualeval.plan import CACHE_FIELDS, plan_part
from qualeval.records import SUITE, Contract, sha256_of, sha256_text
from qualeval.tasks.letters import TEMPLATE


def of_card(part: str = "mmlupro", limit: int | None = None, **fields: Any) -> Conditions:
    made = card(**fields)
    return conditions_of(plan_part(made, part, Path(), "sample", limit), made.sampling_source)


def server(**fields: Any) -> dict[str, Any]:
    return card().server.model_dump() | fields


def test_conditions_name_everything_that_could_move_the_number() -> None:
    """DESIGN 5: suite, list, template, request fields, sampling, seed, limits, cache, grader."""
    made = of_card(
        sampling={"temperature": 1.0},
        sampling_source="model card",
        thinking={"off": {"chat_template_kwargs": {"enable_thinking": False}}},
    )
    assert (SUITE, "mmlupro", "sample") == (made.suite, made.part, made.list.kind)
    assert (TEMPLATE, sha256_text(TEMPLATE)) == (made.prompt.template, made.prompt.sha256)
    assert {
        "model": "m",
        "max_tokens": 48,
        "temperature": 1.0,
        "chat_template_kwargs": {"enable_thinking": False},
        "seed": "42 + repeat",
        "cache_salt": "fresh for every request",
    } == made.request
    assert ({"temperature": 1.0}, "model card") == (made.sampling, made.sampling_source)
    assert (42, 1, 48, ()) == (made.seed, made.repeats, made.max_tokens, made.limits)
    assert ("m", "vllm", "off") == (made.model, made.dialect, made.thinking)
    assert made.grader.startswith("letter")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"seed": 43}, "seed"),
        ({"sampling": {"temperature": 0.5}}, "sampling.temperature"),
        ({"sampling_source": "elsewhere"}, "sampling_source"),
        ({"thinking": {"off": {"a": 1}}}, "thinking_object"),
        ({"parts": {"mmlupro": {"max_tokens": 64}}}, "max_tokens"),
        ({"parts": {"mmlupro": {"repeats": 2}}}, "repeats"),
        ({"server": server(model="other")}, "model"),
        ({"server": server(dialect="sglang")}, "dialect"),
    ],
)
def test_changed_condition_is_refused_and_named(change: dict[str, Any], field: str) -> None:
    """res-02: rows of two settings never share a file."""
    base: dict[str, Any] = {"sampling": {"temperature": 1.0}}
    there, here = new_contract(of_card(**base)), new_contract(of_card(**(base | change)))
    with pytest.raises(ContractError) as caught:
        same_conditions(there, here, "runs/x/mmlupro.contract.json")
    said = str(caught.value).split("\n")
    assert "runs/x/mmlupro.contract.json: this run was started under other conditions:" == said[0]
    assert any(line.startswith(f"  {field}") for line in said), said
    assert "use another job name (--job NAME), or undo the change" == said[-1]


@pytest.mark.parametrize(
    "change",
    [
        {"label": "other"},
        {"notes": "n"},
        {"server": server(slots=99, base_url="http://127.0.0.1:7/v1")},
        {"timeouts": {"idle": 5}},
        {"retries": {"attempts": 1}},
        {"setup": {"hardware": "h"}},
        {"gate": {"margin_points": 5}},
        {"parts": {"gpqa": {"max_tokens": 9}}},
    ],
)
def test_what_cannot_move_the_number_is_no_condition(change: dict[str, Any]) -> None:
    """Address, slots, timeouts, setup and other parts never refuse a resumed run."""
    there, here = new_contract(of_card()), new_contract(of_card(**change))
    same_conditions(there, here, "x")
    assert there.conditions_sha256 == here.conditions_sha256


def test_limit_is_no_condition() -> None:
    """res-03: the same command without --limit asks the rest."""
    assert of_card() == of_card(limit=5)


def test_contract_read_from_disk_equals_a_fresh_one() -> None:
    """JSON and back changes no value that is compared."""
    made = new_contract(of_card(sampling={"temperature": 1.0, "top_k": 20}))
    read = Contract.model_validate(json.loads(made.model_dump_json()))
    same_conditions(read, made, "x")
    assert made == read
    assert sha256_of(read.conditions) == read.conditions_sha256


@pytest.mark.parametrize(
    ("there", "here", "expected"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": 1.0}, []),
        ({"a": 1}, {"a": 2}, ["a: there 1, here 2"]),
        ({"a": {"b": [1]}}, {"a": {"b": [1, 2]}}, ["a.b: there [1], here [1, 2]"]),
        ({"a": 1}, {}, ["a: there 1, here none"]),
        ({}, {"a": None}, ["a: there none, here None"]),
        ({"a": {"b": None}}, {"a": {}}, ["a.b: there None, here none"]),
        ({"a": None}, {"a": {"b": 1}}, ["a: there None, here {'b': 1}"]),
        ({"a": True}, {"a": 1}, ["a: there True, here 1"]),
        ({"b": 1, "a": 1}, {"c": 1, "a": 2}, ["b: there 1, here none", "a: there 1, here 2",
                                              "c: there none, here 1"]),
    ],
)  # fmt: skip
def test_every_difference_is_one_line(there: Any, here: Any, expected: list[str]) -> None:
    """A field that is null is sent, one that is absent is not: they differ."""
    assert expected == list(differences(there, here))


def test_long_values_are_shortened() -> None:
    """A prompt template in the message must not hide the rest."""
    (line,) = differences({"a": "x" * 500}, {"a": "y" * 500})
    assert 260 > len(line)
    assert "..." in line


@pytest.mark.parametrize("dialect", list(CACHE_FIELDS))
def test_every_dialect_says_how_its_cache_is_controlled(dialect: str) -> None:
    """DESIGN 6: dialect openai says "prompt cache not controlled"."""
    made = of_card(server=server(dialect=dialect))
    assert PROMPT_CACHE[dialect] == made.prompt_cache
    assert ("not controlled" in made.prompt_cache) == (dialect == "openai")


def test_new_session_says_who_ran_what_where() -> None:
    """Command, version, card, slots with their source, endpoints, setup."""
    made = new_session(
        card(setup={"hardware": "h"}),
        command="qualeval run c.json",
        items=5,
        slots=4,
        slots_source="card",
        schedule="default",
        alone=True,
        server={"models": ["m"]},
    )
    assert (card(setup={"hardware": "h"}).sha256, 5, 4) == (
        made.card_sha256,
        made.items,
        made.slots,
    )
    assert ("http://127.0.0.1:9/v1",) == made.endpoints
    assert made.setup is not None
    assert "h" == made.setup["hardware"]
    assert (None, None) == (made.ended, made.wall_time)


def test_session_of_the_embedded_server_names_no_address() -> None:
    """Its port is another one each time."""
    own = Card.model_validate({"label": "x", "server": {"embedded": "smollm2-135m-instruct"}})
    made = new_session(
        own, command="", items=1, slots=4, slots_source=None, schedule="", alone=True, server={}
    )
    assert (("embedded",), None) == (made.endpoints, made.setup)


def test_sessions_are_added_and_the_last_one_is_replaced() -> None:
    """A contract is a value: the old one stays as it was."""
    old = contract(LETTERS, 4, [session(command="one")])
    two = with_session(old, session(command="two", ended=None))
    done = with_last_session(two, session(command="two"))
    assert ["one"] == [s.command for s in old.sessions]
    assert [("one", True), ("two", False)] == [(s.command, bool(s.ended)) for s in two.sessions]
    assert [("one", True), ("two", True)] == [(s.command, bool(s.ended)) for s in done.sessions]


def test_sessions_are_no_part_of_the_hash() -> None:
    """A restarted server goes on under the same conditions."""
    made = new_contract(conditions(LETTERS, 4))
    assert made.conditions_sha256 == with_session(made, session()).conditions_sha256
