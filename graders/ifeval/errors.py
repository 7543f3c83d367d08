"""What can go wrong before a reply is graded, and a value that is loaded once."""

from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar

from qualeval.errors import InputError, QualevalError

T = TypeVar("T")


class InstructionError(InputError, ValueError):
    """An item cannot be graded: unknown instruction type, missing or unusable kwarg."""


class PackagedDataError(QualevalError):
    """The language profiles or the sentence tables are missing or not the pinned ones."""


class Once(Generic[T]):
    """The value of `make()`: made at the first call, once, however many threads ask."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._made: list[T] = []
        self._lock = Lock()

    def __call__(self) -> T:
        """Return the value; the first caller makes it while the others wait."""
        with self._lock:
            if not self._made:
                self._made.append(self._make())
            return self._made[0]
