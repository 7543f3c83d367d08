"""Write a file so that nobody ever sees half of it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

UNFINISHED = ".new"
"""How the name of a file ends that is still being written; it begins with a dot."""


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file that takes the place of `path` when the block ends, safe from a crash of the machine;
    when it ends badly, nothing of it is left. Raises OSError.
    """
    new = path.with_name(f".{path.name}.{os.getpid()}{UNFINISHED}")
    try:
        with new.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    except BaseException:
        with suppress(OSError):
            new.unlink()
        raise


def write_whole(path: Path, data: bytes) -> None:
    """Put `data` where `path` is, at once or not at all. Raises OSError."""
    with replacing(path) as file:
        file.write(data)
