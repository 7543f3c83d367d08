"""Is the pool as fast as a pool can be? `python bench/pool.py [--quick]`; see bench/README.md.

Every bound is a ratio of two things of one run, so a slow machine moves both. What is measured is
the command `qualeval run` itself, in a process of its own, against the project's test server.
"""

from __future__ import annotations

import argparse
import heapq
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import Ended, Json, Part, Row, running, show, wait_for, waited_for_core, write_card
from model_server import RunningServer, service_times  # on the path since harness is

MEAN, SIGMA, SEED = 0.25, 0.6, 7
SERVICE = {"mean": MEAN, "sigma": SIGMA, "seed": SEED, "by": "item"}
LATE = 0.02
"""Seconds: a reply that left the server later than this waited for its core."""
WAITED = 0.1
"""Seconds that client or server may have waited for a core in one run, start-up included."""
TRIES = 3


# ------------------------------------------------------------------ the engine and a bare client


def command(folder: Path, card: Path, parts: Sequence[Part], *options: str) -> list[str]:
    """The arguments of `qualeval` for a fresh job below `folder`."""
    names = ",".join(part.name for part in parts)
    job = f"job-{time.monotonic_ns()}"
    return ["run", str(card), "--runs", str(folder), "--job", job, "--parts", names, *options]


def run_engine(arguments: Sequence[str], *, timed: bool = False) -> Ended:
    """`qualeval` with these arguments; `timed` reads its CPU clock around the requests."""
    start = ["--engine"] if timed else []
    program = [__file__] if timed else ["-m", "qualeval"]
    return wait_for([sys.executable, *program, *start, *arguments])


def run_bare(base_url: str, slots: int, bodies: Path) -> Ended:
    """The same requests by httpx alone, a client a slot."""
    return wait_for([sys.executable, __file__, "--bare", base_url, str(slots), str(bodies)])


def engine_process(arguments: list[str]) -> None:
    """In a process of its own: `qualeval` as it is, with the CPU clock read at the first request
    and at the last answer of the run. What comes before and after is not the pool's.
    """
    from qualeval import cli, progress

    class Timed(progress.PlainProgress):
        start = end = 0.0

        def in_flight(self, change: int) -> None:
            Timed.start = Timed.start or time.process_time()
            super().in_flight(change)

        def answered(self, name: str, verdict: Any) -> None:
            super().answered(name, verdict)
            Timed.end = time.process_time()

    progress.PlainProgress = Timed  # type: ignore[misc]
    sys.argv = ["qualeval", *arguments]
    try:
        cli.main()
    finally:
        print(json.dumps({"cpu": Timed.end - Timed.start}), flush=True)


def bare_process(base_url: str, slots: int, bodies_file: Path) -> None:
    """In a process of its own: one httpx client a slot, a loop, nothing else."""
    import asyncio

    import httpx

    async def loop(client: httpx.AsyncClient, bodies: Iterator[Json]) -> None:
        for body in bodies:
            (await client.post(f"{base_url}/chat/completions", json=body)).json()

    async def all_slots(bodies: Iterator[Json]) -> float:
        clients = [
            httpx.AsyncClient(timeout=None, trust_env=False, verify=False) for _ in range(slots)
        ]
        start = time.process_time()
        await asyncio.gather(*(loop(client, bodies) for client in clients))
        cpu = time.process_time() - start
        for client in clients:
            await client.aclose()
        return cpu

    lines = bodies_file.read_text(encoding="utf-8").splitlines()
    salt = {"cache_salt": "0123456789abcdef" * 2}
    cpu = asyncio.run(all_slots(iter([json.loads(line)["body"] | salt for line in lines])))
    print(json.dumps({"cpu": cpu}))


# ------------------------------------------------------------------ the lower bound


def ideal_makespan(times: Sequence[float], slots: int) -> float:
    """List scheduling: each time in its order to the slot that is free first."""
    free = [0.0] * min(slots, len(times))
    for seconds in times:
        heapq.heapreplace(free, free[0] + seconds)
    return max(free)


# ------------------------------------------------------------------ server and cores


@dataclass(frozen=True)
class Makespan:
    """Seconds from the first request to the last at the server, and what disturbed them."""

    seconds: float
    disturbed: str


