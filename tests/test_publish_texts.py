"""Names of a machine, readings of a text, and the small decisions of the publication check."""

import os
from pathlib import Path

import publish_runs as runs
import pytest
from publish_samples import checker, full_width, place

from qualeval.card import Card
from qualeval.errors import RunFolderError
from qualeval.publish import machine, publishing
from qualeval.publish.checker import Finding, Place, record_names
from qualeval.publish.checks import CHECKS
from qualeval.publish.literals import Literals, common_words, literals_of
from qualeval.publish.machine import gather
from qualeval.publish.outcome import FileReport, next_step
from qualeval.publish.overlap import Protected
from qualeval.publish.sources import Sources, file_sha256, lines_of, object_of


def shown(literals: Literals, text: str) -> str:
    """The text as it would be published in an answer, with X for each placeholder."""
    checked = checker(literals=literals, protected=Protected()).check(text, place())
    return checked.text.replace("⟦redacted:local-literal⟧", "X")


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("joperator", "by joperator, JOperator_1 and (joperator)", "by X, X_1 and (X)"),
        ("joperator", "joperators and xjoperator stay", "joperators and xjoperator stay"),
        ("joperator", "by jope\nrator.", "by X."),
        ("joperator", "by\njope\nrator\nhere", "by\nX\nhere"),
        ("joperator", "xjope\nrator stays", "xjope\nrator stays"),
        ("joperator", "jope\nratorx stays", "jope\nratorx stays"),
        ("joperator", "jope\u200brator", "X"),
        ("joperator", f"a {full_width('joperator')} b", "a X b"),
        ("box17q", "on box17q, xbox17qx", "on X, xXx"),
        ("Jane Q. Doe", "by jane  q.\ndoe", "by X"),
        ("max", "Max, the max of max(a)", "Max, the max of max(a)"),
        ("max", "in /home/max/x and max@host", "in /home/X/x and X@host"),
        ("max", "~max and ssh://max, http://max:8000", "~X and ssh://X, http://X:8000"),
        ("kelvin", "300 kelvin; kelvin.local", "300 kelvin; X.local"),
        ("node-1", "node-1 -> node-1:8000", "node-1 -> X:8000"),
        ("localhost", "http://localhost:8000", "http://localhost:8000"),
        ("", "nothing", "nothing"),
        ("x", "x", "x"),
    ],
)
def test_name_is_found_as_a_word_and_a_common_one_only_in_context(
    name: str, text: str, expected: str
) -> None:
    """A user called max must not cost every answer its maximum."""
    assert expected == shown(literals_of([name]), text)


@pytest.mark.parametrize(
    ("key", "text", "expected"),
    [
        ("abcDEF12-xyz", "xABCdef12-XYZx", "xXx"),
        ("abcDEF12-xyz", "abc DEF12\t-\nxyz", "X"),
        ("abcDEF12-xyz", "abc%44EF12-xyz abc%44 EF12-xyz", "X X"),
        ("abcDEF12-xyz", "abc DEF13-xyz", "abc DEF13-xyz"),
        ("short1x", "a short1x b", "a X b"),
        ("EMPTY", "EMPTY", "EMPTY"),
    ],
)
def test_key_is_found_anywhere_and_over_white_space(key: str, text: str, expected: str) -> None:
    """Keys are never words of a language, unless they stand for none."""
    assert expected == shown(literals_of(keys=[key]), text)


def test_names_of_fields_are_never_names_of_the_machine(tmp_path: Path) -> None:
    """A user called label keeps the form of every file."""
    assert {"label", "conditions", "text"} <= record_names()
    run = runs.run_of(tmp_path, "job")
    runs.local(run, ["label", "conditions", "interval"])
    done = runs.published(run)
    assert 0 == done.code, done.report


def test_names_of_other_fields_are_texts(tmp_path: Path) -> None:
    """Whatever a card holds that is free in form."""
    found = checker().check_json(
        {"quartz-node-17": {"a": ["quartz-node-17", 1, None]}}, Place("-", "", "operator_text")
    )
    value = "⟦redacted:local-literal⟧"
    assert {value: {"a": [value, 1, None]}} == found[0]
    assert ["(name)", f"{value}.a[0]"] == [c.findings[0].field for c in found[1]]


