"""The card: what a good one means, and what is said about every kind of bad one."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qualeval.card import (
    MADE_PARTS,
    OURS,
    Card,
    PartSettings,
    Timeouts,
    checked_url,
    is_loopback,
    load_card,
    parse_card,
)
from qualeval.errors import CardError
from qualeval.records import PART_NAMES
from qualeval.tasks import TASKS

ROOT = Path(__file__).parents[1]

SERVER = {"base_url": "http://127.0.0.1:8000/v1", "model": "m"}
LEAST = {"label": "x", "server": SERVER}
SECRET = "sk-selfmade-000111222"

DESIGN_CARD: dict[str, Any] = {
    "label": "ds41f-1107-tp4-ring",
    "server": {
        "base_url": "http://127.0.0.1:8000/v1",
        "model": "deepseek-v4.1-flash",
        "dialect": "vllm",
        "slots": 16,
        "slots_source": "cluster.json shapes.tp4-ring.sizing.max_num_seqs",
        "context_tokens": 1048576,
        "context_source": "card",
        "api_key_env": None,
        "engine_version_file": None,
    },
    "sampling": {"temperature": 1.0, "top_p": 1.0},
    "sampling_source": "model card; cluster.json:18-21",
    "seed": 42,
    "thinking": {
        "off": {"chat_template_kwargs": {"enable_thinking": False}},
        "on": {"chat_template_kwargs": {"enable_thinking": True}},
    },
    "tokenizer": "tokenizer.json",
    "parts": {"ruler": {"lengths": [8192, 32768]}, "mmlupro": {"list": "official"}},
    "setup": {
        "hardware": "4 x DGX Spark (GB10)",
        "model": {"repo": "..", "revision": "..", "quantization": "..", "kv_dtype": None},
        "engine": {"name": "vLLM", "base": "..", "image": ".."},
        "recipe": {"name": "..", "release": "..", "commit": "..", "author": ".."},
        "speculative": "5 drafts",
        "start_command": "..",
        "credits": [],
        "deviations": [
            {
                "what": "kernel page size",
                "recipe_says": "64 KiB",
                "here": "4 KiB",
                "source": "cluster.json:74-78",
            }
        ],
    },
    "references": [
        {"label": "..", "value": 66.67, "unit": "%", "date": "..", "method": "..", "source": ".."}
    ],
    "notes": None,
    "gate": {"margin_points": 5},
}


def card_of(**fields: Any) -> Card:
    return parse_card({**LEAST, **fields}, "card")


def server_of(**fields: Any) -> Card:
    return parse_card({"label": "x", "server": {**SERVER, **fields}}, "card")


def fault(raw: object) -> str:
    with pytest.raises(CardError) as caught:
        parse_card(raw, "c.json")
    return str(caught.value)


def fault_of_text(folder: Path, text: str | bytes) -> str:
    path = folder / "c.json"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(CardError) as caught:
        load_card(path)
    return str(caught.value).replace(str(path), "c.json")


# Good cards


def test_card_of_the_design_is_read_as_written() -> None:
    """Every field that the design names is known, and none is changed."""
    card = parse_card(DESIGN_CARD, "card")
    assert DESIGN_CARD["sampling"] == card.sampling
    assert DESIGN_CARD["server"] == card.server.model_dump(include=set(DESIGN_CARD["server"]))
    assert card.setup is not None
    assert "4 KiB" == card.setup.deviations[0].here


def test_label_and_server_are_enough() -> None:
    """All else has the method's default; a setting without a source is None."""
    card = card_of()
    assert (42, {}, None) == (card.seed, card.sampling, card.sampling_source)
    assert (None, None) == (card.thinking.off, card.thinking.on)
    assert PartSettings() == card.part("gpqa")
    assert ("official", 1) == (card.part("gpqa").list, card.part("gpqa").repeats)


