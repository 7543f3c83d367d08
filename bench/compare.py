"""How fast two large runs are compared: `python bench/compare.py`. Exits 1 when a limit is passed.

Two runs of 12,000 answers, made by the project's own writers, then compared in a process of its
own: once cold (scipy is still to be imported), then warm. The absolute limit is on processor
seconds, because other work on the machine is not ours; the wall clock stands beside it. The ratio
is that of the warm comparison to reading and parsing the two answer files with nothing but `json`,
in the same process, so that a slow machine moves both.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

ITEMS = 12_000
LIMIT_SECONDS = 2.0  # cold: all that `qualeval compare` does after Python has started
LIMIT_RATIO = 3.0  # warm, against bare reading and parsing
TRIES = 3


def seconds(work: Callable[[], object]) -> float:
    """Processor seconds of this process."""
    start = time.process_time()
    work()
    return time.process_time() - start


def measure(old: Path, new: Path) -> None:
    """Compare and print the seconds; runs in a process of its own."""

    def compare() -> object:
        from qualeval.compare_runs import compare_command

        return compare_command([old], [new], gate=5.0, allow=[], unpaired=False, format="table")

    def parse() -> object:
        files = (folder / "mmlupro.jsonl" for folder in (old, new))
        return [json.loads(line) for path in files for line in path.read_bytes().splitlines()]

    start = time.perf_counter()
    cold = seconds(compare)
    wall = time.perf_counter() - start
    pairs = [(seconds(parse), seconds(compare)) for _ in range(TRIES)]
    bare, warm = min(pairs, key=lambda pair: pair[1] / pair[0])
    print(json.dumps({"cold": cold, "wall": wall, "warm": warm, "bare": bare}))


def main() -> int:
    from compare_folders import Made

    with tempfile.TemporaryDirectory() as folder:
        made = Made(Path(folder))
        old = made.run("old", "rrrwrcwrrw" * (ITEMS // 10))
        new = made.run("new", "rrwwrcrrrc" * (ITEMS // 10))
        command = [sys.executable, __file__, str(old), str(new)]
        tries = [
            json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
            for _ in range(TRIES)
        ]
        size = sum((run / "mmlupro.jsonl").stat().st_size for run in (old, new))
    best = min(tries, key=lambda found: found["cold"])
    ratio = min(found["warm"] / found["bare"] for found in tries)
    print(f"two runs of {ITEMS:,} answers, {size / 1e6:.1f} MB; best of {TRIES} processes")
    print(f"  compared, cold       {best['cold']:6.2f} s   limit {LIMIT_SECONDS:.1f} s")
    print(f"    by the wall clock  {best['wall']:6.2f} s")
    print(f"  compared, warm       {best['warm']:6.2f} s")
    print(f"  read and parsed bare {best['bare']:6.2f} s")
    print(f"  warm / bare          {ratio:6.2f}     limit {LIMIT_RATIO:.1f}")
    return int(best["cold"] > LIMIT_SECONDS or ratio > LIMIT_RATIO)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        measure(Path(sys.argv[1]), Path(sys.argv[2]))
    else:
        sys.exit(main())
