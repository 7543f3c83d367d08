"""All HTTP to the model server: one Request in, one Completion or one RequestError out.

The only module that imports httpx. One `ModelClient` belongs to one slot and holds one connection;
all of them share one SSL context (a single client for all slots costs several times the CPU).
Nothing here retries, waits or grades.
"""

import json
import logging
import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from time import perf_counter
from typing import Any
from urllib.request import getproxies

import anyio
import httpcore
import httpx
from pydantic import JsonValue

from qualeval import __version__
from qualeval.card import Timeouts, is_loopback
from qualeval.errors import InputError, RequestError
from qualeval.masking import excerpt
from qualeval.records import Completion, Json, Request, now
from qualeval.reply import text_and_thinking, to_completion
from qualeval.sse import EventReader

# httpx logs every URL at INFO, with the user name and password that may be in it.
logging.getLogger("httpx").setLevel(logging.WARNING)

RETRIED_STATUS = frozenset((408, 425, 429))
"""Client errors that may pass; every 5xx may too, every other 4xx is final."""

AFTER_FINISH = 10.0
"""Seconds that a stream may still take for usage and [DONE] once the answer is finished."""

KEEP_ALIVE = 5.0
"""Seconds after which an idle connection is not used again, as in httpx: servers close theirs."""


class ModelClient:
    """One connection to one endpoint. Use as an async context manager.

    Raises InputError for a key that no header takes, and for a proxy that cannot be used.
    """

    def __init__(
        self,
        base_url: str,
        *,
        api_key: str | None = None,
        timeouts: Timeouts | None = None,
        ssl_context: ssl.SSLContext | bool | None = None,
    ) -> None:
        self.base_url = base_url
        self._secrets = (api_key,) if api_key else ()
        self._timeouts = timeouts or Timeouts()
        headers = {"content-type": "application/json", "user-agent": f"qualeval/{__version__}"}
        if api_key and not re.fullmatch("[!-~]+", api_key):
            raise InputError(
                "server.api_key_env: the key in this environment variable holds a space, a line "
                "end or another character that no key has"
            )
        if api_key:
            headers["authorization"] = f"Bearer {api_key}"
        # One context for all slots: each costs 20 ms, and plain http needs none.
        verify = ssl_context if ssl_context is not None else ssl_for(base_url)
        # No proxy reaches this machine's own loopback, whatever the shell's variables say.
        direct = None if getproxies() and not is_loopback(base_url) else _OneConnection(verify)
        try:
            self._http = httpx.AsyncClient(
                headers=headers,
                timeout=httpx.Timeout(None, connect=self._timeouts.connect),
                limits=httpx.Limits(max_connections=None, max_keepalive_connections=1),
                trust_env=direct is None,
                verify=verify,
                transport=direct,
            )
        except (ImportError, ValueError) as error:  # a socks proxy, or no proxy's address
            why = excerpt(str(error), self._secrets)
            raise InputError(f"HTTP_PROXY, HTTPS_PROXY or ALL_PROXY: {why}") from None
        # Straight to the connection where there is no proxy: the client between the two looks after
        # redirects, cookies and logins, which no chat request has, for a fifth of its CPU.
        self._send: Callable[[httpx.Request], Awaitable[httpx.Response]] = (
            direct.handle_async_request if direct else partial(self._http.send, stream=True)
        )
        self._chat_url = httpx.URL(base_url + "/chat/completions")
        self._chat_extensions = {"timeout": self._http.timeout.as_dict()}

    async def __aenter__(self) -> "ModelClient":
        await self._http.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        with anyio.CancelScope(shield=True):
            await self._http.aclose()

    async def complete(
        self, request: Request, extra: Mapping[str, str] | None = None
    ) -> Completion:
        """Send one chat request (with `extra` fields, such as a fresh salt) and read its reply.

        Raises RequestError, with `retry` set where the same request may be sent again.
        """
        content = json.dumps({**request.body, **(extra or {})}).encode()
        streamed = request.body.get("stream") is True
        start = perf_counter()
        with self._errors_named(self._timeouts.total_for(request.max_tokens)):
            response = await self._send(
                httpx.Request(
                    "POST",
                    self._chat_url,
                    headers=self._http.headers,
                    content=content,
                    extensions=self._chat_extensions,
                )
            )
            try:
                if streamed:
                    completion, first = await self._read_stream(response, request.max_tokens)
                else:
                    await response.aread()
                    self._refuse_status(response)
                    completion = self._read_whole(response.content, request.max_tokens)
                    first = None
            finally:
                if not response.is_closed:
                    with anyio.CancelScope(shield=True):
                        await response.aclose()
        timing = {
            "seconds": round(perf_counter() - start, 4),
            "time_to_first_token": None if first is None else round(first - start, 4),
            "ended": now(),
        }
        return completion.model_copy(update=timing)

    async def ask(
        self, method: str, path: str, body: Json | None = None, seconds: float = 10
    ) -> str:
        """Text of a small side request (`/v1/models`, `/props`, ...); `path` is from the root.

        Raises RequestError as `complete` does.
        """
        root = self.base_url.removesuffix("/v1")
        url = self.base_url + path.removeprefix("/v1") if path.startswith("/v1/") else root + path
        with self._errors_named(seconds):
            response = await self._http.request(method, url, json=body, timeout=seconds)
            self._refuse_status(response)
            return response.content.decode("utf-8", "replace")

    @contextmanager
    def _errors_named(self, total: float) -> Iterator[None]:
        """Turn what httpx and the clock raise into RequestErrors that name no URL."""
        try:
            with anyio.fail_after(total):
                yield
        except TimeoutError:
            raise RequestError("timeout", f"no reply within {total:.0f} s", retry=True) from None
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            why = excerpt(str(error), self._secrets) or "connection failed"
            raise RequestError("connect", why, retry=True, unreachable=True) from None
        except httpx.TransportError as error:
            why = excerpt(f"{type(error).__name__}: {error}", self._secrets)
            raise RequestError("connection_lost", why, retry=True) from None
        except httpx.HTTPError as error:
            raise RequestError("bad_http", type(error).__name__, retry=True) from None

    def _refuse_status(self, response: httpx.Response) -> None:
        status = response.status_code
        if status == 200:
            return
        said = excerpt(response.content.decode("utf-8", "replace"), self._secrets)
        retry = status in RETRIED_STATUS or status >= 500
        raise RequestError(
            f"http_{status}",
            f"HTTP {status}: {said}" if said else f"HTTP {status}",
            retry=retry,
            retry_after=retry_after(response.headers.get("retry-after"), datetime.now(UTC)),
        )

    def _read_whole(self, content: bytes, max_tokens: int) -> Completion:
        reply = self._parse(content)
        choice = self._only_choice(reply)
        message = choice.get("message")
        if not isinstance(message, dict) or not message.keys() & MESSAGE_FIELDS:
            raise RequestError("empty_message", self._quote(content), retry=True)
        return to_completion(message, _word(choice), _block(reply, "usage"), max_tokens)

    async def _read_stream(
        self, response: httpx.Response, max_tokens: int
    ) -> tuple[Completion, float | None]:
        """The completion of an SSE stream, and when its first token came."""
        if response.status_code != 200:
            await response.aread()
            self._refuse_status(response)
        if response.headers.get("content-type", "").startswith("application/json"):
            return self._read_whole(await response.aread(), max_tokens), None
        stream = _StreamedReply(self)
        try:
            with anyio.CancelScope() as idle:
                async for chunk in response.aiter_bytes():
                    stream.take(chunk)
                    limit = AFTER_FINISH if stream.finish_reason else self._timeouts.idle
                    idle.deadline = anyio.current_time() + (1.0 if stream.done else limit)
                stream.close()
        except httpx.TransportError:
            if not stream.finish_reason:
                raise
        if idle.cancelled_caught and not stream.finish_reason and not stream.done:
            silent = f"the stream was silent for {self._timeouts.idle:.0f} s"
            raise RequestError("idle_timeout", silent, retry=True)
        return stream.completion(max_tokens), stream.first_token

    def _parse(self, content: bytes) -> Json:
        """A JSON object of the server, or a RequestError that quotes the start of what came."""
        try:
            reply = json.loads(content)
        except UnicodeDecodeError:
            raise RequestError("bad_encoding", "the reply is not UTF-8", retry=True) from None
        except (ValueError, RecursionError):
            raise RequestError("bad_json", self._quote(content), retry=True) from None
        if not isinstance(reply, dict):
            raise RequestError("bad_json", self._quote(content), retry=True)
        if reply.get("error"):
            raise RequestError("error_body", self._quote(content), retry=True)
        return reply

    def _only_choice(self, reply: Json) -> Json:
        choices = reply.get("choices")
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
            raise RequestError("no_choices", self._quote(json.dumps(reply).encode()), retry=True)
        return choices[0]

    def _quote(self, content: bytes) -> str:
        return "the server said: " + excerpt(content.decode("utf-8", "replace"), self._secrets)


