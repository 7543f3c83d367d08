"""The report page as a file: what it says, what it holds back, and that nothing in it acts."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from compare_folders import Made
from engine import Lab
from hypothesis import given
from hypothesis import strategies as st
from model_server import running
from publish_runs import card, conditions, published, run_of, session
from report_pages import HOSTILE, Parsed, blocks, hostile_run, index, records, report, set_texts
from stored_runs import change_lines, copied, hashes, record, set_in_object

from qualeval.errors import ContractError, DiskError, OptionError, QualevalError, RunFolderError
from qualeval.publish import verify_bundle
from qualeval.report import read, report_command
from qualeval.report.embed import embedded
from qualeval.report.facts import marked
from qualeval.summary_formats import run_summary
from qualeval.table import footer, rows


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with running(slots=4) as server:
        return record(tmp_path_factory.mktemp("report"), server)


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Path:
    return copied(made, tmp_path)


# What it says


def test_table_has_the_words_of_summarize(run: Path) -> None:
    """Numbers are formatted in one place: every cell, every line under a row, the footer."""
    parsed = Parsed(report(run))
    summary = run_summary(run)
    parts = list(summary.parts.values())
    lines = [cell for part in parts for row in rows(part) for cell in row]
    for said in [*lines, *footer(parts)]:
        for piece in said.strip().removesuffix(" (sample list)").split(" ± "):
            assert piece in parsed.words, piece


def test_report_writes_its_page_and_nothing_else(run: Path) -> None:
    """The run is read only."""
    before = hashes(run)
    report(run)
    after = hashes(run)
    assert after.pop("report.html")
    assert after == before


def test_incomplete_part_has_no_result_but_its_errors(tmp_path: Path) -> None:
    """No headline; the failed request is a row of its own and no wrong answer."""
    with running(slots=4) as server:
        lab = Lab(tmp_path, server).list_of(4).script({"2": {"status": 400}})
        assert lab.run().code == 1
    page = report(lab.job().folder)
    parsed = Parsed(page)
    assert "incomplete (1 failed)" in parsed.words
    assert "no result is given" in parsed.words
    assert "75.0 %" not in parsed.words
    outcomes = [index(page)["outcomes"][row[3]] for row in index(page)["rows"]]
    assert sorted(outcomes) == ["error", "right", "right", "right"]
    assert records(page)[-1][0]["reason"].startswith("Given up after")


def test_notes_say_what_the_numbers_demand(tmp_path: Path) -> None:
    """Cut-offs, reasoning with thinking off, limits, cache, load, start, sandbox, no total."""
    run = run_of(tmp_path, "notes", "rrcwrrrr", max_tokens=9, dialect="openai")
    set_texts(run, {0: {"reasoning": "because"}, 1: {"cached_tokens": 7}})
    conditions(run, sandbox="NONE: --unsafe-no-sandbox")
    session(run, alone=False)
    words = Parsed(report(run)).words
    for said in (
        "1 of 8 answers was cut off: the limit shapes this row.",
        "Thinking is off, yet 1 of 8 answers have reasoning.",
        "Not the published limits: max_tokens 9 instead of 48.",
        "1 answer reused cached prompt tokens.",
        "Programs ran without a sandbox (--unsafe-no-sandbox) and could do anything.",
        "Programs of the model ran in: NONE: --unsafe-no-sandbox.",
        "There is no overall score",
        "not comparable with results on other lists or prompts",
        "one server start",
    ):
        assert said in words, said
    assert "Programs ran in" not in words, "one fact, one note"


def test_own_list_is_said_as_a_sample_list_is(tmp_path: Path, run: Path) -> None:
    """In the row, in the plot, in its part, and in the notes: the name alone is a benchmark's."""
    page = report(run_of(tmp_path, "own"))
    words = Parsed(page).words
    assert "MMLU-Pro Own list: not comparable with a published figure of the same name." in words
    assert page.count('<span class="tag">own list</span>') == 2
    assert "MMLU-Pro (own list): 50.0 %" in words
    assert "Own list" in Parsed(report(run)).words
    conditions(run, "gpqa", list=_list_of(run, "gpqa") | {"kind": "sample"})
    assert "GPQA Diamond (own list)" not in Parsed(report(run)).words


