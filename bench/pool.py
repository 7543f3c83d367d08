"""Is the pool as fast as a pool can be? `python bench/pool.py [--quick]`; see bench/README.md.

Every bound is a ratio of two things of one run, so a slow machine moves both. What is measured is
the command `qualeval run` itself, in a process of its own, against the project's test server.
"""

from __future__ import annotations

import argparse
import heapq
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import model_server

MEAN, SIGMA, SEED = 0.25, 0.6, 7
LATE_MS = 20.0
"""A reply of the server that left later than this: something else held its core."""
TRIES = 3
QUESTION = "Which of these is the right one? " + "A made-up text as long as a question is. " * 12
OPTIONS = [f"option number {n} of ten, a line of some length" for n in range(10)]
Json = dict[str, Any]


@dataclass(frozen=True)
class Row:
    """One line of the table: `value` may be at most `bound`."""

    what: str
    measured: str
    against: str
    value: float
    bound: float
    unit: str = ""

    @property
    def ok(self) -> bool:
        return self.value <= self.bound


# ------------------------------------------------------------------ the engine and a bare client


@dataclass(frozen=True)
class Part:
    """A part and its own list of `items` questions."""

    name: str
    items: int


def write_card(folder: Path, base_url: str, slots: int, parts: Sequence[Part]) -> Path:
    """A card with a list of its own for every part."""
    for part in parts:
        rows = (
            {
                "id": f"{part.name}-{n}",
                "question": f"[[item:{part.name}-{n}]] {QUESTION}",
                "options": OPTIONS,
                "answer": "A",
                "category": f"subject {n % 14}",
            }
            for n in range(part.items)
        )
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{part.name}.jsonl").write_text(text, encoding="utf-8")
    server = {"base_url": base_url, "model": "test-model", "dialect": "vllm", "slots": slots}
    card = {
        "label": "bench",
        "server": server,
        "sampling": {"temperature": 1.0, "top_p": 1.0},
        "thinking": {mode: {"chat_template_kwargs": {"enable_thinking": mode == "on"}}
                     for mode in ("off", "on")},
        "parts": {part.name: {"list": f"{part.name}.jsonl"} for part in parts},
    }  # fmt: skip
    path = folder / "card.json"
    path.write_text(json.dumps(card), encoding="utf-8")
    return path


def command(folder: Path, card: Path, parts: Sequence[Part], *options: str) -> list[str]:
    """The arguments of `qualeval` for a fresh job below `folder`."""
    names = ",".join(part.name for part in parts)
    job = f"job-{time.monotonic_ns()}"
    return ["run", str(card), "--runs", str(folder), "--job", job, "--parts", names, *options]


def run_engine(
    arguments: Sequence[str], *, cpu: bool = False
) -> tuple[Json, resource.struct_rusage]:
    """Run `qualeval` with these arguments to its end: what it printed for us, what it used."""
    this = [sys.executable, __file__, "--engine"] if cpu else [sys.executable, "-m", "qualeval"]
    return wait_for([*this, *arguments])


def run_bare(base_url: str, slots: int, bodies: Path) -> Json:
    """The same requests by httpx alone, a client a slot."""
    this = [sys.executable, __file__, "--bare", base_url, str(slots), str(bodies)]
    return wait_for(this)[0]


def wait_for(arguments: Sequence[str]) -> tuple[Json, resource.struct_rusage]:
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen(arguments, stdout=out, stderr=out)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        text = out.read().decode()
    if status:
        raise SystemExit(f"{' '.join(arguments)}\nended with {process.returncode}:\n{text}")
    last = text.rstrip().rpartition("\n")[2]
    return (json.loads(last) if last.startswith("{") else {}), usage


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


@dataclass
class Bench:
    """A folder, and the cores for client and server."""

    folder: Path
    notes: list[str]

    def server(self, **options: Any) -> model_server.RunningServer:
        """A test server on the first core; this process and its children use the second."""
        server = model_server.start(record_bodies=False, context=1_000_000, **options)
        cores = sorted(os.sched_getaffinity(server.process.pid) | CORES)
        if len(cores) > 1:
            os.sched_setaffinity(server.process.pid, {cores[0]})
            os.sched_setaffinity(0, set(cores[1:2]))
        return server

    def undisturbed(self, what: str, measure: Callable[[], tuple[float, Json]]) -> float:
        """The least of up to three makespans: a run is repeated when the server's core was taken
        from it, since then it is not the client that is measured.
        """
        found = []
        for _ in range(TRIES):
            seconds, summary = measure()
            found.append(seconds)
            if summary["late_max"] * 1000 <= LATE_MS:
                break
            late = f"the server was up to {summary['late_max'] * 1000:.0f} ms late"
            self.notes.append(f"{what}: {late}, {seconds:.3f} s")
        return min(found)


