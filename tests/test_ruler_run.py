"""The part `ruler` in a run: lists made by a tokenizer or by the server, rows, resume, refusals."""

import json
from pathlib import Path
from typing import Any

import model_server
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from qualeval.card import parse_card
from qualeval.errors import CardError, ListError
from qualeval.job import RunOptions
from qualeval.lists import describe, fetch, official_list
from qualeval.progress import PlainProgress
from qualeval.recheck import started_parts
from qualeval.records import Summary
from qualeval.run import RunOutcome, run
from qualeval.runfolder import read_contract
from qualeval.show import show_command
from qualeval.summary_formats import summarize_command
from qualeval.table import text_table
from qualeval.tasks import TASKS
from qualeval.verify import verify_command


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny byte-level BPE, trained here."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=600, initial_alphabet=alphabet, show_progress=False)
    made.train_from_iterator(["The river is wide and the boat is slow. " * 50], trainer)
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    made.save(str(path))
    return path


def card(running: model_server.RunningServer, **more: Any) -> dict[str, Any]:
    settings = {"lengths": [2048, 4096], "per_task": 1} | more.pop("ruler", {})
    fields = {"base_url": running.base_url, "model": "test-model", "dialect": "vllm", "slots": 2}
    return {
        "label": "long",
        "server": fields | more.pop("server", {}),
        "sampling": {"temperature": 0.0},
        "parts": {"ruler": settings},
    } | more


def go(raw: dict[str, Any], folder: Path, **options: Any) -> RunOutcome:
    choice = RunOptions(runs=folder / "runs", command="test", parts="ruler", **options)
    with (folder / "out.txt").open("w") as out, PlainProgress(out) as watcher:
        return run(parse_card(raw, "card"), folder, choice, watcher)


def summary_of(outcome: RunOutcome) -> Summary:
    return outcome.summary.parts["ruler"]


def test_each_length_is_a_row_of_its_own(tmp_path: Path, tokenizer: Path) -> None:
    """Two lengths, four tasks each; the whole part stands above its rows."""
    with model_server.running(slots=2, context=100_000) as server:
        outcome = go(card(server, tokenizer=str(tokenizer)), tmp_path)
    part = summary_of(outcome)
    assert (True, 8, [4, 4]) == (outcome.complete, part.n, [row.n for row in part.rows])
    assert ["Long text 2K", "Long text 4K"] == [row.title for row in part.rows]
    assert ["4 tasks x 1 at 2048 tokens", "4 tasks x 1 at 4096 tokens"] == [
        row.subtitle for row in part.rows
    ]
    assert (8, 8) == (
        part.beside["prompts of exactly the wanted length"].right,
        part.beside["prompts of exactly the wanted length"].n,
    )
    table = text_table(outcome.summary)
    assert "Long text 2K" in table
    assert "not the published limits: lengths 2,048, 4,096 instead of 8,192, 32,768" in table
    assert "niah_multikey 1 none named" in table


def test_tokenizer_is_a_condition(tmp_path: Path, tokenizer: Path) -> None:
    """Its sha256 stands in the contract and in every answer."""
    with model_server.running(context=100_000) as server:
        outcome = go(card(server, tokenizer=str(tokenizer)), tmp_path)
    contract = read_contract(outcome.folder / "ruler.contract.json")
    assert contract is not None
    told = contract.conditions["tokenizer_sha256"]
    lines = (outcome.folder / "ruler.jsonl").read_text().splitlines()
    assert isinstance(told, str)
    assert {told} == {json.loads(line)["details"]["tokenizer_sha256"] for line in lines}
    assert "tokenizer.json" == contract.conditions["token_counts"]


def test_without_a_tokenizer_the_server_counts(tmp_path: Path) -> None:
    """llama.cpp and vLLM have /tokenize; the contract says who counted."""
    for dialect in ("vllm", "llama.cpp"):
        with model_server.running(dialect=dialect, context=100_000, token_unit="chars4") as server:
            raw = card(server, server={"dialect": dialect}, ruler={"lengths": [2048]})
            outcome = go(raw | {"label": dialect}, tmp_path)
        contract = read_contract(outcome.folder / "ruler.contract.json")
        assert contract is not None
        assert (None, "server /tokenize") == (
            contract.conditions["tokenizer_sha256"],
            contract.conditions["token_counts"],
        )


def test_without_anything_that_counts_the_error_says_where_a_tokenizer_is(tmp_path: Path) -> None:
    """No tokenizer in the card, and a server that does not count."""
    with model_server.running(dialect="openai", context=100_000) as server:
        with pytest.raises(CardError, match=r"tokenizer\.json"):
            go(card(server, server={"dialect": "openai"}), tmp_path)
        assert 0 == server.summary()["requests"]