def _list_of(run: Path, part: str) -> dict[str, object]:
    told = json.loads((run / f"{part}.contract.json").read_bytes())["conditions"]["list"]
    assert isinstance(told, dict)
    return told


def test_sample_list_is_said_loudly(run: Path) -> None:
    """At the top, in the row, and in the notes."""
    words = Parsed(report(run)).words
    assert "Sample list. GPQA Diamond: a few questions of our own" in words
    assert words.count("sample list") >= 2
    assert "SAMPLE LIST" in words


def test_setup_deviations_references_and_notes_are_shown_as_told(tmp_path: Path) -> None:
    """Unknown stays unknown; other people's figures stand in a block of their own."""
    setup = {
        "hardware": "two boxes",
        "engine": {"name": "vLLM"},
        "deviations": [{"what": "page size", "recipe_says": "64 KiB", "here": "4 KiB"}],
    }
    run = run_of(tmp_path, "setup", setup=setup)
    reference = {"label": "theirs", "value": 66.67, "unit": "%", "date": "2026-09"}
    card(run, notes="first line\nsecond line", references=[reference])
    page = report(run)
    words = Parsed(page).words
    assert "run with 1 deviation from the recipe" in words
    assert "page size: 4 KiB here, 64 KiB in the recipe (source not stated)" in words
    assert "first line second line" in words
    assert "engine version unknown" in words and "recipe unknown" in words
    others = page[page.index('id="others"') :]
    assert "66.67 %" in others and "2026-09" in others
    assert '<caption class="hidden">Published by others</caption>' in others
    assert "66.67" not in page[: page.index('id="others"')]


def test_conditions_come_with_their_sources_and_the_command(run: Path) -> None:
    """As in the contract."""
    page = report(run)
    words = Parsed(page).words
    contract = json.loads((run / "think.contract.json").read_bytes())
    assert contract["conditions"]["list"]["sha256"] in words
    assert contract["conditions_sha256"] in words
    assert "temperature 1, top_p 0.95 model card" in words
    assert "64 card (the method has 16,384)" in words
    commands = re.findall(r'<pre class="command">(.*?)</pre>', page, re.DOTALL)
    typed = [html.unescape(re.sub("<[^>]*>", "", command)) for command in commands]
    assert contract["sessions"][0]["command"] in typed, "to be copied as it was"
    assert "relative to the folder that it was typed in" in words
    assert '<a href="card.json">card.json</a>. Run again' in " ".join(page.split())


def test_version_at_the_top_says_who_told_it(tmp_path: Path) -> None:
    """The setup is the operator's word, and may not know it."""
    run = run_of(tmp_path, "version", setup={"engine": {"name": "vLLM"}})
    words = Parsed(report(run)).words
    assert "server 1.0 told by the server models" in words and "engine version unknown" in words
    server = json.loads((run / "card.json").read_bytes())["server"]
    card(run, server=server | {"engine_version_file": "version.txt"})
    assert "server 1.0 told by the server or the card's version file" in Parsed(report(run)).words
    session(run, server={"engine_version": None})
    assert "server unknown models" in Parsed(report(run)).words


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "own list, 12000 items, limit 16,384 tokens",
            "own list, 12,000 items, limit 16,384 tokens",
        ),
        ("612 of 12000 answers were", "612 of 12,000 answers were"),
        ("6811 of 12000 answers", "6,811 of 12,000 answers"),
        ("1234 answers reused", "1,234 answers reused"),
        ("seed 20261130, of 2026-11-30", "seed 20261130, of 2026-11-30"),
        ("engine b10000 -> b10001", "engine b10000 -> b10001"),
    ],
)
def test_thousands_of_what_is_counted_are_marked(text: str, said: str) -> None:
    """And no year, seed or version."""
    assert marked(text) == said


