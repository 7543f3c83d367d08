"""Whatever a server does wrong, a run says so and grades only what is an answer.

End to end: the command `qualeval run` against the project's test server over real sockets. Each
behaviour is tested with replies in one body and streamed, where both exist. Ids in docstrings are
those of `known-faults.jsonl`.
"""

from __future__ import annotations

import json
import logging
import re
import signal
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from engine import (
    GONE_PORT,
    PATIENCE,
    Job,
    Json,
    Lab,
    beside,
    ended,
    ending,
    qualeval,
    until,
    whole_lines,
)
from model_server import RunningServer, running

from qualeval.client import retry_after

WHOLE, STREAMED = 48, 2048
"""max_tokens of a part whose replies come as one body, and of one whose replies are streamed."""


@pytest.fixture(scope="module")
def healthy() -> Iterator[RunningServer]:
    """One server for all tests that need no option of their own; each gives it a script."""
    with running(slots=4) as server:
        yield server


@pytest.fixture
def lab(tmp_path: Path, healthy: RunningServer) -> Lab:
    return Lab(tmp_path, healthy).script()


@pytest.fixture(params=[WHOLE, STREAMED], ids=["whole", "streamed"])
def limit(request: pytest.FixtureRequest) -> int:
    value: int = request.param
    return value


def asking(lab: Lab, limit: int, items: Any = 4, **part: Any) -> Lab:
    """The lab with a list of these items, asked with this max_tokens."""
    lab.card["parts"]["mmlupro"] = {"list": "mine.jsonl", "max_tokens": limit, **part}
    return lab.list_of(items)


# ------------------------------------------------------------------ faults that may pass

RETRIED: dict[str, tuple[Json, str, str]] = {
    "429": ({"status": 429}, "http_429", "http_429"),
    "408": ({"status": 408}, "http_408", "http_408"),
    "500": ({"status": 500}, "http_500", "http_500"),
    "502_with_html": ({"status": 502, "body": "<html>bad gateway</html>"}, "http_502", "http_502"),
    "503": ({"status": 503}, "http_503", "http_503"),
    "reset": ({"fault": "reset"}, "connection_lost", "connection_lost"),
    "cut_chunked": ({"fault": "cut_stream"}, "connection_lost", "connection_lost"),
    "cut_close": ({"fault": "cut_stream", "framing": "close"}, "connection_lost", "cut_stream"),
    "done_without_finish": ({"fault": "done_without_finish"}, "unknown_finish", "unknown_finish"),
    "error_event": ({"fault": "error_event"}, "error_body", "error_body"),
    "garbage": ({"fault": "garbage"}, "bad_json", "bad_json"),
    "html": ({"fault": "html"}, "bad_json", "bad_stream"),
    "error_200": ({"fault": "error_200"}, "error_body", "error_body"),
    "no_choices": ({"fault": "no_choices"}, "no_choices", "unknown_finish"),
    "null_choices": ({"fault": "null_choices"}, "no_choices", "unknown_finish"),
    "bad_utf8": ({"fault": "bad_utf8", "pieces": 1}, "bad_encoding", "bad_encoding"),
    "null_finish": ({"finish_reason": None}, "unknown_finish", "unknown_finish"),
    "absent_finish": ({"finish_reason": "absent"}, "unknown_finish", "unknown_finish"),
    "abort": ({"finish_reason": "abort"}, "abort", "abort"),
    "unknown_word": ({"finish_reason": "tired"}, "unknown_finish", "unknown_finish"),
}


@pytest.mark.parametrize("fault", RETRIED)
def test_fault_is_retried_and_one_that_stays_is_an_error_not_a_wrong_answer(
    lab: Lab, limit: int, fault: str
) -> None:
    """net-01, net-07, net-08, trc-02: `passes` is answered at its second attempt, `stays` is given
    up, the part is incomplete, and the same command asks only that item again.
    """
    step, whole_kind, streamed_kind = RETRIED[fault]
    kind = whole_kind if limit == WHOLE else streamed_kind
    asking(lab, limit, ["good", "passes", "stays"])
    lab.script({"passes": [step, {"text": "B"}], "stays": step})

    ended = lab.run()
    job = lab.job()

    assert ended.code == 1
    assert lab.attempts() == {"good": 1, "passes": 2, "stays": 2}
    assert {line["id"]: line["attempts"] for line in job.gen()} == {"good": 1, "passes": 2}
    assert [(e["id"], e["kind"], e["attempts"]) for e in job.errors()] == [("stays", kind, 2)]
    summary = job.summary()
    assert summary["status"] == "incomplete" and summary["incomplete_because"] == "1 failed"
    assert (summary["n"], summary["right"], summary["errors"]) == (3, 2, 1)
    assert summary["error_kinds"] == {kind: 1}
    assert summary["accuracy"] is summary["margin"] is summary["ci_low"] is None
    assert "%" not in next(line for line in ended.out.splitlines() if line.startswith("MMLU"))
    assert f"item stays attempt 2: {kind}" in job.log
    assert all(" mmlupro " in line for line in job.log.splitlines() if " item " in line)

    lab.script()
    again = lab.run()
    assert again.code == 0
    assert lab.attempts() == {"stays": 1}
    assert job.summary()["status"] == "ok" and job.summary()["errors"] == 0