def makespan(server: RunningServer, requests: int, act: Callable[[], Ended]) -> Makespan:
    """The makespan of `act`, which sends so many requests."""
    server.reset()
    before = waited_for_core(server.process.pid)
    ended = act()
    queued = waited_for_core(server.process.pid) - before
    summary = server.summary()
    if summary["outcomes"] != {"answered": requests}:
        raise SystemExit(f"not every request was answered once: {summary['outcomes']}")
    late = summary["late_max"]
    quiet = late <= LATE and queued <= WAITED and ended.waited <= WAITED
    disturbed = (
        f"client waited {ended.waited:.2f} s for its core, server {queued:.2f} s, "
        f"a reply left {late * 1000:.0f} ms late"
    )
    return Makespan(summary["makespan"], "" if quiet else disturbed)


class Notes(list[str]):
    """What a reader of the table must know."""

    def least(self, what: str, enough: float, measure: Callable[[], Makespan]) -> float:
        """The makespan. A run that was disturbed or took more than `enough` seconds is repeated,
        with a note, since what else the machine does can only make it longer; the least counts.
        """
        found = []
        for _ in range(TRIES):
            found.append(measure())
            if not found[-1].disturbed and found[-1].seconds <= enough:
                break
            self.append(f"{what}: {found[-1].seconds:.3f} s, {found[-1].disturbed or 'quiet'}")
        return min(run.seconds for run in found)


def ideal_of(items: int, slots: int) -> float:
    return ideal_makespan(service_times(items, MEAN, SIGMA, SEED), slots)


# ------------------------------------------------------------------ what is measured


def against_ideal(folder: Path, notes: Notes, items: int, slots: int) -> Row:
    parts = [Part("mmlupro", items)]
    what = f"makespan, {items:,} requests, {slots} slots"
    ideal = ideal_of(items, slots)
    with running(slots, service=SERVICE) as server:
        card = write_card(folder, server.base_url, slots, parts)
        seconds = notes.least(
            what,
            1.01 * ideal,
            lambda: makespan(server, items, lambda: run_engine(command(folder, card, parts))),
        )
    return Row(what, f"{seconds:.3f} s", f"ideal pool {ideal:.3f} s", seconds / ideal, 1.01)


def against_bare(folder: Path, notes: Notes, items: int, slots: int) -> Row:
    """In turn, three times each; the least of both."""
    parts = [Part("mmlupro", items)]
    what = f"makespan, {items:,} requests, {slots} slots"
    ours, theirs = [], []
    with running(slots, service=SERVICE) as server:
        card = write_card(folder, server.base_url, slots, parts)
        bodies = bodies_of(folder, card, parts)
        for _ in range(TRIES):
            ours.append(makespan(server, items, lambda: run_engine(command(folder, card, parts))))
            theirs.append(makespan(server, items, lambda: run_bare(server.base_url, slots, bodies)))
    mine, bare = (min(run.seconds for run in runs) for runs in (ours, theirs))
    quiet = sum(not run.disturbed for run in ours), sum(not run.disturbed for run in theirs)
    notes.append(
        f"{what}: least of {TRIES} of each ({quiet[0]} and {quiet[1]} undisturbed); "
        f"an ideal pool needs {ideal_of(items, slots):.3f} s"
    )
    return Row(what, f"{mine:.3f} s", f"bare httpx {bare:.3f} s", mine / bare, 1.01)


def bodies_of(folder: Path, card: Path, parts: Sequence[Part]) -> Path:
    """The requests of the first part, as `--dry-run` writes them."""
    arguments = command(folder, card, parts, "--dry-run")
    run_engine(arguments)
    job = arguments[arguments.index("--job") + 1]
    return folder / job / "dry-run" / f"{parts[0].name}.requests.jsonl"