CORES = os.sched_getaffinity(0)


def makespan_of(
    server: model_server.RunningServer, act: Callable[[], Any], requests: int
) -> tuple[float, Json]:
    """From the first request to the last at the server, while `act` runs."""
    server.reset()
    act()
    summary = server.summary()
    if summary["outcomes"] != {"answered": requests}:
        raise SystemExit(f"not every request was answered: {summary['outcomes']}")
    return summary["makespan"], summary


def against_ideal(bench: Bench, items: int, slots: int) -> Row:
    parts = [Part("mmlupro", items)]
    service = {"mean": MEAN, "sigma": SIGMA, "seed": SEED, "by": "item"}
    server = bench.server(slots=slots, service=service)
    try:
        card = write_card(bench.folder, server.base_url, slots, parts)
        what = f"makespan, {items:,} requests, {slots} slots"

        def measure() -> tuple[float, Json]:
            return makespan_of(
                server, lambda: run_engine(command(bench.folder, card, parts)), items
            )

        seconds = bench.undisturbed(what, measure)
    finally:
        server.stop()
    ideal = ideal_makespan(model_server.service_times(items, MEAN, SIGMA, SEED), slots)
    return Row(what, f"{seconds:.3f} s", f"ideal pool {ideal:.3f} s", seconds / ideal, 1.01)


def against_bare(bench: Bench, items: int, slots: int) -> Row:
    parts = [Part("mmlupro", items)]
    service = {"mean": MEAN, "sigma": SIGMA, "seed": SEED, "by": "item"}
    server = bench.server(slots=slots, service=service)
    try:
        card = write_card(bench.folder, server.base_url, slots, parts)
        bodies = bodies_of(bench, card, parts)
        what = f"makespan, {items:,} requests, {slots} slots"

        def engine() -> tuple[float, Json]:
            return makespan_of(
                server, lambda: run_engine(command(bench.folder, card, parts)), items
            )

        def bare() -> tuple[float, Json]:
            return makespan_of(server, lambda: run_bare(server.base_url, slots, bodies), items)

        ours, theirs = [], []
        for _ in range(TRIES):
            ours.append(engine()[0])
            theirs.append(bare()[0])
    finally:
        server.stop()
    ideal = ideal_makespan(model_server.service_times(items, MEAN, SIGMA, SEED), slots)
    bench.notes.append(f"{what}: an ideal pool needs {ideal:.3f} s; best of {TRIES} of each")
    return Row(what, f"{min(ours):.3f} s", f"bare httpx {min(theirs):.3f} s",
               min(ours) / min(theirs), 1.01)  # fmt: skip


def bodies_of(bench: Bench, card: Path, parts: Sequence[Part]) -> Path:
    """The requests of the first part, as `--dry-run` writes them."""
    arguments = command(bench.folder, card, parts, "--dry-run")
    run_engine(arguments)
    job = arguments[arguments.index("--job") + 1]
    return bench.folder / job / "dry-run" / f"{parts[0].name}.requests.jsonl"


def packed(bench: Bench, long: int, short: int, slots: int, scale: float) -> Row:
    """Thirty long answers and many short ones in one pool."""
    parts = [Part("think", long), Part("mmlupro", short)]
    times = {f"think-{n}": t for n, t in enumerate(lengths(long, 2.0 * scale, 0.3))}
    times |= {f"mmlupro-{n}": t for n, t in enumerate(lengths(short, 0.1 * scale, SIGMA))}
    steps = {item: [{"service_seconds": seconds}] for item, seconds in times.items()}
    server = bench.server(slots=slots, script={"items": steps})
    try:
        card = write_card(bench.folder, server.base_url, slots, parts)
        what = f"--schedule packed, {long} long + {short} short, {slots} slots"

        def measure() -> tuple[float, Json]:
            arguments = command(bench.folder, card, parts, "--schedule", "packed")
            return makespan_of(server, lambda: run_engine(arguments), long + short)

        seconds = bench.undisturbed(what, measure)
    finally:
        server.stop()
    bound = max(sum(times.values()) / slots, max(times.values()))
    return Row(what, f"{seconds:.3f} s", f"lower bound {bound:.3f} s", seconds / bound, 1.02)