def test_empty_message_is_an_error_not_an_empty_answer(lab: Lab) -> None:
    """net-01: {"message": {}} is no answer."""
    asking(lab, WHOLE, ["good", "bad"]).script({"bad": {"fault": "empty_message"}})
    assert lab.run().code == 1
    assert [(e["id"], e["kind"]) for e in lab.job().errors()] == [("bad", "empty_message")]


def test_error_row_quotes_the_body(lab: Lab, limit: int) -> None:
    """net-01: a kind and the first 200 characters of what came."""
    bodies = {
        "html": {"fault": "html"},
        "list": {"body": "[1, 2, 3]"},
        "n_ctx": {"body": json.dumps({"error": {"type": "exceed_context_size_error"}})},
        "long": {"status": 500, "body": "word " * 200},
    }
    asking(lab, limit, ["good", *bodies]).script(bodies)
    assert lab.run().code == 1
    said = {error["id"]: error["message"] for error in lab.job().errors()}
    assert "proxy login" in said["html"]
    assert "[1, 2, 3]" in said["list"]
    assert "exceed_context_size_error" in said["n_ctx"]
    assert said["long"].startswith("HTTP 500: word word") and len(said["long"]) <= 220


SILENT: dict[str, tuple[int, Json, Json, str, str]] = {
    "hang": (WHOLE, {"total": 1.0}, {"fault": "hang"}, "timeout", "no reply within 1 s"),
    "hang_streamed": (STREAMED, {"total": 1.0}, {"fault": "hang"}, "timeout", "no reply within"),
    "stall": (
        STREAMED,
        {"idle": 0.5, "total": 300},
        {"fault": "stall_stream"},
        "idle_timeout",
        "the stream was silent",
    ),
}
"""max_tokens, time limits, what goes silent, and how it is called: `total` for a server that takes
the request and says nothing, `idle` for a dead stream, which it finds long before `total` does.
"""


@pytest.mark.parametrize("silent", SILENT)
def test_request_that_stays_silent_is_given_up_after_its_attempts(lab: Lab, silent: str) -> None:
    """It costs its time limits, not the night."""
    limit, lab.card["timeouts"], step, kind, said = SILENT[silent]
    asking(lab, limit, ["stays"]).script({"stays": step})
    assert lab.run().code == 1
    job = lab.job()
    assert [(e["id"], e["kind"], e["attempts"]) for e in job.errors()] == [("stays", kind, 2)]
    assert job.log.count(f"{kind}: {said}") == 2
    assert job.gen() == []


@pytest.mark.parametrize("silent", SILENT)
def test_request_that_was_silent_once_is_answered_later(lab: Lab, silent: str) -> None:
    """Beside one that never was. A slow machine may make either wait beyond so short a limit once
    more; then the log tells of just as many attempts as the answer.
    """
    limit, lab.card["timeouts"], step, kind, _ = SILENT[silent]
    lab.card["retries"]["attempts"] = 30
    asking(lab, limit, ["good", "passes"]).script({"passes": [step, {"text": "B"}]})
    assert lab.run().code == 0
    job = lab.job()
    attempts = {line["id"]: line["attempts"] for line in job.gen()}
    failed = {id: len(re.findall(rf" item {id} attempt \d+: {kind}: ", job.log)) for id in attempts}
    assert attempts == {"good": failed["good"] + 1, "passes": failed["passes"] + 1}
    assert failed["passes"] >= 1
    assert all(answer["right"] for answer in job.answers().values()) and job.errors() == []


def test_idle_limit_counts_from_the_first_byte(tmp_path: Path) -> None:
    """A request that waits in the server's queue for longer than `idle` is not dead."""
    idle = 0.3
    with running(slots=1) as server:
        lab = Lab(tmp_path, server)
        lab.card["timeouts"] = {"idle": idle}
        asking(lab, STREAMED, 3).script()

        def let_them_wait() -> None:
            try:
                until(lambda: lab.requests() == 3, "three wait")
                last = max(record["arrival"] for record in lab.asked())
                until(lambda: time.monotonic() > last + 4 * idle, "long enough")
            finally:
                server.serve(None)

        server.serve(0)
        with beside(let_them_wait):
            assert lab.run().code == 0
        waits = sorted(record["start"] - record["arrival"] for record in lab.asked())
        assert waits[0] > 4 * idle
        assert [line["attempts"] for line in lab.job().gen()] == [1, 1, 1]


def test_stream_that_takes_longer_than_the_idle_limit_is_not_dead(lab: Lab) -> None:
    """Each piece starts the count anew."""
    lab.card["timeouts"] = {"idle": 10}
    text = "Let me see what I think of this question and of all three options.\nB"
    asking(lab, STREAMED, 1).script(default={"text": text, "service_seconds": 12, "pieces": 60})
    assert lab.run().code == 0
    assert [line["attempts"] for line in lab.job().gen()] == [1]


# ------------------------------------------------------------------ odd but healthy streams


def event(content: str | None, finish: str | None = None) -> bytes:
    delta = {} if content is None else {"content": content}
    return json.dumps({"choices": [{"delta": delta, "finish_reason": finish}]}).encode()