def test_line_of_a_command_does_not_end_inside_the_name_of_an_option(tmp_path: Path) -> None:
    """A browser ends lines behind hyphens; the text stays what was typed."""
    command = "serve my-model\n  --served-model-name m --n=3 -v a--b"
    page = report(run_of(tmp_path, "command", setup={"start_command": command}))
    options = re.findall(r'<span class="option">([^<]+)</span>', page)
    assert [one for one in options if one in command] == ["--served-model-name", "--n", "-v"]
    shown = page[page.index("Start command of the server") :]
    code = re.search(r"<code>(.*?)</code>", shown, re.DOTALL)
    assert code and re.sub(r"</?span[^>]*>", "", code[1]) == command


def test_links_are_relative_and_lead_to_files_that_are_there(run: Path, tmp_path: Path) -> None:
    """Also from a page that lies elsewhere; nothing leads to the network."""
    out = tmp_path / "pages of mine" / "page.html"
    out.parent.mkdir()
    report_command(run, None, out, with_prompts=False)
    links = [attrs["href"] for tag, attrs in Parsed(out.read_text()).tags if tag == "a"]
    files = [link for link in links if link and not link.startswith("#")]
    assert len(files) > 10
    assert all((out.parent / link).exists() for link in files)


def test_conditions_of_made_and_newest_lists_are_told(tmp_path: Path) -> None:
    """Who counted the tokens, which release, which dates."""
    run = run_of(tmp_path, "lists")
    there = json.loads((run / "mmlupro.contract.json").read_bytes())["conditions"]["list"]
    told = {"release": "release_v6", "dates": ["2025-01-01", "2025-04-05"]}
    conditions(run, list=there | told, token_counts="the server", sampling={}, thinking_object=None)
    session(run, server={"server_defaults": {"top_k": 20}, "context_tokens": 8192}, slots=16)
    words = Parsed(report(run)).words
    assert "release release_v6" in words
    assert "2025-01-01 to 2025-04-05" in words
    assert "tokens counted by the server sha256 unknown" in words
    assert "no field sent" in words and "nothing was sent" in words
    assert "top_k 20 the server's defaults, told by it" in words
    assert "8,192 tokens unknown" in words


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"kind": "official"}, "pinned in the package"),
        ({"kind": "official", "release": "release_v6"}, "locked on the machine that ran it"),
        ({"kind": "sample"}, "sample list of the package"),
        ({"kind": "file"}, "a list of the operator's own"),
    ],
)
def test_what_proves_a_list_is_told(tmp_path: Path, told: dict[str, str], words: str) -> None:
    run = run_of(tmp_path, "whose")
    there = json.loads((run / "mmlupro.contract.json").read_bytes())["conditions"]["list"]
    conditions(run, list=there | told)
    assert f"items {words}" in Parsed(report(run)).words
    if told == {"kind": "official"}:
        conditions(run, token_counts="the server")
        assert "items made for this model" in Parsed(report(run)).words


def test_answers_of_some_values_are_noted_by_task(tmp_path: Path) -> None:
    """For `vt` of RULER: how many named some but not all."""
    run = run_of(tmp_path, "ruler")
    beside = {"vt: some named": {"right": 4, "n": 10}, "fwe: some named": {"right": 0, "n": 10}}
    set_in_object(run / "mmlupro.summary.json", beside=beside)
    words = Parsed(report(run)).words
    assert "vt: 4 of 10 answers named some of the wanted values but not all" in words
    assert "fwe: 0 of" not in words


def test_several_endpoints_and_days_are_said(tmp_path: Path) -> None:
    """But no address of any."""
    run = run_of(tmp_path, "many", setup={"hardware": "rack"})
    session(run, endpoints=["http://10.1.2.3:1/v1", "http://10.1.2.4:1/v1"])
    ends = {"started": "2026-01-01T10:00:00.000Z", "finished": "2026-01-03T11:00:00.000Z"}
    set_in_object(run / "mmlupro.summary.json", **ends, wall_time=90_000.0)
    page = report(run)
    words = Parsed(page).words
    assert "endpoints 2 slots 4 over 2 endpoints" in words and "10.1.2.3" not in page
    assert "2026-01-01 10:00 to 2026-01-03 11:00 UTC" in words
    assert "25 h 00 min" in words