def test_hash_depends_on_values_and_not_on_the_order_of_fields() -> None:
    """The hash is of the resolved card."""
    turned = dict(reversed(list(DESIGN_CARD.items())))
    assert parse_card(DESIGN_CARD, "a").sha256 == parse_card(turned, "b").sha256
    assert card_of().sha256 == card_of(seed=42).sha256
    assert card_of().sha256 != card_of(seed=43).sha256


def test_sampling_may_differ_by_mode() -> None:
    """Some model cards ask for other values with thinking."""
    card = card_of(sampling={"off": {"temperature": 0.7}, "on": {"temperature": 0.6, "top_k": 20}})
    assert {"temperature": 0.7} == card.sampling_for("off")
    assert {"temperature": 0.6, "top_k": 20} == card.sampling_for("on")


def test_plain_sampling_holds_for_both_modes() -> None:
    """Its keys are sent as they are, none that is not named is sent."""
    card = card_of(sampling={"temperature": 1.0, "min_p": None})
    assert (
        {"temperature": 1.0, "min_p": None} == card.sampling_for("on") == card.sampling_for("off")
    )
    assert {} == card_of().sampling_for("off")


def test_single_base_url_is_one_place_with_the_slots_of_the_server() -> None:
    """Endpoints are the general case."""
    (place,) = server_of(slots=16).server.places()
    assert ("http://127.0.0.1:8000/v1", 16) == (place.base_url, place.slots)


def test_endpoints_keep_their_own_slots() -> None:
    """Replicas of one model."""
    places = [{"base_url": "http://a/v1", "slots": 2}, {"base_url": "http://b/v1/", "slots": 3}]
    card = parse_card({"label": "x", "server": {"endpoints": places, "model": "m"}}, "card")
    said = [(place.base_url, place.slots) for place in card.server.places()]
    assert [("http://a/v1", 2), ("http://b/v1", 3)] == said


def test_embedded_server_needs_nothing_else() -> None:
    """Model, dialect, slots and context of our own server are known."""
    card = parse_card({"label": "x", "server": {"embedded": "smollm2-135m-instruct"}}, "card")
    server = card.server
    assert ("smollm2-135m-instruct", "llama.cpp", 4, 4096) == (
        *(server.model, server.dialect, server.slots, server.context_tokens),
    )


def test_embedded_server_obeys_what_the_card_gives() -> None:
    """A null stands for the default."""
    given_fields = {"embedded": "smollm2-135m-instruct", "slots": 2, "model": None}
    server = parse_card({"label": "x", "server": given_fields}, "card").server
    assert (2, "smollm2-135m-instruct") == (server.slots, server.model)


def test_long_answers_get_more_time() -> None:
    """DESIGN 6: the default survives 16,384 tokens at 5 tokens a second, and a queue."""
    assert Timeouts().total_for(16_384) > 16_384 / 5 + 600
    assert 60.0 == Timeouts(total=60).total_for(16_384)


def test_made_parts_are_those_that_make_their_texts() -> None:
    """The card knows them by name, for tasks are loaded later."""
    assert set(MADE_PARTS) == {name for name, task in TASKS.items() if task.maker is not None}


def test_stored_card_of_every_part_loads_again() -> None:
    """A setting that is null there is none."""
    card = card_of(parts={name: {} for name in PART_NAMES})
    assert card == parse_card(card.model_dump(mode="json"), "card")


@pytest.mark.parametrize("path", sorted((ROOT / "cards").glob("*.json")), ids=lambda p: p.name)
def test_every_shipped_card_is_good(path: Path) -> None:
    """`cards/` holds cards that work as they are."""
    assert load_card(path).label


