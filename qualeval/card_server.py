"""The server of a card: as it stands, or the embedded one, started when it is first needed."""

import os
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from qualeval.card import Card
from qualeval.errors import CardError
from qualeval.made_list import Counting, counting_of_server

LONGEST_VERSION = 200


def key_in(variable: str | None, where: str) -> str | None:
    """The key in an environment variable; None when none is named. Raises CardError, opened by
    `where`, when it is not set.
    """
    key = os.environ.get(variable) if variable else None
    if variable and not key:
        raise CardError(f"{where}: environment variable {variable} is not set")
    return key


def engine_version_of(card: Card, folder: Path) -> str | None:
    """What the first line of the card's `engine_version_file` (relative to `folder`) says, for
    servers that do not tell their version; None when the card names none. Raises CardError.
    """
    if card.server.engine_version_file is None:
        return None
    path = folder / card.server.engine_version_file
    try:
        first = path.read_text("utf-8").strip().partition("\n")[0].strip()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "is not UTF-8 text"
        raise CardError(f"server.engine_version_file: {path} cannot be read: {why}") from None
    if not first or len(first) > LONGEST_VERSION:
        raise CardError(f"server.engine_version_file: {path} does not begin with a version")
    return f"{first} (from {path.name})"


class CardServer:
    """Use as a context manager: what it started is gone after the block.

    `engine_version` is what the card's own file says. Raises CardError when that cannot be read.
    """

    def __init__(self, card: Card, folder: Path, log_file: Path) -> None:
        self._card = card
        self.engine_version = engine_version_of(card, folder)
        self._log_file = log_file
        self._stack = ExitStack()
        self._reached: Card | None = None
        self.process_started: str | None = None

    def __enter__(self) -> "CardServer":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def reached(self) -> Card:
        """The card with the address where its server answers. Raises CardError, ServerGoneError."""
        if self._reached is None:
            self._reached = self._with_address()
        return self._reached

    def _with_address(self) -> Card:
        server = self._card.server
        if not server.embedded:
            return self._card
        from qualeval.embedded import running  # starts processes; most cards need none

        slots, context = server.slots or 4, server.context_tokens or 4096
        own = self._stack.enter_context(running(server.embedded, slots, context, self._log_file))
        self.process_started = own.started
        place = server.model_copy(update={"base_url": own.base_url, "embedded": None})
        return self._card.model_copy(update={"server": place})

    def api_key(self) -> str | None:
        """The key from the variable that the card names. Raises CardError when it is not set."""
        return key_in(self._card.server.api_key_env, "server.api_key_env")

    def counting(self) -> Counting:
        """The server's own token counts. Raises CardError when it gives none."""
        card = self.reached()
        base_url = card.server.places()[0].base_url
        model = card.server.model or ""
        return self._stack.enter_context(
            counting_of_server(base_url, card.server.dialect, model, self.api_key())
        )
