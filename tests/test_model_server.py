"""The test server keeps its promises: each behaviour and each fault, seen from the other side."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import model_server
import pytest
from engine import PATIENCE, until
from model_server import RunningServer, running

LETTERS = "Which one?\nA. red\nB. green\nC. blue\nReply with one letter."


class Got(NamedTuple):
    """One HTTP reply."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def choice(self) -> Any:
        return self.json["choices"][0]

    @property
    def events(self) -> list[Any]:
        """The JSON of each event of a stream; [DONE] as text."""
        lines = [line for line in self.body.split(b"\n\n") if line]
        assert all(line.startswith(b"data: ") for line in lines)
        return [json.loads(d) if (d := x[6:]) != b"[DONE]" else "[DONE]" for x in lines]

    @property
    def streamed_text(self) -> str:
        deltas = [e["choices"][0]["delta"] for e in self.events[:-1] if e["choices"]]
        return "".join(delta.get("content") or "" for delta in deltas)


def call(
    server: RunningServer,
    path: str,
    body: dict[str, Any] | None = None,
    headers: dict[str, str] | None = None,
) -> Got:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
    try:
        method, raw = ("GET", None) if body is None else ("POST", json.dumps(body))
        connection.request(method, path, raw, headers or {})
        reply = connection.getresponse()
        return Got(reply.status, dict(reply.headers), reply.read())
    finally:
        connection.close()


def chat(text: str = "[[item:x]]", **fields: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": text}]
    return {"model": "test-model", "messages": messages, "max_tokens": 48, **fields}


def ask(server: RunningServer, text: str = "[[item:x]]", **fields: Any) -> Got:
    return call(server, "/v1/chat/completions", chat(text, **fields))


def send(server: RunningServer, body: dict[str, Any]) -> socket.socket:
    """A raw socket with the request sent and nothing read."""
    raw = json.dumps(body).encode()
    sock = socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE)
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(raw)}\r\n\r\n"
    sock.sendall(head.encode() + raw)
    return sock


def read_to_end(sock: socket.socket) -> bytes:
    parts = []
    while data := sock.recv(65536):
        parts.append(data)
    return b"".join(parts)


def refused(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=PATIENCE).close()
    except ConnectionRefusedError:
        return True
    return False


@pytest.fixture(scope="module")
def shared() -> Iterator[RunningServer]:
    with running() as server:
        yield server


@pytest.fixture
def server(shared: RunningServer) -> RunningServer:
    """A server with default options and no memory of other tests."""
    shared.script({})
    shared.reset()
    return shared


# ------------------------------------------------------------------ the script


def test_default_reply_is_a_letter_of_the_prompt_and_stays_the_same(server: RunningServer) -> None:
    first, second = ask(server, LETTERS), ask(server, LETTERS)
    assert first.choice["message"]["content"] in ("A", "B", "C")
    assert first.choice == second.choice
    assert first.choice["finish_reason"] == "stop"


def test_default_letters_differ_between_prompts(server: RunningServer) -> None:
    letters = {ask(server, f"{i} {LETTERS}").choice["message"]["content"] for i in range(20)}
    assert letters == {"A", "B", "C"}


def test_prompt_without_options_is_answered_ok(server: RunningServer) -> None:
    assert ask(server, "hello").choice["message"]["content"] == "OK"


def test_attempts_go_through_the_steps_and_the_last_one_repeats(server: RunningServer) -> None:
    steps = [{"status": 429, "headers": {"Retry-After": "2"}}, {"status": 500}, {"text": "C"}]
    server.script({"items": {"7": steps}})
    got = [ask(server, "please [[item:7]]") for _ in range(4)]
    assert [g.status for g in got] == [429, 500, 200, 200]
    assert got[0].headers["Retry-After"] == "2"
    assert [g.choice["message"]["content"] for g in got[2:]] == ["C", "C"]


def test_item_without_marker_is_found_by_a_key_inside_the_text(server: RunningServer) -> None:
    server.script({"items": {"green sky": {"text": "B"}}, "default": {"text": "D"}})
    assert ask(server, "a green sky?").choice["message"]["content"] == "B"
    assert ask(server, "a blue sky?").choice["message"]["content"] == "D"


