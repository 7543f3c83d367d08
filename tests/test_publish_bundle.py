"""A run's public copy: what is in it, what is not, and that its numbers are the run's."""

import hashlib
import json
import os
from pathlib import Path

import publish_runs as runs
import pytest
from engine import Lab
from growth import usual_seconds
from model_server import running
from publish_samples import GATED, HOST, SECRET, made, uuid
from stored_runs import PARTS, copied, hashes, record

from qualeval.errors import OptionError, RunFolderError
from qualeval.publish import (
    bundle_summary,
    is_bundle,
    publish_command,
    publish_run,
    publishing,
    verify_bundle,
)
from qualeval.publish.checker import Checker
from qualeval.publish.last_scan import left_in
from qualeval.publish.manifest import commitment
from qualeval.publish.schema import FIELDS, PublishedAnswer
from qualeval.records import Answer, Summary

TOKEN = "gh" + "p_" + made(3, "abcdefghij0123456789", 36)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with running(slots=4) as server:
        return record(tmp_path_factory.mktemp("publish"), server)


@pytest.fixture
def engine_run(recorded: Path, tmp_path: Path) -> Path:
    return copied(recorded, tmp_path)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return runs.run_of(tmp_path, "job")


# What a real run gives


def test_clean_run_is_published_whole_and_byte_for_byte(engine_run: Path) -> None:
    """Files of a run in which nothing is found are the run's own."""
    done = runs.published(engine_run)
    assert 0 == done.code, done.report
    for part in PARTS:
        for name in (f"{part}.jsonl", f"{part}.contract.json", f"{part}.summary.json"):
            assert (engine_run / name).read_bytes() == (engine_run / "public" / name).read_bytes()
    assert f"publication check: {engine_run}/public/: 15 files, nothing redacted" == done.line


def test_bundle_holds_what_a_page_links_to_and_nothing_else(engine_run: Path) -> None:
    """No raw replies, no list of the user, no errors, no prompts."""
    runs.published(engine_run)
    of_parts = {
        f"{part}.{kind}"
        for part in PARTS
        for kind in ("jsonl", "summary.json", "contract.json", "log")
    }
    of_run = {"card.json", "summary.json", "summary.md", "manifest.json", "publication.md"}
    assert of_parts | of_run == {path.name for path in (engine_run / "public").iterdir()}
    assert "Which one?" not in runs.text_of(engine_run / "public")


def test_files_of_the_run_are_unchanged_and_private_ones_stay_beside_them(
    engine_run: Path,
) -> None:
    """Originals are opened to be read alone."""
    before = hashes(engine_run)
    runs.published(engine_run)
    after = hashes(engine_run)
    private = {"findings.jsonl", "manifest.private.json"}
    added = {name for name in after if name not in before and not name.startswith("public/")}
    assert added <= private <= set(after)
    # The run itself ends with a check: what that one wrote is written anew.
    kept = {n for n in before if n not in private and not n.startswith("public/")}
    assert {name: before[name] for name in kept} == {name: after[name] for name in kept}
    assert 0o600 == (engine_run / "manifest.private.json").stat().st_mode & 0o777


def test_scores_of_a_bundle_are_those_of_the_run(engine_run: Path) -> None:
    """summarize(bundle) equals summarize(original), redacted or not."""
    runs.answer(engine_run, 1, text=f"C, says {HOST}", reasoning=f"{HOST} thinks")
    runs.local(engine_run, [HOST])
    assert 0 == runs.published(engine_run).code
    for part in PARTS:
        stored = Summary.model_validate_json((engine_run / f"{part}.summary.json").read_bytes())
        assert stored == bundle_summary(engine_run / "public", part)