MESSAGE_FIELDS = {"content", "reasoning", "reasoning_content"}


class _OneConnection(httpx.AsyncBaseTransport):
    """One connection for one request at a time, made anew when it was closed.

    What httpx does by default, without the pool for many connections below it: that costs a third
    of a request's CPU, and every slot waits for it before its next request leaves.
    """

    def __init__(self, verify: ssl.SSLContext | bool) -> None:
        self._ssl_context = verify if isinstance(verify, ssl.SSLContext) else None
        self._connection: httpcore.AsyncHTTPConnection | None = None

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        raw = httpcore.URL(
            scheme=request.url.raw_scheme,
            host=request.url.raw_host,
            port=request.url.port,
            target=request.url.raw_path,
        )
        connection = self._connection
        if connection is None or connection.is_closed() or connection.has_expired():
            await self.aclose()
            connection = self._connection = httpcore.AsyncHTTPConnection(
                raw.origin,
                ssl_context=self._ssl_context,
                keepalive_expiry=KEEP_ALIVE,
                network_backend=_OneWrite(),
            )
        with _as_httpx_errors():
            response = await connection.handle_async_request(
                httpcore.Request(
                    request.method,
                    raw,
                    headers=request.headers.raw,
                    content=request.stream,
                    extensions=request.extensions,
                )
            )
        return httpx.Response(
            response.status,
            headers=response.headers,
            stream=_ResponseStream(response),
            extensions=response.extensions,
        )

    async def aclose(self) -> None:
        if self._connection is not None:
            await self._connection.aclose()


