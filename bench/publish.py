"""How fast a run is checked for publication: `python bench/publish.py`. Exits 1 when too slow.

A run of one part with 20 MB of made-up answers (physics with units and LaTeX, code, letters; some
with private addresses, escapes and full-width signs), made into a bundle in a process of its own.
Limits: 20 seconds of processor time, and memory that does not grow with the answers: a run four
times as large may take no more than a few MB more. The ratio is that to reading and parsing the
answer file with nothing but `json`, in the same process.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

if TYPE_CHECKING:
    from qualeval.card import Card
    from qualeval.contract import Conditions
    from qualeval.publish.literals import Literals
    from qualeval.publish.overlap import Protected

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

MEGABYTES = 20
LIMIT_SECONDS = 20.0
LIMIT_RATIO = 150.0
LIMIT_GROWTH = 12.0  # MB, from a quarter of the answers to all of them

PROSE = (
    "the energy of a particle in a field is given by its momentum and mass so that we find for "
    "this system of two levels a ratio between them which depends on temperature pressure volume "
    "and the number of atoms per unit cell where light with a wavelength of about 500 nm is "
    "absorbed while the solution is stirred at 298 K and 101.325 kPa for 3 h before it is filtered"
)
WORDS = PROSE.split()
CODE = (
    "import sys\ndef solve(data):\n    token = data.split()[0]\n    key = (i, j)\n"
    "    host = '192.168.0.1'\n    alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnop'\n"
    "    return max(range(len(token)), key=lambda k: token[k])\nprint(solve(sys.stdin.read()))\n"
)
LETTER = (
    "Dear Mr. Anderson,\n\nMay June bring you luck. Write to me at info@example.com or call.\n\n"
    "Yours, Owen\n"
)
LATEX = (
    "\\frac{\\hbar^2}{2m}\\nabla^2\\psi + 5\\,\\mu\\text{A} \\times 10^{-3}\u2009m² ≈ 12\u00a0°C "
)


def text_of(random: Random) -> str:
    """About a thousand characters that a model might write."""
    prose = " ".join(random.choice(WORDS) for _ in range(110))
    extra = random.choice((CODE, LETTER, LATEX * 3, f"```python\n{CODE}```", LETTER + LATEX))
    return f"{prose}.\n\n{extra}\n{random.random():.6f} {random.getrandbits(128):032x}"


def make_run(folder: Path, megabytes: float) -> Path:
    """A run with so many MB of answers, written by the project's own writers."""
    from compare_folders import Made

    from qualeval import contract as contracts
    from qualeval.records import Contract, sha256_of, to_json
    from qualeval.runfolder import RunFolder
    from qualeval.summarize import summarize
    from qualeval.tasks import TASKS

    run = Made(folder).run(f"run-{megabytes}", "rw")
    lines = (run / "mmlupro.jsonl").read_text().splitlines()
    first: dict[str, Any] = json.loads(lines[0])
    random, size, number = Random(42), 0, 0
    with (run / "mmlupro.jsonl").open("w") as file:
        while size < megabytes * 1e6:
            line = first | {"id": number, "text": text_of(random)}
            if number % 4 == 0:
                line |= {"reasoning": text_of(random), "reasoning_source": "reasoning"}
            size += file.write(to_json(line) + "\n")
            number += 1
    stored = Contract.model_validate_json((run / "mmlupro.contract.json").read_bytes())
    conditions: dict[str, Any] = dict(stored.conditions)
    conditions["list"] = conditions["list"] | {"items": number}
    changed = contracts.Conditions.model_validate(conditions)
    fields = changed.model_dump(mode="json")
    stored = Contract(
        conditions=fields, conditions_sha256=sha256_of(fields), sessions=stored.sessions
    )
    from qualeval.records import Answer
    from qualeval.runfolder import read_lines

    with RunFolder(run) as files:
        files.write("mmlupro.contract.json", stored.model_dump_json(indent=2))
        answers = (answer for _, answer in read_lines(run / "mmlupro.jsonl", Answer))
        summary = summarize(TASKS["mmlupro"], "run", stored, answers)
        files.write("mmlupro.summary.json", summary.model_dump_json(indent=2))
    return run