def test_api_key_that_the_server_echoes_is_in_no_byte_of_the_bundle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pub-01, pub-06: in text, reasoning and error bodies of a real run, in any form."""
    key = "-".join(("selfmade", "0Key1", "2of3", "4tests"))
    monkeypatch.setenv("QE_PUBLISH_KEY", key)
    with running(slots=2, api_key=key) as server:
        lab = Lab(tmp_path, server).list_of(6)
        lab.card["server"]["api_key_env"] = "QE_PUBLISH_KEY"
        lab.script(
            {
                "0": {"text": f"B\nyour key is {key}"},
                "1": {"text": "B", "reasoning": f"The header says {key[:9]}\n{key[9:]}, so B."},
                "2": [{"status": 500, "body": f"no {key} no"}, {"text": "B"}],
                "3": {"text": f"B {key.upper()}"},
                "4": {"text": "B " + "".join(f"%{byte:02x}" for byte in key.encode())},
            }
        )
        assert 0 == lab.run().code
    run = lab.job().folder
    done = runs.published(run)
    assert 0 == done.code, done.report
    shown = runs.text_of(run / "public").lower()
    joined = "".join(shown.split()).replace("\\n", "")
    assert key not in shown
    assert key not in joined
    assert "".join(f"%{byte:02x}" for byte in key.encode()) not in shown
    texts = [line["text"] for line in runs.lines(run / "public/mmlupro.jsonl")]
    assert [0, 3, 4] == [n for n, text in enumerate(texts) if "⟦redacted:local-literal⟧" in text]
    assert 0 == verify_bundle(run / "public")[1]
    assert json.loads((run / "mmlupro.summary.json").read_bytes())["right"] == (
        bundle_summary(run / "public", "mmlupro").right
    )


def test_part_of_several_rows_is_published_with_all_of_them(tmp_path: Path) -> None:
    """RULER-lite: the list was made for the model, stays here, and the rows are counted again."""
    with running(slots=2, context=100_000) as server:
        lab = Lab(tmp_path, server)
        lab.card["parts"] = {"ruler": {"lengths": [2048, 4096], "per_task": 1}}
        lab.card["server"]["model"] = "test-model"
        lab.script()
        ended = lab.run(parts="ruler")
        assert 0 == ended.code, ended.screen
    run = lab.job().folder
    runs.conditions(run, "ruler", sampling_source="/home/selfmade/card")
    assert 0 == runs.published(run).code
    assert not (run / "public/ruler.items.jsonl").exists()
    summary = bundle_summary(run / "public", "ruler")
    assert 2 == len(summary.rows)
    stored = (run / "public/ruler.summary.json").read_bytes()
    assert summary == Summary.model_validate_json(stored)
    told, code = verify_bundle(run / "public")
    assert 0 == code, told
    assert any("its list was made for one model and is not in a bundle" in line for line in told)


# Outcomes


def test_false_alarms_of_the_published_page_are_published_whole(run: Path) -> None:
    """pub-04: a physics unit, a name-like word and a variable held three files back there."""
    runs.answer(run, 0, text="The current is 5 A per 3 m of wire; L = 5 mH.")
    runs.answer(run, 1, text="Dear Max, may June bring you luck. A token-economical style.")
    runs.answer(run, 2, text="token = s.split()[0]\nkey = (i, j)")
    assert 0 == runs.published(run).code
    assert (run / "mmlupro.jsonl").read_bytes() == (run / "public/mmlupro.jsonl").read_bytes()


def test_local_name_is_redacted_in_text_log_contract_and_card(run: Path) -> None:
    """A placeholder stands in its place, the record says where; the verdict stays."""
    runs.local(run, [HOST])
    runs.answer(run, 1, text=f"B on {HOST} it is")
    runs.log(run, f"item 1 attempt 1: reset by {HOST}; again in 1 s")
    runs.session(run, command=f"qualeval run card.json --runs /data/{HOST}")
    runs.card(run, notes=f"measured on {HOST}")
    done = runs.published(run)
    assert 0 == done.code
    assert HOST not in runs.text_of(run / "public")
    shown = runs.lines(run / "public/mmlupro.jsonl")[1]
    assert "B on ⟦redacted:local-literal⟧ it is" == shown["text"]
    assert [
        {"field": "text", "rule": "local-literal", "start": 5, "length_bucket": "9-16"}
    ] == shown["redactions"]
    assert runs.lines(run / "mmlupro.jsonl")[1]["right"] == shown["right"]
    assert "4 redactions" in done.line
    report = (run / "public/publication.md").read_text()
    assert "| mmlupro.jsonl | published with 1 redaction |" in report
    assert "* local-literal (a name, address or key of the machine" in report


def test_card_hash_is_not_published_beside_a_redacted_card(run: Path) -> None:
    """A private address is found by trying all of them against a plain hash."""
    runs.card(run, server={"base_url": "http://192.168.7.31:8000/v1", "model": "m"})
    runs.session(run, endpoints=["http://192.168.7.31:8000/v1"])
    assert 0 == runs.published(run).code
    public = run / "public"
    card = json.loads((public / "card.json").read_bytes())
    assert card["server"]["base_url"].startswith("http://⟦redacted:")
    contract = json.loads((public / "mmlupro.contract.json").read_bytes())
    assert "⟦redacted:card⟧" == contract["sessions"][0]["card_sha256"]
    files = json.loads((public / "manifest.json").read_bytes())["files"]
    original = hashlib.sha256((run / "card.json").read_bytes()).hexdigest()
    assert original not in (public / "manifest.json").read_text()
    salt = json.loads((run / "manifest.private.json").read_bytes())["salts"]["card.json"]
    shown = files["card.json"]["commitment"]
    assert shown == commitment(bytes.fromhex(salt), run / "card.json")


def test_hashes_of_conditions_and_requests_go_where_a_condition_is_redacted(run: Path) -> None:
    """Both are made of the model's name; the public hash is that of the public conditions."""
    runs.conditions(run, model="/home/selfmade/models/m1")
    assert 0 == runs.published(run).code
    public = run / "public"
    contract = json.loads((public / "mmlupro.contract.json").read_bytes())
    assert "$HOME/models/m1" == contract["conditions"]["model"]
    stored = json.loads((run / "mmlupro.contract.json").read_bytes())["conditions_sha256"]
    assert stored not in runs.text_of(public)
    assert {None} == {line["request_sha256"] for line in runs.lines(public / "mmlupro.jsonl")}
    assert 0 == verify_bundle(public)[1]


