"""Server-sent events: the same events however the bytes are split."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qualeval import sse
from qualeval.sse import EventReader

PIECES = st.sampled_from(
    [
        *(b"data: ", b"data:", b"data", b"error: ", b"event: x", b"id: 1", b": ping", b"retry: 9"),
        *(b"\n", b"\n\n", b"\r\n", b"\r\n\r\n", b"\r", b" ", b":", b"{}", b"[DONE]", b"\xff"),
        *("\u2028".encode(), "\u0085".encode(), "é".encode(), b"\x00"),
    ]
)
STREAM = st.lists(PIECES, max_size=40).map(b"".join) | st.binary(max_size=80)


def events(*chunks: bytes) -> list[bytes]:
    reader = EventReader()
    found = [data for chunk in chunks for data in reader.feed(chunk)]
    return found + list(reader.end())


def test_data_of_each_event_is_found() -> None:
    """Two events, with and without the space behind the colon."""
    assert [b'{"a":1}', b"[DONE]"] == events(b'data: {"a":1}\n\ndata:[DONE]\n\n')


def test_lines_of_one_event_are_joined() -> None:
    """WHATWG HTML 9.2.6: data lines of one event are joined by line feeds."""
    assert [b"a\nb"] == events(b"data: a\ndata: b\n\n")


def test_only_one_space_behind_the_colon_goes() -> None:
    """The rest of the value is data."""
    assert [b" a "] == events(b"data:  a \n\n")


def test_carriage_returns_at_line_ends_go() -> None:
    """Lines may end with CR LF."""
    assert [b"a", b"b"] == events(b"data: a\r\n\r\ndata: b\r\n\r\n")


def test_comments_and_other_fields_are_no_data() -> None:
    """Signs of life and event names are passed over."""
    assert [b"a"] == events(b": ping\n\nevent: x\nid: 7\nretry: 3\ndata: a\n\n: ping\n\n")


def test_error_line_of_llama_cpp_is_an_event() -> None:
    """llama.cpp reports an error within a stream as a field `error`."""
    assert [b'{"code":500}'] == events(b'error: {"code":500}\n\n')


@pytest.mark.parametrize("stream", [b"data:\n\n", b"data: \n\n", b"data\n\n", b"\n\n\n"])
def test_event_without_data_is_none(stream: bytes) -> None:
    """WHATWG HTML 9.2.6: an empty data buffer is not dispatched (a sign of life)."""
    assert [] == events(stream)


def test_last_event_without_its_blank_line_is_found() -> None:
    """A server may close the stream right behind its last line."""
    assert [b"a", b"b"] == events(b"data: a\n\ndata: b")


def test_end_may_be_called_twice() -> None:
    """The second time nothing is left."""
    reader = EventReader()
    list(reader.feed(b"data: a"))
    assert ([b"a"], []) == (list(reader.end()), list(reader.end()))


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\u0085", "\x0b", "\x0c", "\x1c"])
def test_only_line_feeds_end_a_line(separator: str) -> None:
    """Model text may hold what Python's splitlines and httpx's iter_lines take for a line end."""
    said = f'{{"content":"B{separator}C"}}'.encode()
    assert [said] == events(b"data: " + said + b"\n\n")


@given(STREAM, st.lists(st.integers(0, 80), max_size=12))
def test_any_split_of_the_bytes_gives_the_same_events(stream: bytes, cuts: list[int]) -> None:
    """Networks split where they like: inside a character, between CR and LF."""
    places = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    chunks = [stream[a:b] for a, b in pairwise(places)]
    assert events(stream) == events(*chunks)
    assert events(stream) == events(*(bytes([byte]) for byte in stream))


@given(st.lists(st.binary(min_size=1, max_size=20), max_size=8))
def test_whatever_was_sent_as_data_comes_back(messages: list[bytes]) -> None:
    """Any bytes but the line ends themselves."""
    messages = [m.replace(b"\n", b"").replace(b"\r", b"") or b"x" for m in messages]
    assert messages == events(b"".join(b"data: " + m + b"\n\n" for m in messages))


@pytest.mark.parametrize("chunk", [b"x" * 10, b"data: " + b"x" * 10 + b"\n"])
def test_event_that_never_ends_is_refused(chunk: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither one endless line nor endlessly many lines of one event fill the memory."""
    monkeypatch.setattr(sse, "MAX_EVENT_BYTES", 1 << 20)
    reader = EventReader()
    with pytest.raises(ValueError, match="longer than 1 MiB"):
        for _ in range(1 << 18):
            list(reader.feed(chunk))


def test_many_events_are_no_long_event(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is for one event, not for the stream."""
    monkeypatch.setattr(sse, "MAX_EVENT_BYTES", 100)
    assert 50 == len(events(b"data: abcdef\n\n" * 50))
