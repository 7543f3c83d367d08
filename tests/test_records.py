"""Records: closed, frozen, hashed the same everywhere, written and read back whole."""

import json
import random
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up import CUT, answer
from pydantic import ValidationError

from qualeval.records import (
    Answer,
    Completion,
    Item,
    RawReply,
    Request,
    Usage,
    Verdict,
    canonical,
    count_words,
    key_of,
    now,
    seconds_between,
    sha256_of,
    sha256_text,
    to_json,
)

ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()), max_size=30)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | ANY_TEXT
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


def raw(**fields: Any) -> RawReply:
    request = Request(id="q1", repeat=2, max_tokens=48, body={"seed": 44})
    return RawReply.of(
        request, Completion(text="B", finish_reason="stop").model_copy(update=fields)
    )


# One line of JSON


@given(text=ANY_TEXT, reasoning=st.none() | ANY_TEXT, id=st.integers() | ANY_TEXT)
def test_any_reply_is_one_ascii_line_that_reads_back_equal(
    text: str, reasoning: str | None, id: int | str
) -> None:
    """log-01, log-02: half surrogate pairs, NUL and U+2028 neither stop nor split a line."""
    written = raw(text=text, reasoning=reasoning).model_copy(update={"id": id})
    line = to_json(written)
    assert line.isascii()
    assert 1 == len((line + "\n").splitlines())
    assert written == RawReply.model_validate(json.loads(line))


@pytest.mark.parametrize("text", ["B \ud835", "B\u2028note", "B\x85", "\x00", "\u2029", "\r\n"])
def test_known_troublemakers_read_back_equal(text: str) -> None:
    """log-01, log-02."""
    assert text == json.loads(to_json(raw(text=text)))["text"]


@given(details=st.dictionaries(ANY_TEXT, JSON_VALUES, max_size=3), gold=JSON_VALUES)
def test_any_details_of_a_verdict_read_back_equal(details: Any, gold: Any) -> None:
    """Answers are read again by compare and publish."""
    written = answer("q1", details=details, gold=gold, order=(2, 0, 3, 1))
    assert written == Answer.model_validate(json.loads(to_json(written)))


def test_number_that_json_has_not_is_never_written() -> None:
    """NaN in a file stops other readers."""
    with pytest.raises(ValueError, match="not JSON compliant"):
        to_json({"x": float("nan")})


# Hashes


@given(st.dictionaries(ANY_TEXT, JSON_VALUES, max_size=5), st.randoms(use_true_random=False))
def test_hash_does_not_depend_on_the_order_of_fields(
    value: dict[str, Any], random: random.Random
) -> None:
    """Canonical JSON has sorted keys."""
    turned = list(value.items())
    random.shuffle(turned)
    assert sha256_of(value) == sha256_of(dict(turned))


@given(JSON_VALUES)
def test_canonical_form_reads_back_equal(value: Any) -> None:
    """Nothing is lost by hashing this form, lone surrogates included."""
    assert value == json.loads(canonical(value))


def test_canonical_form_is_the_stated_one() -> None:
    """Keys sorted, no spaces, UTF-8 unescaped; hashes are those that sha256sum gives."""
    assert '{"a":["é",null],"b":1}' == canonical({"b": 1, "a": ["é", None]})
    empty = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
    assert empty == sha256_of({})


def test_half_a_surrogate_pair_has_a_hash() -> None:
    """log-01: UTF-8 has no bytes for it; its escape counts."""
    assert sha256_text("\\ud835") == sha256_text("\ud835")


def test_hash_of_a_request_is_that_of_its_body() -> None:
    """A fresh salt is added at sending and never part of it."""
    body: Any = {"seed": 42, "messages": [{"role": "user", "content": "x"}]}
    request = Request(id=1, max_tokens=48, body=body)
    assert sha256_of(body) == request.sha256
    assert request.sha256 == Request(id=2, repeat=1, max_tokens=9, body=body).sha256


# Keys and facts


@pytest.mark.parametrize("id", [7, "7"])
def test_ids_are_compared_as_text(id: int | str) -> None:
    """DESIGN 5: written with the JSON type they came with, compared as text."""
    assert ("7", 1) == key_of(id, 1)
    assert id == json.loads(to_json(raw().model_copy(update={"id": id})))["id"]


@pytest.mark.parametrize("id", [True, 7.0, None, ["7"]])
def test_id_is_a_text_or_a_whole_number(id: Any) -> None:
    """True is not 1, and 7.0 is not 7: ids are not converted."""
    with pytest.raises(ValidationError):
        Item(id=id, sha256="")


def test_records_are_closed_and_frozen() -> None:
    """A misspelt field is an error; a value never changes under a reader."""
    with pytest.raises(ValidationError, match="Extra inputs"):
        Usage(promt_tokens=1)  # type: ignore[call-arg]
    with pytest.raises(ValidationError, match="frozen"):
        Usage().prompt_tokens = 1


def test_raw_reply_gives_its_completion_back() -> None:
    """Grading from disk sees what grading in flight saw."""
    completion = Completion(
        text="B",
        reasoning="hm",
        reasoning_source="reasoning",
        finish_reason="length",
        cut_by="context",
        usage=Usage(completion_tokens=3),
        cached_tokens=0,
        seconds=1.5,
        time_to_first_token=0.5,
        attempts=2,
        ended=now(),
    )
    request = Request(id="q", max_tokens=48, body={})
    assert completion == RawReply.of(request, completion).completion()


def test_answer_holds_reply_item_and_verdict_side_by_side() -> None:
    """One line tells all: key, reply, gold, order, verdict."""
    item = Item(id="q1", stratum="law", gold="B", order=(1, 0), sha256="")
    verdict = Verdict(
        right=True, cut_off=False, extracted="B", rule="bare", reason="r", partial=0.5
    )
    made = Answer.of_verdict(raw(), item, verdict)
    assert ("q1", 2, "law", "B", (1, 0)) == (
        *(made.id, made.repeat, made.stratum, made.gold, made.order),
    )
    assert (True, "bare", 0.5, "B") == (made.right, made.rule, made.partial, made.text)


def test_partial_is_a_share() -> None:
    """Shares run from 0 to 1 everywhere."""
    with pytest.raises(ValidationError):
        answer("q", partial=50)


def test_cut_answer_is_not_misrouted() -> None:
    """thk-05: cut while thinking is cut off, nothing else."""
    completion = answer("q", text="", reasoning="hm", reasoning_source="reasoning", **CUT)
    assert (True, False) == (completion.completion().cut_off, completion.completion().misrouted)


# Time and words


def test_moment_is_utc_to_the_millisecond() -> None:
    """ISO 8601 with a Z, of one length, so that moments compare as text."""
    moment = now()
    assert ("Z", 24) == (moment[-1], len(moment))
    assert 0 == datetime.fromisoformat(moment).utcoffset().total_seconds()  # type: ignore[union-attr]


def test_seconds_between_two_moments() -> None:
    """Over midnight too."""
    assert 1.5 == seconds_between("2026-11-30T23:59:59.000Z", "2026-12-01T00:00:00.500Z")


def test_words_are_counted_most_frequent_first_ties_by_name() -> None:
    """The same order on every machine."""
    assert [("b", 2), ("a", 1), ("c", 1)] == list(count_words(["c", "b", "a", "b"]).items())
