"""`qualeval doctor` and `qualeval card new` against the test server: what they find and write."""

import json
from pathlib import Path
from typing import Any

import model_server
import pytest

from qualeval.card import Card, load_card, parse_card
from qualeval.doctor import Finding, examine
from qualeval.errors import CardError, OptionError, ServerGoneError
from qualeval.new_card import ask_for_card, explain

SWITCH = {
    "off": {"chat_template_kwargs": {"enable_thinking": False}},
    "on": {"chat_template_kwargs": {"enable_thinking": True}},
}


def card_for(running: model_server.RunningServer, **more: Any) -> Card:
    fields = {"base_url": running.base_url, "model": "test-model", "dialect": "vllm", "slots": 4}
    card = {
        "label": "x",
        "server": fields | more.pop("server", {}),
        "sampling": {"temperature": 1.0},
        "thinking": SWITCH,
    }
    return parse_card(card | more, "card")


def by_name(findings: list[Finding]) -> dict[str, Finding]:
    return {finding.what: finding for finding in findings}


def states(findings: list[Finding], state: str) -> set[str]:
    return {finding.what for finding in findings if finding.state == state}


def test_good_server_has_nothing_that_fails(tmp_path: Path) -> None:
    """Model, slots, context, thinking both ways, usage, seed, token count."""
    with model_server.running(slots=4, cached_tokens=0, think={"default": True}) as server:
        findings = examine(card_for(server), tmp_path)
    assert set() == states(findings, "fail") | states(findings, "warn")
    wanted = {"model", "engine", "slots", "context", "server start", "thinking default"}
    wanted |= {"thinking off", "thinking on", "usage", "seed", "prompt cache", "token count"}
    assert wanted == set(by_name(findings))


def test_thinking_default_is_told(tmp_path: Path) -> None:
    """Which way a request without the switch goes."""
    for default, said in ((True, "the model thinks"), (False, "does not think")):
        with model_server.running(think={"default": default}) as server:
            findings = by_name(examine(card_for(server), tmp_path))
        assert said in findings["thinking default"].detail


def test_switch_that_does_nothing_fails(tmp_path: Path) -> None:
    """thk-07: a key that the template does not know leaves thinking on."""
    wrong = {"off": {"chat_template_kwargs": {"think": False}}, "on": SWITCH["on"]}
    with model_server.running(think={"default": True}) as server:
        findings = examine(card_for(server, thinking=wrong), tmp_path)
    assert {"thinking off"} == states(findings, "fail")


def test_answer_in_the_reasoning_field_fails(tmp_path: Path) -> None:
    """vLLM #48645: found before a run, not after it."""
    step = {
        "fault": "null_content",
        "reasoning": "23",
        "finish_reason": "stop",
        "completion_tokens": 2,
    }
    with model_server.running(script={"default": step}) as server:
        findings = examine(card_for(server), tmp_path)
    assert "thinking off" in states(findings, "fail")
    assert "reasoning field" in by_name(findings)["thinking off"].detail


def test_seed_that_is_ignored_is_a_warning(tmp_path: Path) -> None:
    """The same request twice, two texts."""
    steps = [{"text": str(n)} for n in range(9)]
    with model_server.running(script={"default": steps}) as server:
        findings = examine(card_for(server), tmp_path)
    assert "seed" in states(findings, "warn")


def test_cached_tokens_are_a_warning(tmp_path: Path) -> None:
    """A server that reuses prompts in spite of the salt."""
    with model_server.running(cached_tokens=32) as server:
        findings = by_name(examine(card_for(server), tmp_path))
    assert ("warn", True) == (
        findings["prompt cache"].state,
        "32 cached tokens" in findings["prompt cache"].detail,
    )


def test_wrong_model_ends_the_examination(tmp_path: Path) -> None:
    """With the names that the server has."""
    with model_server.running() as server:
        findings = examine(card_for(server, server={"model": "test-modle"}), tmp_path)
    assert ["stopped"] == [finding.what for finding in findings]
    assert "did you mean 'test-model'" in findings[0].detail