TEXT, FINISH = b"data: " + event("B") + b"\n\n", b"data: " + event(None, "stop") + b"\n\n"
USAGE = b'data: {"choices": [], "usage": {"completion_tokens": 1}}\n\n'
DONE = b"data: [DONE]\n\n"
ODD: dict[str, tuple[bytes, bool]] = {
    "no_done": (TEXT + FINISH, False),
    "no_done_with_usage": (TEXT + FINISH + USAGE, False),
    "open_after_finish": (TEXT + FINISH, True),
    "open_after_done": (TEXT + FINISH + DONE, True),
    "signs_of_life": (b": ping\n\n" + TEXT + b":\n\ndata:\n\n" + FINISH + DONE, False),
    "crlf": ((TEXT + FINISH + DONE).replace(b"\n", b"\r\n"), False),
    "no_space_after_the_colon": ((TEXT + FINISH + DONE).replace(b"data: ", b"data:"), False),
    "no_last_blank_line": (TEXT + FINISH.rstrip(), False),
    "finish_with_the_text": (b"data: " + event("B", "stop") + b"\n\n" + DONE, False),
    "named_events": (b"event: chunk\nid: 1\n" + TEXT + FINISH + DONE, False),
}
"""Bytes of a stream, and whether the server then keeps the connection open and silent."""