def test_canary_withholds_its_record_and_the_score_stays(tmp_path: Path) -> None:
    """Exit 1; id, verdict and numbers remain, text and reasoning go."""
    run = runs.run_of(tmp_path, "job", "r" * 21)
    bad = f"BENCHMARK canary GUID {uuid(5)}"
    runs.answer(run, 3, text=f"B {bad}", reasoning="It is B.", reasoning_source="reasoning")
    done = runs.published(run)
    assert 1 == done.code
    shown = runs.lines(run / "public/mmlupro.jsonl")[3]
    assert (3, None, "canary", True) == (
        shown["id"],
        shown["text"],
        shown["withheld"],
        shown["right"],
    )
    assert "⟦redacted:canary⟧" == shown["reasoning"]
    assert uuid(5) not in runs.text_of(run / "public")
    stored = Summary.model_validate_json((run / "mmlupro.summary.json").read_bytes())
    assert stored == bundle_summary(run / "public", "mmlupro")
    assert "1 record withheld" in done.line


def test_more_than_a_twentieth_withheld_holds_the_file(run: Path) -> None:
    """So many withheld records are no answers any more."""
    runs.answer(run, 0, text=f"canary GUID {uuid(5)}")
    done = runs.published(run)
    assert 3 == done.code
    assert "held back: mmlupro.jsonl (too-many-withheld)" in done.line
    assert not (run / "public/mmlupro.jsonl").exists()


@pytest.mark.parametrize("where", ["text", "id", "log", "command", "notes"])
def test_live_key_holds_its_file_alone(run: Path, where: str) -> None:
    """Exit 3: a person must withdraw the key; all other files go."""
    held = {"log": "mmlupro.log", "command": "mmlupro.contract.json", "notes": "card.json"}
    if where in ("text", "id"):
        runs.answer(run, 1, **{where: f"x {TOKEN}"})
    elif where == "log":
        runs.log(run, f"said {TOKEN}")
    elif where == "command":
        runs.session(run, command=f"run {TOKEN}")
    else:
        runs.card(run, notes=TOKEN)
    lines, code = publish_command(run, run.parent / "out", check=False)
    assert 3 == code
    name = held.get(where, "mmlupro.jsonl")
    there = {path.name for path in (run.parent / "out").iterdir()}
    assert name not in there
    assert {"publication.md", "manifest.json", "summary.md"} < there
    assert TOKEN not in runs.text_of(run.parent / "out") + "\n".join(lines)
    assert any("token-github, line" in line and "withdraw that key" in line for line in lines)
    assert TOKEN not in (run / "findings.jsonl").read_text()