def test_machine_is_gathered_from_what_it_says_of_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """User, host, its other names, git identity, keys of the environment, host of the server."""
    home = tmp_path / "jdoe42"
    (home / ".config/git").mkdir(parents=True)
    (home / ".gitconfig").write_text(
        '[user]\n name = "Jane Q. Doe"\n email = j@doe.io\n[x]\nname=n'
    )
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USER", "jdoe42")
    monkeypatch.setenv("XDG_CONFIG_HOME", "")
    monkeypatch.setenv("SOME_API_KEY", "abc123def456")
    monkeypatch.setenv("SECRET_MODE", "production")
    monkeypatch.setenv("QE_KEY", "k-1")
    monkeypatch.setattr("socket.gethostname", lambda: "box17.lab")
    files = {
        "/etc/hosts": ["127.0.1.1 box17.lab box17-alias # here", "10.0.0.1 other"],
        "/proc/net/fib_trie": ["|-- 127.0.0.1", "/32 host LOCAL", "", "|-- 10.9.8.7",
                               "/32 host LOCAL", "|-- 10.9.8.8", "/32 link"],
        "/proc/net/if_inet6": ["fd000000000000000000000000000009 02 40 00 80 eth0",
                               "00000000000000000000000000000001 01 80 10 80 lo"],
    }  # fmt: skip
    lines = machine._lines
    monkeypatch.setattr(machine, "_lines", lambda path: files.get(str(path)) or lines(path))
    urls = ("http://gpu77.rack:1/v1", "http://[::1]/v1")
    server = {"model": "m", "api_key_env": "QE_KEY", "endpoints": [{"base_url": u} for u in urls]}
    card = Card.model_validate({"label": "x", "server": server})
    found = gather(tmp_path / "runs" / "job", card, [tmp_path])
    values = {literal.value for literal in found.values}
    assert {
        *("jdoe42", "box17.lab", "box17", "box17-alias", "10.9.8.7", "fd00::9"),
        *("jane q. doe", "j@doe.io", "abc123def456", "gpu77.rack", "k-1"),
    } <= values
    assert {"production", "other", "10.9.8.8", "127.0.0.1", "::1", "n"}.isdisjoint(values)
    assert {"$RUN", "$RUNS", "$HOME"} == {name for _, name in found.roots}


def test_machine_without_users_and_network_files_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container may know nothing of itself."""
    import pwd

    def unknown(_: int) -> None:
        raise KeyError

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    monkeypatch.setattr(machine, "_lines", lambda path: [])
    monkeypatch.setattr(Path, "home", lambda: Path("/"))
    for name in ("USER", "LOGNAME", "SUDO_USER", "EMAIL"):
        monkeypatch.delenv(name, raising=False)
    assert gather(tmp_path, None, []).roots


def test_full_name_of_the_account_is_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only where it is one of several words; a comment field may hold anything."""
    import pwd

    entry = list(pwd.getpwuid(os.getuid()))
    entry[4] = "Jane Q. Operator,,,"
    monkeypatch.setattr(pwd, "getpwuid", lambda _: pwd.struct_passwd(entry))
    values = {literal.value for literal in gather(tmp_path, None, []).values}
    assert "jane q. operator" in values


@pytest.mark.parametrize(
    ("check", "found", "counts"),
    [
        ("random_word", "xxxxxxxxxxxxxxxx", False),
        ("whole_random_word", "ACCAGGTTACGATCGATCGA", False),
        ("whole_random_word", "ASIANCOUNTRIESAREBIG", True),
        ("looks_random", "onlyletterswithoutany", False),
        ("real_credentials", "user:password", False),
        ("real_credentials", "{user}:{password}", False),
        ("real_credentials", "joan:pa55", True),
        ("private_address", "999.1.1.1", False),
        ("private_address", "127.0.0.1", False),
        ("private_address", "8.8.8.8", False),
        ("private_address", "192.0.2.7", False),
        ("private_address", "100.64.1.1", True),
        ("private_address", "224.0.0.1", False),
        ("private_address", "fd00::1", True),
        ("private_address", "2001:4860::1", False),
        ("card_address", "00:00:00:00:00:00", False),
        ("card_address", "12-34-56-78-90-12", False),
        ("host_name", "threading.local", False),
        ("real_mail", "a@example.org", False),
        ("real_mail", "a@b.test", False),
        ("phone_number", "+1111111111", False),
        ("phone_number", "+1234", False),
    ],
)
def test_check_tells_a_find_from_a_false_alarm(check: str, found: str, counts: bool) -> None:
    """One line for each reason that a check is there for."""
    assert counts is CHECKS[check](found)


def test_common_words_are_lower_case_and_none_is_a_comment() -> None:
    """Scientists, given names, accounts."""
    assert {"kelvin", "max", "root"} <= common_words()
    assert all(word == word.lower() and word.isalpha() for word in common_words())