def test_identity_is_that_of_all_replicas(tmp_path: Path) -> None:
    """Version, models, start and slots of each, in the order of the card."""
    run = run_of(tmp_path, "replicas")
    first = {"engine_version": "vLLM 1", "process_started": "2026-01-01T10:00:00Z", "slots": 3}
    second = {"engine_version": "vLLM 2", "process_started": None, "slots": 1, "models": ["n"]}
    ends = ["http://10.1.2.3:1/v1", "http://10.1.2.4:1/v1"]
    told = first | {"models": ["m"], "context_tokens": 8192}
    replicas = [second | {"context_tokens": 4096}]
    session(run, endpoints=ends, server=told | {"replicas": replicas})
    words = Parsed(report(run)).words
    assert "server vLLM 1 and vLLM 2 told by the servers models they list m and n" in words
    assert "servers started 2026-01-01 10:00 UTC and unknown" in words
    assert words.count("4 over 2 endpoints (3 + 1)") == 2, "at the top and in the conditions"
    assert "8,192 tokens, 4,096 tokens" in words
    same = told | {"replicas": [told]}
    session(run, endpoints=ends, server=same)
    assert "server vLLM 1 told by the servers" in Parsed(report(run)).words


def test_plot_says_what_its_marks_are(tmp_path: Path) -> None:
    """Two ends of an incomplete row, where there is one."""
    said = "incomplete: from what is right already to the most it could become"
    assert said in Parsed(report(run_of(tmp_path, "half", "rr  "))).words
    assert said not in Parsed(report(run_of(tmp_path, "whole", "rrww"))).words


def test_part_that_never_ended_a_session_is_shown(tmp_path: Path) -> None:
    """A contract without sessions, as before the first request; and one with a setup of no known
    kind.
    """
    run = run_of(tmp_path, "early")
    set_in_object(run / "mmlupro.contract.json", sessions=[])
    assert "slots" not in Parsed(report(run)).words
    other = run_of(tmp_path, "strange")
    session(other, setup={"what": "is this"})
    assert "hardware unknown" in Parsed(report(other)).words


def test_part_that_asked_nothing_yet_has_an_empty_list(tmp_path: Path) -> None:
    """And no figures."""
    page = report(run_of(tmp_path, "empty", "    "))
    assert index(page)["rows"] == []
    assert "incomplete (4 not asked yet)" in Parsed(page).words


# What it holds back


def test_prompts_of_a_gated_list_are_not_in_the_page(tmp_path: Path) -> None:
    """Unless asked for, and then the page says why it must not be published."""
    folder = Made(tmp_path)
    run = folder.run("gated", "rw", part="gpqa")
    (run / "gpqa.items.jsonl").write_bytes((tmp_path / "mine-2.jsonl").read_bytes())
    page = report(run)
    assert "Which, 0?" not in page
    assert "gated" in index(page)["no_prompt"]["gpqa"]
    assert "Not for publication" not in page
    lines, _ = report_command(run, None, None, with_prompts=True)
    page = (run / "report.html").read_text(encoding="utf-8")
    assert "Which, 0?" in blocks(page, "prompts")[0][0]
    assert "Not for publication" in page
    assert "in it, those of GPQA Diamond above all, may quote questions" in Parsed(page).words
    assert any("must not be published" in line for line in lines)


def test_prompts_of_free_lists_are_in_the_page_once(run: Path) -> None:
    """Two answers to one question share it."""
    page = report(run)
    rows = index(page)["rows"]
    think = [row for row in rows if index(page)["parts"][row[2]]["name"] == "mmlupro"]
    prompts = [text for block in blocks(page, "prompts") for text in block]
    assert all(f"[[item:{row[0]}]]" in prompts[row[8]] for row in think)
    assert len(prompts) == len({(row[2], row[0]) for row in rows if row[8] >= 0})