@pytest.mark.parametrize(
    ("rule", "data"),
    [
        ("not-utf8", b'{"id": 0, "text": "\xff"}\n'),
        ("schema", b"no json\n"),
        ("schema", b"[1]\n"),
        ("schema", b'{"id": 0, "id": 1}\n'),
        ("schema", b'{"id": 0, "new_field": 1}\n'),
        ("schema", b""),
        ("oversize", b'{"id": 0, "text": "' + b"x" * 8_000_000 + b'"}\n'),
    ],
)
def test_file_that_cannot_be_read_is_held_and_the_others_go(
    run: Path, rule: str, data: bytes
) -> None:
    """Bytes, lines and records that are not what they should be."""
    (run / "mmlupro.jsonl").write_bytes(data)
    done = runs.published(run)
    assert 3 == done.code
    assert f"held back: mmlupro.jsonl ({rule})" in done.line
    assert (run / "public/mmlupro.contract.json").exists()


@pytest.mark.parametrize("name", ["card.json", "mmlupro.contract.json", "run.log"])
@pytest.mark.parametrize("data", [b"\xff\n", b"{}\n", b"x" * 8_000_001])
def test_whole_files_that_cannot_be_read_are_held(run: Path, name: str, data: bytes) -> None:
    """Whatever stands there: nothing of it is copied, and nothing is raised."""
    (run / name).write_bytes(data)
    done = runs.published(run)
    if name == "run.log" and data == b"{}\n":
        assert 0 == done.code
        return
    assert 3 == done.code
    assert not (run / "public" / name.replace("run.", "mmlupro.")).exists()


@pytest.mark.parametrize("list_name", ["mine-4.jsonl", "sample"])
def test_gated_part_without_a_readable_contract_is_refused(tmp_path: Path, list_name: str) -> None:
    """Nobody knows whose questions they are: text goes, verdicts stay, the contract is held."""
    run = runs.run_of(tmp_path, "job", "rrwc" * 5, part="gpqa", list=list_name)
    first = runs.lines(run / "gpqa.jsonl")[0]["id"]
    runs.answer(run, first, "gpqa", text="B. That is what I think of it.")
    (run / "gpqa.contract.json").write_text("{}")
    assert 3 == runs.published(run).code
    assert "gated-list-missing" == runs.lines(run / "public/gpqa.jsonl")[0]["withheld"]


def test_held_summary_is_in_no_summary_of_the_run(run: Path) -> None:
    """Without any part there is none; the answers go all the same."""
    runs.conditions(run, sampling_source=f"see {TOKEN}")
    assert 3 == runs.published(run).code
    there = {path.name for path in (run / "public").iterdir()}
    answers = {"card.json", "mmlupro.jsonl", "mmlupro.log", "manifest.json", "publication.md"}
    assert answers == there


