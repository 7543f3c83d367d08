"""What a bundle says of itself: `manifest.json` for programs, `publication.md` for people.

Of an original that is not published as it is, only a commitment is public: the sha256 of a secret
salt and the original. A plain sha256 beside a redacted copy gives the redaction away: a private
address is found by trying 65,536 of them, in a twentieth of a second.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from qualeval import __version__
from qualeval.publish.allowlist import Allowed
from qualeval.publish.outcome import FileReport, Outcome, next_step
from qualeval.publish.rules import RuleBook
from qualeval.publish.sources import file_sha256
from qualeval.records import Json, now

KIND = "qualeval bundle"
VERSION = 1
MANIFEST, REPORT = "manifest.json", "publication.md"


def commitment(salt: bytes, original: Path) -> str:
    """sha256 of the salt and an original: shows later what it was, and tells nothing before."""
    digest = hashlib.sha256(salt)
    with original.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def public_manifest(
    outcome: Outcome,
    folder: Path,
    book: RuleBook,
    allowed: Iterable[Allowed],
    commitments: Mapping[str, str],
) -> Json:
    """`manifest.json`: every file with its sha256 and what was done to it. No value, no name."""
    files: dict[str, Json] = {}
    for file in outcome.files.values():
        if file.held:
            continue
        path = folder / file.name
        entry: Json = {
            "sha256": file_sha256(path),
            "bytes": path.stat().st_size,
            "records": file.records,
            "redactions": file.redactions,
            "withheld": sum(file.withheld.values()),
        }
        entry["as_the_run_wrote_it"] = entry["sha256"] == file.original_sha256
        if file.name in commitments and not entry["as_the_run_wrote_it"]:
            entry["commitment"] = commitments[file.name]
        files[file.name] = entry
    return {
        "kind": KIND,
        "version": VERSION,
        "made": now(),
        "qualeval": __version__,
        "rules_sha256": book.sha256,
        "files": dict(files),
        "held_back": {f.name: dict(Counter(rule for rule, _, _ in f.held)) for f in outcome.held},
        "incomplete": list(outcome.incomplete),
        "counts": _counts(outcome),
        "allowed": [
            {"rule": a.rule, "reason": a.reason, "expires": a.expires, "used": a.used}
            for a in allowed
            if a.used
        ],
    }


def _counts(outcome: Outcome) -> Json:
    """Findings by rule and action over all files."""
    counts: dict[str, Counter[str]] = {}
    for file in outcome.files.values():
        for (rule, action), count in file.counts.items():
            counts.setdefault(rule, Counter())[action] += count
    return {rule: dict(counts[rule]) for rule in sorted(counts)}


def report_text(outcome: Outcome, book: RuleBook, blind: Mapping[str, str], *, ids: bool) -> str:
    """`publication.md`: what became of every file, rule by rule; no value is in it."""
    lines = [
        "# What was published, and what was not",
        "",
        "Made by qualeval's publication check. Scores are those of the run: a redaction or a",
        "withheld text changes no verdict and no count. `⟦redacted:RULE⟧` stands where something",
        "was taken out. Raw replies, prompts and question lists are never in a bundle.",
        "",
        "| file | state |",
        "| --- | --- |",
        *(f"| {file.name} | {file.state} |" for file in outcome.files.values()),
    ]
    for name in outcome.incomplete:
        lines.append(f"| part {name} | not published: incomplete |")
    for name in blind:
        lines += ["", f"Part {name}: its list is not on this machine, so text of its answers that"]
        lines += ["could quote a question is withheld."]
    for file in outcome.files.values():
        if file.counts or file.held:
            lines += ["", f"## {file.name}: {file.state}", ""]
            lines += _rules(file, book, ids=ids)
    return "\n".join(lines) + "\n"


def _rules(file: FileReport, book: RuleBook, *, ids: bool) -> list[str]:
    lines = []
    for rule, action, count, where in file.rules():
        said = f"* {rule} ({book[rule].why}): {_WORDS[action]} {count:,}"
        lines.append(said + (f": {where}" if ids else ""))
    for rule in dict.fromkeys(rule for rule, _, _ in file.held):
        places = [f"line {n} {field}".strip() for r, n, field in file.held if r == rule and n]
        where = f" ({', '.join(places)})" if places and ids else ""
        lines.append(f"* held back by {rule}{where}; next: {next_step(rule)}")
    return lines


_WORDS = {
    "allowed": "let through by a person",
    "note": "seen and left as it is",
    "redact": "redacted",
    "withhold": "withheld",
    "hold": "found",
}