def test_scripted_body_is_sent_byte_for_byte(server: RunningServer) -> None:
    server.script({"default": {"status": 502, "body": "<b>\xff"}})
    got = ask(server)
    assert (got.status, got.body) == (502, b"<b>\xff")


def test_usage_is_as_scripted(server: RunningServer) -> None:
    step = {"completion_tokens": 48, "prompt_tokens": 900, "cached_tokens": 16}
    server.script({"default": step})
    assert ask(server).json["usage"] == {
        "prompt_tokens": 900,
        "completion_tokens": 48,
        "total_tokens": 948,
        "prompt_tokens_details": {"cached_tokens": 16},
    }


def test_cached_tokens_are_not_reported_unless_asked_for(server: RunningServer) -> None:
    assert set(ask(server).json["usage"]) == {"prompt_tokens", "completion_tokens", "total_tokens"}


@pytest.mark.parametrize("stream", [False, True])
def test_finish_reason_null_and_absent_are_on_the_wire(server: RunningServer, stream: bool) -> None:
    steps = [{"finish_reason": None}, {"finish_reason": "absent"}, {"finish_reason": "abort"}]
    server.script({"default": steps})
    got = [ask(server, stream=stream) for _ in range(3)]
    last = [g.events[-2]["choices"][0] if stream else g.choice for g in got]
    assert last[0]["finish_reason"] is None
    assert "finish_reason" not in last[1]
    assert last[2]["finish_reason"] == "abort"


def test_text_longer_than_max_tokens_is_cut_with_finish_length(server: RunningServer) -> None:
    server.script({"default": {"text": "abcd" * 50}})
    got = ask(server, max_tokens=10)
    assert got.choice["message"]["content"] == "abcd" * 10
    assert got.choice["finish_reason"] == "length"
    assert got.json["usage"]["completion_tokens"] == 10


def test_reasoning_that_uses_all_tokens_leaves_content_null(server: RunningServer) -> None:
    server.script({"default": {"reasoning": "hmm " * 50, "text": "B"}})
    got = ask(server, max_tokens=10)
    assert got.choice["message"]["content"] is None
    assert got.choice["message"]["reasoning_content"] == "hmm " * 10
    assert got.choice["finish_reason"] == "length"


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("reasoning", {"content": "B", "reasoning": "hm"}),
        ("reasoning_content", {"content": "B", "reasoning_content": "hm"}),
        ("tags", {"content": "<think>hm</think>\nB"}),
        ("closing_tag", {"content": "hm</think>\nB"}),
    ],
)
def test_reasoning_is_put_where_the_step_says(
    server: RunningServer, place: str, message: dict[str, str]
) -> None:
    server.script({"default": {"text": "B", "reasoning": "hm", "reasoning_field": place}})
    assert ask(server).choice["message"] == {"role": "assistant", **message}


@pytest.mark.parametrize("wrong", [{"txt": "B"}, {"fault": "explode"}])
def test_misspelt_step_is_an_error_in_the_test_that_wrote_it(wrong: dict[str, str]) -> None:
    with pytest.raises((TypeError, ValueError)):
        model_server.start(script={"default": wrong})


# ------------------------------------------------------------------ streams


def test_stream_has_role_pieces_finish_usage_and_done(server: RunningServer) -> None:
    server.script({"default": {"text": "The answer is B.", "reasoning": "hm"}})
    got = ask(server, stream=True, stream_options={"include_usage": True})
    assert got.headers["Content-Type"] == "text/event-stream"
    assert got.streamed_text == "The answer is B."
    finish, usage, done = got.events[-3:]
    assert finish["choices"][0] == {"index": 0, "delta": {}, "finish_reason": "stop"}
    assert (usage["choices"], usage["usage"]["completion_tokens"]) == ([], 5)
    assert done == "[DONE]"


def test_stream_tells_no_usage_unless_asked(server: RunningServer) -> None:
    assert all("usage" not in event for event in ask(server, stream=True).events[:-1])