def test_refused_field_ends_the_examination_with_its_name(tmp_path: Path) -> None:
    """A sampling field that this server does not take."""
    with model_server.running(reject_fields=["top_k"]) as server:
        findings = examine(card_for(server, sampling={"top_k": 5}), tmp_path)
    assert "fail" == findings[-1].state
    assert "top_k" in findings[-1].detail


def test_missing_key_is_told_before_anything_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The variable is named."""
    monkeypatch.delenv("QE_TEST_KEY", raising=False)
    with model_server.running() as server:
        findings = examine(card_for(server, server={"api_key_env": "QE_TEST_KEY"}), tmp_path)
        assert 0 == server.summary()["requests"]
    assert "QE_TEST_KEY" in findings[0].detail


def test_missing_tokenizer_file_fails(tmp_path: Path) -> None:
    """A card that names a tokenizer.json that is not there."""
    with model_server.running() as server:
        findings = examine(card_for(server, tokenizer="none.json"), tmp_path)
    assert "fail" == findings[-1].state
    assert "none.json" in findings[-1].detail


@pytest.mark.parametrize("dialect", ["vllm", "sglang", "llama.cpp", "openai"])
def test_new_card_knows_the_dialect_and_is_a_good_card(dialect: str, tmp_path: Path) -> None:
    """The written card loads; slots and context are there where the server tells them."""
    with model_server.running(dialect=dialect, slots=3, context=4096) as server:
        text, notes = ask_for_card(server.base_url, None)
    path = tmp_path / "card.json"
    path.write_text(text)
    card = load_card(path)
    assert (dialect, "test-model") == (card.server.dialect, card.server.model)
    told = dialect in ("sglang", "llama.cpp")
    assert (3 if told else None) == card.server.slots
    assert (not told) == any("server.slots" in note for note in notes)
    lacks = "" if told else ", but no run starts without slots"
    assert f"the card is good{lacks}" == explain(card, tmp_path)[-1]


def test_new_card_without_a_server_is_a_clear_error() -> None:
    """Nobody answers at a closed port."""
    with model_server.running() as server:
        url = server.base_url
    with pytest.raises(ServerGoneError, match="does not answer"):
        ask_for_card(url, None)


def test_new_card_for_a_server_that_wants_a_key_says_where_to_name_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is there, and its key is not."""
    monkeypatch.delenv("QE_TEST_KEY", raising=False)
    with model_server.running(api_key="key-selfmade") as server:
        with pytest.raises(CardError, match=r"--api-key-env: .* refuses the key"):
            ask_for_card(server.base_url, None)
        with pytest.raises(CardError, match="--api-key-env: environment variable QE_TEST_KEY is"):
            ask_for_card(server.base_url, "QE_TEST_KEY")
        monkeypatch.setenv("QE_TEST_KEY", "key-selfmade")
        assert "key-selfmade" not in ask_for_card(server.base_url, "QE_TEST_KEY")[0]


@pytest.mark.parametrize("url", ["localhost:8000", "http://u:pw-selfmade@h/v1", "ftp://h"])
def test_new_card_refuses_what_is_no_address(url: str) -> None:
    """And prints no password."""
    with pytest.raises(OptionError) as caught:
        ask_for_card(url, None)
    assert "pw-selfmade" not in str(caught.value)


def test_card_check_names_a_missing_tokenizer(tmp_path: Path) -> None:
    """A path relative to the card."""
    card = {"label": "x", "server": {"embedded": "smollm2-135m-instruct"}, "tokenizer": "t.json"}
    with pytest.raises(CardError, match=r"t\.json"):
        explain(parse_card(card, "c"), tmp_path)


@pytest.mark.parametrize("path", sorted((Path(__file__).parents[1] / "cards").glob("*.json")))
def test_shipped_cards_are_good(path: Path) -> None:
    """Each card in the folder `cards` loads and is explained."""
    card = load_card(path)
    assert "the card is good" == explain(card, path.parent)[-1]
    assert json.loads(path.read_text())["label"] == card.label