# Bad cards: what is said


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ([], "c.json: a card is one JSON object, with at least label and server"),
        ({}, "c.json: label: is missing\nc.json: server: is missing"),
        (LEAST | {"label": ""}, "c.json: label: String should have at least 1 character"),
        (LEAST | {"lable": "y"}, "c.json: lable: unknown field (did you mean 'label'?)"),
        (LEAST | {"zzz": 1}, "c.json: zzz: unknown field"),
        (LEAST | {"seed": 42.5}, "c.json: seed: should be a valid integer"),
        (LEAST | {"seed": True}, "c.json: seed: should be a valid integer"),
        (
            LEAST | {"parts": {"gqpa": {}}},
            "c.json: parts: unknown part 'gqpa' (did you mean 'gpqa'?)",
        ),
        (
            LEAST | {"parts": {"gpqa": {"lengts": [1]}}},
            "c.json: parts.gpqa.lengts: unknown field (did you mean 'lengths'?)",
        ),
        (
            LEAST | {"parts": {"ruler": {"per_task": 1}, "lcb": {"lengths": [1], "limit": 1}}},
            "c.json: parts: 'lcb.lengths' is of no use: only ruler has lengths",
        ),
        (
            LEAST | {"parts": {"think": {"per_task": 3}}},
            "c.json: parts: 'think.per_task' is of no use: only ruler has per_task",
        ),
        (
            LEAST | {"setup": {"deviations": [{"what": "x", "hear": "y"}]}},
            "c.json: setup.deviations[0].hear: unknown field (did you mean 'here'?)",
        ),
        (
            LEAST | {"sampling": {"off": {}, "on": 1}},
            "c.json: sampling: give either sampling fields, or an object for both off and on",
        ),
        (
            LEAST | {"sampling": {"off": {}, "on": {}, "top_p": 1}},
            "c.json: sampling: beside off and on no other field can stand",
        ),
        (
            LEAST | {"thinking": {"on": {"extra_body": {}}}},
            "c.json: thinking.on: 'extra_body' is a word of one client library; "
            "put its fields here directly",
        ),
        (
            LEAST | {"sampling": {"off": {"seed": 1}, "on": {}}},
            "c.json: sampling: 'off.seed' is set by the method and cannot be given here",
        ),
    ],
)
def test_fault_names_file_and_field_and_the_nearest_known_name(raw: object, message: str) -> None:
    """An error says what, where and what next."""
    assert message == fault(raw)


@pytest.mark.parametrize(
    ("server", "message"),
    [
        ({}, "server: give exactly one of base_url, endpoints, embedded (given: none of them)"),
        (
            SERVER | {"embedded": "smollm2-135m-instruct"},
            "server: give exactly one of base_url, endpoints, embedded "
            "(given: base_url and embedded)",
        ),
        ({"embedded": "smollm"}, "server: unknown embedded model 'smollm'"),
        (
            {"embedded": "smollm2-135m-instruct", "slost": None},
            "server.slost: unknown field (did you mean 'slots'?)",
        ),
        (
            {"base_url": "http://a/v1"},
            "server: model is missing: the name that the server lists at /v1/models",
        ),
        (SERVER | {"slots": 0}, "server.slots: should be greater than 0"),
        (SERVER | {"slots": "16"}, "server.slots: should be a valid integer"),
        (
            SERVER | {"dialect": "vlm"},
            "server.dialect: should be 'vllm', 'sglang', 'llama.cpp' or 'openai'",
        ),
        (
            {"endpoints": [{"base_url": "http://a/v1"}], "model": "m", "slots": 3},
            "server: with endpoints, give slots for each endpoint, not for the server",
        ),
        (
            {"endpoints": [{"base_url": "http://a/v1", "slot": 3}], "model": "m"},
            "server.endpoints[0].slot: unknown field (did you mean 'slots'?)",
        ),
        (
            SERVER | {"api_key_env": "not a name"},
            "server.api_key_env: must be the name of an environment variable, not a key",
        ),
    ],
)
def test_fault_of_the_server_block_is_explained(server: Any, message: str) -> None:
    """The block that most cards get wrong."""
    assert f"c.json: {message}" in fault({"label": "x", "server": server})