def test_stream_framed_by_close_has_no_length_and_ends_with_the_connection(
    server: RunningServer,
) -> None:
    server.script({"default": {"framing": "close"}})
    with send(server, chat(stream=True)) as sock:
        raw = read_to_end(sock)
    assert b"Transfer-Encoding" not in raw
    assert raw.endswith(b"data: [DONE]\n\n")


def test_pieces_of_a_stream_arrive_over_the_service_time(server: RunningServer) -> None:
    """Each after its share of an hour: nobody waits for the end of that one."""
    server.script({"default": {"text": "ab" * 20_000, "service_seconds": 3600, "pieces": 40_000}})
    begun = time.monotonic()
    with send(server, chat(stream=True, max_tokens=20_000)) as sock:
        raw = b""
        for piece in range(1, 4):
            while raw.count(b'"content"') < piece:
                raw += sock.recv(256)
            assert time.monotonic() - begun >= 3600 * piece / 40_001
            assert b'"role"' in raw and b"[DONE]" not in raw
        [record] = server.stats()["requests"]
        assert record["outcome"] == "running"


def test_last_piece_of_a_stream_arrives_when_the_service_time_is_over(
    server: RunningServer,
) -> None:
    server.script({"default": {"text": "abc", "service_seconds": 0.15}})
    begun = time.monotonic()
    assert ask(server, stream=True).events[-1] == "[DONE]"
    assert time.monotonic() - begun >= 0.15


# ------------------------------------------------------------------ faults of a body


@pytest.mark.parametrize(
    ("fault", "seen"),
    [
        ("error_200", lambda got: "message" in got.json["error"] and "choices" not in got.json),
        ("error_event", lambda got: "message" in got.json["error"]),
        ("no_choices", lambda got: got.json["choices"] == []),
        ("null_choices", lambda got: got.json["choices"] is None),
        ("empty_message", lambda got: got.choice["message"] == {}),
        ("null_content", lambda got: got.choice["message"]["content"] is None),
        ("done_without_finish", lambda got: got.choice["finish_reason"] is None),
        ("garbage", lambda got: got.body == b"upstream said: this is no JSON"),
        ("html", lambda got: got.body.startswith(b"<html>")),
        ("bad_utf8", lambda got: b'"B \xff"' in got.body),
    ],
)
def test_fault_of_a_body_is_what_its_name_says(
    server: RunningServer, fault: str, seen: Callable[[Got], bool]
) -> None:
    server.script({"default": {"fault": fault, "text": "B"}})
    got = ask(server)
    assert got.status == 200
    assert seen(got)


@pytest.mark.parametrize("fault", ["cut_body", "cut_stream"])
def test_cut_body_is_shorter_than_its_content_length(server: RunningServer, fault: str) -> None:
    server.script({"default": {"fault": fault}})
    with pytest.raises(http.client.IncompleteRead):
        ask(server)


@pytest.mark.parametrize("stream", [False, True])
def test_reset_is_a_reset_and_no_orderly_close(server: RunningServer, stream: bool) -> None:
    server.script({"default": {"fault": "reset"}})
    with send(server, chat(stream=stream)) as sock, pytest.raises(ConnectionResetError):
        sock.recv(1)


def test_hang_says_nothing_and_gives_its_slot_back_when_the_client_leaves() -> None:
    script = {"items": {"bad": {"fault": "hang"}, "good": {"text": "B"}}}
    with running(slots=1, script=script) as server:
        hung = send(server, chat("[[item:bad]]"))
        until(lambda: server.summary()["max_busy"] == 1, "one hangs")
        with send(server, chat("[[item:good]]")) as waiting:
            until(lambda: server.summary()["max_queued"] == 1, "one waits")
            hung.setblocking(False)
            with pytest.raises(BlockingIOError):
                hung.recv(1)
            hung.close()
            assert b'"B"' in waiting.recv(65536)
        outcomes = [(r["item"], r["outcome"]) for r in server.stats()["requests"]]
        assert outcomes == [("bad", "client_gone"), ("good", "answered")]


