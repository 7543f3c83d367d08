"""Write a file so that nobody ever sees half of it."""

import os
from contextlib import suppress
from pathlib import Path


def write_whole(path: Path, data: bytes) -> None:
    """Put `data` where `path` is, at once or not at all. Raises OSError; nothing is left then."""
    new = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        new.write_bytes(data)
        new.replace(path)
    except BaseException:
        with suppress(OSError):
            new.unlink()
        raise
