"""`publish.allow.toml`: findings that a person looked at and let through, each with a reason.

    [[allow]]
    rule = "email"
    fingerprint = "0123456789abcdef"     # or: pattern = '...', field = "text", part = "ifeval"
    reason = "support address of the made-up shop in the question"
    added = 2026-11-30
    expires = 2027-05-31                 # at most 365 days later
    by = "initials"

A fingerprint names one value in one field without holding it. Keys and private keys can be let
through by fingerprint alone. Nothing in a text itself can let anything through.
"""

import hmac
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

from qualeval.errors import OptionError, did_you_mean
from qualeval.publish.rules import RuleBook

ALLOW_FILE = "publish.allow.toml"
LONGEST_DAYS = 365
SHORTEST_REASON = 10

_FIELDS = frozenset(
    ("rule", "fingerprint", "pattern", "field", "part", "reason", "added", "expires", "by")
)


def fingerprint(key: bytes, rule: str, field: str, value: str) -> str:
    """The name of a finding: tells nothing of the value to whoever has not the key."""
    text = f"{rule}|{field}|{value}".encode("utf-8", "backslashreplace")
    return hmac.digest(key, text, "sha256").hex()[:16]


@dataclass(slots=True)
class Allowed:
    """One entry, and how often it was used."""

    rule: str
    reason: str
    expires: str
    fingerprint: str | None = None
    pattern: re.Pattern[str] | None = None
    field: str | None = None
    part: str | None = None
    used: int = 0

    def covers(self, part: str, field: str, value: str, mark: str) -> bool:
        """Whether the entry speaks of this finding of its rule."""
        if self.fingerprint is not None:
            return hmac.compare_digest(self.fingerprint, mark)
        assert self.pattern is not None
        here = (self.field, self.part) == (field.partition("[")[0].partition(".")[0], part)
        return here and self.pattern.fullmatch(value) is not None


@dataclass(frozen=True, slots=True)
class Allowlist:
    """All entries, and the key that fingerprints are made with."""

    key: bytes
    entries: Sequence[Allowed] = field(default_factory=tuple)

    def covers(self, rule: str, part: str, field: str, value: str) -> bool:
        """Whether a finding is let through; counts the entry as used."""
        for entry in self.entries:
            if entry.rule != rule:
                continue
            if entry.covers(part, field, value, self.fingerprint(rule, field, value)):
                entry.used += 1
                return True
        return False

    def fingerprint(self, rule: str, field: str, value: str) -> str:
        """The name of a finding."""
        return fingerprint(self.key, rule, field, value)


def read_allowlist(folders: Sequence[Path], key: bytes, book: RuleBook, today: date) -> Allowlist:
    """The entries of every `publish.allow.toml` in the folders.

    Raises OptionError naming file, entry and fault.
    """
    entries: list[Allowed] = []
    for path in dict.fromkeys(folder.absolute() / ALLOW_FILE for folder in folders):
        try:
            given = tomllib.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            continue
        except (OSError, ValueError):
            raise OptionError(f"{path.name}: cannot be read as TOML") from None
        listed = given.pop("allow", [])
        if given or not isinstance(listed, list):
            raise OptionError(f"{path.name}: holds nothing but [[allow]] entries")
        for number, one in enumerate(listed, start=1):
            entries.append(_entry(f"{path.name}: entry {number}", one, book, today))
    return Allowlist(key, tuple(entries))


def _entry(where: str, given: dict[str, Any], book: RuleBook, today: date) -> Allowed:
    for name in given:
        if name not in _FIELDS:
            raise OptionError(f"{where}: '{name}' is unknown{did_you_mean(name, _FIELDS)}")
    rule = given.get("rule")
    if not isinstance(rule, str) or rule not in book:
        hint = did_you_mean(str(rule), book.rules)
        raise OptionError(f"{where}: there is no rule '{rule}'{hint}")
    where = f"{where} ({rule})"
    reason = given.get("reason")
    if not isinstance(reason, str) or len(reason.strip()) < SHORTEST_REASON:
        raise OptionError(f"{where}: needs a reason of {SHORTEST_REASON} characters or more")
    expires = _dates(where, given, today)
    mark, pattern = given.get("fingerprint"), given.get("pattern")
    if (mark is None) == (pattern is None):
        raise OptionError(f"{where}: give either a fingerprint, or pattern, field and part")
    if mark is not None:
        if not isinstance(mark, str) or not re.fullmatch("[0-9a-f]{16}", mark):
            raise OptionError(f"{where}: a fingerprint is 16 hexadecimal digits")
        return Allowed(rule, reason, expires, fingerprint=mark)
    if rule.startswith("token-") or rule == "private-key":
        raise OptionError(f"{where}: a key is let through by fingerprint alone, not by pattern")
    field, part = given.get("field"), given.get("part")
    if not isinstance(field, str) or not isinstance(part, str):
        raise OptionError(f"{where}: a pattern needs a field and a part")
    return Allowed(rule, reason, expires, pattern=_pattern(where, pattern), field=field, part=part)


def _dates(where: str, given: dict[str, Any], today: date) -> str:
    added, expires = given.get("added"), given.get("expires")
    for name, value in (("added", added), ("expires", expires), ("by", given.get("by") or None)):
        wanted = str if name == "by" else date
        if not isinstance(value, wanted) or isinstance(value, datetime):
            raise OptionError(f"{where}: '{name}' is missing, or is not of its kind")
    assert isinstance(added, date)
    assert isinstance(expires, date)
    if expires - added > timedelta(days=LONGEST_DAYS):
        raise OptionError(f"{where}: expires more than {LONGEST_DAYS} days after it was added")
    if expires < today:
        raise OptionError(f"{where}: expired on {expires}; look at it again or take it out")
    return expires.isoformat()


def _pattern(where: str, given: object) -> re.Pattern[str]:
    try:
        pattern = re.compile(given if isinstance(given, str) else "")
    except re.error:
        raise OptionError(f"{where}: the pattern is no regular expression") from None
    if pattern.fullmatch(""):
        raise OptionError(f"{where}: the pattern also matches nothing at all")
    return pattern