def test_page_says_why_a_prompt_cannot_be_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copy of a list is gone, or an official list is not on this machine."""
    monkeypatch.setenv("QUALEVAL_CACHE", str(tmp_path / "cache"))
    run = run_of(tmp_path, "gone")
    assert "cannot be shown" in index(report(run))["no_prompt"]["mmlupro"]
    there = json.loads((run / "mmlupro.contract.json").read_bytes())["conditions"]["list"]
    conditions(run, list=there | {"kind": "official"})
    assert "qualeval lists fetch mmlupro" in index(report(run))["no_prompt"]["mmlupro"]


def test_bundle_is_reported_beside_itself(tmp_path: Path) -> None:
    """A page inside would be a file that its manifest does not name."""
    run = run_of(tmp_path, "bundled")
    published(run)
    bundle = run / "public"
    page = report(bundle)
    assert (run / "public-report.html").exists()
    assert verify_bundle(bundle)[1] == 0
    assert len(index(page)["rows"]) == 4
    assert "A published copy holds no prompts." in page
    words = Parsed(page).words
    assert "made from a published copy" in words and "for your own eyes" not in words
    assert "for your own eyes" in Parsed(report(run)).words


def test_withheld_text_of_a_bundle_is_said_and_not_empty(tmp_path: Path) -> None:
    """No text is not the text of an empty answer."""
    run = run_of(tmp_path, "withheld")
    published(run)
    path = run / "public" / "mmlupro.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines[1] |= {"text": None, "withheld": "canary"}
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (side,) = records(report(run / "public"))[1]
    assert "text" not in side
    assert "canary" in side["note"]


# Nothing in it acts


def test_hostile_texts_are_data_and_nothing_else(tmp_path: Path) -> None:
    """No tag, attribute or script in the page that is not its own."""
    page = report(hostile_run(tmp_path))
    parsed = Parsed(page)
    plain = Parsed(report(run_of(tmp_path, "plain", setup={"deviations": [{"what": "x"}]})))
    assert {tag for tag, _ in parsed.tags} <= {tag for tag, _ in plain.tags} | {"blockquote"}
    for _, attrs in parsed.tags:
        assert not any(name.startswith("on") or name == "style" for name in attrs)
    scripts = [text for attrs, text in parsed.raw if attrs["tag"] == "script"]
    assert len(scripts) == len([a for a, _ in plain.raw if a["tag"] == "script"])
    assert sum("type" not in attrs for attrs, _ in parsed.raw) == 2, "one style, one script"
    assert re.search("[\u2028-\u202e\u2066-\u2069\x00-\x08\ud800-\udfff]", page) is None


def test_hostile_replies_come_out_as_they_were(tmp_path: Path) -> None:
    """Every character of them, half surrogate pairs too."""
    page = report(hostile_run(tmp_path))
    texts = [sides[0]["text"] for sides in records(page)[: len(HOSTILE)]]
    assert texts == list(HOSTILE)


def test_policy_allows_the_own_style_and_script_by_hash_and_nothing_else(run: Path) -> None:
    """As a browser computes them."""
    parsed = Parsed(report(run))
    (policy,) = (
        attrs["content"]
        for tag, attrs in parsed.tags
        if tag == "meta" and attrs.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy is not None
    said = dict(part.split(" ", 1) for part in policy.split("; "))
    for tag in ("style", "script"):
        (text,) = (t for a, t in parsed.raw if a["tag"] == tag and "type" not in a)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert said.pop(f"{tag}-src") == f"'sha256-{digest}'"
    own = {"default-src": "'none'", "img-src": "data:", "base-uri": "'none'"}
    assert said == {**own, "form-action": "'none'"}


@given(st.text(st.characters()) | st.sampled_from(HOSTILE))
def test_embedded_json_is_the_value_and_cannot_end_its_block(text: str) -> None:
    """For any text, half surrogate pairs included."""
    said = embedded({"text": text})
    assert json.loads(said) == {"text": text}
    assert not set(said) & set("<>&\u2028\u2029\u202e\u2066")
    said.encode("utf-8")


# What is refused


def test_folder_that_is_no_run_is_refused(run: Path) -> None:
    """With exit code 2, and no page."""
    for folder in (run.parent, run.with_name("nothing")):
        with pytest.raises(QualevalError) as error:
            report_command(folder, None, None, with_prompts=False)
        assert error.value.exit_code == 2
    assert not list(run.parent.glob("*.html"))


def test_place_that_cannot_be_written_is_said(run: Path, tmp_path: Path) -> None:
    """And leaves no half of a file."""
    with pytest.raises(OptionError, match="there is no folder"):
        report_command(run, None, tmp_path / "no" / "page.html", with_prompts=False)
    with pytest.raises(OptionError, match="is a folder"):
        report_command(run, None, tmp_path, with_prompts=False)
    (run / "report.html").mkdir()
    with pytest.raises(DiskError, match="cannot be written"):
        report_command(run, None, None, with_prompts=False)
    assert not list(run.glob(".*.new")) and not list(tmp_path.rglob("*.new"))


def test_killed_run_is_shown_from_its_raw_replies(run: Path) -> None:
    """Graded in memory; the files stay as they are."""
    whole = records(report(run))
    (run / "mmlupro.summary.json").unlink()
    (run / "mmlupro.jsonl").unlink()
    change_lines(run / "think.gen.jsonl", lambda lines: lines[:5])
    page = report(run)
    assert not (run / "mmlupro.jsonl").exists()
    assert records(page)[:8] == whole[:8]
    assert "5 of 16 answered" in Parsed(page).words


def test_answer_without_a_verdict_is_an_error(tmp_path: Path) -> None:
    """Its program could not be run: our fault, and no wrong answer."""
    run = run_of(tmp_path, "infra", "rrr")
    change_lines(run / "mmlupro.jsonl", lambda lines: lines[:2])
    none = dict.fromkeys(("accuracy", "margin", "ci_low", "ci_high", "ci_method"))
    errors = {"answered": 2, "right": 2, "errors": 1, "error_kinds": {"infra_error": 1}}
    because = {"status": "incomplete", "incomplete_because": "1 failed"}
    set_in_object(run / "mmlupro.summary.json", **errors, **none, **because)
    page = report(run)
    assert [index(page)["outcomes"][row[3]] for row in index(page)["rows"]][-1] == "error"
    assert "the program could not be run" in records(page)[-1][0]["reason"]


def test_programs_are_never_run_for_a_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answers that were not judged are judged by `grade`."""
    run = run_of(tmp_path, "code")
    (run / "mmlupro.jsonl").unlink()
    runs_code = SimpleNamespace(runs_code=True, source=SimpleNamespace(leak_policy="open"))
    monkeypatch.setattr(read, "TASKS", {"mmlupro": runs_code})
    with pytest.raises(RunFolderError, match="do that first: qualeval grade"):
        report_command(run, None, None, with_prompts=False)