def lengths(n: int, mean: float, sigma: float) -> list[float]:
    return model_server.service_times(n, mean, sigma, SEED)


def cpu(bench: Bench, items: int, all_slots: Sequence[int]) -> list[Row]:
    """CPU of the client alone at service time 0, in turn with the bare clients, best of three."""
    parts = [Part("mmlupro", items)]
    rows, per_thousand = [], []
    for slots in all_slots:
        server = bench.server(slots=slots)
        try:
            card = write_card(bench.folder, server.base_url, slots, parts)
            bodies = bodies_of(bench, card, parts)
            ours, theirs = [], []
            for _ in range(TRIES):
                ours.append(run_engine(command(bench.folder, card, parts), cpu=True)[0]["cpu"])
                theirs.append(run_bare(server.base_url, slots, bodies)["cpu"])
        finally:
            server.stop()
        mine, bare = (min(seconds) / items * 1000 for seconds in (ours, theirs))
        per_thousand.append(mine)
        what = f"client CPU per 1,000 requests, {slots} slots"
        rows.append(Row(what, f"{mine:.3f} s", f"bare httpx {bare:.3f} s", mine / bare, 1.4))
    least, most = min(per_thousand), max(per_thousand)
    what = f"the same, most to least over {', '.join(map(str, all_slots))} slots"
    return [*rows, Row(what, f"{most:.3f} s", f"{least:.3f} s", most / least, 1.25)]


def memory(bench: Bench, few: int, many: int, slots: int) -> Row:
    """Peak memory of the whole command, start to summary."""
    peaks = []
    for items in (few, many):
        server = bench.server(slots=slots)
        try:
            parts = [Part("mmlupro", items)]
            card = write_card(bench.folder, server.base_url, slots, parts)
            _, usage = run_engine(command(bench.folder, card, parts))
            peaks.append(usage.ru_maxrss / 1024)
        finally:
            server.stop()
    what = f"peak memory, {many:,} items over {few:,}"
    return Row(what, f"{peaks[1]:.1f} MB", f"{peaks[0]:.1f} MB", peaks[1] - peaks[0], 40, " MB")


# ------------------------------------------------------------------ the table


def show(rows: Sequence[Row]) -> None:
    cells = [("what", "measured", "against", "ratio", "bound", "")]
    cells += [
        (r.what, r.measured, r.against, f"{r.value:.3f}{r.unit}", f"{r.bound:g}{r.unit}",
         "ok" if r.ok else "MISSED")
        for r in rows
    ]  # fmt: skip
    widths = [max(len(row[column]) for row in cells) for column in range(6)]
    for row in cells:
        print(
            "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes: does it work?")
    parser.add_argument("--only", default="", help="makespan, bare, packed, cpu, memory")
    options = parser.parse_args()
    quick = options.quick
    wanted = (
        options.only.split(",") if options.only else ["makespan", "bare", "packed", "cpu", "memory"]
    )
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="qualeval-bench-") as name:
        bench = Bench(Path(name), [])
        if "makespan" in wanted:
            rows.append(against_ideal(bench, 60 if quick else 400, 16))
            rows.append(against_ideal(bench, 200 if quick else 2000, 64))
        if "bare" in wanted:
            rows.append(against_bare(bench, 500 if quick else 2000, 256))
        if "packed" in wanted:
            rows.append(packed(bench, 30, 400, 16, 0.2 if quick else 1.0))
        if "cpu" in wanted:
            rows += cpu(bench, 200 if quick else 2000, (16, 64, 256))
        if "memory" in wanted:
            rows.append(memory(bench, 100 if quick else 400, 1000 if quick else 12000, 64))
    print(f"{len(CORES)} cores, Python {sys.version.split()[0]}, load {os.getloadavg()[0]:.1f}")
    show(rows)
    for note in bench.notes:
        print(f"note: {note}")
    return 0 if all(row.ok for row in rows) else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["--engine"]:
        engine_process(sys.argv[2:])
    elif sys.argv[1:2] == ["--bare"]:
        bare_process(sys.argv[2], int(sys.argv[3]), Path(sys.argv[4]))
    else:
        sys.exit(main())
