"""Server-sent events, split at line feeds in bytes.

Own code because text-based line readers (httpx's `iter_lines` among them) also split at U+2028 and
U+0085, which model text may hold. Format: WHATWG HTML, section "Server-sent events".
"""

from collections.abc import Iterator

MAX_EVENT_BYTES = 64 * 1024 * 1024


class EventReader:
    """Feed it bytes as they come; it yields the data of every event that is complete."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._data: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Data of the events that this chunk completes. ValueError when one is far too long."""
        start, *more = chunk.split(b"\n")
        self._rest += start
        for following in more:
            yield from self._line(bytes(self._rest.removesuffix(b"\r")))
            self._rest = bytearray(following)
        if self._size + len(self._rest) > MAX_EVENT_BYTES:
            raise ValueError(f"an event of the stream is longer than {MAX_EVENT_BYTES >> 20} MiB")

    def end(self) -> Iterator[bytes]:
        """The last event, when the stream ended without the blank line behind it."""
        yield from self._line(bytes(self._rest.removesuffix(b"\r")))
        yield from self._line(b"")
        self._rest = bytearray()

    def _line(self, line: bytes) -> Iterator[bytes]:
        name, _, value = line.partition(b":")
        if not line:
            data = b"\n".join(self._data)
            self._data, self._size = [], 0
            if data:  # an event whose data is empty is none (a sign of life of some servers)
                yield data
        elif name in (b"data", b"error"):
            self._data.append(value.removeprefix(b" "))
            self._size += len(line)
