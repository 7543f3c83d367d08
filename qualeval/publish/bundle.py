"""The files of a bundle, each built anew from what it may hold; nothing is copied.

card.json, and per part <part>.summary.json, .contract.json, .log, .jsonl; summary.json and
summary.md of the parts that are there. Raw replies, prompts, lists and errors are never in it.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from pydantic import JsonValue, ValidationError

from qualeval.card import Card
from qualeval.publish.checker import Checked, Checker, Finding, Place
from qualeval.publish.outcome import Outcome
from qualeval.publish.rules import SEVERITY, placeholder
from qualeval.publish.schema import PublishedAnswer, published
from qualeval.publish.sources import (
    Sources,
    UnreadableError,
    lines_of,
    object_of,
    objects_of,
    pretty,
)
from qualeval.records import Answer, Contract, Json, Record, RunSummary, Summary, sha256_of
from qualeval.server_facts import ServerFacts
from qualeval.summarize import summarize_run
from qualeval.table import markdown_table

SERVER_FIELDS = frozenset(ServerFacts.model_fields) | {"process_started", "replicas"}
"""What a server said of itself that is public; a field that is not here is left out."""

_OWN_EVENT = re.compile(
    r"session (?:starts: [\d,]+ of [\d,]+ to ask|ends)"
    r"|graded again with [\w. ()-]{1,80} in place of .{1,80}"
)
"""Lines of a log that hold no words of a server."""

NoteFinding = Callable[[str, int, object, Finding], None]
"""Called with file, line, id and finding, for the private list of findings."""


@dataclass(slots=True)
class Builder:
    """Writes the files of one bundle into a new folder and reports on each."""

    sources: Sources
    folder: Path
    checker: Checker
    blind: Mapping[str, str]
    note: NoteFinding
    outcome: Outcome = field(default_factory=Outcome)
    label: str = ""
    card_is_whole: bool = True
    summaries: dict[str, Summary] = field(default_factory=dict)

    def build(self, names: Sequence[str]) -> None:
        """Write everything that may be written, the run's own summary last."""
        self._card()
        for name in names:
            self._part(name)
        self._run_summary()

    def _card(self) -> None:
        card = self._object("card.json", "-", Card)
        if card is None:
            self.card_is_whole = False
            return
        file = self.outcome.file("card.json")
        text, changed = self._checked(card, "card.json", "-")
        assert isinstance(text, dict)
        self.label = str(text["label"])
        self.card_is_whole = not changed and not file.held
        self._write_object("card.json", text, Card)

    def _part(self, name: str) -> None:
        contract_is_whole, conditions_sha256 = self._contract(name)
        self._summary(name, conditions_sha256)
        self._log(name)
        self._answers(name, show_request=contract_is_whole)

    def _contract(self, part: str) -> tuple[bool, str | None]:
        """Whether the conditions are as they were; the sha256 of the public ones."""
        name = f"{part}.contract.json"
        contract = self._object(name, part, Contract)
        if contract is None:
            return False, None
        for session in contract["sessions"]:
            session["server"] = self._server(name, session["server"])
            if not self.card_is_whole:
                session["card_sha256"] = placeholder("card")
        conditions, changed = self._checked(contract["conditions"], name, part, "conditions")
        sessions, _ = self._checked(contract["sessions"], name, part, "sessions")
        sha256 = sha256_of(conditions) if changed else contract["conditions_sha256"]
        public = {"conditions": conditions, "conditions_sha256": sha256, "sessions": sessions}
        self._write_object(name, public, Contract)
        return not changed, sha256

    def _server(self, name: str, server: Json) -> Json:
        left_out = sorted(server.keys() - SERVER_FIELDS)
        if left_out:
            self.outcome.notes.append(f"{name}: left out of the server's facts: {len(left_out)}")
        public = {field: server[field] for field in server if field in SERVER_FIELDS}
        replicas = public.get("replicas")
        if isinstance(replicas, list):
            public["replicas"] = [self._server(name, r) for r in replicas if isinstance(r, dict)]
        return public

    def _summary(self, part: str, conditions_sha256: str | None) -> None:
        name = f"{part}.summary.json"
        summary = self._object(name, part, Summary)
        if summary is None:
            return
        for row in (summary, *summary["rows"]):
            row["conditions_sha256"] = conditions_sha256 or row["conditions_sha256"]
        public, _ = self._checked(summary, name, part)
        self._write_object(name, public, Summary)
        if not self.outcome.file(name).held:
            self.summaries[part] = Summary.model_validate(public)

    def _run_summary(self) -> None:
        if not self.summaries:
            return
        whole: RunSummary = summarize_run(self.label, self.summaries)
        public, _ = self._checked(whole.model_dump(mode="json"), "summary.json", "-")
        self._write_object("summary.json", public, RunSummary)
        with self._file("summary.md") as file:
            for number, line in enumerate(markdown_table(whole).rstrip("\n").split("\n"), start=1):
                checked = self.checker.check(line, Place("-", "line", "operator_text"))
                self._report("summary.md", number, None, [checked])
                file.write(checked.text + "\n")
        self._drop_if_held("summary.md")

    # Files of one object

    def _object(self, name: str, part: str, record: type[Record]) -> dict[str, Any] | None:
        """The object of a file, of its form; None, and the file held back, when it has another."""
        file = self.outcome.file(name)
        try:
            stored = object_of(self.sources.path(name))
            file.original_sha256 = self.sources.sha256[name]
            return record.model_validate(stored).model_dump(mode="json")
        except UnreadableError as error:
            self._hold(name, error.rule, error.line)
        except ValidationError:
            self._hold(name, "schema", 1)
        return None

    def _checked(
        self, value: JsonValue, name: str, part: str, field: str = ""
    ) -> tuple[JsonValue, bool]:
        """The value as it may be shown, and whether it had to be changed."""
        place = Place(part, field, "operator_text")
        public, found = self.checker.check_json(value, place)
        self._report(name, 1, None, found)
        return public, public != value

    def _report(self, name: str, line: int, id: Any, found: list[Checked]) -> None:
        findings = [finding for checked in found for finding in checked.findings]
        self.outcome.file(name).add(findings, line, id)
        for finding in findings:
            self.note(name, line, id, finding)

    def _write_object(self, name: str, public: JsonValue, record: type[Record]) -> None:
        file = self.outcome.file(name)
        file.records = 1
        if file.held:
            return
        with self._file(name) as out:
            out.write(record_text(public, record))

    # Logs and answers

    def _log(self, part: str) -> None:
        """The lines of run.log that are of this part."""
        name = f"{part}.log"
        file = self.outcome.file(name)
        path = self.sources.path("run.log")
        file.original_sha256 = self.sources.sha256["run.log"]
        if not path.exists():
            del self.outcome.files[name]
            return
        try:
            with self._file(name) as out:
                for number, line in lines_of(path):
                    time, _, rest = line.partition(" ")
                    tag, _, message = rest.partition(" ")
                    if tag != part:
                        continue
                    file.records += 1
                    blind = part in self.blind and not _OWN_EVENT.fullmatch(message)
                    place = Place(part, "message", "operator_text", blind)
                    checked = self.checker.check(message, place)
                    self._report(name, number, None, [checked])
                    out.write(f"{time[:40]} {tag} {checked.text}\n")
        except UnreadableError as error:
            self._hold(name, error.rule, error.line)
        self._drop_if_held(name)

    def _answers(self, part: str, *, show_request: bool) -> None:
        name = f"{part}.jsonl"
        file = self.outcome.file(name)
        path = self.sources.path(name)
        file.original_sha256 = self.sources.sha256[name]
        wanted = self.summaries[part].answered if part in self.summaries else None
        try:
            with self._file(name) as out:
                for number, stored in objects_of(path):
                    record = self._answer(part, name, number, stored, show_request=show_request)
                    file.records += 1
                    if record is not None and not file.held:
                        out.write(record.line + "\n")
        except UnreadableError as error:
            self._hold(name, error.rule, error.line)
        file.end()
        if wanted is not None and file.records != wanted and not file.held:
            self._hold(name, "schema", file.records)
        self._drop_if_held(name)

    def _answer(
        self, part: str, name: str, number: int, stored: Json, *, show_request: bool
    ) -> PublishedAnswer | None:
        file = self.outcome.file(name)
        try:
            answer = Answer.model_validate(stored)
            record, action, findings = published(
                answer, self.checker, part, blind=part in self.blind, show_request=show_request
            )
        except ValidationError:
            raise UnreadableError("schema", number) from None
        file.add(findings, number, answer.id)
        # An id in which something was found stands in no list of findings either.
        known = None if any(f.field == "id" for f in findings) else answer.id
        for finding in findings:
            self.note(name, number, known, finding)
        if SEVERITY[action] == SEVERITY["withhold"] and record is not None:
            file.withhold(record.withheld or "")
        return record

    def _hold(self, name: str, rule: str, line: int) -> None:
        self.outcome.file(name).hold(rule, line)

    def _drop_if_held(self, name: str) -> None:
        if self.outcome.file(name).held:
            (self.folder / name).unlink(missing_ok=True)

    @contextmanager
    def _file(self, name: str) -> Iterator[TextIO]:
        with (self.folder / name).open("w", encoding="utf-8", newline="\n") as file:
            yield file


def record_text(public: JsonValue, record: type[Record]) -> str:
    """A public object as the run writes it; where it is no such record any more, as plain JSON."""
    try:
        return record.model_validate(public).model_dump_json(indent=2) + "\n"
    except ValidationError:
        return pretty(public)
