"""How long until the first word, and the first request? `python bench/startup.py [--quick]`.

Wall time of whole processes, each next to a bare import in the same round; medians of all rounds.
See bench/README.md.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from harness import Part, Row, reference_data, running, show, wait_for, write_card
from model_server import RunningServer  # on the path since harness is

COMMAND = str(Path(sys.executable).with_name("qualeval"))
DATA = reference_data("mmlupro")
HELP_IMPORTS = "import typer"
RUN_IMPORTS = "import httpx, typer, pydantic, anyio"


def wall(*arguments: str) -> float:
    """Seconds that a process takes from its start to its end."""
    start = time.monotonic()
    subprocess.run(arguments, stdout=subprocess.DEVNULL, check=True)
    return time.monotonic() - start


def bare(imports: str) -> float:
    return wall(sys.executable, "-c", imports)


def first_request(server: RunningServer, card: Path) -> float:
    """Seconds from the start of `qualeval run` to the arrival of its first chat request. Both are
    read from the monotonic clock, which all processes of a machine share.
    """
    server.reset()
    job = f"job-{time.monotonic_ns()}"
    start = time.monotonic()
    places = ["--runs", str(card.parent), "--job", job]
    wait_for([COMMAND, "run", str(card), "--parts", "mmlupro", *places])
    return float(server.stats()["requests"][0]["arrival"]) - start


def against(what: str, ours: Callable[[], float], imports: str, bound: float, rounds: int) -> Row:
    """Both in turn, after one round that only warms the file cache."""
    ours()
    bare(imports)
    pairs = [(ours(), bare(imports)) for _ in range(rounds)]
    mine, theirs = (statistics.median(column) for column in zip(*pairs, strict=True))
    return Row(what, f"{mine:.3f} s", f'"{imports}" {theirs:.3f} s', mine / theirs, bound)


def main() -> int:
    parser = argparse.ArgumentParser(description="How long until the first word and request?")
    parser.add_argument("--quick", action="store_true", help="three rounds: does the bench work?")
    rounds = 3 if parser.parse_args().quick else 9
    rows, notes = [], [f"medians of {rounds} rounds"]
    load = os.getloadavg()[0]
    for words in (["--help"], ["run", "--help"]):
        what = " ".join(["qualeval", *words])
        rows.append(against(what, partial(wall, COMMAND, *words), HELP_IMPORTS, 4, rounds))
    with tempfile.TemporaryDirectory(prefix="qualeval-bench-") as name, running(16) as server:
        folder = Path(name)
        os.environ["QUALEVAL_CACHE"] = str(folder / "cache")
        own = write_card(folder, server.base_url, 16, [Part("mmlupro", 400)])
        cards = {"own list of 400": own}
        if DATA.is_dir():
            wait_for([COMMAND, "lists", "import", "mmlupro", str(DATA)])
            cards["official list, cached"] = folder / "official.json"
            text = own.read_text(encoding="utf-8").replace('"mmlupro.jsonl"', '"official"')
            cards["official list, cached"].write_text(text, encoding="utf-8")
        else:
            notes.append("official list: left out, no reference data (QUALEVAL_REFERENCE_DATA)")
        for kind, card in cards.items():
            what = f"first request, {kind}"
            ours = partial(first_request, server, card)
            rows.append(against(what, ours, RUN_IMPORTS, 5, rounds))
    return show(rows, notes, load)


if __name__ == "__main__":
    sys.exit(main())
