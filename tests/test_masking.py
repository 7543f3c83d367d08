"""Keys and passwords are taken out of text before it is stored or shown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qualeval.masking import PLACEHOLDER, excerpt, holds_secret, mask

ALNUM = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
KEYS = st.sampled_from(["sk-", "hf_", "ghp_", "github_pat_", "nvapi-"]).flatmap(
    lambda head: st.text(ALNUM, min_size=24, max_size=700).map(lambda tail: head + tail)
)


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("401 Incorrect API key provided: sk-selfmade-000111222", "sk-selfmade-000111222"),
        ("http://user:pw-selfmade@127.0.0.1:8000/v1?api_key=sk-selfmade", "pw-selfmade"),
        ("http://127.0.0.1:8000/v1?api_key=selfmade", "selfmade"),
        ("http://user:pw@self@made@127.0.0.1/v1", "made"),
        ("http://token-selfmade@127.0.0.1/v1", "token-selfmade"),
        ('{"api_key": "selfmade-1"}', "selfmade-1"),
        ('{"Authorization":"Bearer selfmade-1"}', "selfmade-1"),
        ("vllm serve --api-key selfmade-1", "selfmade-1"),
        ("vllm serve --api-key=selfmade-1", "selfmade-1"),
        ("PASSWORD=selfmade-1", "selfmade-1"),
        ("hf_ABCDEFGHIJKLMNOPQRSTUV", "ABCDEFGHIJKLMNOPQRSTUV"),
        ("eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.SflKxwRJSM", "eyJzdWIiOiIxMjM0"),
        ("AKIAIOSFODNN7EXAMPLE", "AKIAIOSFODNN7EXAMPLE"),
        ("secret=" + "x1" * 400, "x1"),
        ("sk-" + "y2" * 400, "y2"),
    ],
)
def test_secret_of_every_form_is_replaced(text: str, secret: str) -> None:
    """pub-01, pub-02, pub-06: key, password, user info of a URL, whole however long it is."""
    masked = mask(text)
    assert secret not in masked
    assert PLACEHOLDER in masked


@pytest.mark.parametrize(
    "text",
    [
        "The current is 5 A per 3 m of wire.",
        "token = s.split()[0]",
        "a token-economical, risk-averse style",
        "Dear Max, may June bring luck",
        "key = (i, j)",
        "vllm serve --api-key $KEY --port 8000",
        "server.api_key_env names the variable",
        "https://huggingface.co/datasets/x/y",
        "mail me@example.org about http://127.0.0.1:8000/v1",
        '{"url":"http://127.0.0.1","mail":"me@example.org"}',
        "max_tokens: 48, tokenizer: tokenizer.json",
    ],
)
def test_harmless_text_stays_as_it_is(text: str) -> None:
    """pub-04: words about keys are no keys."""
    assert text == mask(text)
    assert not holds_secret(text)


def test_known_secret_is_replaced_whatever_its_form() -> None:
    """pub-06: the key that was sent is known, even when it looks like nothing."""
    assert f"no such key: {PLACEHOLDER}" == mask("no such key: hunter2", ["hunter2"])


def test_empty_secret_replaces_nothing() -> None:
    """No key given: nothing to look for."""
    assert "abc" == mask("abc", [""])


def test_excerpt_is_one_short_line() -> None:
    """What is kept of a server's text."""
    assert "a b c" == excerpt("  a\r\n b\u2028\tc ")
    assert 200 == len(excerpt("x" * 1000))


def test_secret_at_the_end_of_an_excerpt_is_masked_before_the_cut() -> None:
    """Half a key is still half a key."""
    text = "x" * 190 + " sk-selfmade-000111222"
    assert "sk-s" not in excerpt(text)


@given(st.text(max_size=40), KEYS, st.text(max_size=40))
def test_key_is_gone_wherever_it_stands(before: str, key: str, after: str) -> None:
    """Behind a blank a key is found, and no part of it is left."""
    assert key not in mask(f"{before} {key} {after}")
    assert key[-20:] not in mask(f"{key} {after[:19]}")


@given(
    st.text(max_size=80)
    | st.lists(
        st.sampled_from(
            ["password", "api_key", "=", ":", " ", "://", "@", "sk-", "bearer ", "a", "abcd", '"']
        ),
        max_size=20,
    ).map("".join)
)
def test_masked_text_holds_no_secret(text: str) -> None:
    """Masking is done once and for all, for any text."""
    assert not holds_secret(mask(text))


@pytest.mark.parametrize("piece", ["eyJaaaaaaaaaaa-", "http://a:b", "password=", "sk-", "bearer "])
def test_a_megabyte_is_masked_at_once(piece: str) -> None:
    """Bounded work on any server's text (a quadratic pattern takes minutes)."""
    assert mask(piece * (300_000 // len(piece)))
