"""Real runs for the tests of what is done with a run afterwards: asked once, copied for each test.

    made = record(folder, server)       # runs/job below `folder`: mmlupro, gpqa and think
    run = copied(made, tmp_path)        # a copy that a test may spoil

mmlupro has a list of its own (8 questions, ids 0 to 7, the key is B): two wrong answers, two that
were cut off, one given up; gpqa the sample list; think the list of mmlupro, asked twice.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from engine import Lab
from model_server import RunningServer

Json = dict[str, Any]

LONG = "I would say that it must be the second of them. " * 8

PARTS = ("mmlupro", "gpqa", "think")

SCRIPT: dict[str, Any] = {
    "1": {"text": "C"},
    "2": {"text": "It could be A or C, who knows"},
    "3": {"text": f"{LONG}B"},
    "4": {"text": "B", "finish_reason": "length"},
    "5": {"text": "Answer: **B**", "reasoning": "Red? No. Green."},
    "6": [{"status": 400}, {"text": "B"}],
}
"""Item 6 is refused by the first part that asks it and answered afterwards."""


def record(folder: Path, server: RunningServer) -> Path:
    """Run all three parts to their end; the folder of the run."""
    lab = Lab(folder, server).list_of(8)
    lab.card["parts"] = {
        "mmlupro": {"list": "mine.jsonl"},
        "gpqa": {"list": "sample"},
        "think": {"list": "mine.jsonl", "max_tokens": 64, "repeats": 2},
    }
    lab.card["sampling"] = {"temperature": 1.0, "top_p": 0.95}
    lab.card["sampling_source"] = "model card"
    lab.script(SCRIPT)
    assert lab.run().code == 1, "item 6 is given up"
    assert lab.run(parts=",".join(PARTS)).code == 0, "and answered by the next session"
    return lab.job().folder


def copied(made: Path, folder: Path) -> Path:
    """A copy of a run, under its own name."""
    return Path(shutil.copytree(made, folder / made.name))


def first_id(run: Path, part: str) -> Any:
    """The id of the first answer of a part."""
    return json.loads((run / f"{part}.jsonl").read_bytes().split(b"\n")[0])["id"]


def edit_line(path: Path, id: object, change: Callable[[Json], object]) -> None:
    """Change the object on the line with this id (its first one) in place."""
    lines = path.read_text(encoding="utf-8").splitlines()
    place = next(n for n, line in enumerate(lines) if json.loads(line)["id"] == id)
    value = json.loads(lines[place])
    change(value)
    lines[place] = json.dumps(value, separators=(",", ":"))
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")


def set_in_line(path: Path, id: object, **fields: Any) -> None:
    """Set fields of the line with this id."""
    edit_line(path, id, lambda line: line.update(fields))


def set_in_object(path: Path, **fields: Any) -> None:
    """Set fields of a file that is one JSON object."""
    value = json.loads(path.read_bytes())
    value.update(fields)
    path.write_text(json.dumps(value), encoding="utf-8")


def change_lines(path: Path, change: Callable[[list[str]], list[str]]) -> None:
    """Replace the lines of a file."""
    lines = change(path.read_text(encoding="utf-8").splitlines())
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")


def hashes(run: Path) -> dict[str, str]:
    """sha256 of every file of a run."""
    return {
        str(path.relative_to(run)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(run.rglob("*"))
        if path.is_file()
    }