def test_card_that_cannot_be_read_costs_only_what_it_says(run: Path) -> None:
    """The label is the folder's then."""
    (run / "card.json").write_text("{")
    assert f"<bdi>{run.name}</bdi>" in report(run)


# Two runs


def test_pair_shows_both_tables_the_differences_and_the_flips(tmp_path: Path) -> None:
    """Side by side, each flipped question with both replies."""
    folder = Made(tmp_path)
    base, new = folder.run("old", "rrrrww"), folder.run("new", "rwcrrw")
    page = report(base, new)
    assert (new / "report-vs-old.html").exists()
    words = Parsed(page).words
    assert "66.7 % 4/6" in words and "50.0 % 3/6" in words
    assert "can't tell" in words
    assert "Base: old" in words and "New: new" in words
    told = index(page)
    outcomes = {row[0]: told["outcomes"][row[3]] for row in told["rows"]}
    assert outcomes == {
        "0": "both right",
        "1": "lost",
        "2": "lost",
        "3": "both right",
        "4": "gained",
        "5": "both wrong",
    }
    old_side, new_side = records(page)[2]
    assert (old_side["outcome"], new_side["outcome"]) == ("right", "cut off")
    assert told["rows"][2][6] == "B → cut off, key B", "the cause shows before it is opened"