@pytest.mark.parametrize("stream", [False, True])
def test_slow_body_sends_headers_and_then_nothing(server: RunningServer, stream: bool) -> None:
    server.script({"default": {"fault": "slow_body"}})
    with send(server, chat(stream=stream)) as sock:
        assert sock.recv(65536).endswith(b"\r\n\r\n")
        sock.settimeout(0.05)
        with pytest.raises(TimeoutError):
            sock.recv(1)


# ------------------------------------------------------------------ faults of a stream


@pytest.mark.parametrize("fault", ["cut_stream", "cut_body"])
def test_cut_stream_ends_without_finish_done_or_last_chunk(
    server: RunningServer, fault: str
) -> None:
    server.script({"default": {"fault": fault, "text": "abcdef"}})
    with send(server, chat(stream=True)) as sock:
        raw = read_to_end(sock)
    assert b'"ab"' in raw
    assert b"cd" not in raw
    assert b"[DONE]" not in raw
    assert not raw.endswith(b"0\r\n\r\n")


def test_stalled_stream_goes_silent_in_the_middle(server: RunningServer) -> None:
    server.script({"default": {"fault": "stall_stream", "text": "abcdef"}})
    with send(server, chat(stream=True)) as sock:
        raw = sock.recv(65536)
        sock.settimeout(0.05)
        with pytest.raises(TimeoutError):
            raw += sock.recv(1)
    assert b'"ab"' in raw


def test_done_without_finish_has_done_and_no_finish_reason(server: RunningServer) -> None:
    server.script({"default": {"fault": "done_without_finish"}})
    *events, done = ask(server, stream=True).events
    assert done == "[DONE]"
    assert {event["choices"][0]["finish_reason"] for event in events} == {None}


def test_error_event_comes_after_text_and_before_done(server: RunningServer) -> None:
    server.script({"default": {"fault": "error_event", "text": "abcdef"}})
    _role, text, fault, done = ask(server, stream=True).events
    assert text["choices"][0]["delta"] == {"content": "ab"}
    assert set(fault) == {"error"}
    assert done == "[DONE]"


def test_garbage_event_is_no_json(server: RunningServer) -> None:
    server.script({"default": {"fault": "garbage"}})
    assert b'data: {"choices": [{"delta\n\n' in ask(server, stream=True).body


@pytest.mark.parametrize(
    ("fault", "choices"), [("no_choices", []), ("null_choices", None)], ids=["empty", "null"]
)
def test_stream_without_choices(server: RunningServer, fault: str, choices: object) -> None:
    server.script({"default": {"fault": fault}})
    *events, done = ask(server, stream=True).events
    assert all(event["choices"] == choices for event in events)
    assert done == "[DONE]"


def test_bad_utf8_is_in_the_stream_too(server: RunningServer) -> None:
    server.script({"default": {"fault": "bad_utf8", "text": "B", "pieces": 1}})
    assert b'"B \xff"' in ask(server, stream=True).body


def test_error_200_in_place_of_a_stream_is_a_json_body(server: RunningServer) -> None:
    server.script({"default": {"fault": "error_200"}})
    got = ask(server, stream=True)
    assert (got.status, got.headers["Content-Type"]) == (200, "application/json")
    assert set(got.json) == {"error"}


@pytest.mark.parametrize("stream", [False, True])
def test_partial_lines_split_every_multibyte_character(server: RunningServer, stream: bool) -> None:
    text = "é\u2028–\u0085語"
    server.script({"default": {"fault": "partial_lines", "text": text}})
    got = ask(server, stream=stream)
    assert (got.streamed_text if stream else got.choice["message"]["content"]) == text
    with send(server, chat(stream=stream)) as sock:
        raw = b""
        while not raw.endswith(b"\r\n0\r\n\r\n"):
            raw += sock.recv(65536)
    assert "\u2028".encode() not in raw
    assert b"1\r\n\xe2\r\n1\r\n\x80\r\n1\r\n\xa8\r\n" in raw


def test_partial_lines_without_text_still_answer_the_letter(server: RunningServer) -> None:
    server.script({"default": {"fault": "partial_lines"}})
    text = ask(server, LETTERS, stream=True).streamed_text
    assert text[1:] == "\u2028\u0085"
    assert text.strip() in ("A", "B", "C")


