"""Server-sent events, split at line feeds in bytes.

Own code because text-based line readers (httpx's `iter_lines` among them) also split at U+2028 and
U+0085, which model text may hold. Format: WHATWG HTML, section "Server-sent events".
"""

from collections.abc import Iterator

MAX_EVENT_BYTES = 64 * 1024 * 1024


class EventReader:
    """Feed it bytes as they come; it yields the data of every event that is complete."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Data of the events that this chunk completes. ValueError when one is far too long."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        if len(self._rest) > MAX_EVENT_BYTES:
            raise ValueError("an event of the stream is longer than 64 MiB")
        for line in lines:
            yield from self._line(line.removesuffix(b"\r"))

    def end(self) -> Iterator[bytes]:
        """The last event, when the stream ended without the blank line behind it."""
        yield from self._line(self._rest.removesuffix(b"\r"))
        yield from self._line(b"")
        self._rest = b""

    def _line(self, line: bytes) -> Iterator[bytes]:
        name, _, value = line.partition(b":")
        if not line:
            if self._data:
                yield b"\n".join(self._data)
            self._data = []
        elif name in (b"data", b"error"):
            self._data.append(value.removeprefix(b" "))