def test_pair_that_cannot_be_compared_is_refused_as_compare_does(tmp_path: Path) -> None:
    """Other conditions, an incomplete part, or one run twice."""
    folder = Made(tmp_path)
    base = folder.run("old", "rrrr")
    for other, said in (
        (folder.run("seed", "rrrr", seed=1), "seed[^`]+`--allow` is of `qualeval compare`"),
        (folder.run("half", "rr  "), "incomplete"),
    ):
        with pytest.raises(ContractError, match=said):
            report_command(base, other, None, with_prompts=False)
    with pytest.raises(OptionError, match="given twice"):
        report_command(base, base, None, with_prompts=False)
    with pytest.raises(RunFolderError):
        report_command(base, tmp_path / "none", None, with_prompts=False)


def test_pair_says_what_else_differs(tmp_path: Path) -> None:
    """Same except: engine, model, setup."""
    folder = Made(tmp_path)
    base = folder.run("old", "rrrr")
    new = folder.run("new", "rrrr", model="other", setup={"hardware": "another"})
    words = Parsed(report(base, new)).words
    assert "model: m -> other" in words
    assert "setup.hardware" in words


def test_summary_of_another_version_is_refused_with_the_field(run: Path) -> None:
    """As everywhere else."""
    set_in_object(run / "gpqa.summary.json", unknown_field=1)
    with pytest.raises(RunFolderError, match="unknown_field"):
        report_command(run, None, None, with_prompts=False)


@pytest.mark.parametrize("name", ["mmlupro.gen.jsonl", "page.txt", "page"])
def test_only_a_file_named_as_a_page_is_written(run: Path, name: str) -> None:
    """Raw replies cost money: a slip of the hand must not turn them into a page."""
    before = {path.name: path.read_bytes() for path in run.iterdir() if path.is_file()}
    with pytest.raises(OptionError, match=r"ends in [.]html"):
        report_command(run, None, run / name, with_prompts=False)
    assert before == {path.name: path.read_bytes() for path in run.iterdir() if path.is_file()}


def test_pair_is_shown_over_the_parts_that_both_have_whole(tmp_path: Path) -> None:
    """One part was run again after a change: the usual case of who maintains a recipe."""
    folder = Made(tmp_path)
    folder.run("old", "rrrr")
    base = folder.run("old", "rrww", part="gpqa")
    new = folder.run("new", "rwrr")
    page = report(base, new)
    assert "Left out, not complete in both runs: GPQA Diamond." in Parsed(page).words
    assert {row[0] for row in index(page)["rows"]} == {"0", "1", "2", "3"}
    folder.run("new", "rr  ", part="gpqa")
    assert "Left out, not complete in both runs: GPQA Diamond." in Parsed(report(base, new)).words


def test_failed_request_is_found_under_the_stratum_of_its_question(tmp_path: Path) -> None:
    """It has no answer that would tell it; the list does."""
    with running(slots=4) as server:
        lab = Lab(tmp_path, server).list_of(4).script({"2": {"status": 400}})
        rows = [json.loads(line) for line in (tmp_path / "mine.jsonl").read_text().splitlines()]
        lines = (json.dumps(row | {"category": f"kind {row['id'] % 2}"}) + "\n" for row in rows)
        (tmp_path / "mine.jsonl").write_text("".join(lines))
        assert lab.run().code == 1
        page = report(lab.job().folder)
    told = index(page)
    strata = {row[0]: told["parts"][row[2]]["order"][row[4]] for row in told["rows"]}
    assert strata == {"0": "kind 0", "1": "kind 1", "2": "kind 0", "3": "kind 1"}
