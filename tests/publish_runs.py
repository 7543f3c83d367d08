"""Run folders for the tests of publication: small, made by the project's writers, then spoilt.

run = run_of(tmp_path, "ok", text={0: "a text", 1: "another"})
bundle = published(run)
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from compare_folders import Made

from qualeval.contract import Conditions
from qualeval.publish import publish_run
from qualeval.publish.publishing import Published
from qualeval.records import Answer, Contract, sha256_of, to_json
from qualeval.runfolder import read_lines
from qualeval.summarize import summarize
from qualeval.tasks import TASKS

Json = dict[str, Any]


def run_of(
    folder: Path, name: str, answers: str = "rrwc", part: str = "mmlupro", **set: Any
) -> Path:
    """A run of one part with a log."""
    run = Made(folder).run(name, answers, part=part, **set)
    lines = [
        f"2026-11-30T10:00:00.000Z {part} session starts: {len(answers)} of {len(answers)} to ask",
        "2026-11-30T10:00:00.000Z - something about the whole run",
    ]
    (run / "run.log").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return run


def log(run: Path, message: str, part: str = "mmlupro") -> None:
    with (run / "run.log").open("a", encoding="utf-8") as file:
        file.write(f"2026-11-30T10:00:01.000Z {part} {message}\n")


def answer(run: Path, id: object, part: str = "mmlupro", /, **fields: Any) -> None:
    """Change fields of one answer and count the part anew, as `grade` would."""
    path = run / f"{part}.jsonl"
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for line in lines:
        if line["id"] == id:
            line.update(fields)
    path.write_text("".join(to_json(line) + "\n" for line in lines), encoding="utf-8")
    count(run, part)


def count(run: Path, part: str = "mmlupro") -> None:
    """Write the part's summary from its answers and contract."""
    contract = Contract.model_validate_json((run / f"{part}.contract.json").read_bytes())
    label = json.loads((run / "card.json").read_bytes())["label"]
    answers = (one for _, one in read_lines(run / f"{part}.jsonl", Answer))
    summary = summarize(TASKS[part], label, contract, answers)
    (run / f"{part}.summary.json").write_text(summary.model_dump_json(indent=2) + "\n")


def conditions(run: Path, part: str = "mmlupro", **fields: Any) -> None:
    """Change conditions of a part's contract, its hash and its summary too."""
    path = run / f"{part}.contract.json"
    contract = Contract.model_validate_json(path.read_bytes())
    changed = Conditions.model_validate(contract.conditions | fields).model_dump(mode="json")
    new = contract.model_copy(
        update={"conditions": changed, "conditions_sha256": sha256_of(changed)}
    )
    path.write_text(new.model_dump_json(indent=2) + "\n", encoding="utf-8")
    count(run, part)


def session(run: Path, part: str = "mmlupro", **fields: Any) -> None:
    """Change the last session of a part's contract."""
    path = run / f"{part}.contract.json"
    contract = json.loads(path.read_bytes())
    contract["sessions"][-1].update(fields)
    path.write_text(json.dumps(contract, indent=2) + "\n", encoding="utf-8")


def card(run: Path, **fields: Any) -> None:
    """Change fields of the run's card."""
    path = run / "card.json"
    path.write_text(json.dumps(json.loads(path.read_bytes()) | fields), encoding="utf-8")


def local(run: Path, names: list[str] | None = None, keys: list[str] | None = None) -> None:
    """Names and keys of the machine, given by file."""
    text = f"names = {json.dumps(names or [])}\nkeys = {json.dumps(keys or [])}\n"
    (run / "publish.local.toml").write_text(text, encoding="utf-8")


def published(run: Path) -> Published:
    return publish_run(run)


def lines(path: Path) -> list[Json]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def text_of(folder: Path) -> str:
    """Everything in a folder, JSON strings decoded, so that nothing hides in an escape."""
    raw = "\n".join(p.read_text(encoding="utf-8") for p in sorted(folder.rglob("*")) if p.is_file())
    return raw + "\n" + raw.encode().decode("unicode_escape", "replace")