# ------------------------------------------------------------------ slots, queue, service times


def ask_all_behind_the_gate(server: RunningServer, count: int, then: int | None) -> list[Got]:
    """Ask so many items at once; `then` so many are served, once all of them are there."""
    server.serve(0)
    with ThreadPoolExecutor(count) as threads:
        asked = [threads.submit(ask, server, f"[[item:{i}]]") for i in range(count)]
        until(lambda: server.summary()["max_queued"] == count, "all wait")
        server.serve(then)
        until(lambda: server.summary()["outcomes"].get("answered") == (then or count), "served")
        server.serve(None)
    return [future.result() for future in asked]


def test_queue_is_served_in_order_and_without_drift() -> None:
    with running(slots=2, service={"mean": 0.02, "sigma": 0.6, "seed": 7}) as server:
        ask_all_behind_the_gate(server, 12, then=None)
        stats = server.stats()
    jobs = stats["requests"]
    starts = [job["start"] for job in jobs]
    assert starts == sorted(starts)
    ends = {job["end"] for job in jobs}
    assert all(job["start"] > job["arrival"] for job in jobs)
    one, other, *queued = jobs
    assert one["start"] == other["start"], "both slots at once"
    assert all(job["start"] in ends for job in queued)
    assert all(job["end"] == job["start"] + job["service"] for job in jobs)
    assert stats["summary"]["max_busy"] == 2


def test_requests_wait_in_a_full_server() -> None:
    with running(slots=2, script={"default": {"fault": "hang"}}) as server:
        with contextlib.ExitStack() as stack:
            for count in range(1, 6):
                stack.enter_context(send(server, chat(f"[[item:{count}]]")))
                until(lambda: server.summary()["requests"] == count, "it is there")  # noqa: B023
        summary = server.summary()
    assert (summary["max_busy"], summary["max_queued"], summary["max_in_flight"]) == (2, 3, 5)


def test_server_serves_as_many_as_it_is_told_to_and_after_a_reset_all() -> None:
    with running(slots=2) as server:
        got = ask_all_behind_the_gate(server, 5, then=3)
        assert [reply.status for reply in got] == [200] * 5
        starts = [job["start"] for job in server.stats()["requests"]]
        assert starts[0] == starts[1] == starts[2] < starts[3] == starts[4]
        server.serve(0)
        with send(server, chat()):
            until(lambda: server.summary()["requests"] == 6, "one more waits")
        server.reset()
        assert ask(server).status == 200


def test_client_that_leaves_the_queue_is_not_served() -> None:
    script = {"items": {"bad": {"fault": "hang"}}}
    with running(slots=1, script=script) as server:
        with send(server, chat("[[item:bad]]")):
            until(lambda: server.summary()["max_busy"] == 1, "one hangs")
            send(server, chat("[[item:2]]")).close()
            until(lambda: server.summary()["outcomes"].get("client_gone") == 1, "one is gone")
        until(lambda: server.summary()["outcomes"].get("client_gone") == 2, "both are gone")
        assert [r["start"] is None for r in server.stats()["requests"]] == [False, True]
        assert ask(server).status == 200


def test_full_queue_gets_429_with_retry_after() -> None:
    script = {"default": {"fault": "hang"}}
    with running(slots=1, queue_limit=1, retry_after="3", script=script) as server:
        with send(server, chat("[[item:1]]")), send(server, chat("[[item:2]]")):
            until(lambda: server.summary()["max_queued"] == 1, "one waits")
            got = ask(server, "[[item:3]]")
        assert (got.status, got.headers["Retry-After"]) == (429, "3")
        assert server.stats()["requests"][-1]["outcome"] == "refused"


def test_service_times_have_their_mean_and_a_longer_list_starts_with_the_shorter() -> None:
    times = model_server.service_times(20000, 0.25, 0.6, 7)
    assert times[:400] == model_server.service_times(400, 0.25, 0.6, 7)
    assert statistics.mean(times) == pytest.approx(0.25, rel=0.02)
    assert statistics.stdev(times) == pytest.approx(0.25 * (2.718281828**0.36 - 1) ** 0.5, rel=0.05)