@pytest.mark.parametrize("name", sorted(OURS))
def test_request_field_of_the_method_cannot_be_set_by_a_card(name: str) -> None:
    """max_tokens, seed, messages and their like are conditions of the method."""
    assert f"'{name}' is set by the method" in fault(LEAST | {"sampling": {name: 1}})
    assert f"'{name}' is set by the method" in fault(LEAST | {"thinking": {"off": {name: 1}}})


def test_every_fault_of_a_card_is_listed_at_once() -> None:
    """Nobody likes to fix a card one error at a time."""
    assert 3 == len(fault(LEAST | {"seed": -1, "x": 1, "timeouts": {"idle": 0}}).split("\n"))


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("127.0.0.1:8000/v1", "must start with http:// or https://"),
        ("ftp://a/v1", "must start with http:// or https://"),
        ("http:///v1", "must start with http:// or https://"),
        ("", "must start with http:// or https://"),
        ("http://[::1/v1", "is no URL"),
        ("http://a:port/v1", "is no URL"),
        ("http://a b/v1", "must hold no space"),
        ("http://a/v1\x07", "must hold no space"),
        ("http://user:pw-selfmade@a/v1", "must hold no user, password or query"),
        ("http://a/v1?api_key=pw-selfmade", "must hold no user, password or query"),
        ("http://@a/v1", "must hold no user, password or query"),
        ("http://a/v1#f", "must hold no user, password or query"),
    ],
)
def test_bad_url_is_refused_without_being_printed(url: str, message: str) -> None:
    """A URL may hold a password: no message quotes it."""
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        checked_url(url)
    assert "selfmade" not in str(caught.value)


def test_slash_at_the_end_of_a_url_goes() -> None:
    """Paths are put behind it."""
    assert "https://a.example:8443/v1" == checked_url("https://a.example:8443/v1/")


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://127.0.0.1:1/v1", True),
        ("http://127.9.9.9/v1", True),
        ("http://[::1]:1/v1", True),
        ("http://localhost/v1", True),
        ("http://a.localhost/v1", True),
        ("http://localhost.example/v1", False),
        ("http://192.168.0.1/v1", False),
        ("http://[2001:db8::1]/v1", False),
        ("mailto:x", False),
    ],
)
def test_addresses_of_this_machine_are_told_from_others(url: str, expected: bool) -> None:
    """No proxy can reach the loopback of this machine."""
    assert expected == is_loopback(url)


# Secrets


@pytest.mark.parametrize(
    "raw",
    [
        LEAST | {"server": SERVER | {"base_url": f"http://user:{SECRET}@127.0.0.1/v1"}},
        LEAST | {"server": SERVER | {"base_url": f"http://127.0.0.1/v1?api_key={SECRET}"}},
        LEAST | {"server": SERVER | {"api_key": SECRET}},
        LEAST | {"server": SERVER | {"api_key_env": SECRET}},
        LEAST | {"api_key": SECRET},
        LEAST | {"server": SERVER | {"headers": {"Authorization": SECRET}}},
        LEAST | {"sampling": {"Api-Key": SECRET}},
        LEAST | {"notes": f"the key is {SECRET}"},
        LEAST | {"setup": {"start_command": f"vllm serve --api-key {SECRET}"}},
        LEAST | {"setup": {"credits": ["x", SECRET]}},
        LEAST | {SECRET: 1},
        LEAST | {"sampling": {SECRET: 1}},
        LEAST | {"thinking": {"off": {"a": [{SECRET: SECRET}]}}},
    ],
)
def test_secret_in_clear_is_refused_and_never_printed(raw: object) -> None:
    """pub-01: before anything is written; the message names the place, not the value."""
    message = fault(raw)
    assert SECRET not in message


@pytest.mark.parametrize("word", ["max_tokens", "top_k", "tokenizer", "min_keep", "authority"])
def test_field_whose_name_only_sounds_like_a_key_is_no_secret(word: str) -> None:
    """`tokens` is not `token`."""
    if word != "max_tokens":
        assert {word: 1} == card_of(sampling={word: 1}).sampling


