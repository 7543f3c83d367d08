"""`qualeval publish`, and the end of every run: a run's public copy, or a reason for what is not.

    run -> schema, rules -> new folder -> last scan -> manifest -> in place of the old one

Originals are opened to be read alone. Beside them, in the run, stay `findings.jsonl` and
`manifest.private.json`; both are private.
"""

import json
import secrets
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from qualeval.card import Card
from qualeval.contract import Conditions
from qualeval.errors import OptionError, QualevalError, RunFolderError
from qualeval.findings import number_of
from qualeval.publish.allowlist import Allowlist, read_allowlist
from qualeval.publish.bundle import Builder
from qualeval.publish.checker import Checker, Finding
from qualeval.publish.last_scan import left_in
from qualeval.publish.machine import gather
from qualeval.publish.manifest import (
    KIND,
    MANIFEST,
    REPORT,
    commitment,
    public_manifest,
    report_text,
)
from qualeval.publish.outcome import Outcome, next_step
from qualeval.publish.protected import protected_texts
from qualeval.publish.rules import SEVERITY, RuleBook, load_rules
from qualeval.publish.sources import Sources, pretty
from qualeval.recheck import started_parts
from qualeval.records import to_json
from qualeval.reopen import contract_of
from qualeval.runfolder import read_summary

PUBLIC = "public"
FINDINGS, PRIVATE = "findings.jsonl", "manifest.private.json"


@dataclass(frozen=True, slots=True)
class Published:
    """How a publication went. `folder` is None where nothing was written; `line` says it all in one
    line; `code` is the exit code of `qualeval publish`; `report` has a line for each file.
    """

    folder: Path | None
    line: str
    code: int
    report: tuple[str, ...] = ()


def publish_run(run: Path, *, check: bool = False) -> Published:
    """Leave the public copy of a run's complete parts in `public/`, at the end of a command; with
    `check` only say what it would come to.

    Raises nothing: whatever happens is said in the line, and no file of the run is changed.
    """
    try:
        done = publish(run, run / PUBLIC, check=check)
    except QualevalError as error:
        said = " ".join(str(error).split())
        return Published(None, f"publication check: not made: {said}", error.exit_code)
    except (OSError, ValueError, RecursionError) as error:
        # A fault of the check or of the disk must not become one of the run that just ended.
        said = getattr(error, "strerror", None) or type(error).__name__
        return Published(None, f"publication check: not made: {said}", 2)
    return Published(done.folder, f"publication check: {done.line}", done.code, done.report)


def publish_command(run: Path, to: Path | None, *, check: bool) -> tuple[list[str], int]:
    """What `qualeval publish RUN --to DIR [--check]` prints, and its exit code.

    0 published (redactions included), 1 records withheld or no part complete, 3 a file held back,
    4 originals changed while they were read. Raises OptionError or RunFolderError (exit 2) for what
    cannot be used.
    """
    if to is None and not check:
        raise OptionError("--to: is missing: a new folder, or one that holds an older bundle")
    try:
        done = publish(run, to or run / PUBLIC, check=check)
    except OSError as error:
        raise OptionError(f"{to}: cannot be written: {error.strerror}") from None
    first = "checked, nothing written: " if check else ""
    return [*done.report, f"{first}{done.line}"], done.code