@pytest.mark.parametrize(("by", "indices"), [("order", [0, 1, 0]), ("item", [5, 3, 5])])
def test_service_time_belongs_to_the_item(by: str, indices: list[int]) -> None:
    service = {"mean": 0.002, "sigma": 0.6, "seed": 7, "by": by}
    times = model_server.service_times(6, 0.002, 0.6, 7)
    with running(service=service) as server:
        for item in (5, 3, 5):
            ask(server, f"[[item:{item}]]")
        assert [r["service"] for r in server.stats()["requests"]] == [times[i] for i in indices]


# ------------------------------------------------------------------ refusals, loading, down


def test_wrong_key_gets_401_that_echoes_it() -> None:
    with running(api_key="right") as server:
        got = call(server, "/v1/chat/completions", chat(), {"Authorization": "Bearer sk-wrong"})
        assert got.status == 401
        assert "sk-wrong" in got.json["error"]["message"]
        right = {"Authorization": "Bearer right"}
        assert call(server, "/v1/models").status == 401
        assert call(server, "/v1/models", headers=right).status == 200
        assert call(server, "/v1/chat/completions", chat(), right).status == 200


def test_rejected_field_gets_400_that_names_it() -> None:
    with running(dialect="openai", reject_fields=["cache_salt"]) as server:
        got = ask(server, cache_salt="1")
        assert got.status == 400
        assert got.json["error"]["message"] == "Unrecognized request argument: cache_salt"
        assert ask(server).status == 200


def test_unknown_model_is_refused_only_when_required() -> None:
    with running(require_model=True, aliases=["other"]) as server:
        assert [ask(server, model=m).status for m in ("test-model", "other", "x")] == [
            200,
            200,
            404,
        ]


def test_request_larger_than_the_context_gets_400(server: RunningServer) -> None:
    got = ask(server, max_tokens=65536)
    assert (got.status, got.json["error"]["n_ctx"]) == (400, 65536)


@pytest.mark.parametrize(
    "raw", ["{", "[]", "\xff", '{"messages": []}', '{"messages": [{"role": "user"}]}']
)
def test_malformed_request_gets_400_and_the_server_lives(server: RunningServer, raw: str) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
    connection.request("POST", "/v1/chat/completions", raw)
    assert connection.getresponse().status == 400
    connection.close()
    assert ask(server).status == 200


def test_first_requests_get_503_while_the_model_loads() -> None:
    with running(dialect="llama.cpp", loading_requests=2) as server:
        got = [call(server, "/health"), ask(server), ask(server)]
        assert [g.status for g in got] == [503, 503, 200]
        assert got[0].json["error"]["message"] == "Loading model"


def test_loading_time_closes_every_page_but_the_records() -> None:
    with running(loading_seconds=60) as server:
        assert [call(server, "/v1/models").status, ask(server).status] == [503, 503]
        assert server.summary()["outcomes"] == {"refused": 1}


@pytest.mark.parametrize("seconds", [None, 0.2])
def test_server_goes_down_after_k_answers_and_may_come_back_on_the_same_port(
    seconds: float | None,
) -> None:
    script = {"items": {"bad": {"fault": "hang"}}}
    with running(script=script, down={"after": 2, "seconds": seconds}) as server:
        before = call(server, "/metrics").body
        with send(server, chat("[[item:bad]]")) as in_flight:
            assert [ask(server, f"[[item:{i}]]").status for i in (1, 2)] == [200, 200]
            with pytest.raises(ConnectionResetError):
                in_flight.recv(1)

        def is_another_start() -> bool:
            with contextlib.suppress(OSError, http.client.HTTPException):
                return call(server, "/metrics").body != before
            return False

        if seconds is None:
            until(lambda: refused(server.port), "it is down")
            return
        until(is_another_start, "it is back")
        assert ask(server, "[[item:3]]").status == 200
        assert server.summary()["outcomes"] == {"answered": 3, "server_down": 1}


