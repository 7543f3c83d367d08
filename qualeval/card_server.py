"""The server of a card: as it stands, or the embedded one, started when it is first needed."""

import os
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from qualeval.card import Card
from qualeval.errors import CardError
from qualeval.made_list import Counting, counting_of_server


class CardServer:
    """Use as a context manager: what it started is gone after the block."""

    def __init__(self, card: Card, log_file: Path) -> None:
        self._card = card
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
        name = self._card.server.api_key_env
        key = os.environ.get(name) if name else None
        if name and not key:
            raise CardError(f"server.api_key_env: environment variable {name} is not set")
        return key

    def counting(self) -> Counting:
        """The server's own token counts. Raises CardError when it gives none."""
        card = self.reached()
        base_url = card.server.places()[0].base_url
        model = card.server.model or ""
        return self._stack.enter_context(
            counting_of_server(base_url, card.server.dialect, model, self.api_key())
        )