def test_empty_key_field_is_an_unknown_field() -> None:
    """An empty `api_key` gives nothing away; it is still not a field."""
    message = fault(LEAST | {"server": SERVER | {"api_key": ""}})
    assert "c.json: server.api_key: unknown field (did you mean 'api_key_env'?)" == message


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec=None, exclude_categories=()), max_size=10)
    | st.sampled_from([SECRET, f"http://u:{SECRET}@h/v1", "http://127.0.0.1/v1", "off", "on"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            [*Card.model_fields, *PART_NAMES, "base_url", "model", "embedded", "endpoints", "slots"]
            + ["off", "on", "what", "list", "x", SECRET, "api_key", "api_key_env"]
        ),
        inner,
        max_size=5,
    ),
    max_leaves=12,
)  # fmt: skip


@given(JSON_VALUES, st.dictionaries(st.sampled_from(list(Card.model_fields)), JSON_VALUES))
def test_any_json_value_is_a_card_or_an_explained_fault(value: Any, over: dict[str, Any]) -> None:
    """Never another exception, and a planted key is never printed nor accepted."""
    for raw in (value, LEAST | over, LEAST | {"sampling": value}):
        try:
            card = parse_card(raw, "c.json")
        except CardError as error:
            assert SECRET not in str(error)
            assert str(error).startswith("c.json: ")
        else:
            assert SECRET not in repr(card)
            assert card.model_dump_json()


# Files


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"\xff{}", "c.json: is not UTF-8 text"),
        ("", "c.json: line 1, column 1: Expecting value"),
        ('{"label": "x",\n "server": }', "c.json: line 2, column 12: Expecting value"),
        ('{"seed": NaN}', "c.json: NaN is not a number that JSON has"),
        ('{"seed": -Infinity}', "c.json: -Infinity is not a number that JSON has"),
        ('{"sampling": {"top_p": 1e999}}', "c.json: 1e999 is not a number that JSON has"),
        ('{"label": 1, "label": 2}', "c.json: field 'label' is given twice"),
        (
            json.dumps(LEAST | {"notes": "\ud835"}),
            "c.json: holds half of a surrogate pair (an escape such as \\ud835 alone), "
            "which is no text",
        ),
    ],
)
def test_fault_of_the_text_is_explained(tmp_path: Path, text: str | bytes, message: str) -> None:
    """What json alone would let pass or end with a traceback."""
    assert message == fault_of_text(tmp_path, text)


def test_key_as_a_double_name_is_not_printed(tmp_path: Path) -> None:
    """pub-01: also where the name of a field is quoted."""
    message = fault_of_text(tmp_path, f'{{"{SECRET}": 1, "{SECRET}": 2}}')
    assert SECRET not in message


@pytest.mark.parametrize("depth", [300, 900, 100_000])
def test_deeply_nested_card_is_refused(tmp_path: Path, depth: int) -> None:
    """Whoever notices first, parser or walk: no traceback."""
    deep = "[" * depth + "]" * depth
    text = json.dumps(LEAST).removesuffix("}") + f', "sampling": {{"x": {deep}}}}}'
    assert fault_of_text(tmp_path, text).startswith("c.json: ")


def test_object_that_no_parser_would_make_is_refused() -> None:
    """Deeper than any walk goes."""
    deep: Any = 1
    for _ in range(5000):
        deep = [deep]
    assert "c.json: is nested too deeply" == fault(LEAST | {"sampling": {"x": deep}})


def test_missing_file_is_named(tmp_path: Path) -> None:
    """Path and the system's own word."""
    with pytest.raises(CardError) as caught:
        load_card(tmp_path / "none.json")
    assert f"{tmp_path}/none.json: cannot be read: {os.strerror(2)}" == str(caught.value)