class OddStreams(BaseHTTPRequestHandler):
    """Lists one model and answers each item with the bytes of ODD."""

    def do_GET(self) -> None:
        found = self.path == "/v1/models"
        body = b'{"data": [{"id": "test-model"}]}' if found else b"{}"
        self.send_response(200 if found else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        data, stays_open = ODD[body.partition("[[item:")[2].partition("]]")[0]]
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.end_headers()
        self.wfile.write(data)
        if stays_open:
            self.wfile.flush()
            self.rfile.read(1)

    def log_message(self, format: str, *args: object) -> None:
        pass


def test_odd_but_whole_streams_are_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """net-08: with a finish_reason a reply is complete, whatever comes after it or does not."""
    monkeypatch.setattr("qualeval.client.AFTER_FINISH", 0.5)
    with ThreadingHTTPServer(("127.0.0.1", 0), OddStreams) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            lab = asking(Lab(tmp_path), STREAMED, ODD)
            url = f"http://127.0.0.1:{server.server_address[1]}/v1"
            lab.card["server"] |= {"base_url": url, "dialect": "openai", "slots": 3}
            done = lab.run()
        finally:
            server.shutdown()
    assert done.code == 0, done.screen
    rows = lab.job().answers()
    assert {id for id, row in rows.items() if row["right"] and row["attempts"] == 1} == set(ODD)
    assert all(row["seconds"] < PATIENCE for row in rows.values()), "none by an idle limit"


# ------------------------------------------------------------------ waits


def waited(lab: Lab, item: str) -> list[float]:
    """Seconds from the end of each attempt to the arrival of the next one, at the server."""
    own = [record for record in lab.asked() if record["item"] == item]
    return [b["arrival"] - a["end"] for a, b in pairwise(own)]


def test_retry_after_in_seconds_and_as_a_date_is_obeyed(lab: Lab) -> None:
    """rty-01: both forms are legal; each wait is in the log."""
    lab.card["retries"] = {"attempts": 3, "max_wait": 2.5}
    date = datetime.now(UTC) + timedelta(hours=1)
    steps = [
        {"status": 429, "headers": {"Retry-After": "2"}},
        {"status": 503, "headers": {"Retry-After": format_datetime(date, usegmt=True)}},
        {"text": "B"},
    ]
    asking(lab, WHOLE, ["slow"]).script({"slow": steps})
    assert lab.run().code == 0
    assert waited(lab, "slow")[0] >= 2
    assert waited(lab, "slow")[1] >= 2.5, "as much of the hour as is waited for at most"
    assert lab.job().gen()[0]["attempts"] == 3
    assert "http_429: HTTP 429" in lab.job().log and "again in 2 s" in lab.job().log
    assert "http_503: HTTP 503" in lab.job().log and "again in 2.5 s" in lab.job().log


def test_date_to_wait_for_is_as_far_off_as_it_says() -> None:
    """rty-01: from the moment at which it is read, whatever the clock shows."""
    moment = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
    for seconds in (1, 4, 3600):
        date = format_datetime(moment + timedelta(seconds=seconds), usegmt=True)
        assert retry_after(date, moment) == seconds
    assert retry_after(format_datetime(moment, usegmt=True), moment) is None


@pytest.mark.parametrize("value", ["soon", "-5", "1.5.2", "Mon, 01 Jan 2001 00:00:00 GMT", ""])
def test_bad_retry_after_is_ignored(lab: Lab, value: str) -> None:
    """rty-01: a value that means nothing gives the usual wait, here the shortest, not a crash."""
    lab.card["retries"] = {"attempts": 2, "max_wait": 0.05}
    asking(lab, WHOLE, ["slow"])
    lab.script({"slow": [{"status": 429, "headers": {"Retry-After": value}}, {"text": "B"}]})
    assert lab.run().code == 0
    assert "again in 0.05 s" in lab.job().log


def test_retry_after_is_capped_by_max_wait(lab: Lab) -> None:
    """rty-01: 999999 seconds are not waited for."""
    lab.card["retries"] = {"attempts": 2, "max_wait": 0.3}
    asking(lab, WHOLE, ["slow"])
    lab.script({"slow": [{"status": 429, "headers": {"Retry-After": "999999"}}, {"text": "B"}]})
    assert lab.run().code == 0
    assert waited(lab, "slow")[0] >= 0.3
    assert "again in 0.3 s" in lab.job().log


def test_row_that_waits_does_not_hold_its_slot(lab: Lab) -> None:
    """rty-01: with one slot, all other items are answered while one waits for its Retry-After,
    here an hour. An interrupt ends that wait, and the same command asks it again.
    """
    lab.card["server"]["slots"] = 1
    lab.card["retries"] = {"attempts": 2, "max_wait": 3600}
    asking(lab, WHOLE, ["slow", 1, 2, 3, 4, 5, 6])
    lab.script({"slow": [{"status": 429, "headers": {"Retry-After": "3600"}}, {"text": "B"}]})
    with ending(lab.start()) as process:
        path = lab.job().folder / "mmlupro.gen.jsonl"
        until(lambda: whole_lines(path) == 6, "the others are answered")
        process.send_signal(signal.SIGINT)
        assert ended(process).code == 130
    assert lab.attempts() == {"slow": 1} | {str(i): 1 for i in range(1, 7)}
    assert lab.asked()[0]["item"] == "slow"
    assert lab.run().code == 0
    assert lab.attempts() == {"slow": 2} | {str(i): 1 for i in range(1, 7)}


def test_full_queue_of_the_server_is_waited_out(tmp_path: Path) -> None:
    """net-03, rty-01: a card with more slots than the server takes gets 429 and still ends well."""
    with running(slots=2, queue_limit=1) as server:
        lab = Lab(tmp_path, server).list_of(20).script()
        lab.card["server"]["slots"] = 6
        lab.card["retries"] = {"attempts": 10_000, "max_wait": 0.05}

        def let_them_be_refused() -> None:
            try:
                until(lambda: server.summary()["statuses"].get("429", 0) >= 5, "five refusals")
            finally:
                server.serve(None)

        server.serve(0)
        with beside(let_them_be_refused):
            assert lab.run().code == 0
        assert server.summary()["statuses"]["429"] > 0
        assert lab.job().summary()["right"] == 20


def test_server_that_loads_at_the_start_is_waited_for(tmp_path: Path) -> None:
    """503 while loading: no chat request is sent before the model is there."""
    with running(slots=4, loading_requests=3) as server:
        lab = Lab(tmp_path, server).list_of(5)
        lab.card["retries"]["max_wait"] = 30
        assert lab.run().code == 0
        assert server.summary()["statuses"] == {"200": 5}


def test_server_that_loads_too_long_ends_the_run(tmp_path: Path) -> None:
    """A model that never loads costs `retries.max_wait`, and exit code 1."""
    with running(slots=4, loading_seconds=600) as server:
        lab = Lab(tmp_path, server).list_of(5)
        ended = lab.run()
        assert ended.code == 1 and "503" in ended.err and "Loading model" in ended.err
        assert server.summary()["requests"] == 0


# ------------------------------------------------------------------ errors that do not pass


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
def test_client_error_is_final_at_its_first_attempt(lab: Lab, limit: int, status: int) -> None:
    """net-02: 4xx other than 408, 425, 429 is not asked again."""
    asking(lab, limit, ["good", "bad"]).script({"bad": {"status": status}})
    assert lab.run().code == 1
    assert lab.attempts() == {"good": 1, "bad": 1}
    [error] = lab.job().errors()
    assert (error["kind"], error["attempts"]) == (f"http_{status}", 1)
    assert f"scripted {status}" in error["message"]


def test_first_answers_that_all_fail_alike_stop_the_part(lab: Lab, limit: int) -> None:
    """net-02: 40 rows, each 400: one attempt a row, a stop after the first five, no score."""
    asking(lab, limit, 40)
    lab.script(default={"status": 400, "body": '{"message":"max_tokens too large"}'})
    ended = lab.run()
    assert ended.code == 1
    assert set(lab.attempts().values()) == {1}
    assert 5 <= lab.requests() <= 5 + 3, "five, and what the other slots had in flight"
    summary = lab.job().summary()
    assert summary["accuracy"] is None and summary["errors"] == lab.requests()
    assert "max_tokens too large" in ended.err and "first requests all failed alike" in ended.err
    assert "first requests all failed alike" in lab.job().log


def test_early_stop_of_one_part_lets_the_next_part_run(lab: Lab) -> None:
    """A part that cannot work says so; the others keep their answers."""
    lab.card["parts"] = {"mmlupro": {"list": "bad.jsonl"}, "gpqa": {"list": "mine.jsonl"}}
    lab.list_of([f"bad{i}" for i in range(20)], "bad.jsonl").list_of(6)
    lab.script({f"bad{i}": {"status": 400} for i in range(20)})
    assert lab.run(parts="mmlupro,gpqa").code == 1
    assert lab.job().summary("gpqa")["status"] == "ok"
    assert lab.job().summary("mmlupro")["status"] == "incomplete"
    assert sum(n for item, n in lab.attempts().items() if item.startswith("bad")) <= 5 + 3


def test_failures_after_a_good_answer_do_not_stop_the_part(lab: Lab) -> None:
    """Only the first requests can tell that nothing will ever work."""
    lab.card["server"]["slots"] = 1
    asking(lab, WHOLE, range(10)).script({str(i): {"status": 400} for i in range(1, 10)})
    assert lab.run().code == 1
    assert lab.requests() == 10 and lab.job().summary()["errors"] == 9


def test_refused_field_is_named(tmp_path: Path, limit: int) -> None:
    """A server that takes no `cache_salt`: a clear error with the field's name, no retry loop."""
    with running(slots=4, reject_fields=["cache_salt"]) as server:
        lab = asking(Lab(tmp_path, server), limit, 40)
        ended = lab.run()
        assert ended.code == 1
        assert "cache_salt" in ended.err and "cache_salt" in lab.job().errors()[0]["message"]
        assert server.summary()["requests"] <= 5 + 3
        assert set(lab.attempts().values()) == {1}


# ------------------------------------------------------------------ keys

KEY = "plain-words-8-selfmade"
"""A key without the form of one, so that only knowing it can hide it."""


@pytest.fixture
def keyed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    with running(slots=4, api_key=KEY) as server:
        lab = Lab(tmp_path, server).list_of(4).script()
        lab.card["server"]["api_key_env"] = "QUALEVAL_TEST_KEY"
        monkeypatch.setenv("QUALEVAL_TEST_KEY", KEY)
        yield lab


def assert_nowhere(secret: str, screen: str, folder: Path) -> None:
    """No file below the folder, no name of one, and no screen holds the secret."""
    assert secret not in screen
    for path in Job(folder).files():
        assert secret not in path.name and secret.encode() not in path.read_bytes(), path


def test_key_of_the_environment_is_sent_and_stays_out_of_every_file(
    keyed: Lab, caplog: pytest.LogCaptureFixture
) -> None:
    """pub-01, pub-02: the key opens the door and is written nowhere, by no library either."""
    caplog.set_level(logging.DEBUG)
    ended = keyed.run()
    assert ended.code == 0
    assert KEY not in caplog.text
    assert_nowhere(KEY, ended.screen, keyed.folder)


@pytest.mark.parametrize("status", [401, 400, 500])
def test_key_echoed_by_the_server_is_masked(keyed: Lab, limit: int, status: int) -> None:
    """pub-06: the error body repeats the key; row, log and screen do not."""
    body = json.dumps({"error": f"Incorrect API key provided: {KEY}. Bearer {KEY}"})
    asking(keyed, limit, 4).script({"2": {"status": status, "body": body}})
    ended = keyed.run()
    assert ended.code == 1
    [error] = keyed.job().errors()
    assert "Incorrect API key provided: ⟦redacted:" in error["message"]
    assert_nowhere(KEY, ended.screen, keyed.folder / "runs")


def test_wrong_key_is_refused_before_the_first_request_without_showing_it(
    keyed: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pub-06: the server's 401 echoes the wrong key; exit 2 names the variable, not the key."""
    monkeypatch.setenv("QUALEVAL_TEST_KEY", "other-words-9-selfmade")
    ended = keyed.run()
    assert ended.code == 2 and "api_key_env" in ended.err
    assert keyed.requests() == 0
    assert_nowhere("other-words-9-selfmade", ended.screen, keyed.folder)


@pytest.mark.parametrize("value", [None, "", "tabs\tand\nlines-selfmade", "“curly-selfmade”"])
def test_key_variable_that_holds_no_key_is_named(
    keyed: Lab, monkeypatch: pytest.MonkeyPatch, value: str | None
) -> None:
    """Unset, empty, or with characters that no header takes: exit 2 that names the field."""
    monkeypatch.delenv("QUALEVAL_TEST_KEY")
    if value is not None:
        monkeypatch.setenv("QUALEVAL_TEST_KEY", value)
    ended = keyed.run()
    assert ended.code == 2 and "server.api_key_env: " in ended.err
    assert "selfmade" not in ended.screen
    assert keyed.requests() == 0


def test_key_in_the_card_is_refused_before_anything_is_written(lab: Lab) -> None:
    """pub-01: a clear key, or a password inside the address."""
    lab.list_of(2)
    url = lab.card["server"]["base_url"]
    for wrong in ({"api_key": KEY}, {"base_url": url.replace("://", f"://user:{KEY}@")}):
        lab.card["server"] = {**lab.card["server"], "base_url": url, **wrong}
        ended = lab.run()
        assert ended.code == 2 and KEY not in ended.screen
        assert not (lab.folder / "runs").exists()
        lab.card["server"].pop("api_key", None)


# ------------------------------------------------------------------ proxies

PROXIES = {
    "http": {"HTTP_PROXY": f"http://127.0.0.1:{GONE_PORT}"},
    "lower_case": {"http_proxy": f"http://127.0.0.1:{GONE_PORT}"},
    "all_socks": {"ALL_PROXY": f"socks5://127.0.0.1:{GONE_PORT}", "NO_PROXY": "localhost"},
}


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
@pytest.mark.parametrize("variables", PROXIES)
def test_proxy_variables_do_not_touch_a_loopback_server(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, variables: str, host: str
) -> None:
    """net-05: no request to this machine goes to a proxy, and a socks variable raises nothing."""
    for name, value in PROXIES[variables].items():
        monkeypatch.setenv(name, value)
    lab.card["server"]["base_url"] = lab.card["server"]["base_url"].replace("127.0.0.1", host)
    lab.list_of(3)
    assert lab.run().code == 0
    assert lab.requests() == 3


def test_socks_proxy_for_a_server_elsewhere_is_a_clear_error(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """net-05: where a proxy is meant and cannot be used, exit 2 names it; no traceback."""
    monkeypatch.setenv("ALL_PROXY", f"socks5://user:{KEY}@127.0.0.1:{GONE_PORT}")
    lab.card["server"]["base_url"] = "http://192.0.2.1:8000/v1"
    ended = lab.list_of(1).run()
    assert ended.code == 2 and "proxy" in ended.err.lower()
    assert KEY not in ended.screen


# ------------------------------------------------------------------ replies of every kind

LONG_THOUGHT = "Let me see whether B holds. " * 400
ZOO: dict[str, Json] = {
    "right": {"text": "B"},
    "wrong": {"text": "A"},
    "length_by_cap": {"text": "B", "finish_reason": "length", "completion_tokens": -1},
    "length_by_context": {"text": "B", "finish_reason": "length", "completion_tokens": 7},
    "null_finish_all_used": {"text": "B", "finish_reason": None, "completion_tokens": -1},
    "stop_at_the_cap": {"text": "B", "finish_reason": "stop", "completion_tokens": -1},
    "filtered": {"text": "", "finish_reason": "content_filter"},
    "null_content": {"fault": "null_content"},
    "unclosed": {"text": "<think>The answer is (B) perhaps, let me verify"},
    "field_reasoning": {"text": "B", "reasoning": "Is it A?", "reasoning_field": "reasoning"},
    "field_reasoning_content": {
        "text": "B",
        "reasoning": "Is it A?",
        "reasoning_field": "reasoning_content",
    },
    "tags": {"text": "B", "reasoning": "Is it A?", "reasoning_field": "tags"},
    "closing_tag": {"text": "B", "reasoning": "Is it A?", "reasoning_field": "closing_tag"},
    "letter_in_thinking": {"text": "<think>I believe the answer is A.</think>\nThe answer is B."},
    "stray_tag": {"text": "<think>no</think>The answer is B. The tag </think> is only markup."},
    "leaked": {
        "text": "so maybe option B, but wait",
        "reasoning": "First I look at",
        "finish_reason": "length",
    },
    "all_thought": {"text": "B", "reasoning": LONG_THOUGHT, "reasoning_field": "reasoning"},
    "misrouted": {"text": "", "reasoning": "The answer is B.", "finish_reason": "stop"},
    "half_a_pair": {"text": "B \ud835"},
    "separators": {"text": "B\u2028\u2029\u0085\x00\x1e \r\n"},
    "odd_chunks": {"text": "B é漢𝔘\u2028\u0085", "fault": "partial_lines"},
    "cut_between_bytes": {"text": "é漢𝔘é漢𝔘\nB", "pieces": 9, "fault": "partial_lines"},
    "json_for_a_stream": {
        "body": json.dumps(
            {"choices": [{"message": {"content": "B"}, "finish_reason": "stop"}], "usage": None}
        )
    },
}
CUT = {
    "length_by_cap": "max_tokens",
    "length_by_context": "context",
    "null_finish_all_used": "max_tokens",
    "unclosed": "unclosed_thinking",
    "leaked": "max_tokens",
    "all_thought": "max_tokens",
}
UNREADABLE = {"filtered", "null_content", "misrouted", "odd_chunks", "cut_between_bytes"}
WRONG = {*CUT, *UNREADABLE, "wrong"}


@pytest.fixture(scope="module", params=[WHOLE, STREAMED], ids=["whole", "streamed"])
def zoo(
    request: pytest.FixtureRequest,
    healthy: RunningServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Lab:
    """One run over a reply of every kind; a completion_tokens of -1 stands for the limit."""
    lab = Lab(tmp_path_factory.mktemp("zoo"), healthy)
    steps = {
        id: step | ({"completion_tokens": request.param} if "completion_tokens" in step else {})
        for id, step in ZOO.items()
    }
    steps["length_by_context"]["completion_tokens"] = 7
    asking(lab, request.param, ZOO).script(steps)
    ended = lab.run()
    assert ended.code == 0, ended.screen
    (lab.folder / "screen.txt").write_text(ended.screen, encoding="utf-8")
    return lab


@pytest.fixture
def answers(zoo: Lab) -> dict[str, Json]:
    return zoo.job().answers()


def test_every_kind_of_reply_is_an_answer_that_was_asked_once(zoo: Lab) -> None:
    """rty-06: only transport and server errors are asked again, never a valid reply that is wrong,
    cut or unreadable; the number of attempts stands in the row.
    """
    assert zoo.attempts() == dict.fromkeys(ZOO, 1)
    assert all(line["attempts"] == 1 for line in zoo.job().gen())
    assert zoo.job().errors() == []


def test_request_has_the_switch_at_its_top_level(zoo: Lab) -> None:
    """thk-07: `extra_body` is a word of one client library; a raw request has none."""
    for record in zoo.asked():
        body = record["body"]
        assert body["chat_template_kwargs"] == {"enable_thinking": False}
        assert "extra_body" not in body
        assert bool(body.get("stream")) is (body["max_tokens"] == STREAMED)
        assert body["seed"] == 42
    salts = [record["body"]["cache_salt"] for record in zoo.asked()]
    assert len(set(salts)) == len(ZOO)


@pytest.mark.parametrize("id", ZOO)
def test_verdict_on_a_reply_of_this_kind(answers: dict[str, Json], id: str) -> None:
    """thk-01, thk-03 to thk-06, trc-01, trc-02: right, cut off and by what."""
    answer = answers[id]
    assert answer["right"] is (id not in WRONG)
    assert answer["cut_off"] is (id in CUT)
    assert answer["cut_by"] == CUT.get(id)


def test_cut_answer_with_the_right_letter_is_wrong_and_counted(zoo: Lab) -> None:
    """trc-01: by cap, by context and by thinking that never ended, each counted apart."""
    summary = zoo.job().summary()
    assert summary["status"] == "ok" and summary["n"] == summary["answered"] == len(ZOO)
    assert summary["right"] == len(ZOO) - len(WRONG)
    assert summary["cut_off"] == len(CUT)
    assert summary["cut_by"] == {"max_tokens": 4, "context": 1, "unclosed_thinking": 1}
    screen = (zoo.folder / "screen.txt").read_text(encoding="utf-8")
    row = next(line for line in screen.splitlines() if line.startswith("MMLU-Pro"))
    assert f"{summary['right']} / {len(ZOO)}" in row and f" {len(CUT)} " in row


def test_stop_at_exactly_max_tokens_is_finished(answers: dict[str, Json]) -> None:
    """trc-02: the word decides, the count only where there is no word."""
    answer = answers["stop_at_the_cap"]
    assert answer["right"] and answer["usage"]["completion_tokens"] in (WHOLE, STREAMED)


def test_answer_all_of_whose_tokens_went_into_thinking_is_cut_off(
    answers: dict[str, Json],
) -> None:
    """thk-05: content null, reasoning kept, tokens counted; a result, not a failure."""
    answer = answers["all_thought"]
    assert answer["text"] == "" and answer["finish_reason"] == "length"
    assert answer["reasoning_source"] == "reasoning" and answer["reasoning"].startswith("Let me")
    assert answer["usage"]["completion_tokens"] in (WHOLE, STREAMED)


def test_where_reasoning_came_from_is_stored(answers: dict[str, Json]) -> None:
    """Field, other field, tags, lone closing tag: the same text, the same letter."""
    sources = {
        "field_reasoning": "reasoning",
        "field_reasoning_content": "reasoning_content",
        "tags": "tags",
        "closing_tag": "tags",
    }
    for id, source in sources.items():
        assert answers[id]["reasoning_source"] == source
        assert (answers[id]["text"], answers[id]["reasoning"]) == ("B", "Is it A?")
    assert answers["right"]["reasoning_source"] == "none"
    assert answers["right"]["reasoning"] is None
    assert answers["stray_tag"]["text"].startswith("The answer is B. The tag </think>")


def test_misrouted_answer_is_wrong_counted_and_warned_of(zoo: Lab) -> None:
    """Content empty, reasoning not, stop: the reply sits in the wrong field."""
    assert zoo.job().answers()["misrouted"]["rule"] == "misrouted"
    summary = zoo.job().summary()
    assert summary["misrouted"] == 1
    assert any("reasoning field" in warning for warning in summary["warnings"])


def test_reasoning_with_thinking_off_is_warned_of_with_the_count(zoo: Lab) -> None:
    """thk-07, thk-09: a switch that does not reach the template shows in the row."""
    seen = sum(answer["reasoning"] is not None for answer in zoo.job().answers().values())
    summary = zoo.job().summary()
    assert summary["items_with_reasoning"] == seen == 10
    warning = f"thinking is off, yet {seen} of {len(ZOO)} answers have reasoning"
    assert warning in summary["warnings"]
    assert warning in (zoo.folder / "screen.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("id", ["half_a_pair", "separators", "odd_chunks", "cut_between_bytes"])
def test_strange_characters_are_stored_as_they_came(zoo: Lab, id: str) -> None:
    """log-01, log-02: one line an answer in pure ASCII, read back equal, no other row lost."""
    raw = {line["id"]: line["text"] for line in zoo.job().gen()}
    assert raw[id] == ZOO[id]["text"] == zoo.job().answers()[id]["text"]
    for name in ("mmlupro.gen.jsonl", "mmlupro.jsonl"):
        data = (zoo.job().folder / name).read_bytes()
        assert data.isascii() and data.count(b"\n") == len(ZOO)


def test_run_with_strange_characters_can_be_resumed(zoo: Lab) -> None:
    """log-02: the files that hold them are read again, and nothing is asked twice."""
    before = zoo.job().answers()
    requests = zoo.requests()
    assert qualeval(*zoo.command()).code == 0
    assert zoo.requests() == requests and zoo.job().answers() == before


def test_streamed_answers_have_a_time_to_first_token(zoo: Lab) -> None:
    """A whole reply has none; null is not zero."""
    for line in zoo.job().gen():
        streamed = "stream" in zoo.asked()[0]["body"] and line["id"] not in (
            "json_for_a_stream",
            "null_content",
            "filtered",
        )
        assert (line["time_to_first_token"] is not None) is streamed, line["id"]
        assert line["seconds"] > 0


def test_thinking_that_is_missing_with_thinking_on_is_warned_of(lab: Lab) -> None:
    """thk-07: none in a thinking-on part: warned with the count, never a stop."""
    lab.card["parts"] = {"think": {"list": "mine.jsonl"}}
    lab.list_of(4).script({"1": {"text": "B", "reasoning": "Hm."}})
    ended = lab.run(parts="think")
    assert ended.code == 0
    assert "thinking is on, yet 3 of 4 answers have no reasoning" in ended.out


# ------------------------------------------------------------------ the prompt cache


@pytest.mark.parametrize(
    ("cached", "state", "answers", "tokens"),
    [
        (None, "not reported by this server", None, None),
        (0, "none cached", 0, 0),
        (16, "cached tokens seen", 4, 64),
    ],
)
def test_cache_check_has_three_states(
    lab: Lab, limit: int, cached: int | None, state: str, answers: int | None, tokens: int | None
) -> None:
    """0 is never said for "not reported"."""
    step = {"text": "B"} | ({} if cached is None else {"cached_tokens": cached})
    asking(lab, limit, 4).script(default=step)
    assert lab.run().code == 0
    assert lab.job().summary()["cache_check"] == {
        "state": state,
        "answers_with_cached_tokens": answers,
        "cached_tokens": tokens,
    }


# ------------------------------------------------------------------ the server goes away


def test_server_that_is_gone_for_good_ends_the_run_and_keeps_the_answers(
    tmp_path: Path, limit: int
) -> None:
    """All slots wait on one probe; then exit 1 with what is done, and the same command goes on at
    a new server of another version, with a warning.
    """
    with running(slots=4, service=0.02, down={"after": 10}) as server:
        lab = asking(Lab(tmp_path, server), limit, 40)
        lab.card["retries"] = {"attempts": 3, "max_wait": 1.2}
        started = time.monotonic()
        ended = lab.run()
        assert time.monotonic() - started < PATIENCE
    assert ended.code == 1
    assert "server gone" in ended.err and "10 of 40 done" in ended.err
    assert lab.job().log.count("server does not answer") == 1
    assert "server gone" in lab.job().log
    assert len(lab.job().gen()) == 10
    done = {line["id"] for line in lab.job().gen()}
    assert lab.job().sessions()[0]["ended"] is not None
    assert lab.job().summary()["status"] == "incomplete"

    with running(slots=4, version="0.12.0") as server:
        lab.card["server"]["base_url"] = server.base_url
        lab.server = server
        ended = lab.run()
        assert ended.code == 0
        assert set(lab.attempts()) == {str(i) for i in range(40)} - {str(i) for i in done}
        assert set(lab.attempts().values()) == {1}
    assert "engine_version changed between two sessions" in ended.out
    assert len(lab.job().sessions()) == 2
    assert lab.job().summary()["status"] == "ok"


def test_server_that_comes_back_is_gone_on_with(tmp_path: Path, limit: int) -> None:
    """It restarts and loads for a while: one probe asks, nothing is lost, the run completes."""
    with running(
        slots=4, service=0.02, down={"after": 10, "seconds": 1.2}, loading_seconds=0.7
    ) as server:
        # `loading_seconds` counts from the start too: the run waits for it, then for the restart.
        lab = asking(Lab(tmp_path, server), limit, 40)
        lab.card["retries"] = {"attempts": 3, "max_wait": 30}
        assert lab.run().code == 0
        log = lab.job().log
        assert log.count("server does not answer") == log.count("server is back") == 1
        assert server.summary()["outcomes"]["answered"] == 40
        assert server.summary()["outcomes"].get("refused", 0) == 0, "only the probe asks"
    assert lab.job().summary()["errors"] == 0


def test_server_that_never_was_is_said_at_once(lab: Lab) -> None:
    """No server at the start: exit 1 that names the address, nothing written but card and log."""
    lab.card["server"]["base_url"] = f"http://127.0.0.1:{GONE_PORT}/v1"
    ended = lab.list_of(3).run()
    assert ended.code == 1
    assert f"127.0.0.1:{GONE_PORT}" in ended.err and "does not answer" in ended.err
    assert not (lab.job().folder / "mmlupro.gen.jsonl").exists()


def test_one_of_two_servers_that_is_gone_for_good_ends_the_run(tmp_path: Path) -> None:
    """Half of the slots are no run as described: it stops, and everything answered is kept."""
    with (
        running(slots=2, service=0.02, down={"after": 5}) as one,
        running(slots=2, service=0.02) as two,
    ):
        lab = Lab(tmp_path).list_of(60)
        del lab.card["server"]["slots"]
        lab.card["server"]["endpoints"] = [
            {"base_url": one.base_url, "slots": 2},
            {"base_url": two.base_url, "slots": 2},
        ]
        lab.card["retries"] = {"attempts": 3, "max_wait": 0.6}
        ended = lab.run()
        assert ended.code == 1 and "server gone" in ended.err
        assert len(lab.job().gen()) >= 5
        assert lab.job().summary()["status"] == "incomplete"
