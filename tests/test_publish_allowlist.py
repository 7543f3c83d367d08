"""What a person lets through: with a reason, for a while, never a key by pattern."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import publish_runs as runs
import pytest
from publish_samples import HOST, KEY, made

from qualeval.errors import OptionError
from qualeval.publish import publish_command
from qualeval.publish.allowlist import Allowlist, read_allowlist
from qualeval.publish.rules import load_rules

TOKEN = "gh" + "p_" + made(3, "abcdefghij0123456789", 36)
TODAY = datetime.now(UTC).date()
SOON = TODAY + timedelta(days=30)


def entry(**fields: object) -> str:
    """One entry of the file; None leaves a field out."""
    given = {
        "rule": '"local-literal"',
        "pattern": f"'{HOST}'",
        "field": '"text"',
        "part": '"mmlupro"',
        "reason": '"a made-up host of the question"',
        "added": str(TODAY),
        "expires": str(SOON),
        "by": '"me"',
    } | fields
    lines = [f"{name} = {value}" for name, value in given.items() if value is not None]
    return "\n".join(["[[allow]]", *lines]) + "\n"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    run = runs.run_of(tmp_path, "job")
    runs.local(run, [HOST])
    runs.answer(run, 1, text=f"B {HOST}")
    return run


def allow(run: Path, text: str) -> None:
    (run / "publish.allow.toml").write_text(text, encoding="utf-8")


def test_allowed_value_is_published_and_told_with_its_reason(run: Path) -> None:
    """Both scans let it through; the manifest says why, and not by whom."""
    allow(run, entry())
    done = runs.published(run)
    assert 0 == done.code, done.report
    assert f"B {HOST}" == runs.lines(run / "public/mmlupro.jsonl")[1]["text"]
    manifest = (run / "public/manifest.json").read_text()
    assert "a made-up host of the question" in manifest
    assert '"me"' not in manifest
    assert "let through by a person 1: 1" in (run / "public/publication.md").read_text()


@pytest.mark.parametrize(
    "fields",
    [{"field": '"reasoning"'}, {"part": '"gpqa"'}, {"pattern": "'quartz'"}, {"rule": '"email"'}],
)
def test_entry_lets_through_only_what_it_names(run: Path, fields: dict[str, object]) -> None:
    """Rule, part, field and the whole value must be those of the finding."""
    allow(run, entry(**fields))
    runs.published(run)
    assert HOST not in runs.text_of(run / "public")


def test_key_is_let_through_by_its_fingerprint_alone(run: Path) -> None:
    """The fingerprint is in findings.jsonl and stays the same from one publication to the next."""
    runs.answer(run, 1, text=f"B {TOKEN}")
    assert 3 == runs.published(run).code
    found = [one for one in runs.lines(run / "findings.jsonl") if one["rule"] == "token-github"]
    nothing: dict[str, object] = dict.fromkeys(("pattern", "field", "part"))
    mark = f'"{found[0]["fingerprint"]}"'
    allow(run, entry(rule='"token-github"', fingerprint=mark, **nothing))
    assert 0 == runs.published(run).code
    assert TOKEN in (run / "public/mmlupro.jsonl").read_text()
    allow(run, entry(rule='"token-github"', fingerprint='"0123456789abcdef"', **nothing))
    assert 3 == runs.published(run).code


def test_reason_with_a_name_in_it_is_not_published(run: Path) -> None:
    """The manifest is scanned like every other file."""
    allow(run, entry(reason=f'"asked the owner of {HOST}"'))
    assert 0 == runs.published(run).code
    assert HOST not in (run / "public/manifest.json").read_text()


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"rule": '"emali"'}, "there is no rule 'emali' (did you mean 'email'?)"),
        ({"rule": None}, "there is no rule 'None'"),
        ({"ruel": "1"}, "'ruel' is unknown (did you mean 'rule'?)"),
        ({"reason": '"short"'}, "needs a reason of 10 characters or more"),
        ({"reason": None}, "needs a reason"),
        ({"added": None}, "'added' is missing"),
        ({"expires": '"2026"'}, "'expires' is missing, or is not of its kind"),
        ({"expires": "2026-01-01T00:00:00"}, "'expires' is missing"),
        ({"by": None}, "'by' is missing"),
        ({"by": '""'}, "'by' is missing"),
        ({"expires": str(TODAY + timedelta(days=366))}, "more than 365 days"),
        (
            {"added": "2020-01-01", "expires": "2020-06-01"},
            "entry 1 (local-literal): expired on 2020-06-01",
        ),
        ({"fingerprint": '"0123456789abcdef"'}, "either a fingerprint, or pattern"),
        ({"pattern": None}, "either a fingerprint, or pattern"),
        ({"pattern": None, "fingerprint": '"xyz"'}, "16 hexadecimal digits"),
        ({"rule": '"token-github"'}, "by fingerprint alone"),
        ({"rule": '"private-key"'}, "by fingerprint alone"),
        ({"field": None}, "needs a field and a part"),
        ({"pattern": "'('"}, "no regular expression"),
        ({"pattern": "'.*'"}, "also matches nothing"),
        ({"pattern": "1"}, "also matches nothing"),
    ],
)
def test_faulty_entry_ends_the_command_and_is_named(
    run: Path, fields: dict[str, object], fault: str
) -> None:
    """Exit 2, nothing written; the end of a run only says so."""
    allow(run, entry(**fields))
    with pytest.raises(OptionError) as error:
        publish_command(run, run.parent / "out", check=False)
    assert fault in str(error.value)
    assert 2 == error.value.exit_code
    assert not (run.parent / "out").exists()
    assert "not made: publish.allow.toml: entry 1" in runs.published(run).line


@pytest.mark.parametrize("text", ["x", "other = 1", "allow = 1"])
def test_file_that_is_no_allowlist_is_refused(run: Path, text: str) -> None:
    """Nothing but [[allow]] entries."""
    allow(run, text)
    with pytest.raises(OptionError, match=r"publish\.allow\.toml: "):
        publish_command(run, None, check=True)


def test_without_a_file_nothing_is_allowed(tmp_path: Path) -> None:
    """And a fingerprint depends on the key, the rule, the field and the value."""
    empty = read_allowlist([tmp_path], KEY, load_rules(), TODAY)
    assert not empty.covers("email", "mmlupro", "text", "x")
    marks = {
        Allowlist(key).fingerprint(rule, field, value)
        for key in (KEY, b"other")
        for rule in ("email", "phone")
        for field in ("text", "reason")
        for value in ("x", "y")
    }
    assert 16 == len(marks)