def test_resumed_run_needs_no_tokenizer_again(tmp_path: Path, tokenizer: Path) -> None:
    """What was made is kept in the run; the same list goes on."""
    with model_server.running(context=100_000) as server:
        raw = card(server, tokenizer=str(tokenizer))
        first = go(raw, tmp_path, limit=3)
        assert "incomplete" == summary_of(first).status
        second = go({**raw, "tokenizer": None}, tmp_path)
        asked = server.summary()["requests"]
    assert (True, 8) == (second.complete, asked)


def test_another_tokenizer_is_refused(tmp_path: Path, tokenizer: Path) -> None:
    """Rows of two tokenizers share no file."""
    other = tmp_path / "other.json"
    changed = json.loads(tokenizer.read_text())
    changed["model"]["merges"] = changed["model"]["merges"][:50]
    other.write_text(json.dumps(changed))
    with model_server.running(context=100_000) as server:
        go(card(server, tokenizer=str(tokenizer)), tmp_path)
        with pytest.raises(Exception, match="tokenizer_sha256"):
            go(card(server, tokenizer=str(other)), tmp_path)


def test_prompt_that_does_not_fit_a_slot_is_refused_with_the_number(
    tmp_path: Path, tokenizer: Path
) -> None:
    """rul-07, net-09: before anything is sent."""
    with model_server.running(context=4096, dialect="openai") as server:
        raw = card(server, server={"dialect": "openai", "context_tokens": 4096})
        with pytest.raises(CardError, match="4,096"):
            go({**raw, "tokenizer": str(tokenizer)}, tmp_path)
        assert 0 == server.summary()["requests"]


def test_run_is_verified_shown_and_summarized_without_tokenizer_or_server(
    tmp_path: Path, tokenizer: Path
) -> None:
    """The texts are made again from some hundred bytes each."""
    with model_server.running(context=100_000) as server:
        outcome = go(card(server, tokenizer=str(tokenizer)), tmp_path)
    folder = outcome.folder
    lines, code = verify_command(folder)
    assert 0 == code, lines
    assert ("ruler",) == started_parts(folder)
    shown = "\n".join(show_command(folder, "ruler", "vt-2048-0"))
    assert "the one that was sent" in shown
    text, code = summarize_command(folder, "csv")
    assert 0 == code
    assert 3 == len(text.splitlines())


def test_changed_text_is_found_by_verify(tmp_path: Path, tokenizer: Path) -> None:
    """A row that was edited makes another text than the one that was sent."""
    with model_server.running(context=100_000) as server:
        folder = go(card(server, tokenizer=str(tokenizer)), tmp_path).folder
    items = folder / "ruler.items.jsonl"
    items.write_text(items.read_text().replace('"taken":', '"taken":1', 1))
    lines, code = verify_command(folder)
    assert 1 == code, lines


def test_sample_list_is_short_and_labelled(tmp_path: Path) -> None:
    """Everything runs offline: one short length, two items a task."""
    with model_server.running(context=100_000, token_unit="chars4") as server:
        raw = card(server) | {"parts": {}}
        part = summary_of(go(raw, tmp_path, lists="sample"))
    assert (True, 8, ["Long text 1K"]) == (
        part.sample_list,
        part.n,
        [row.title for row in part.rows],
    )


def test_there_is_no_list_to_fetch_import_or_bring(tmp_path: Path, tokenizer: Path) -> None:
    """The error says why."""
    task = TASKS["ruler"]
    for call in (lambda: official_list(task), lambda: describe(task)):
        with pytest.raises(ListError, match="made for each model"):
            call()
    with pytest.raises(ListError, match="made for each model"):
        fetch(task.source)
    with model_server.running() as server, pytest.raises(ListError, match="no list of its own"):
        go(card(server, tokenizer=str(tokenizer), ruler={"list": "mine.jsonl"}), tmp_path)


def test_sample_list_is_made_by_an_estimate_where_nothing_counts(tmp_path: Path) -> None:
    """Everything runs offline, and the row says that its lengths are no tokens."""
    with model_server.running(dialect="openai", context=100_000) as server:
        raw = card(server, server={"dialect": "openai"}) | {"parts": {}}
        first = go(raw, tmp_path, lists="sample", limit=2)
        part = summary_of(go(raw, tmp_path, lists="sample"))
    assert "incomplete" == summary_of(first).status
    assert ("ok", ("lengths estimated at 4 characters a token",)) == (part.status, part.limits)