def publish(
    run: Path,
    to: Path,
    *,
    check: bool,
    book: RuleBook | None = None,
    checker: Checker | None = None,
) -> Published:
    """Make the bundle of a run's complete parts in `to`; with `check` only find out what it would
    come to. `book` and `checker` are given by tests.
    """
    book = book or load_rules()
    names = started_parts(run)
    _refuse_place(run, to)
    private = _private(run)
    work = _Work(run, book, private, [run, Path.cwd()])
    checker = checker or work.checker(names)
    complete = [name for name in names if _is_complete(run, name)]
    outcome = Outcome(incomplete=[name for name in names if name not in complete])
    if not complete:
        said = f"no part is complete ({', '.join(names)})"
        if check:
            return Published(None, f"nothing would be published: {said}", 1)
        if is_bundle(to):
            shutil.rmtree(to)
            said += f"; the older copy in {to} was removed"
        return Published(None, f"nothing published: {said}", 1)
    parent = None if check else to.parent
    if parent is not None:
        parent.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(prefix=".publishing-", dir=parent))
    try:
        done = work.make(staging, checker, outcome, complete)
        if outcome.changed:
            said = f"nothing published: a file changed while it was read: {done.line}"
            return Published(None, said, done.code, done.report)
        if check:
            said = f"the public copy would be {done.line}"
            return Published(None, said, done.code, done.report)
        _keep_private(run, work, staging)
        _put_in_place(staging, to)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return Published(to, f"{to}/: {done.line}", done.code, done.report)


@dataclass(slots=True)
class _Work:
    """One publication under way."""

    run: Path
    book: RuleBook
    private: dict[str, Any]
    folders: Sequence[Path]
    originals: dict[str, str] = field(default_factory=dict)
    blind: Mapping[str, str] = field(default_factory=dict)
    conditions: dict[str, Conditions] = field(default_factory=dict)

    def checker(self, names: Sequence[str]) -> Checker:
        """Everything that texts of this run are checked against."""
        for name in names:
            with suppress(RunFolderError):  # a damaged contract holds back itself alone
                self.conditions[name] = contract_of(self.run, name)[1]
        today = datetime.now(UTC).date()
        key = bytes.fromhex(self.private["key"])
        allow = read_allowlist(self.folders, key, self.book, today)
        literals = gather(self.run, _card(self.run), dict.fromkeys(self.folders))
        protected, self.blind = protected_texts(self.run, names, self.conditions)
        return Checker(self.book, literals, protected, allow)

    def make(
        self, staging: Path, checker: Checker, outcome: Outcome, names: Sequence[str]
    ) -> Published:
        """Write all files of the bundle into `staging`, and the private findings beside them."""
        files = staging / "bundle"
        files.mkdir()
        sources = Sources(self.run)
        with (staging / FINDINGS).open("w", encoding="utf-8", newline="\n") as findings:

            def note(name: str, line: int, id: object, finding: Finding) -> None:
                findings.write(to_json(_private_finding(name, line, id, finding, checker.allow)))
                findings.write("\n")

            builder = Builder(sources, files, checker, self.blind, note, outcome)
            builder.build(names)
        for file in outcome.files.values():
            self._scan(files, file.name, checker, outcome)
        outcome.changed = sources.changed()
        self.originals = sources.sha256
        self._describe(files, checker, outcome)
        return Published(None, outcome.line(), outcome.code, tuple(_report_lines(outcome)))

    def _scan(self, files: Path, name: str, checker: Checker, outcome: Outcome) -> None:
        file = outcome.file(name)
        if file.held:
            return
        part = name.partition(".")[0] if name not in ("card.json", "summary.json") else "-"
        for rule, line, where in left_in(files / name, checker, part, blind=part in self.blind):
            file.counts[rule, "hold"] += 1
            file.ids.setdefault((rule, "hold"), [f"line {line}"])
            file.hold("last-scan", line, where)
        if file.held:
            (files / name).unlink()

    def _describe(self, files: Path, checker: Checker, outcome: Outcome) -> None:
        """Write report and manifest. Ids that should not be seen take all ids out of the report."""
        salts = self.private["salts"]
        commitments = {}
        for file in outcome.files.values():
            original = "run.log" if file.name.endswith(".log") else file.name
            if original in self.originals and (self.run / original).exists():
                salt = bytes.fromhex(salts.setdefault(original, secrets.token_hex(32)))
                commitments[file.name] = commitment(salt, self.run / original)
        report = files / REPORT
        report.write_text(report_text(outcome, self.book, self.blind, ids=True), "utf-8")
        if left_in(report, checker, "-", blind=False):
            report.write_text(report_text(outcome, self.book, self.blind, ids=False), "utf-8")
        public = public_manifest(outcome, files, self.book, checker.allow.entries, commitments)
        (files / MANIFEST).write_text(pretty(public), "utf-8")
        if left_in(files / MANIFEST, checker, "-", blind=False):
            (files / MANIFEST).write_text(pretty(public | {"allowed": []}), "utf-8")


