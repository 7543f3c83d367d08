"""What became of each file of a bundle, counted: never a value, and no more than some ids."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from qualeval.findings import number_of
from qualeval.publish.checker import Finding
from qualeval.publish.rules import SEVERITY, Action
from qualeval.records import ItemId

IDS_SHOWN = 20
MOST_WITHHELD = 0.05
NOT_COUNTED_AS_MANY = "gated-list-missing"
"""Withheld because a list is not here says nothing of the answers: it holds no file back."""

NEXT_STEP = {
    "token": "withdraw that key at its service, then publish again, or allow its fingerprint",
    "private-key": "replace that key pair, then publish again, or allow its fingerprint",
    "url-credentials": "change that password and take it out of what the card or log says",
    "auth-header": "withdraw that key; keep keys in the variable that api_key_env names",
    "gated-overlap": "nothing: text of that list may not leave this machine",
    "canary": "nothing: a benchmark's canary may not leave this machine",
    "last-scan": "report it as a fault of qualeval; the rule and the field are in findings.jsonl",
    "schema": "qualeval verify RUN says what is wrong with it, qualeval grade RUN makes it anew",
    "too-many-withheld": "look at findings.jsonl; let false alarms through in publish.allow.toml",
}
OTHERWISE = "look at findings.jsonl; let a false alarm through in publish.allow.toml"


def next_step(rule: str) -> str:
    """What a person can do about a file that is held back."""
    return NEXT_STEP.get("token" if rule.startswith("token-") else rule, OTHERWISE)


@dataclass(slots=True)
class FileReport:
    """One file of a bundle. `counts` are findings by (rule, action); `held` the places that hold it
    back, as (rule, line, field).
    """

    name: str
    records: int = 0
    counts: Counter[tuple[str, Action]] = field(default_factory=Counter)
    ids: dict[tuple[str, Action], list[str]] = field(default_factory=dict)
    held: list[tuple[str, int, str]] = field(default_factory=list)
    withheld: Counter[str] = field(default_factory=Counter)
    original_sha256: str = ""

    def add(self, findings: Iterable[Finding], line: int, id: ItemId | None = None) -> None:
        """Count the findings of one record."""
        findings = list(findings)
        in_id = any(f.field == "id" for f in findings)
        shown = f"line {line}" if id is None or in_id else str(id)
        for finding in findings:
            key = (finding.rule, finding.action)
            self.counts[key] += 1
            ids = self.ids.setdefault(key, [])
            if shown not in ids and len(ids) < IDS_SHOWN:
                ids.append(shown)
            if finding.action == "hold":
                self.hold(finding.rule, line, finding.field)

    def hold(self, rule: str, line: int = 0, field: str = "") -> None:
        """Hold the file back."""
        if len(self.held) < IDS_SHOWN:
            self.held.append((rule, line, field))

    def withhold(self, rule: str) -> None:
        """Count a record whose text is withheld."""
        self.withheld[rule] += 1

    def end(self) -> None:
        """Hold the file back where a share of its records is withheld that no reader can use."""
        many = sum(n for rule, n in self.withheld.items() if rule != NOT_COUNTED_AS_MANY)
        if many > MOST_WITHHELD * self.records:
            self.hold("too-many-withheld")

    @property
    def redactions(self) -> int:
        """How many places have a placeholder."""
        return sum(n for (_, action), n in self.counts.items() if action == "redact")

    @property
    def state(self) -> str:
        """One phrase: published, published with N redactions, held back."""
        if self.held:
            return "held back"
        what = []
        if self.redactions:
            what.append(number_of(self.redactions, "redaction"))
        if self.withheld:
            what.append(f"{number_of(self.withheld.total(), 'record')} withheld")
        return "published" + (f" with {' and '.join(what)}" if what else "")

    def rules(self) -> list[tuple[str, Action, int, str]]:
        """(rule, action, count, ids) of all that was found, worst first."""
        order = sorted(self.counts, key=lambda key: (-SEVERITY[key[1]], key[0]))
        return [
            (rule, action, self.counts[rule, action], self._ids(rule, action))
            for rule, action in order
        ]

    def _ids(self, rule: str, action: Action) -> str:
        ids = self.ids[rule, action]
        return ", ".join(ids) + (", ..." if len(ids) == IDS_SHOWN else "")


@dataclass(slots=True)
class Outcome:
    """All files of a bundle."""

    files: dict[str, FileReport] = field(default_factory=dict)
    incomplete: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def file(self, name: str) -> FileReport:
        """The report of a file, a new one at first."""
        return self.files.setdefault(name, FileReport(name))

    @property
    def held(self) -> list[FileReport]:
        """Files that are held back."""
        return [file for file in self.files.values() if file.held]

    @property
    def code(self) -> int:
        """The exit code of `publish`: 0, 1 records withheld, 3 a file held back, 4 changed."""
        if self.changed:
            return 4
        if self.held:
            return 3
        return 1 if any(file.withheld for file in self.files.values()) else 0

    def line(self) -> str:
        """All of it in one line."""
        redactions = sum(file.redactions for file in self.files.values() if not file.held)
        withheld = sum(sum(f.withheld.values()) for f in self.files.values() if not f.held)
        said = [number_of(len(self.files) - len(self.held), "file")]
        said += [number_of(redactions, "redaction") if redactions else "nothing redacted"]
        said += [f"{number_of(withheld, 'record')} withheld"] if withheld else []
        rules = sorted({rule for file in self.held for rule, _, _ in file.held})
        if self.held:
            names = ", ".join(file.name for file in self.held)
            said += [f"held back: {names} ({', '.join(rules)})"]
        if self.incomplete:
            said += [f"not published, incomplete: {', '.join(self.incomplete)}"]
        return ", ".join(said)