class _OneWrite(httpcore.AnyIOBackend):
    """TCP connections that send head and body of a request together: one packet, one wake-up of
    the server.
    """

    async def connect_tcp(self, *args: Any, **kwargs: Any) -> httpcore.AsyncNetworkStream:
        return _OneWriteStream(await super().connect_tcp(*args, **kwargs))


class _OneWriteStream(httpcore.AsyncNetworkStream):
    """Keeps what is written until the reply is read. The signatures are httpcore's."""

    def __init__(self, stream: httpcore.AsyncNetworkStream) -> None:
        self._stream = stream
        self._unsent = b""

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        self._unsent += buffer

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        if self._unsent:
            unsent, self._unsent = self._unsent, b""
            # A server may answer and close before it has read all: then its reply counts.
            with suppress(httpcore.WriteError):
                await self._stream.write(unsent, timeout)
        return await self._stream.read(max_bytes, timeout)

    async def start_tls(self, *args: Any, **kwargs: Any) -> httpcore.AsyncNetworkStream:
        return _OneWriteStream(await self._stream.start_tls(*args, **kwargs))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)

    async def aclose(self) -> None:
        await self._stream.aclose()


class _ResponseStream(httpx.AsyncByteStream):
    """The body of a response, with the errors of httpx."""

    def __init__(self, response: httpcore.Response) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _as_httpx_errors():
            async for chunk in self._response.aiter_stream():
                yield chunk

    async def aclose(self) -> None:
        await self._response.aclose()


@contextmanager
def _as_httpx_errors() -> Iterator[None]:
    """httpx names its transport errors as httpcore, which it is built on, does."""
    try:
        yield
    except (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError) as error:
        raise getattr(httpx, type(error).__name__)(str(error)) from error


class _StreamedReply:
    """A reply put together from stream events."""

    def __init__(self, client: ModelClient) -> None:
        self._parse = client._parse
        self._quote = client._quote
        self._events = EventReader()
        self._start = b""
        self._pieces: dict[str, list[str]] = {}
        self._any_event = False
        self._usage: Json | None = None
        self.finish_reason: str | None = None
        self.done = False
        self.first_token: float | None = None

    def take(self, chunk: bytes) -> None:
        self._start = self._start or chunk
        try:
            for data in self._events.feed(chunk):
                self._event(data)
        except ValueError as error:
            raise RequestError("bad_stream", str(error), retry=True) from None

    def close(self) -> None:
        for data in self._events.end():
            self._event(data)

    def _event(self, data: bytes) -> None:
        if data.strip() == b"[DONE]":
            self.done = True
            return
        self._any_event = True
        event = self._parse(data)
        self._usage = _block(event, "usage") or self._usage
        choices = event.get("choices")
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
            return
        self.finish_reason = _word(choices[0]) or self.finish_reason
        for name, value in (_block(choices[0], "delta") or {}).items():
            if name in MESSAGE_FIELDS:
                text, thinking = text_and_thinking(value)
                self._add(name, text)
                self._add("reasoning", thinking)

    def _add(self, name: str, text: str) -> None:
        if text:
            self.first_token = self.first_token or perf_counter()
            self._pieces.setdefault(name, []).append(text)

    def completion(self, max_tokens: int) -> Completion:
        if not self.finish_reason and not self.done:
            if self._start and not self._any_event:
                raise RequestError("bad_stream", self._quote(self._start), retry=True)
            cut = "the stream ended before the answer did"
            raise RequestError("cut_stream", cut, retry=True)
        message: Json = {name: "".join(pieces) for name, pieces in self._pieces.items()}
        return to_completion(message, self.finish_reason, self._usage, max_tokens)


def _word(choice: Mapping[str, JsonValue]) -> str | None:
    value = choice.get("finish_reason")
    return value if isinstance(value, str) and value else None


def _block(reply: Mapping[str, JsonValue], name: str) -> Json | None:
    value = reply.get(name)
    return value if isinstance(value, dict) else None


def ssl_for(base_url: str) -> ssl.SSLContext | bool:
    """The context to share between clients: the system's for https, none for plain http."""
    return httpx.create_ssl_context() if base_url.startswith("https") else False


def retry_after(header: str | None, moment: datetime) -> float | None:
    """Seconds that a Retry-After header asks for (RFC 9110, 10.2.3: seconds or a date).

    None for no header, words, and times that lie in the past.
    """
    if header is None:
        return None
    if header.strip().isascii() and header.strip().isdigit():
        return float(header.strip()[:9])
    try:
        wait = (parsedate_to_datetime(header) - moment).total_seconds()
    except (ValueError, TypeError):
        return None
    return wait if wait > 0 else None
