"""How the command meets the shell: signals, and an option that takes several values."""

import os
import signal
from typing import Any

import typer.core


def end_politely_on_signals() -> None:
    """A polite kill or a closed terminal ends a run as Ctrl-C does: answers on disk, contract
    closed. A script's `&` leaves SIGINT ignored, so it is set as well.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for name in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, lambda *_: os.kill(os.getpid(), signal.SIGINT))


class SeveralBases(typer.core.TyperCommand):
    """Takes `--base A1 A2` as two values, up to the next option."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Write `--base A1 A2` out as `--base A1 --base A2`."""
        words: list[str] = []
        inside = False
        for word in args:
            inside = word == "--base" or (inside and not word.startswith("-"))
            repeat = inside and words[-1:] != ["--base"] and word != "--base"
            words += ["--base", word] if repeat else [word]
        return super().parse_args(ctx, words)