def protected_words(count: int) -> Protected:
    """A made-up protected list as large as GPQA Diamond."""
    from qualeval.publish.overlap import Protected

    random, protected = Random(7), Protected()
    syllables = ("ba", "ke", "li", "mo", "nu", "ra", "si", "to", "ve", "zo")
    for _ in range(count):
        words = ["".join(random.choice(syllables) for _ in range(3)) for _ in range(95)]
        protected.add(" ".join(words[:80]))
        for option in range(4):
            protected.add(" ".join(words[option * 8 : option * 8 + 8]))
    return protected


def measure(run: Path) -> None:
    """Publish and print the figures; runs in a process of its own.

    The run is checked against protected texts and names that this machine need not have.
    """
    from qualeval.publish import publishing
    from qualeval.publish.literals import literals_of
    from qualeval.publish.machine import gather
    from qualeval.publish.protected import protected_texts

    protected = protected_words(198)
    more = literals_of(["quartz-node-17", "j.doe-lab"], ["k3y-of-the-bench-000111"])

    def words_and_why_blind(
        run: Path, names: Sequence[str], parts: Mapping[str, Conditions]
    ) -> tuple[Protected, dict[str, str]]:
        return protected, protected_texts(run, names, parts)[1]

    def gather_and_more(run: Path, card: Card | None, folders: Iterable[Path]) -> Literals:
        own = gather(run, card, folders)
        return replace(own, values=(*own.values, *more.values))

    def parse() -> None:
        with (run / "mmlupro.jsonl").open("rb") as file:
            for line in file:
                json.loads(line)

    start = time.process_time()
    parse()
    bare = time.process_time() - start
    start, wall = time.process_time(), time.perf_counter()
    with (
        patch.object(publishing, "protected_texts", words_and_why_blind),
        patch.object(publishing, "gather", gather_and_more),
    ):
        done = publishing.publish_run(run)
    seconds, wall = time.process_time() - start, time.perf_counter() - wall
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    figures = {"seconds": seconds, "wall": wall, "bare": bare, "peak": peak, "code": done.code}
    print(json.dumps(figures | {"line": done.line}))


def measured(run: Path) -> dict[str, Any]:
    command = [sys.executable, __file__, str(run)]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    figures: dict[str, Any] = json.loads(said.splitlines()[-1])
    return figures


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        small = measured(make_run(Path(folder), MEGABYTES / 4))
        run = make_run(Path(folder), MEGABYTES)
        size = (run / "mmlupro.jsonl").stat().st_size / 1e6
        full = measured(run)
    ratio, growth = full["seconds"] / full["bare"], full["peak"] - small["peak"]
    print(f"a run with {size:.1f} MB of answers, made into a bundle and read again")
    print(f"  processor seconds    {full['seconds']:7.2f} s   limit {LIMIT_SECONDS:.1f} s")
    print(f"    by the wall clock  {full['wall']:7.2f} s")
    print(f"  answers a second     {size / full['seconds']:7.2f} MB")
    print(f"  read and parsed bare {full['bare']:7.2f} s")
    print(f"  published / bare     {ratio:7.1f}     limit {LIMIT_RATIO:.0f}")
    print(f"  most memory          {full['peak']:7.1f} MB")
    print(f"  more than a quarter  {growth:7.1f} MB  limit {LIMIT_GROWTH:.0f} MB")
    print(f"  {full['line'].partition('/: ')[2]}")
    clean = full["code"] == 0
    slow = full["seconds"] > LIMIT_SECONDS or ratio > LIMIT_RATIO or growth > LIMIT_GROWTH
    return int(slow or not clean)


if __name__ == "__main__":
    if len(sys.argv) == 2:
        measure(Path(sys.argv[1]))
        sys.exit(0)
    sys.exit(main())