def test_summary_that_broke_meanwhile_is_held(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was complete a moment ago."""
    monkeypatch.setattr(publishing, "_is_complete", lambda run, part: True)
    (run / "mmlupro.summary.json").write_text("{}")
    assert "held back: mmlupro.summary.json (schema)" in runs.published(run).line


def test_ids_that_say_something_together_are_left_out_of_the_report(run: Path) -> None:
    """The report is scanned as well; counts are told anyway."""
    runs.local(run, ["0, 1, 2, 3"])
    for id in range(4):
        runs.answer(run, id, text="B, mail a.person@company.org")
    assert 0 == runs.published(run).code
    report = (run / "public/publication.md").read_text()
    assert "* email (an e-mail address): seen and left as it is 4\n" in report


def test_unknown_facts_of_a_server_are_left_out(run: Path) -> None:
    """A field that is not listed is not public, also inside replicas."""
    facts = {"engine_version": "1.0", "hidden": "x1", "replicas": [{"endpoint": "a", "more": "x2"}]}
    runs.session(run, server=facts)
    done = runs.published(run)
    shown = json.loads((run / "public/mmlupro.contract.json").read_bytes())
    assert {"engine_version": "1.0", "replicas": [{"endpoint": "a"}]} == (
        shown["sessions"][0]["server"]
    )
    assert any("left out of the server's facts: 1" in line for line in done.report)


def test_incomplete_part_publishes_no_file(tmp_path: Path) -> None:
    """And an older bundle of a run that has no complete part any more goes."""
    run = runs.run_of(tmp_path, "job", "rr w")
    done = runs.published(run)
    why = "no part is complete (mmlupro)"
    assert (None, 1) == (done.folder, done.code)
    assert f"publication check: nothing published: {why}" == done.line
    assert not (run / "public").exists()
    whole = runs.run_of(tmp_path, "whole")
    runs.published(whole)
    (whole / "mmlupro.summary.json").write_text("{}")
    done = runs.published(whole)
    assert done.line.endswith(f": {why}; the older copy in {whole / 'public'} was removed")
    assert not (whole / "public").exists()


def test_command_that_publishes_nothing_says_so_and_ends_with_1(tmp_path: Path) -> None:
    """A script must not go on to a folder that is not there."""
    run = runs.run_of(tmp_path, "job", "rr w")
    why = "no part is complete (mmlupro)"
    assert ([f"nothing published: {why}"], 1) == publish_command(run, tmp_path / "out", check=False)
    assert not (tmp_path / "out").exists()
    checked = f"checked, nothing written: nothing would be published: {why}"
    assert ([checked], 1) == publish_command(run, None, check=True)


def test_one_part_may_be_published_while_another_is_not_complete(tmp_path: Path) -> None:
    """Each part by itself."""
    run = runs.run_of(tmp_path, "job", "rr w")
    from compare_folders import Made

    Made(tmp_path).run("job", "rrww", part="think")
    done = runs.published(run)
    assert "not published, incomplete: mmlupro" in done.line
    assert (run / "public/think.jsonl").exists()
    assert not list((run / "public").glob("mmlupro*"))
    assert "| part mmlupro | not published: incomplete |" in (
        (run / "public/publication.md").read_text()
    )


# GPQA


def gated(run: Path) -> None:
    """Give a run of gpqa its own list, whose question is protected."""
    row = {"id": 0, "question": GATED, "options": ["red", "green"], "answer": "B", "category": "x"}
    (run / "gpqa.items.jsonl").write_text(json.dumps(row) + "\n")


def test_protected_question_in_an_answer_is_redacted(tmp_path: Path) -> None:
    """Thinking that quotes the question: the words go, the rest stays."""
    run = runs.run_of(tmp_path, "job", part="gpqa")
    gated(run)
    reasoning = f"{'Let me think about this one. ' * 20}It says {GATED}. So B."
    runs.answer(run, 1, "gpqa", reasoning=reasoning, reasoning_source="reasoning")
    assert 0 == runs.published(run).code
    shown = runs.lines(run / "public/gpqa.jsonl")[1]["reasoning"]
    assert shown.endswith("It says ⟦redacted:gated-overlap⟧. So B.")
    assert "marble staircase" not in runs.text_of(run / "public")
    assert not (run / "public/gpqa.items.jsonl").exists()


def test_protected_question_in_a_log_holds_the_log(tmp_path: Path) -> None:
    """A server that echoes a prompt in its error body."""
    run = runs.run_of(tmp_path, "job", part="gpqa")
    gated(run)
    runs.log(run, f"item 1 attempt 1: http_400: {GATED[:150]}; given up", "gpqa")
    done = runs.published(run)
    assert 3 == done.code
    assert "held back: gpqa.log (gated-overlap)" in done.line


def official(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a run of gpqa one on the official list, which is not on this machine."""
    monkeypatch.setenv("QUALEVAL_CACHE", str(tmp_path / "empty"))
    chosen = {"id": "qualeval/gpqa-4/v1", "kind": "official", "sha256": "0" * 64, "items": 4}
    runs.conditions(run, "gpqa", list=chosen)


def test_gpqa_text_is_withheld_when_the_list_is_not_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is refused, not guessed; a letter cannot hold a question and stays. Exit 1, file there."""
    run = runs.run_of(tmp_path, "job", part="gpqa")
    official(run, tmp_path, monkeypatch)
    runs.answer(run, 1, "gpqa", reasoning="Any six words or more here.", reasoning_source="tags")
    runs.log(run, "item 1 attempt 1: http_400: words of a server; given up", "gpqa")
    done = runs.published(run)
    assert 1 == done.code
    shown = runs.lines(run / "public/gpqa.jsonl")
    assert ["B", None, "A", "B"] == [line["text"] for line in shown]
    assert "gated-list-missing" == shown[1]["withheld"]
    log = (run / "public/gpqa.log").read_text()
    assert "session starts: 4 of 4 to ask" in log
    assert "words of a server" not in log
    assert "its list is not on this machine" in (run / "public/publication.md").read_text()
    stored = Summary.model_validate_json((run / "gpqa.summary.json").read_bytes())
    assert stored == bundle_summary(run / "public", "gpqa")
    told, code = verify_bundle(run / "public")
    assert 0 == code
    assert any("withheld (gated-list-missing)" in line for line in told)


def test_all_gpqa_text_withheld_does_not_hold_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The verdicts are worth publishing without any text."""
    run = runs.run_of(tmp_path, "job", part="gpqa")
    official(run, tmp_path, monkeypatch)
    for id in range(4):
        runs.answer(run, id, "gpqa", text="B. That is what I think of it.")
    assert 1 == runs.published(run).code


def test_unreadable_own_list_of_a_gated_part_is_refused_too(tmp_path: Path) -> None:
    """Whatever is not at hand cannot be compared with."""
    run = runs.run_of(tmp_path, "job", part="gpqa")
    runs.answer(run, 0, "gpqa", text="B. That is what I think of it.")
    assert 1 == runs.published(run).code


def test_official_list_at_hand_protects_every_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its questions are looked for in all that is published; one that is not the pinned is none."""
    from qualeval.lists import ItemList
    from qualeval.tasks.letters import LetterItem

    rows = tmp_path / "cache" / "lists" / "gpqa.jsonl"
    rows.parent.mkdir(parents=True)
    rows.write_text('{"Record ID": "x"}\n')
    monkeypatch.setenv("QUALEVAL_CACHE", str(tmp_path / "cache"))
    run = runs.run_of(tmp_path, "job", part="gpqa")
    other = runs.run_of(tmp_path, "other")
    runs.answer(other, 0, text=f"{'B it is, I think. ' * 30}{GATED}")
    chosen = {"id": "qualeval/gpqa-4/v1", "kind": "official", "sha256": "0" * 64, "items": 4}
    runs.conditions(run, "gpqa", list=chosen)
    runs.answer(run, 0, "gpqa", text=f"{'B it is, I think. ' * 30}{GATED}")
    assert 1 == runs.published(run).code, "the list at hand is not the pinned one"
    assert 0 == runs.published(other).code
    item = LetterItem(id="x", sha256="0" * 64, gold="A", question=GATED, options=("red", "blue"))
    monkeypatch.setattr(
        "qualeval.publish.protected.official_list",
        lambda task: ItemList("x", "official", (item,), "0" * 64, {}),
    )
    for made_run in (run, other):
        assert 0 == runs.published(made_run).code
        assert "marble staircase" not in runs.text_of(made_run / "public")


# Where and how


def test_check_writes_nothing_and_ends_with_the_same_code(run: Path, tmp_path: Path) -> None:
    """A dry run."""
    runs.answer(run, 1, text=f"x {TOKEN}")
    before = hashes(tmp_path)
    lines, code = publish_command(run, None, check=True)
    assert (3, before) == (code, hashes(tmp_path))
    assert lines[-1].startswith("checked, nothing written: the public copy would be 6 files, ")
    assert publish_run(run, check=True).line.startswith(
        "publication check: the public copy would be 6 files, nothing redacted, held back: "
    )


def test_original_that_changes_meanwhile_publishes_nothing(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit 4: what was checked is not what is there."""

    def meddle(path: Path, checker: Checker, part: str, *, blind: bool) -> object:
        runs.log(run, "one more line")
        return left_in(path, checker, part, blind=blind)

    monkeypatch.setattr(publishing, "left_in", meddle)
    lines, code = publish_command(run, run.parent / "out", check=False)
    assert 4 == code
    assert "changed while it was read: run.log" in lines
    assert lines[-1].startswith("nothing published: a file changed while it was read: ")
    assert not (run.parent / "out").exists()


def test_last_scan_takes_out_what_the_first_one_let_through(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It reads the written bytes and knows no classes of fields."""
    monkeypatch.setitem(FIELDS, "text", "opaque")
    runs.local(run, [HOST], [SECRET])
    runs.answer(run, 1, text=f"B at {HOST}")
    done = runs.published(run)
    assert 3 == done.code
    assert "held back: mmlupro.jsonl (last-scan)" in done.line
    assert HOST not in runs.text_of(run / "public")
    runs.answer(run, 1, text=f"B at {SECRET}")
    assert 3 == runs.published(run).code


def test_newer_bundle_takes_the_place_of_the_older(run: Path) -> None:
    """And nothing of the older one is left."""
    runs.published(run)
    (run / "public" / "stray.txt").write_text("x")
    runs.local(run, [HOST])
    runs.answer(run, 1, text=f"B {HOST}")
    first = json.loads((run / "manifest.private.json").read_bytes())
    assert 0 == runs.published(run).code
    assert not (run / "public" / "stray.txt").exists()
    assert first["key"] == json.loads((run / "manifest.private.json").read_bytes())["key"]
    assert [] == list(run.glob(".publishing-*"))


def test_folder_that_is_no_bundle_is_never_replaced(run: Path, tmp_path: Path) -> None:
    """Nor the run itself, nor one that holds it."""
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.txt").write_text("all of it")
    file = tmp_path / "file"
    file.write_text("x")
    for to in (other, file, run, tmp_path):
        with pytest.raises(OptionError, match="--to: "):
            publish_command(run, to, check=False)
    with pytest.raises(OptionError, match="--to: is missing"):
        publish_command(run, None, check=False)
    with pytest.raises(RunFolderError, match="is no run"):
        publish_command(other, tmp_path / "out", check=False)
    with pytest.raises(OptionError, match="cannot be written"):
        publish_command(run, file / "below", check=False)
    (tmp_path / "new").mkdir()
    assert 0 == publish_command(run, tmp_path / "new", check=False)[1]
    assert is_bundle(tmp_path / "new")


def test_end_of_a_run_never_raises(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is wrong is said in the line."""
    (run / "publish.local.toml").write_text("nonsense")
    assert "not made: publish.local.toml: cannot be read as TOML" in runs.published(run).line
    (run / "publish.local.toml").write_text("other = 1")
    assert "'other' is unknown" in runs.published(run).line
    (run / "publish.local.toml").write_text("names = 1")
    assert "names must be a list of texts" in runs.published(run).line
    (run / "publish.local.toml").unlink()

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(publishing, "_put_in_place", full)
    done = runs.published(run)
    assert "publication check: not made: No space left on device" == done.line
    assert [] == list(run.glob(".publishing-*"))


def test_findings_name_place_and_mark_but_never_the_value(run: Path) -> None:
    """4.3: rule, file, line, id, field, span, action, sample, fingerprint."""
    runs.local(run, [HOST])
    runs.answer(run, 1, text=f"B at {HOST}, or mail a.person@company.org")
    runs.published(run)
    found = runs.lines(run / "findings.jsonl")
    assert [("email", "note"), ("local-literal", "redact")] == [
        (one["rule"], one["action"]) for one in found
    ]
    literal = found[1]
    assert ("mmlupro.jsonl", 2, 1, "text", 5, 5 + len(HOST)) == tuple(
        literal[name] for name in ("file", "line", "record_id", "field", "start", "end")
    )
    assert f"{HOST[:3]}... ({len(HOST)} characters)" == literal["sample"]
    assert 16 == len(literal["fingerprint"])
    assert "noted" not in (run / "public/mmlupro.jsonl").read_text()


def test_id_with_a_name_in_it_is_in_no_report(tmp_path: Path) -> None:
    """Ids are shown in the report, unless one of them should not be seen."""
    run = runs.run_of(tmp_path, "job")
    runs.local(run, [HOST])
    runs.answer(run, 1, id=f"{HOST}-1")
    done = runs.published(run)
    assert 3 == done.code
    assert HOST not in runs.text_of(run / "public") + "\n".join(done.report)


def test_public_fields_are_exactly_those_of_an_answer() -> None:
    """A new field of Answer is not public until somebody lists it and gives it a class."""
    assert list(Answer.model_fields) == list(FIELDS)
    assert [*FIELDS, "redactions", "withheld"] == list(PublishedAnswer.model_fields)


def test_a_run_of_usual_size_is_checked_in_seconds(engine_run: Path) -> None:
    """Nobody waits for it at the end of a run."""
    assert usual_seconds(lambda: runs.published(engine_run)) < 5
    assert os.path.isdir(engine_run / "public")