# ------------------------------------------------------------------ thinking and limits


@pytest.mark.parametrize("default", [False, True])
def test_thinking_switch_beats_the_default_of_the_model(default: bool) -> None:
    with running(think={"default": default, "field": "reasoning"}) as server:
        switches: list[dict[str, Any]] = [
            {"chat_template_kwargs": {"enable_thinking": False}},
            {"chat_template_kwargs": {"enable_thinking": True}},
            {},
        ]
        thought = ["reasoning" in ask(server, **s).choice["message"] for s in switches]
    assert thought == [False, True, default]


def test_server_that_ignores_max_tokens_sends_everything() -> None:
    with running(ignore_max_tokens=True, script={"default": {"text": "x" * 400}}) as server:
        got = ask(server, max_tokens=5)
        assert len(got.choice["message"]["content"]) == 400
        assert got.json["usage"]["completion_tokens"] == 100
        assert got.choice["finish_reason"] == "stop"


# ------------------------------------------------------------------ pages


DAY = 86400


def wall_of_the_clock(server: RunningServer) -> float:
    """What the server adds to time.monotonic(), the clock of all processes, to have the time of
    day. The time of day itself may be set while the test runs, though hardly by a day.
    """
    times = [(r["arrival_unix"], r["arrival"]) for r in server.stats()["requests"]]
    added = times[0][0] - times[0][1]
    assert all(unix - clock == pytest.approx(added, abs=0.001) for unix, clock in times)
    assert abs(added - (time.time() - time.monotonic())) < DAY
    return float(added)


def test_vllm_pages() -> None:
    begun = time.monotonic()
    with running(model="m", aliases=["n"], context=1000, version="0.9", slots=3) as server:
        models = call(server, "/v1/models").json["data"]
        assert [(m["id"], m["max_model_len"]) for m in models] == [("m", 1000), ("n", 1000)]
        assert call(server, "/version").json == {"version": "0.9"}
        metrics = call(server, "/metrics").body.decode()
        started = next(x for x in metrics.splitlines() if x.startswith("process_start_time"))
        ask(server)
        assert begun < float(started.split()[1]) - wall_of_the_clock(server) < time.monotonic()
        assert "vllm:cache_config_info{" in metrics
        counted = call(server, "/tokenize", {"model": "m", "prompt": "abcdefgh"}).json
        assert (counted["count"], len(counted["tokens"])) == (2, 2)
        assert counted["max_model_len"] == 1000
        assert call(server, "/tokenize", chat("abcdefgh")).json["count"] == 2


def test_sglang_pages() -> None:
    with running(dialect="sglang", slots=24) as server:
        for path in ("/get_server_info", "/server_info"):
            assert call(server, path).json["max_running_requests"] == 24
        assert call(server, "/get_model_info").json["model_path"] == "/models/test-model"


def test_llama_cpp_pages() -> None:
    with running(dialect="llama.cpp", slots=3, context=8192, version="b6000-abc") as server:
        props = call(server, "/props").json
        assert (props["total_slots"], props["build_info"]) == (3, "b6000-abc")
        assert props["default_generation_settings"]["n_ctx"] == 8192
        slots = call(server, "/slots").json
        assert [(s["id"], s["n_ctx"], s["is_processing"]) for s in slots] == [
            (i, 8192, False) for i in range(3)
        ]
        assert call(server, "/tokenize", {"content": "abcdefgh"}).json == {"tokens": [0, 1]}
        assert call(server, "/health").json == {"status": "ok"}


@pytest.mark.parametrize(
    ("dialect", "missing"),
    [
        ("openai", ["/version", "/metrics", "/props", "/slots", "/server_info", "/health"]),
        ("vllm", ["/props", "/slots", "/server_info"]),
        ("sglang", ["/props", "/slots", "/version"]),
        ("llama.cpp", ["/version", "/server_info", "/metrics"]),
    ],
)
def test_pages_of_other_dialects_are_404_in_json(dialect: str, missing: list[str]) -> None:
    with running(dialect=dialect) as server:
        for path in missing:
            got = call(server, path)
            assert (got.status, got.json["error"]["code"]) == (404, 404)
        assert call(server, "/v1/models").json["data"][0]["id"] == "test-model"