def test_letter_whose_lower_case_is_longer_moves_no_span() -> None:
    """Turkish capital I with a dot becomes two characters."""
    protected = Protected()
    protected.add("one two three four five six")
    text = "İİİ One two three FOUR five six İ"
    assert [(4, 31)] == protected.find(text)
    protected.add_row({"n": 1, "more": [["seven eight nine ten eleven twelve"]]})
    assert 2 == protected.texts


@pytest.mark.parametrize(
    ("length", "bucket"), [(1, "1-8"), (8, "1-8"), (9, "9-16"), (1024, "257-1024"), (1025, "1025+")]
)
def test_length_of_a_redaction_is_told_in_steps(length: int, bucket: str) -> None:
    """The exact length of a key says too much."""
    assert bucket == Finding("email", "-", "text", 0, length, "redact", "").length_bucket


def test_report_of_a_file_is_bounded() -> None:
    """Ten thousand findings are a count and twenty ids."""
    file = FileReport("x.jsonl", records=100)
    for line in range(100):
        finding = Finding("token-aws", "-", "text", 0, 9, "hold", "v")
        file.add([finding, Finding("email", "-", "text", 0, 9, "note", "v")], line, line)
    assert (20, 100) == (len(file.held), file.counts["token-aws", "hold"])
    assert file.rules()[0][3].endswith("18, 19, ...")
    assert next_step("token-aws") != next_step("phone")


def test_overlapping_findings_share_one_placeholder() -> None:
    """The longest first; what reaches over its end is taken with it."""
    literals = literals_of(["quartz17 and more", "more words"])
    checked = checker(literals=literals).check("on quartz17 and more words here", place())
    assert "on ⟦redacted:local-literal⟧ here" == checked.text
    assert 1 == len(checked.shown)


def test_redaction_beside_a_withheld_text_is_told_as_withheld(tmp_path: Path) -> None:
    """Most of a text is protected: nothing of it is shown, and notes stay notes."""
    from publish_samples import GATED

    from qualeval.publish.schema import published
    from qualeval.records import Answer
    from qualeval.runfolder import read_lines

    run = runs.run_of(tmp_path, "job")
    runs.answer(run, 0, text=f"{GATED} quartz-node-17 a.b@company.org")
    answer = next(one for _, one in read_lines(run / "mmlupro.jsonl", Answer))
    record, action, found = published(answer, checker(), "mmlupro", blind=False, show_request=True)
    assert record is not None
    assert ("withhold", "gated-overlap", None) == (action, record.withheld, record.text)
    assert {"withhold", "note"} == {f.action for f in found}


@pytest.mark.parametrize("missing", ["run.log", "mmlupro.jsonl"])
def test_file_that_is_not_there_is_not_in_the_bundle(tmp_path: Path, missing: str) -> None:
    """No log is no fault; a complete part without its answers is one."""
    run = runs.run_of(tmp_path, "job")
    (run / missing).unlink()
    done = runs.published(run)
    if missing == "run.log":
        assert 0 == done.code
        assert not (run / "public/mmlupro.log").exists()
    else:
        assert "cannot be read: No such file" in done.line


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    """A folder in place of a file."""
    for read in (file_sha256, object_of, lambda path: list(lines_of(path))):
        with pytest.raises(RunFolderError, match="cannot be read"):
            read(tmp_path)
    assert "" == file_sha256(tmp_path / "none")
    assert [] == Sources(tmp_path).changed()


def test_fault_of_the_check_itself_is_told_and_not_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that ended well ends well."""

    def broken(*_: object, **__: object) -> None:
        raise ValueError("quartz-node-17")

    monkeypatch.setattr(publishing, "publish", broken)
    done = runs.published(tmp_path)
    assert "publication check: not made: ValueError" == done.line


@pytest.mark.parametrize("name", ["mmlupro.contract.json", "mmlupro.summary.json"])
def test_unknown_field_in_a_file_holds_it_or_ends_the_check(tmp_path: Path, name: str) -> None:
    """Default deny: what a newer version writes is not public until it is listed."""
    import json

    run = runs.run_of(tmp_path, "job")
    value = json.loads((run / name).read_bytes())
    (run / name).write_text(json.dumps(value | {"newer": "x"}))
    done = runs.published(run)
    assert not (run / "public" / name).exists()
    said = f"held back: {name} (schema)", "nothing published: no part is complete"
    assert any(part in done.line for part in said)
