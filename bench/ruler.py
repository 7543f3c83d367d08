"""How fast exact long texts are built: `python bench/ruler.py [TOKENIZER.json]`.

40 prompts of 32,768 tokens (four tasks, ten each). The floor is encoding each finished prompt once,
in turn with building it, so that a busy machine slows both alike. The tokenizer is loaded before;
its units are counted within the time. Memory is the growth of the process from the tenth prompt to
the last, in MB. Exits 1 when a bound is missed.

Without an argument: a real tokenizer that `.ci/tokenizers` put there, else a tiny one trained here.
"""

import os
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import psutil
from harness import Row, show
from tokenizers_for_tests import NAMES, file_of, tiny_bpe

from qualeval.tasks.ruler_drafts import DRAFTS
from qualeval.tasks.ruler_items import Prompt, build, item_of
from qualeval.tasks.ruler_length import Count, Meter, counter

TARGET, PER_TASK = 32_768, 10
LIMIT_TIME = 2.0  # times the floor
LIMIT_MEMORY = 4.0  # MB; the thirty texts built in between are 4.5 MB, were they kept


def chosen() -> tuple[str, Count]:
    """The tokenizer measured, and its name."""
    if len(sys.argv) > 1:
        return sys.argv[1], counter(Path(sys.argv[1]))
    for name in NAMES:
        if path := file_of(name):
            return name, counter(path)
    with tempfile.TemporaryDirectory() as folder:
        path = tiny_bpe(Path(folder) / "tokenizer.json")
        return "tiny, trained here (.ci/tokenizers installs real ones)", counter(path)


def timed_build(task: str, index: int, target: int, meter: Meter) -> tuple[float, Prompt]:
    start = time.process_time()
    prompt = build(task, index, target, meter)
    return time.process_time() - start, prompt


def timed_encode(text: str, count: Count) -> float:
    start = time.process_time()
    count(text)
    return time.process_time() - start


def resident() -> float:
    return float(psutil.Process().memory_info().rss) / 2**20


def main() -> int:
    load = os.getloadavg()[0]
    name, count = chosen()
    count("a")
    meter = Meter(count)
    building = floor = after_ten = 0.0
    items = []
    for index in range(PER_TASK):
        for task in DRAFTS:
            seconds, prompt = timed_build(task, index, TARGET, meter)
            building += seconds
            floor += timed_encode(prompt.text, count)
            items.append(item_of(prompt))
            if len(items) == 10:
                after_ten = resident()
    growth = resident() - after_ten
    calls = meter.calls
    long_seconds, long = timed_build("niah_multikey", 0, 131_072, meter)
    long_floor = timed_encode(long.text, count)
    exact = sum(item.made is not None and item.made.exact for item in items)
    short = float(len(items) - exact)
    rows = (
        Row(
            f"{len(items)} prompts of {TARGET:,}",
            f"{building:.2f} s",
            f"{floor:.2f} s to encode each once",
            building / floor,
            LIMIT_TIME,
        ),
        Row(
            "one of 131,072",
            f"{long_seconds:.2f} s",
            f"{long_floor:.2f} s",
            long_seconds / long_floor,
            LIMIT_TIME,
        ),
        Row("not exact", f"{exact} of {len(items)} exact", "none short", short, 0.0),
        Row(
            "memory, last against tenth",
            f"{after_ten + growth:.0f} MB",
            f"{after_ten:.0f} MB",
            growth,
            LIMIT_MEMORY,
            " MB",
        ),
    )
    notes = (
        f"tokenizer: {name}",
        f"{calls} texts counted for {len(items)} prompts; 131,072 exact: {long.exact}",
    )
    return show(rows, notes, load)


if __name__ == "__main__":
    sys.exit(main())
