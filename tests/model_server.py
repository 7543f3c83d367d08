"""The project's test server: a model server with slots, a queue and faults on demand.

A real socket server in a process of its own, standard library only, one process, one thread of
work. In a test or a bench:

    with model_server.running(slots=16, script={"items": {"7": [{"status": 500}, {}]}}) as server:
        ask(server.base_url)
        assert server.summary()["requests"] == 2

From a shell it runs until its standard input ends: `python tests/model_server.py '{"slots": 4}'`
(or a file name instead of the JSON; `-` reads it from the first line of standard input). It prints
{"port": .., "pid": ..} as one line. `model_server_replies` holds the options and the script.

Beside the pages of a model server it has, never behind key or faults:
    GET /_stats[?summary=1]   counters, and every chat request with its times and body
    POST /_reset              forget requests, counters and attempts; serve all
    POST /_script             replace the script; attempts start at the first step again
    POST /_serve              {"requests": N}: give slots to N more chat requests, then to none
                              until told again; null (as after a reset): to all
    POST /_stop               end

A chat request holds a slot for its service time; the next one in the queue starts at the very
instant at which the slot's last one was to end, however late the timer fired: no drift. A silent
reply (hang, slow_body, stall_stream) holds its slot until the client leaves. A client that leaves
frees its slot at once. Loading counts from the start and again from each return after `down`.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import http.client
import json
import math
import os
import random
import re
import select
import selectors
import socket
import struct
import subprocess
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from model_server_replies import (
    Ask,
    Json,
    Live,
    Options,
    Script,
    Wire,
    ask_of,
    error,
    page,
    prompt_tokens,
    response,
    wire,
)

__all__ = ["PATIENCE", "Options", "RunningServer", "running", "service_times", "start"]

PATIENCE = 60.0
"""Seconds that anything may take on a machine with other work; on a quiet one it takes far less."""

# ------------------------------------------------------------------ for tests and benches


@dataclass
class RunningServer:
    """A started server: where it is, what it saw, how to end it."""

    process: subprocess.Popen[bytes]
    port: int

    @property
    def root(self) -> str:
        """Without /v1."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def base_url(self) -> str:
        """As a card names it."""
        return f"{self.root}/v1"

    def stats(self) -> Json:
        """{"summary": .., "requests": [..]}: every chat request since the start or the reset."""
        return self._call("GET", "/_stats")

    def summary(self) -> Json:
        """The counters alone."""
        return self._call("GET", "/_stats?summary=1")

    def reset(self) -> None:
        """Forget requests, counters and attempts, and serve all."""
        self._call("POST", "/_reset")

    def script(self, script: Json) -> None:
        """Replace the script; attempts start at the first step again."""
        self._call("POST", "/_script", script)

    def serve(self, requests: int | None) -> None:
        """Give slots to so many more chat requests; the next ones wait until this is called again.

        None: to all. What must be seen in its middle waits there, whatever the machine does.
        """
        self._call("POST", "/_serve", {"requests": requests})

    def stop(self) -> None:
        """End the process and wait for it; a second call does nothing."""
        assert self.process.stdin and self.process.stdout
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        try:
            self.process.wait(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()

    def _call(self, method: str, path: str, body: Json | None = None) -> Json:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request(method, path, None if body is None else json.dumps(body))
            answer: Json = json.loads(connection.getresponse().read())
        finally:
            connection.close()
        return answer


def start(**options: Any) -> RunningServer:
    """Start a server with these fields of `Options`; return when it listens."""
    Options(**options)  # a wrong option is an error here, not in the other process
    process = subprocess.Popen(
        [sys.executable, __file__, "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin and process.stdout
    process.stdin.write(json.dumps(options).encode() + b"\n")
    process.stdin.flush()
    line = process.stdout.readline()
    if not line:
        raise RuntimeError(f"the test server ended at its start with status {process.wait()}")
    return RunningServer(process, json.loads(line)["port"])


@contextlib.contextmanager
def running(**options: Any) -> Iterator[RunningServer]:
    """A server for the length of a with block."""
    server = start(**options)
    try:
        yield server
    finally:
        server.stop()


def service_times(n: int, mean: float, sigma: float, seed: int) -> list[float]:
    """The first n service times in seconds: lognormal with this mean, mu = ln(mean) - sigma²/2.

    A longer list starts with the shorter one, so the server can draw them one by one.
    """
    draw, mu = random.Random(seed), math.log(mean) - sigma**2 / 2
    return [draw.lognormvariate(mu, sigma) for _ in range(n)]


# ------------------------------------------------------------------ slots and their schedule


@dataclass(slots=True, eq=False)
class Job:
    """One chat request on its way, and its record afterwards. Times are time.monotonic()."""

    connection: Connection | None
    connection_number: int
    arrival: float
    item: str = ""
    attempt: int = 0
    service: float = 0.0
    wire: Wire | None = None
    body: bytes | None = None
    status: int | None = None
    outcome: str = "waiting"
    """waiting, running, answered, refused (no slot was used), client_gone, server_down."""
    start: float | None = None
    end: float | None = None
    sent: float | None = None
    """When the last byte was handed to the kernel: later than `end` by the timer's lateness."""
    timers: list[asyncio.TimerHandle] = field(default_factory=list)

    def stop(self, outcome: str, at: float) -> None:
        """Close the record; what only the running job needed is let go."""
        self.outcome, self.end, self.connection, self.wire = outcome, at, None, None
        for timer in self.timers:
            timer.cancel()
        self.timers.clear()


class Slots:
    """N slots with a first-in first-out queue in front."""

    def __init__(self, loop: asyncio.AbstractEventLoop, options: Options) -> None:
        self._loop, self._slots, self._limit = loop, options.slots, options.queue_limit
        self.queue: deque[Job] = deque()
        self.running: set[Job] = set()
        self.most = Counter[str]()
        self.on_answer: Callable[[Job], None] = lambda job: None
        self._left: int | None = None

    def serve(self, requests: int | None) -> None:
        """Start so many more jobs and then none, until called again; None: all."""
        self._left = requests
        self._refill(self._loop.time())

    def _one_is_free(self) -> bool:
        return len(self.running) < self._slots and self._left != 0

    def offer(self, job: Job) -> bool:
        """Start or queue the job; False when the queue is full."""
        busy, queued, free = len(self.running), len(self.queue), self._one_is_free()
        if not free and self._limit is not None and queued >= self._limit:
            return False
        if busy + queued >= self.most["in_flight"]:
            self.most["in_flight"] = busy + queued + 1
        if free:
            self._start(job, job.arrival)
        else:
            self.queue.append(job)
            if queued >= self.most["queued"]:
                self.most["queued"] = queued + 1
        return True

    def leave(self, job: Job) -> None:
        """The client is gone: a real server stops generating, so the slot is free now."""
        now = self._loop.time()
        job.stop("client_gone", now)
        if job in self.running:
            self.running.remove(job)
            self._refill(now)
        else:
            self.queue.remove(job)

    def drop_all(self) -> None:
        """The server goes down: nothing that runs or waits is answered."""
        now = self._loop.time()
        for job in (*self.running, *self.queue):
            job.stop("server_down", now)
        self.running.clear()
        self.queue.clear()

    def _start(self, job: Job, at: float) -> None:
        assert job.wire and job.connection
        job.start, job.outcome = at, "running"
        if self._left is not None:
            self._left -= 1
        self.running.add(job)
        if len(self.running) > self.most["busy"]:
            self.most["busy"] = len(self.running)
        if job.service == 0:
            self._answer(job, b"".join(data for _, data in job.wire.parts), at)
            return
        end = at + job.service
        due: dict[float, bytes] = {0.0: b"", 1.0: b""}
        for share, data in job.wire.parts:
            due[share] = due.get(share, b"") + data  # timers of one instant have no order
        first, last = due.pop(0.0), due.pop(1.0)
        if first:
            job.connection.write(first)
        for share, data in due.items():
            when = at + share * job.service
            job.timers.append(self._loop.call_at(when, job.connection.write, data))
        job.timers.append(self._loop.call_at(end, self._finish, job, last, end))

    def _finish(self, job: Job, last: bytes, end: float) -> None:
        job.timers.clear()
        self._answer(job, last, end)
        if job.outcome == "answered":
            self._refill(end)

    def _refill(self, at: float) -> None:
        while self.queue and self._one_is_free():
            job = self.queue.popleft()
            self._start(job, max(at, job.arrival))  # it may have come while the timer was late

    def _answer(self, job: Job, last: bytes, end: float) -> None:
        """The last bytes leave and the slot is free, unless the reply is one that goes silent."""
        assert job.wire and job.connection
        if last:
            job.connection.write(last)
        if job.wire.after == "hang":
            return
        job.sent = self._loop.time()
        connection, after = job.connection, job.wire.after
        self.running.remove(job)
        job.stop("answered", end)
        connection.finish(after)
        self.on_answer(job)


# ------------------------------------------------------------------ HTTP/1.1


class Connection(asyncio.Protocol):
    """Reads one request at a time; the next one on the same connection waits for the reply."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._buffer = b""
        self._replying = False
        self._last = False
        self.job: Job | None = None
        self.transport: asyncio.Transport
        self.number = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.write = transport.write
        self.number = self._server.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.closed(self)

    def data_received(self, data: bytes) -> None:
        self._buffer = self._buffer + data if self._buffer else data
        if not self._replying:
            self._next()

    def answer(self, whole: bytes) -> None:
        """Send a reply that needs no slot."""
        self.write(whole)
        self.finish("keep")

    def finish(self, after: str) -> None:
        """The reply is out: go on, close, or reset."""
        self.job = None
        if after == "reset":
            self.reset()
        elif after == "close" or self._last:
            self.transport.close()
        else:
            self._replying = False
            if self._buffer:
                asyncio.get_running_loop().call_soon(self._go_on)

    def reset(self) -> None:
        """Close with RST: with a linger time of zero the kernel sends no FIN."""
        sock = self.transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()

    def _go_on(self) -> None:
        if not self._replying:
            self._next()

    def _next(self) -> None:
        """Hand the next whole request in the buffer to the server."""
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        head = self._buffer[:end]
        length = header(head, b"content-length")
        size = end + 4 + (int(length) if length else 0)
        if len(self._buffer) < size:
            return
        body, self._buffer = self._buffer[end + 4 : size], self._buffer[size:]
        self._replying = True
        self._last = header(head, b"connection").lower() == b"close"
        method, target, _ = head[: head.find(b"\r\n")].split(b" ", 2)
        self._server.handle(self, method, target, head, body)


def header(head: bytes, name: bytes) -> bytes:
    """The value of a header (name in lower case), empty when it is not there."""
    at = head.lower().find(b"\r\n" + name + b":")
    if at < 0:
        return b""
    at += len(name) + 3
    end = head.find(b"\r\n", at)
    return head[at : end if end >= 0 else None].strip()


# ------------------------------------------------------------------ the model server


class Server:
    """Decides who is refused, gives every request its step and its service time, keeps records."""

    def __init__(self, loop: asyncio.AbstractEventLoop, options: Options) -> None:
        self._loop, self._options = loop, options
        self._script = Script(options.script)
        self._slots = Slots(loop, options)
        self._slots.on_answer = self._answered
        self._connections: set[Connection] = set()
        self._opened = 0
        self._listener: asyncio.Server | None = None
        self._port = options.port
        self._wall = time.time() - time.monotonic()
        self._up = loop.time()
        self._loading = options.loading_requests
        self._down = options.down
        self.forget()

    def forget(self) -> None:
        """Start the records anew; the service times begin at the first one again."""
        self._jobs: list[Job] = []
        self._seen = Counter[str]()
        self._uses = Counter[str]()
        self._order: dict[str, int] = {}
        self._cpu = time.process_time()
        self._total = 0
        self._slots.most.clear()
        service = self._options.service
        self._times: list[float] = []
        if isinstance(service, dict):
            self._draw = random.Random(service["seed"])

    async def listen(self) -> int:
        """Open the listener, on the same port every time; return the port."""
        self._listener = await self._loop.create_server(
            lambda: Connection(self), "127.0.0.1", self._port, backlog=1024
        )
        self._port = self._listener.sockets[0].getsockname()[1]
        self._up = self._loop.time()
        return self._port

    def opened(self, connection: Connection) -> int:
        self._connections.add(connection)
        self._opened += 1
        return self._opened

    def closed(self, connection: Connection) -> None:
        self._connections.discard(connection)
        if connection.job is not None:
            self._slots.leave(connection.job)
            connection.job = None

    def handle(
        self, connection: Connection, method: bytes, target: bytes, head: bytes, body: bytes
    ) -> None:
        """One whole request."""
        if target == b"/v1/chat/completions" and method == b"POST":
            self._chat(connection, head, body)
        elif target.startswith(b"/_"):
            self._own_page(connection, method, target, body)
        else:
            connection.answer(self._page(method.decode(), target.decode(), head, body))

    # -------------------------------------------------------------- chat

    def _chat(self, connection: Connection, head: bytes, raw: bytes) -> None:
        job = Job(connection, connection.number, self._loop.time())
        self._jobs.append(job)
        refusal = self._closed_door(head, "/v1/")
        if refusal is None:
            try:
                body = json.loads(raw)
                ask = ask_of(body)
            except (ValueError, TypeError, AttributeError, KeyError) as fault:
                refusal = error(400, f"bad request: {fault}")
            else:
                job.item = self._script.item_of(ask.text)
                job.attempt = self._seen[job.item] = self._seen[job.item] + 1
                job.body = raw if self._options.record_bodies else None
                refusal = self._refuse(body, ask) or self._accept(job, connection, ask)
        if refusal is not None:
            job.stop("refused", job.arrival)
            job.status = int(refusal[9:12])
            connection.answer(refusal)

    def _closed_door(self, head: bytes, path: str) -> bytes | None:
        """What a client gets while the model loads, or with a wrong key."""
        loading = self._loop.time() - self._up < self._options.loading_seconds
        if self._loading > 0:
            self._loading -= 1
            loading = True
        if loading:
            return error(503, "Loading model", "unavailable_error")
        key = self._options.api_key
        if key is None or path in ("/health", "/metrics"):
            return None
        given = header(head, b"authorization").decode("latin-1").removeprefix("Bearer ")
        if given == key:
            return None
        return error(401, f"Incorrect API key provided: {given}.", "invalid_api_key")

    def _refuse(self, body: Json, ask: Ask) -> bytes | None:
        """What a healthy server would not take."""
        options = self._options
        for name in options.reject_fields:
            if name in body:
                return error(400, f"Unrecognized request argument: {name}", param=name)
        if options.require_model and ask.model not in (options.model, *options.aliases):
            missing = f"The model `{ask.model}` does not exist."
            return error(404, missing, "NotFoundError", param="model")
        needed = prompt_tokens(options, ask.text) + (ask.max_tokens or 0)
        if options.enforce_context and needed > options.context:
            text = f"maximum context length is {options.context} tokens, the request needs {needed}"
            return error(400, text, "exceed_context_size_error", n_ctx=options.context)
        return None

    def _accept(self, job: Job, connection: Connection, ask: Ask) -> bytes | None:
        """Give the request its step and a slot or a place in the queue, else 429."""
        step = self._script.step(job.item, self._uses[job.item])
        job.wire = wire(self._options, step, ask)
        job.status = job.wire.status
        seconds = step.service_seconds
        job.service = self._service(job.item) if seconds is None else seconds
        connection.job = job
        if self._slots.offer(job):
            self._uses[job.item] += 1
            return None
        connection.job = None
        text = "too many requests wait"
        return error(429, text, headers={"Retry-After": self._options.retry_after})

    def _service(self, item: str) -> float:
        """The service time of an item: the same at every attempt."""
        service = self._options.service
        if not isinstance(service, dict):
            return service
        index = self._order.setdefault(item, len(self._order))
        if service.get("by") == "item" and (number := re.search(r"\d+$", item)):
            index = int(number[0])
        mean, sigma = service["mean"], service["sigma"]
        while len(self._times) <= index:
            self._times.append(self._draw.lognormvariate(math.log(mean) - sigma**2 / 2, sigma))
        return self._times[index]

    # -------------------------------------------------------------- down and up again

    def _answered(self, job: Job) -> None:
        self._total += 1
        if self._down is not None and self._total >= self._down["after"]:
            seconds, self._down = self._down.get("seconds"), None
            self._go_down(job, seconds)

    def _go_down(self, last: Job, seconds: float | None) -> None:
        """Close the listener and reset every connection but the one just answered: FIN there."""
        assert self._listener
        self._listener.close()
        self._slots.drop_all()
        for connection in tuple(self._connections):
            connection.job = None
            if connection.number == last.connection_number:
                connection.transport.close()
            else:
                connection.reset()
        if seconds is not None:
            self._loop.call_later(seconds, lambda: self._loop.create_task(self.listen()))

    # -------------------------------------------------------------- pages and records

    def _page(self, method: str, target: str, head: bytes, raw: bytes) -> bytes:
        path = target.partition("?")[0]
        refusal = self._closed_door(head, path)
        if refusal is not None:
            return refusal
        live = Live(len(self._slots.running), len(self._slots.queue), self._wall + self._up)
        try:
            return page(self._options, live, method, path, json.loads(raw) if raw else {})
        except (ValueError, TypeError, AttributeError) as fault:
            return error(400, f"bad request: {fault}")

    def _own_page(self, connection: Connection, method: bytes, target: bytes, raw: bytes) -> None:
        answer: Json = {"ok": True}
        if target == b"/_stats?summary=1":
            answer = self._summary()
        elif target == b"/_stats":
            answer = {"summary": self._summary(), "requests": [self._record(j) for j in self._jobs]}
        elif (method, target) == (b"POST", b"/_reset"):
            self.forget()
            self._slots.serve(None)
        elif (method, target) == (b"POST", b"/_serve"):
            self._slots.serve(json.loads(raw)["requests"])
        elif (method, target) == (b"POST", b"/_script"):
            self._script = Script(json.loads(raw))
            self._uses.clear()
        elif (method, target) == (b"POST", b"/_stop"):
            self._loop.call_soon(self._loop.stop)
        else:
            connection.answer(error(404, f"no such page: {target.decode()}"))
            return
        connection.answer(response(200, json.dumps(answer).encode()))

    def _record(self, job: Job) -> Json:
        times = {"arrival": job.arrival, "start": job.start, "end": job.end, "sent": job.sent}
        wall = {
            f"{name}_unix": None if at is None else at + self._wall for name, at in times.items()
        }
        names = ("item", "attempt", "outcome", "status", "service")
        return {
            **{name: getattr(job, name) for name in names},
            "body": None if job.body is None else json.loads(job.body),
            "connection": job.connection_number,
            **times,
            **wall,
        }

    def _summary(self) -> Json:
        """Counters and seconds; in flight means arrived and not ended."""
        jobs = self._jobs
        ended = [job for job in jobs if job.end is not None]
        first = min((job.arrival for job in jobs), default=0.0)
        makespan = max((job.end or first for job in ended), default=first) - first
        inside = sum((job.end or 0) - job.arrival for job in ended)
        late = [job.sent - job.end for job in ended if job.sent is not None and job.end is not None]
        busy = sum((job.end or 0) - job.start for job in ended if job.start is not None)
        return {
            "requests": len(jobs),
            "items": len(self._seen),
            "outcomes": Counter(job.outcome for job in jobs),
            "statuses": Counter(str(job.status) for job in jobs),
            "connections": self._opened,
            "makespan": makespan,
            "busy_slot_seconds": busy,
            "max_in_flight": self._slots.most["in_flight"],
            "mean_in_flight": inside / makespan if makespan else 0.0,
            "max_busy": self._slots.most["busy"],
            "mean_busy": busy / makespan if makespan else 0.0,
            "max_queued": self._slots.most["queued"],
            "late_mean": sum(late) / len(late) if late else 0.0,
            "late_max": max(late, default=0.0),
            "cpu_seconds": time.process_time() - self._cpu,
        }


# ------------------------------------------------------------------ the process


class FineSelector(selectors.DefaultSelector):
    """Waits to the microsecond. epoll_wait rounds up to whole milliseconds, select does not, and
    an epoll descriptor can itself be waited for with select."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is not None and timeout > 0:
            select.select([self.fileno()], [], [], timeout)
            timeout = 0
        return super().select(timeout)


def end_with_stdin(loop: asyncio.AbstractEventLoop) -> None:
    """Stop when standard input ends: the parent closed it, or is dead."""

    def watch() -> None:
        while os.read(0, 65536):
            pass
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(loop.stop)

    threading.Thread(target=watch, daemon=True).start()


def read_options(argument: str) -> Options:
    """Options from JSON text, from a file, or (`-`) from the first line of standard input."""
    if argument == "-":
        argument = sys.stdin.buffer.readline().decode()
    elif not argument.lstrip().startswith("{"):
        argument = Path(argument).read_text(encoding="utf-8")
    return Options(**json.loads(argument))


def main(arguments: list[str]) -> int:
    options = read_options(arguments[0] if arguments else "{}")
    if sys.platform == "linux":
        pr_set_timerslack = 29
        ctypes.CDLL(None).prctl(pr_set_timerslack, 1, 0, 0, 0)  # 1 ns in place of 50 us
    loop = asyncio.SelectorEventLoop(FineSelector())
    server = Server(loop, options)
    port = loop.run_until_complete(server.listen())
    end_with_stdin(loop)
    gc.collect()
    gc.freeze()
    gc.disable()  # a collection would make a reply late
    print(json.dumps({"port": port, "pid": os.getpid()}), flush=True)
    loop.run_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
