"""A text checked: every finding in it, what follows, and the text that may be shown.

The one place where rules, local literals, protected lists and the allowlist come together. Pure:
a text and where it stands go in, nothing is written.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache

from pydantic import JsonValue

from qualeval.publish.allowlist import Allowlist
from qualeval.publish.literals import Literals
from qualeval.publish.overlap import SHORTEST, Protected, share_of, words_of
from qualeval.publish.rules import SEVERITY, Action, Rule, RuleBook, TextClass, placeholder
from qualeval.publish.views import View, views
from qualeval.records import Record

MOSTLY = 0.5
"""Share of a text that is protected from which nothing of the text is shown."""

SHORT, MANY = 100, 10_000
"""Characters of a text that is remembered as clean, and how many such texts."""

BUCKETS = (8, 16, 64, 256, 1024)


@cache
def record_names() -> frozenset[str]:
    """Names of fields that this program gives: whatever the machine is called, they are no names
    of it.
    """
    names: set[str] = set()
    classes: list[type[Record]] = [Record]
    while classes:
        one = classes.pop()
        names.update(one.model_fields)
        classes += one.__subclasses__()
    return frozenset(names)


@dataclass(frozen=True, slots=True)
class Finding:
    """Something found in a field: `start`, `end` are code points of the decoded field."""

    rule: str
    part: str
    field: str
    start: int
    end: int
    action: Action
    value: str

    @property
    def length_bucket(self) -> str:
        """About how long it is, not how long."""
        length, low = self.end - self.start, 1
        for high in BUCKETS:
            if length <= high:
                return f"{low}-{high}"
            low = high + 1
        return f"{low}+"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a text stands: its part, its file's class, its field."""

    part: str
    field: str
    kind: TextClass
    blind: bool = False
    """True in a part of a protected list that is not on this machine."""

    def at(self, inner: str) -> "Place":
        """A place inside this one."""
        field = f"{self.field}{inner}".lstrip(".")
        return Place(self.part, field, self.kind, self.blind)


@dataclass(slots=True)
class Checked:
    """What a text came to. `text` has placeholders; `shown` are the findings in it, in order, each
    with its start in `text`.
    """

    text: str
    action: Action = "allowed"
    findings: list[Finding] = field(default_factory=list)
    shown: list[tuple[int, Finding]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Checker:
    """All that a text is checked against."""

    book: RuleBook
    literals: Literals
    protected: Protected
    allow: Allowlist
    _clean: set[tuple[TextClass, bool, str]] = field(default_factory=set)
    """Short texts in which nothing was found: names of fields and words of verdicts recur."""

    def check(self, text: str, place: Place) -> Checked:
        """Find, decide, replace."""
        checked = Checked(text)
        if (place.kind, place.blind, text) in self._clean:
            return checked
        spans: list[tuple[int, int, Finding, str]] = []
        seen: set[tuple[int, int, str]] = set()
        for rule, start, end, shown in self._found(text, place):
            if (start, end, rule.id) in seen:
                continue
            seen.add((start, end, rule.id))
            action = rule.action(place.kind)
            value = text[start:end]
            if self.allow.covers(rule.id, place.part, place.field, value):
                action = "allowed"
            found = Finding(rule.id, place.part, place.field, start, end, action, value)
            checked.findings.append(found)
            checked.action = max(checked.action, action, key=SEVERITY.__getitem__)
            if SEVERITY[action] >= SEVERITY["redact"]:
                spans.append((start, end, found, shown))
        if not checked.findings and len(text) <= SHORT and len(self._clean) < MANY:
            self._clean.add((place.kind, place.blind, text))
        overlap = [(f.start, f.end) for _, _, f, _ in spans if f.rule == "gated-overlap"]
        if checked.action == "redact" and share_of(text, overlap) > MOSTLY:
            checked.action = "withhold"
        _replace(checked, spans)
        return checked

    def check_json(self, value: JsonValue, place: Place) -> tuple[JsonValue, list[Checked]]:
        """Check every text inside a JSON value, names of fields too."""
        if isinstance(value, str):
            checked = self.check(value, place)
            return checked.text, [checked] if checked.findings else []
        found: list[Checked] = []
        if isinstance(value, list):
            items = []
            for number, inner in enumerate(value):
                new, more = self.check_json(inner, place.at(f"[{number}]"))
                items.append(new)
                found += more
            return items, found
        if isinstance(value, dict):
            fields = {}
            for name, inner in value.items():
                safe = name
                if name not in record_names():
                    new_name, more = self.check_json(name, place.at(".(name)"))
                    found += more
                    safe = str(new_name)
                fields[safe], more = self.check_json(inner, place.at(f".{safe}"))
                found += more
            return fields, found
        return value, found

    def _found(self, text: str, place: Place) -> Iterator[tuple[Rule, int, int, str]]:
        """(rule, start, end, what stands for it) of everything found."""
        if len(text) < 2:
            return
        readings = views(text)
        for rule, view, start, end in self.book.find(readings):
            yield rule, *view.span(start, end), rule.placeholder
        yield from self._literals(readings, place)
        yield from self._protected(text, readings, place)

    def _literals(
        self, readings: Sequence[View], place: Place
    ) -> Iterator[tuple[Rule, int, int, str]]:
        if "local-literal" in self.book:
            rule = self.book["local-literal"]
            for view in readings:
                for span in self.literals.find(view):
                    yield rule, *view.span(*span), rule.placeholder
            for view in _with_lines(readings):
                for without, start, end in self.literals.find_bare(view):
                    yield rule, *without.span(start, end), rule.placeholder
        if "root-path" in self.book and place.kind == "operator_text":
            for view in _with_lines(readings):
                for start, end, name in self.literals.find_roots(view):
                    yield self.book["root-path"], *view.span(start, end), name

    def _protected(
        self, text: str, readings: Sequence[View], place: Place
    ) -> Iterator[tuple[Rule, int, int, str]]:
        if "gated-overlap" in self.book:
            rule = self.book["gated-overlap"]
            for view in _with_lines(readings):
                for span in self.protected.find(view.text):
                    yield rule, *view.span(*span), rule.placeholder
        if "canary" in self.book:
            rule = self.book["canary"]
            for canary in self.protected.canaries:
                for view in readings:
                    start = view.lower.find(canary.lower())
                    if start >= 0:
                        yield rule, *view.span(start, start + len(canary)), rule.placeholder
        if place.blind and "gated-list-missing" in self.book and len(words_of(text)) >= SHORTEST:
            rule = self.book["gated-list-missing"]
            yield rule, 0, len(text), rule.placeholder


def _with_lines(readings: Sequence[View]) -> list[View]:
    """The readings in which lines, and so words, are still apart."""
    return [view for view in readings if view.kind != "joined"]


def _replace(checked: Checked, spans: list[tuple[int, int, Finding, str]]) -> None:
    """Put placeholders where something was found; spans that touch one another become one."""
    if not spans:
        return
    merged: list[tuple[int, int, Finding, str]] = []
    for start, end, found, shown in sorted(spans, key=lambda span: (span[0], -span[1])):
        if merged and start < merged[-1][1]:
            first, before, kept, name = merged[-1]
            if end > before:
                merged[-1] = (first, end, kept, placeholder(kept.rule))
            else:
                merged[-1] = (first, before, kept, name)
            continue
        merged.append((start, end, found, shown))
    pieces, at, length = [], 0, 0
    for start, end, found, shown in merged:
        pieces += [checked.text[at:start], shown]
        length += start - at
        checked.shown.append((length, found))
        length += len(shown)
        at = end
    checked.text = "".join([*pieces, checked.text[at:]])