def is_bundle(folder: Path) -> bool:
    """Whether a folder is a bundle: it holds a manifest that says so."""
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(manifest, dict) and manifest.get("kind") == KIND


def _is_complete(run: Path, part: str) -> bool:
    try:
        summary = read_summary(run, part)
    except RunFolderError:
        return False
    return summary is not None and summary.status == "ok"


def _card(run: Path) -> Card | None:
    try:
        return Card.model_validate_json((run / "card.json").read_bytes())
    except (OSError, ValidationError):
        return None


def _refuse_place(run: Path, to: Path) -> None:
    """Raise OptionError where a bundle would replace something else."""
    here, there = run.resolve(), to.resolve()
    if there == here or there in here.parents:
        raise OptionError(f"--to: {to} is the run itself, or holds it; name a folder of its own")
    if to.exists() and not is_bundle(to) and (not to.is_dir() or any(to.iterdir())):
        raise OptionError(f"--to: {to} is there already and is no bundle; name another folder")


def _put_in_place(staging: Path, to: Path) -> None:
    """Move the finished bundle to its place; an older one goes when the new one is there."""
    old = staging / "old"
    if to.exists():
        to.rename(old)
    (staging / "bundle").rename(to)


# What stays with the operator


def _private(run: Path) -> dict[str, Any]:
    """Key and salts of an earlier publication of this run, else new ones."""
    with suppress(OSError, ValueError, TypeError, KeyError):
        stored = json.loads((run / PRIVATE).read_bytes())
        salts = {str(name): bytes.fromhex(salt).hex() for name, salt in stored["salts"].items()}
        return {"key": bytes.fromhex(stored["key"]).hex(), "salts": salts}
    return {"key": secrets.token_hex(32), "salts": {}}


def _keep_private(run: Path, work: _Work, staging: Path) -> None:
    """Put findings and private manifest beside the originals, for nobody else to read."""
    private = work.private | {"originals": work.originals}
    (staging / PRIVATE).write_text(pretty(private), "utf-8")
    for name in (FINDINGS, PRIVATE):
        (staging / name).chmod(0o600)
        shutil.copy2(staging / name, run / f"{name}.new")
        (run / f"{name}.new").replace(run / name)


def _private_finding(
    name: str, line: int, id: object, finding: Finding, allow: Allowlist
) -> dict[str, object]:
    """A line of findings.jsonl: enough to look it up and to let it through, never the value."""
    value = finding.value
    return {
        "rule": finding.rule,
        "file": name,
        "line": line,
        "record_id": id,
        "field": finding.field,
        "start": finding.start,
        "end": finding.end,
        "action": finding.action,
        "sample": f"{value[: min(4, len(value) // 4)]}... ({number_of(len(value), 'character')})",
        "fingerprint": allow.fingerprint(finding.rule, finding.field, value),
    }


def _report_lines(outcome: Outcome) -> list[str]:
    """A line for each file, and one for each thing that holds a file back."""
    width = max(len(name) for name in outcome.files)
    lines = []
    for file in outcome.files.values():
        lines.append(f"{file.name:<{width}}  {file.state}")
        for rule, action, count, _ in file.rules():
            if SEVERITY[action] >= SEVERITY["redact"]:
                lines.append(f"{'':<{width}}    {rule}: {action} {count:,}")
        for rule, line, where in file.held:
            place = f"line {line}" + (f", {where}" if where else "")
            lines.append(f"{'':<{width}}    {rule}, {place}: {next_step(rule)}")
    lines += [f"part {name}: not published: incomplete" for name in outcome.incomplete]
    lines += [f"note: {note}" for note in outcome.notes]
    lines += [f"changed while it was read: {name}" for name in outcome.changed]
    return lines