def packed(folder: Path, notes: Notes, scale: float) -> Row:
    """Few long answers and many short ones of nearly one length, as letters are, in one pool."""
    slots, long, short = 16, Part("think", 30), Part("mmlupro", 400)
    times: dict[str, float] = {}
    for part, mean, sigma in ((long, 2.0, 0.3), (short, 0.1, 0.2)):
        drawn = service_times(part.items, mean * scale, sigma, SEED)
        times |= {f"{part.name}-{n}": seconds for n, seconds in enumerate(drawn)}
    steps = {item: [{"service_seconds": seconds}] for item, seconds in times.items()}
    what = f"--schedule packed, {long.items} long + {short.items} short, {slots} slots"
    with running(slots, script={"items": steps}) as server:
        card = write_card(folder, server.base_url, slots, [long, short])

        def run() -> Ended:
            return run_engine(command(folder, card, [long, short], "--schedule", "packed"))

        bound = max(sum(times.values()) / slots, max(times.values()))
        seconds = notes.least(what, 1.02 * bound, lambda: makespan(server, len(times), run))
    ideal = ideal_makespan(list(times.values()), slots)
    notes.append(f"{what}: an ideal pool, which does not know the lengths, needs {ideal:.3f} s")
    return Row(what, f"{seconds:.3f} s", f"lower bound {bound:.3f} s", seconds / bound, 1.02)


def cpu(folder: Path, items: int, all_slots: Sequence[int]) -> list[Row]:
    """CPU of the client alone at service time 0, in turn with the bare clients; least of three."""
    parts = [Part("mmlupro", items)]
    rows, per_thousand = [], []
    for slots in all_slots:
        ours, theirs = [], []
        with running(slots) as server:
            card = write_card(folder, server.base_url, slots, parts)
            bodies = bodies_of(folder, card, parts)
            for _ in range(TRIES):
                ours.append(run_engine(command(folder, card, parts), timed=True).said["cpu"])
                theirs.append(run_bare(server.base_url, slots, bodies).said["cpu"])
        mine, bare = (min(seconds) / items * 1000 for seconds in (ours, theirs))
        per_thousand.append(mine)
        what = f"client CPU per 1,000 requests, {slots} slots"
        rows.append(Row(what, f"{mine:.3f} s", f"bare httpx {bare:.3f} s", mine / bare, 1.4))
    least, most = min(per_thousand), max(per_thousand)
    what = f"the same, most to least over {', '.join(map(str, all_slots))} slots"
    return [*rows, Row(what, f"{most:.3f} s", f"{least:.3f} s", most / least, 1.25)]


def memory(folder: Path, few: int, many: int) -> Row:
    """Peak memory of the whole command, from its start to its table."""
    peaks = []
    for items in (few, many):
        parts = [Part("mmlupro", items)]
        with running(64) as server:
            card = write_card(folder, server.base_url, 64, parts)
            peaks.append(run_engine(command(folder, card, parts)).peak)
    what = f"peak memory, {many:,} items over {few:,}"
    return Row(what, f"{peaks[1]:.1f} MB", f"{peaks[0]:.1f} MB", peaks[1] - peaks[0], 40, " MB")


# ------------------------------------------------------------------ the table


def main() -> int:
    parser = argparse.ArgumentParser(description="Is the pool as fast as a pool can be?")
    parser.add_argument("--quick", action="store_true", help="small sizes: does the bench work?")
    groups = ("ideal", "bare", "packed", "cpu", "memory")
    parser.add_argument("only", nargs="*", metavar="GROUP", help=f"of {', '.join(groups)}")
    options = parser.parse_args()
    quick, wanted = options.quick, options.only or groups
    rows: list[Row] = []
    notes = Notes()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="qualeval-bench-") as name:
        folder = Path(name)
        if "ideal" in wanted:
            rows.append(against_ideal(folder, notes, 60 if quick else 400, 16))
            rows.append(against_ideal(folder, notes, 200 if quick else 2000, 64))
        if "bare" in wanted:
            rows.append(against_bare(folder, notes, 500 if quick else 2000, 256))
        if "packed" in wanted:
            rows.append(packed(folder, notes, 0.2 if quick else 1.0))
        if "cpu" in wanted:
            rows += cpu(folder, 200 if quick else 2000, (16, 64, 256))
        if "memory" in wanted:
            rows.append(memory(folder, 100 if quick else 400, 1000 if quick else 12_000))
    return show(rows, notes, load)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--engine"]:
        engine_process(sys.argv[2:])
    elif sys.argv[1:2] == ["--bare"]:
        bare_process(sys.argv[2], int(sys.argv[3]), Path(sys.argv[4]))
    else:
        sys.exit(main())
