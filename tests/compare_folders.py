"""Run folders made by the project's own writers: card -> plan -> contract -> replies -> grade.

    made = Made(tmp_path)
    old = made.run("old", "rrrw")              # four questions: three right, one wrong
    new = made.run("new", "rrcw", seed=43)     # cut off the third, under another seed

One letter an answer: right, wrong, cut off, misrouted, no letter, several letters; with repeats one
string a repeat. Nothing is written by hand, so a changed file format breaks nothing here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from qualeval import contract as contracts
from qualeval.card import Card
from qualeval.grading import finish_part
from qualeval.plan import plan_part
from qualeval.records import Completion, RawReply, Summary, Usage
from qualeval.runfolder import RunFolder
from qualeval.summarize import summarize_run

Json = dict[str, Any]

REPLIES: Mapping[str, Completion] = {
    "r": Completion(text="B", finish_reason="stop", usage=Usage(completion_tokens=2)),
    "w": Completion(text="A", finish_reason="stop", usage=Usage(completion_tokens=2)),
    "c": Completion(text="B", finish_reason="length", cut_by="max_tokens"),
    "m": Completion(
        text="", reasoning="B", reasoning_source="reasoning_content", finish_reason="stop"
    ),
    "n": Completion(text="None of them.", finish_reason="stop"),
    "s": Completion(text="A or C", finish_reason="stop"),
}


class Made:
    """Makes run folders below `folder`, all of them on the same list of a size."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(
        self, name: str, *answers: str, part: str = "mmlupro", gate: float | None = None, **set: Any
    ) -> Path:
        """A run folder with one part, or one more part in it.

        `set` changes the card: `model`, `seed`, `sampling`, `thinking`, `max_tokens`, `repeats`,
        `setup`, `label`, `list` (name of the list file), `dialect`; `session` the session.
        """
        session: Json = set.pop("session", {})
        list_name = set.pop("list", f"mine-{len(answers[0])}.jsonl")
        if list_name != "sample":
            self._list(list_name, len(answers[0]))
        card = self._card(name, part, list_name, len(answers), gate, set)
        plan = plan_part(card, part, self.folder)
        contract = contracts.new_contract(contracts.conditions_of(plan, card.sampling_source))
        facts: Json = {"slots": 4, "slots_source": "card", "schedule": "default", "alone": True}
        facts |= {"server": {"engine_version": "1.0", "process_started": "2026-01-01T00:00:00Z"}}
        begun = contracts.new_session(
            card, command="qualeval run card.json", items=plan.size, **(facts | session)
        )
        contract = contracts.with_session(contract, begun)
        with RunFolder(self.folder / name) as files:
            files.write("card.json", card.model_dump_json(indent=2))
            files.write(f"{part}.contract.json", contract.model_dump_json(indent=2))
            for repeat, letters in enumerate(answers):
                for item, letter in zip(plan.items, letters, strict=True):
                    if letter != " ":
                        raw = RawReply.of(plan.request(item, repeat), REPLIES[letter])
                        files.append(part, "gen", raw)
            finish_part(files, plan, card.label)
            self._whole(files)
        return self.folder / name

    def _list(self, name: str, size: int) -> None:
        path = self.folder / name
        options = ["red", "green", "blue"]
        rows = (
            {"id": i, "question": f"Which, {i}?", "options": options, "answer": "B"}
            for i in range(size)
        )
        if not path.exists():
            path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")

    def _card(
        self, name: str, part: str, list_name: str, repeats: int, gate: float | None, set: Json
    ) -> Card:
        settings: Json = {"list": list_name}
        if repeats > 1:
            settings["repeats"] = repeats
        if "max_tokens" in set:
            settings["max_tokens"] = set["max_tokens"]
        server = {"base_url": "http://127.0.0.1:8000/v1", "model": set.get("model", "m")}
        server["dialect"] = set.get("dialect", "vllm")
        fields: Json = {"label": set.get("label", name), "server": server}
        fields["parts"] = {part: settings}
        fields["thinking"] = set.get("thinking", {"off": {"think": False}, "on": {"think": True}})
        fields |= {k: set[k] for k in ("seed", "sampling", "sampling_source", "setup") if k in set}
        if gate is not None:
            fields["gate"] = {"margin_points": gate}
        return Card.model_validate(fields)

    def _whole(self, files: RunFolder) -> None:
        """`summary.json`, as `qualeval run` writes it."""
        parts = {}
        for path in sorted(files.path.glob("*.summary.json")):
            summary = Summary.model_validate(json.loads(path.read_bytes()))
            parts[summary.part] = summary
        files.write("summary.json", summarize_run("label", parts).model_dump_json(indent=2))


def letters(counts: Sequence[tuple[str, int]]) -> str:
    """A string of answers: [("r", 3), ("w", 1)] is `rrrw`."""
    return "".join(letter * times for letter, times in counts)