# ------------------------------------------------------------------ HTTP


def test_connection_is_kept_alive_and_numbered(server: RunningServer) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
    for _ in range(3):
        connection.request("POST", "/v1/chat/completions", json.dumps(chat()))
        connection.getresponse().read()
    connection.close()
    ask(server)
    numbers = [r["connection"] for r in server.stats()["requests"]]
    assert numbers[0] == numbers[1] == numbers[2] != numbers[3]


def test_requests_in_pieces_and_in_a_row_are_answered_one_by_one(server: RunningServer) -> None:
    raw = json.dumps(chat()).encode()
    one = b"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: %d\r\n\r\n%s" % (len(raw), raw)
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as sock:
        sock.sendall(one[:30])
        sock.sendall(one[30:90])
        sock.sendall(one[90:] + one + one)
        raw = b""
        while raw.count(b'"usage"') < 3:
            raw += sock.recv(65536)
    assert raw.count(b"HTTP/1.1 200") == 3


def test_connection_close_is_obeyed(server: RunningServer) -> None:
    got = call(server, "/v1/models", headers={"Connection": "close"})
    assert got.status == 200
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as sock:
        sock.sendall(b"GET /v1/models HTTP/1.1\r\nConnection: close\r\n\r\n")
        assert read_to_end(sock).endswith(b"}")


# ------------------------------------------------------------------ records


def test_records_tell_item_attempt_times_and_body(server: RunningServer) -> None:
    before = time.monotonic()
    for _ in range(2):
        ask(server, "[[item:9]]", seed=42)
    first, second = server.stats()["requests"]
    assert [first["attempt"], second["attempt"]] == [1, 2]
    assert first["item"] == "9"
    assert first["body"]["seed"] == 42
    assert first["arrival"] <= first["start"] <= first["end"] <= first["sent"]
    assert before < first["arrival"] and second["sent"] < time.monotonic()
    assert wall_of_the_clock(server) > 0


def test_reset_forgets_requests_and_script_starts_attempts_again(server: RunningServer) -> None:
    script = {"default": [{"text": "A"}, {"text": "B"}]}
    server.script(script)
    assert [ask(server).choice["message"]["content"] for _ in range(2)] == ["A", "B"]
    server.script(script)
    assert ask(server).choice["message"]["content"] == "A"
    server.reset()
    assert ask(server).choice["message"]["content"] == "A"
    summary = server.summary()
    assert (summary["requests"], summary["items"], summary["max_in_flight"]) == (1, 1, 1)


def test_bodies_are_not_kept_when_not_wanted() -> None:
    with running(record_bodies=False) as server:
        ask(server)
        assert server.stats()["requests"][0]["body"] is None


# ------------------------------------------------------------------ the process


def test_server_ends_with_the_with_block_and_frees_its_port() -> None:
    with running() as server:
        assert ask(server).status == 200
    assert server.process.returncode == 0
    assert refused(server.port)


def test_stop_page_ends_the_process() -> None:
    with running() as server:
        call(server, "/_stop", {})
        assert server.process.wait(PATIENCE) == 0


def test_killed_parent_takes_the_server_with_it() -> None:
    code = "import model_server, time; print(model_server.start().port, flush=True); time.sleep(60)"
    env = {**os.environ, "PYTHONPATH": str(Path(model_server.__file__).parent)}
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=env) as parent:
        assert parent.stdout
        port = int(parent.stdout.readline())
        assert not refused(port)
        parent.send_signal(signal.SIGKILL)
    until(lambda: refused(port), "it is gone")


def test_options_can_come_from_a_file(tmp_path: Path) -> None:
    options = tmp_path / "options.json"
    options.write_text('{"model": "from-file"}')
    process = subprocess.Popen(
        [sys.executable, model_server.__file__, str(options)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout
    server = RunningServer(process, json.loads(process.stdout.readline())["port"])
    try:
        assert call(server, "/v1/models").json["data"][0]["id"] == "from-file"
    finally:
        server.stop()
