"""Bounded retries around a client, and what happens when the server is gone. Knows no benchmark.

A request that failed in a way that may pass is tried again after a wait, `Retries.attempts` times
in all. While it waits its slot works on something else. When no server is there at all, every slot
of that endpoint waits on one probe; if the server does not come back within `Retries.max_wait`
seconds the run ends with ServerGoneError and everything answered so far is kept.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import anyio

from qualeval.card import Retries
from qualeval.errors import RequestError, ServerGoneError
from qualeval.pool import PostponedError
from qualeval.records import Completion, Request

PROBE_EVERY = 0.5
"""Seconds between two looks at a server that is gone."""


@dataclass(frozen=True, slots=True)
class GivenUp:
    """A request that failed for good: its last error, and how often it was sent."""

    error: RequestError
    attempts: int


class Work(Protocol):
    """What a slot works on: a request, and a note of how often it was tried."""

    request: Request
    attempts: int


SomeWork = TypeVar("SomeWork", bound=Work)


def backoff(attempt: int, asked: float | None, max_wait: float) -> float:
    """Seconds to wait after failed attempt number `attempt`: what the server asked for, else
    1, 2, 4, ...; never more than `max_wait`. Asked for 0, all attempts would be over in a moment.
    """
    return min(asked or 2.0 ** min(attempt - 1, 30), max_wait)


class Gate:
    """Lets requests through while the server is there; one probe asks for all when it is gone."""

    def __init__(
        self, probe: Callable[[], Awaitable[None]], max_wait: float, say: Callable[[str], None]
    ) -> None:
        self._probe = probe
        self._max_wait = max_wait
        self._say = say
        self._open: anyio.Event | None = None

    async def wait_until_back(self, why: str) -> None:
        """Return once the server answers. Raises ServerGoneError after `max_wait` seconds."""
        if self._open is not None:
            await self._open.wait()
            return
        self._open = anyio.Event()
        try:
            await self._watch(why)
        finally:
            self._open.set()
            self._open = None

    async def _watch(self, why: str) -> None:
        self._say(f"server does not answer ({why}); waiting up to {self._max_wait:.0f} s for it")
        deadline = anyio.current_time() + self._max_wait
        while True:
            try:
                await self._probe()
            except RequestError as error:
                if not error.retry or anyio.current_time() + PROBE_EVERY > deadline:
                    raise ServerGoneError(f"server gone: {error}") from None
                await anyio.sleep(PROBE_EVERY)
            else:
                self._say("server is back")
                return


class Asker(Generic[SomeWork]):
    """A worker for the pool: asks one endpoint through one connection, with bounded retries."""

    def __init__(
        self,
        send: Callable[[SomeWork], Awaitable[Completion]],
        gate: Gate,
        retries: Retries,
        say: Callable[[SomeWork, str], None],
    ) -> None:
        self._send = send
        self._gate = gate
        self._retries = retries
        self._say = say

    async def __call__(self, work: SomeWork) -> Completion | GivenUp:
        """One attempt. Raises PostponedError before another, ServerGoneError without a server."""
        work.attempts += 1
        try:
            completion = await self._send(work)
        except RequestError as error:
            return await self._failed(work, error)
        if work.attempts > 1:
            completion = completion.model_copy(update={"attempts": work.attempts})
        return completion

    async def _failed(self, work: SomeWork, error: RequestError) -> GivenUp:
        more = error.retry and work.attempts < self._retries.attempts
        wait = backoff(work.attempts, error.retry_after, self._retries.max_wait) if more else 0.0
        self._say(
            work,
            f"item {work.request.id} attempt {work.attempts}: {error.kind}: {error}"
            + (f"; again in {wait:g} s" if more else "; given up"),
        )
        if error.unreachable or error.kind == "http_503":
            await self._gate.wait_until_back(error.kind)
            wait = wait if error.kind == "http_503" else 0.0
        if more:
            raise PostponedError(wait)
        return GivenUp(error, work.attempts)
