"""The rules of `rules.toml`: what is looked for in a text, and how bad it is where.

    note < redact < withhold < hold

A rule is tried only where one of the words that it needs occurs, in windows where a text is long,
and its finding may be looked at again by a check. Token shapes are detect-secrets' plugins, asked
with decoded texts alone; the import costs 0.3 s and happens when a text looks like it.
"""

import hashlib
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.resources import files
from typing import Any, Literal, Protocol, cast

from qualeval.errors import did_you_mean
from qualeval.publish.checks import CHECKS
from qualeval.publish.views import View

Action = Literal["allowed", "note", "redact", "withhold", "hold"]
TextClass = Literal["model_text", "operator_text"]
SEVERITY: Mapping[Action, int] = {"allowed": 0, "note": 1, "redact": 2, "withhold": 3, "hold": 4}

WINDOW, OVERLAP = 65_536, 4_096
"""Characters that a pattern sees at once, and how much two windows share: no finding is longer."""


class _Plugin(Protocol):
    def analyze_string(self, string: str) -> Iterable[str]: ...


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """One rule; the fields are those of `rules.toml`."""

    id: str
    why: str
    needs: tuple[str, ...] = ()
    near: re.Pattern[str] | None = None
    pattern: re.Pattern[str] | None = None
    plugin: str | None = None
    check: str | None = None
    builtin: str | None = None
    replacement: str | None = None
    split: bool = True
    model_text: Action = "hold"
    operator_text: Action = "hold"

    def action(self, kind: TextClass) -> Action:
        """What follows where this is found."""
        return self.model_text if kind == "model_text" else self.operator_text

    @property
    def placeholder(self) -> str:
        """What stands in place of a finding."""
        return self.replacement or placeholder(self.id)

    def find(self, view: View) -> Iterator[tuple[int, int]]:
        """Where it is found in one reading of a text that holds one of the words it needs."""
        check = CHECKS[self.check] if self.check else None
        for offset, text in windows(view.text):
            for start, end in self._in(text):
                if check is None or check(text[start:end]):
                    yield start + offset, end + offset

    def _in(self, text: str) -> Iterator[tuple[int, int]]:
        if self.near is not None and not self.near.search(text):
            return
        if self.pattern is not None:
            for match in self.pattern.finditer(text):
                whole = match.re.groups == 0 or match["value"] is None
                yield match.span() if whole else match.span("value")
        if self.plugin is not None:
            for value in dict.fromkeys(_plugin(self.plugin).analyze_string(text)):
                for match in re.finditer(re.escape(value), text):
                    if _stands_alone(text, *match.span()):
                        yield match.span()


def placeholder(rule: str) -> str:
    """What stands in place of a finding of a rule."""
    return f"⟦redacted:{rule}⟧"


def windows(text: str) -> Iterator[tuple[int, str]]:
    """(offset, piece) of pieces that overlap; a short text is one."""
    if len(text) <= WINDOW:
        yield 0, text
        return
    for offset in range(0, len(text) - OVERLAP, WINDOW - OVERLAP):
        yield offset, text[offset : offset + WINDOW]


def _stands_alone(text: str, start: int, end: int) -> bool:
    """Whether a value is not the inside of a longer word, such as a gene or an encoded image."""
    before, after = text[start - 1 : start], text[end : end + 1]
    return not (before.isalnum() or after.isalnum())


@cache
def _plugin(name: str) -> _Plugin:
    module, _, plugin = name.partition(".")
    made: Any = getattr(import_module(f"detect_secrets.plugins.{module}"), plugin)()
    return cast(_Plugin, made)


@dataclass(frozen=True, slots=True)
class RuleBook:
    """All rules by id, and the sha256 of the file they came from."""

    rules: Mapping[str, Rule]
    sha256: str
    by_word: Mapping[str, tuple[Rule, ...]]
    """Rules by the words that they need: all words are looked up once a text."""
    split_by_word: Mapping[str, tuple[Rule, ...]]
    """Those of them that are also tried where line breaks are taken out."""

    @classmethod
    def of(cls, rules: Mapping[str, Rule], sha256: str) -> "RuleBook":
        """A book of these rules."""
        split = [rule for rule in rules.values() if rule.split]
        return cls(rules, sha256, _by_word(rules.values()), _by_word(split))

    def find(self, readings: Sequence[View]) -> Iterator[tuple[Rule, View, int, int]]:
        """(rule, reading, start, end) of everything that patterns and plugins find in a text."""
        last = readings[-1].lower
        words = [word for word in self.by_word if word in last]
        for view in readings:
            by_word = self.split_by_word if view.kind == "joined" else self.by_word
            # A word is still there when line breaks went; not when escapes were undone.
            undone = view.kind == "plain" and any(r.kind == "decoded" for r in readings[1:2])
            some = self.by_word if undone else words
            lower = view.lower
            rules = [r for word in some if word in lower for r in by_word.get(word, ())]
            for rule in dict.fromkeys(rules):
                for start, end in rule.find(view):
                    yield rule, view, start, end

    def __getitem__(self, id: str) -> Rule:
        return self.rules[id]

    def __contains__(self, id: str) -> bool:
        return id in self.rules

    def without(self, id: str) -> "RuleBook":
        """The book less one rule."""
        rules = {name: rule for name, rule in self.rules.items() if name != id}
        return RuleBook.of(rules, self.sha256)

    def at_least(self, action: Action, kind: TextClass) -> "RuleBook":
        """The book less the rules of which less than `action` follows in such a text."""
        least = SEVERITY[action]
        rules = {n: rule for n, rule in self.rules.items() if SEVERITY[rule.action(kind)] >= least}
        return RuleBook.of(rules, self.sha256)

    def explain(self, id: str) -> list[str]:
        """A rule in words, a line each."""
        if id not in self.rules:
            return [f"rule '{id}' is unknown{did_you_mean(id, self.rules)}"]
        rule = self.rules[id]
        found_by = rule.builtin or rule.plugin or (rule.pattern.pattern if rule.pattern else "")
        return [
            f"rule      {rule.id}: {rule.why}",
            f"found by  {found_by}",
            f"needs     {', '.join(rule.needs) or 'nothing'}",
            f"outcome   {rule.model_text} in answers, {rule.operator_text} in all else",
        ]


def _by_word(rules: Iterable[Rule]) -> dict[str, tuple[Rule, ...]]:
    by_word: dict[str, tuple[Rule, ...]] = {}
    for rule in rules:
        for word in rule.needs:
            by_word[word] = (*by_word.get(word, ()), rule)
    return by_word


@cache
def load_rules() -> RuleBook:
    """The rules as shipped."""
    data = (files("qualeval.publish") / "rules.toml").read_bytes()
    return RuleBook.of(
        {id: _rule(id, fields) for id, fields in tomllib.loads(data.decode()).items()},
        hashlib.sha256(data).hexdigest(),
    )


def _rule(id: str, fields: dict[str, Any]) -> Rule:
    for name in ("near", "pattern"):
        if name in fields:
            fields[name] = re.compile(fields[name])
    fields["needs"] = tuple(fields.get("needs", ()))
    return Rule(id=id, **fields)
