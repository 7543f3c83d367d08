"""What a run asks before it starts, and how its parts share the slots of one server or several.

End to end, against the project's test server. Ids in docstrings are those of `known-faults.jsonl`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from operator import sub
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from engine import (
    GONE_PORT,
    PATIENCE,
    Json,
    Lab,
    beside,
    most_at_once,
    served_once_all_are_there,
    until,
)
from model_server import RunningServer, running

SERVICE = 0.04
COUNT = {"mmlupro": 22, "gpqa": 17, "think": 10}
"""Not multiples of the slots, so that a part ends while another one begins."""
PARTS = ",".join(COUNT)


@pytest.fixture(scope="module")
def busy() -> Iterator[RunningServer]:
    """Four slots, 40 ms a request."""
    with running(slots=4, service=SERVICE) as server:
        yield server


@pytest.fixture
def lab(tmp_path: Path, busy: RunningServer) -> Lab:
    """Three parts with lists of their own: the items of `gpqa` are gpqa0, gpqa1, ..."""
    lab = Lab(tmp_path, busy).script()
    lab.card["parts"] = {}
    for part, count in COUNT.items():
        lab.list_of([f"{part}{i}" for i in range(count)], f"{part}.jsonl")
        lab.card["parts"][part] = {"list": f"{part}.jsonl"}
    return lab


def by_part(lab: Lab) -> dict[str, list[Json]]:
    """The server's records of each part, in order of arrival."""
    records: dict[str, list[Json]] = {part: [] for part in COUNT}
    for record in lab.asked():
        records[record["item"].rstrip("0123456789")].append(record)
    return records


def first(records: list[Json]) -> float:
    return float(min(record["arrival"] for record in records))


def last(records: list[Json]) -> float:
    return float(max(record["end"] for record in records))


def most_there(records: list[Json]) -> int:
    """The most of these requests that had arrived and not ended at one moment."""
    return most_at_once([record | {"start": record["arrival"]} for record in records])


@contextmanager
def served_up_to(lab: Lab, *counts: int, held_at: int | None = None) -> Iterator[None]:
    """After each of these counts of requests the server waits until all four slots of the run are
    asking it for more: what is in flight together there does not depend on the machine. At
    `held_at` it waits for as long again as everything has taken.
    """
    begun = monotonic()
    server = lab.server
    assert server is not None

    def wait_and_serve() -> None:
        try:
            for count, more in zip(counts, [*map(sub, counts[1:], counts), None], strict=True):
                until(lambda: lab.requests() >= count + 4, f"{count} + 4 requests")  # noqa: B023
                if count == held_at:
                    twice = 2 * monotonic() - begun
                    until(lambda: monotonic() > twice, "as long again", seconds=math.inf)  # noqa: B023
                server.serve(more)
        finally:
            server.serve(None)

    server.serve(counts[0])
    with beside(wait_and_serve):
        yield


# ------------------------------------------------------------------ schedules


def test_default_puts_parts_with_thinking_off_together_and_think_alone(lab: Lab) -> None:
    """No slot idles between two off parts; the seconds of `think` are those of a server that does
    nothing else.
    """
    most, both = COUNT["mmlupro"], COUNT["mmlupro"] + COUNT["gpqa"]
    with served_up_to(lab, COUNT["gpqa"] - 2, most - 2, most, both, held_at=most):
        assert lab.run(parts=PARTS).code == 0
    seen = by_part(lab)
    assert {part: len(records) for part, records in seen.items()} == COUNT
    off = seen["mmlupro"] + seen["gpqa"]
    one, other = sorted((seen["mmlupro"], seen["gpqa"]), key=first)
    assert first(other) < last(one), "the second part starts before the first one has ended"
    assert first(seen["think"]) >= last(off)
    assert most_there(off) == most_there(seen["think"]) == 4
    wall = [
        lab.job().summary(records[0]["item"].rstrip("0123456789"))["wall_time"]
        for records in (one, other)
    ]
    assert wall[0] < wall[1], "each part ends with its own last answer, before the server waited"
    alone = {part: lab.job().summary(part)["alone"] for part in COUNT}
    assert alone == {"mmlupro": False, "gpqa": False, "think": True}
    assert {lab.job().summary(part)["schedule"] for part in COUNT} == {"default"}
    for record in seen["think"]:
        assert record["body"]["chat_template_kwargs"] == {"enable_thinking": True}
        assert record["body"]["stream"] is True and record["body"]["max_tokens"] == 16384


def test_parts_run_one_after_another_when_asked_for(lab: Lab) -> None:
    """--schedule parts, as on the published page, in the order of its table."""
    assert lab.run("--schedule", "parts", parts=PARTS).code == 0
    seen = by_part(lab)
    assert last(seen["mmlupro"]) <= first(seen["gpqa"])
    assert last(seen["gpqa"]) <= first(seen["think"])
    assert all(lab.job().summary(part)["alone"] for part in COUNT)


def test_packed_puts_everything_into_one_pool_and_says_so(lab: Lab) -> None:
    """--schedule packed: the longest answers first, and seconds marked as of a mixed load."""
    with served_up_to(lab, COUNT["think"] - 2):
        done = lab.run("--schedule", "packed", parts=PARTS)
    assert done.code == 0
    seen = by_part(lab)
    assert first(seen["think"]) <= min(first(seen["mmlupro"]), first(seen["gpqa"]))
    assert first(seen["mmlupro"]) < last(seen["think"])
    assert not any(lab.job().summary(part)["alone"] for part in COUNT)
    assert "(mixed load)" in done.out


def test_seconds_of_think_alone_are_not_marked(lab: Lab) -> None:
    """Median tokens and seconds per question stand under its row."""
    done = lab.run(parts="think")
    assert done.code == 0
    assert "s per question" in done.out and "mixed load" not in done.out


# ------------------------------------------------------------------ slots kept full


def test_slots_are_full_from_first_to_last(lab: Lab) -> None:
    """net-03: as many in flight as the card says, never more; a free slot is refilled before the
    next one ends: after each single answer the server waits until it has four requests again.
    """
    count = COUNT["mmlupro"]
    with served_up_to(lab, *range(count - 3)):
        assert lab.run().code == 0
    assert lab.server is not None
    assert lab.server.summary()["max_in_flight"] == 4
    assert lab.server.summary()["outcomes"] == {"answered": count}
    job = lab.job()
    in_flight = job.summary()["in_flight"]
    assert in_flight["most"] == 4
    seconds = sum(line["seconds"] for line in job.gen())
    assert in_flight["mean"] == pytest.approx(seconds / job.summary()["wall_time"], rel=0.2)


def test_more_slots_than_items_is_fine(lab: Lab) -> None:
    """Slots without work end quietly."""
    lab.card["server"]["slots"] = 64
    assert lab.run(parts="think").code == 0
    assert len(lab.asked()) == COUNT["think"]


def test_two_servers_share_the_work_each_within_its_own_slots(tmp_path: Path) -> None:
    """A slot belongs to one endpoint; the pool is their sum."""
    with running(slots=8, service=SERVICE) as one, running(slots=8, service=SERVICE) as three:
        lab = Lab(tmp_path).list_of(32)
        del lab.card["server"]["slots"]
        lab.card["server"]["endpoints"] = [
            {"base_url": one.base_url, "slots": 1},
            {"base_url": three.base_url, "slots": 3},
        ]
        with served_once_all_are_there((one, 1), (three, 3)):
            assert lab.run().code == 0
        seen = [server.stats()["requests"] for server in (one, three)]
        assert [most_there(records) for records in seen] == [1, 3]
        assert most_there([*seen[0], *seen[1]]) == 4
        items = [record["item"] for records in seen for record in records]
        assert len(items) == len(set(items)) == 32
        [session] = lab.job().sessions()
        assert session["slots"] == 4
        assert session["endpoints"] == [one.base_url, three.base_url]
        assert session["server"]["endpoint"] == one.base_url
        assert session["server"]["replicas"][0]["endpoint"] == three.base_url


def test_slow_endpoint_does_not_hold_up_the_other_one(tmp_path: Path) -> None:
    """Whoever is free takes the next item: all but the two that the slow one has."""
    with running(slots=2) as slow, running(slots=2) as quick:
        lab = Lab(tmp_path).list_of(40)
        del lab.card["server"]["slots"]
        lab.card["server"]["endpoints"] = [
            {"base_url": slow.base_url, "slots": 2},
            {"base_url": quick.base_url, "slots": 2},
        ]

        def wait_for_the_quick_one() -> None:
            try:
                until(lambda: slow.summary()["requests"] == 2, "two at the slow one")
                quick.serve(None)
                until(lambda: quick.summary()["requests"] == 38, "all others at the quick one")
            finally:
                quick.serve(None)
                slow.serve(None)

        slow.serve(0)
        quick.serve(0)
        with beside(wait_for_the_quick_one):
            assert lab.run().code == 0
        assert (slow.summary()["requests"], quick.summary()["requests"]) == (2, 38)


# ------------------------------------------------------------------ before the first request


def test_lists_of_all_parts_are_resolved_before_the_first_request(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """gpq-05: a gated list that is not here stops the run while it has cost nothing."""
    lab.card["parts"]["gpqa"] = {"list": "official"}
    for name in ("HF_TOKEN", "HF_HOME", "HF_HUB_CACHE", "HF_DATASETS_CACHE", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("QUALEVAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{GONE_PORT}")
    process = lab.start(parts="mmlupro,gpqa")
    out, err = process.communicate(timeout=2 * PATIENCE)
    assert process.returncode == 2
    assert "gpqa" in err and "qualeval lists import" in err
    assert "Traceback" not in out + err
    assert lab.requests() == 0
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("wrong", ["missing.jsonl", "empty.jsonl", "broken.jsonl", "twice.jsonl"])
def test_list_that_cannot_be_asked_is_named_with_its_line(lab: Lab, wrong: str) -> None:
    """Exit 2 before anything is sent, whichever part it is for."""
    row = {"id": 1, "question": "Which?", "options": ["red", "green"], "answer": "A"}
    text = {
        "empty.jsonl": "",
        "broken.jsonl": json.dumps(row) + "\n" + json.dumps(row | {"id": 2, "answer": "C"}) + "\n",
        "twice.jsonl": f"{json.dumps(row)}\n{json.dumps(row | {'id': '1'})}\n",
    }
    if wrong in text:
        (lab.folder / wrong).write_text(text[wrong])
    lab.card["parts"]["gpqa"] = {"list": wrong}
    refused = lab.run(parts="mmlupro,gpqa")
    assert refused.code == 2 and wrong in refused.err
    assert (f"{wrong}:2" in refused.err) is (wrong in ("broken.jsonl", "twice.jsonl"))
    assert lab.requests() == 0


def test_list_with_line_separators_and_half_a_pair_in_its_text_is_asked_whole(
    lab: Lab,
) -> None:
    """log-01, log-02: U+2028 and its like end no line of a list, and reach the server."""
    asked = "Which\u2028one\u0085of \x00 these \x1e?"
    rows = [
        {"id": id, "question": f"[[item:{id}]] {text}", "options": ["red", "green"], "answer": "A"}
        for id, text in (("separators", asked), ("half", "B \ud835 ?"))
    ]
    raw = json.dumps(rows[0], ensure_ascii=False) + "\n" + json.dumps(rows[1]) + "\n"
    (lab.folder / "mmlupro.jsonl").write_text(raw, encoding="utf-8")
    assert lab.run().code == 0
    sent = {r["item"]: r["body"]["messages"][0]["content"] for r in lab.asked()}
    assert asked in sent["separators"] and "B \ud835 ?" in sent["half"]


@pytest.mark.parametrize("dialect", ["llama.cpp", "vllm", "sglang", "openai"])
def test_prompt_that_does_not_fit_a_slot_refuses_the_part_with_the_number(
    tmp_path: Path, dialect: str
) -> None:
    """net-09: the context is that of a slot; what fits may run without the rest."""
    context = 300
    with running(slots=4, dialect=dialect, context=context) as server:
        lab = Lab(tmp_path, server).list_of(4)
        lab.card["server"] |= {"dialect": dialect, "context_tokens": context}
        lab.card["parts"] = {
            "mmlupro": {"list": "mine.jsonl"},
            "gpqa": {"list": "mine.jsonl", "max_tokens": 290},
        }
        refused = lab.run(parts="mmlupro,gpqa")
        assert refused.code == 2
        assert "'gpqa'" in refused.err and "'mmlupro' needs" not in refused.err
        assert "a slot has 300" in refused.err and "--parts mmlupro" in refused.err
        assert server.summary()["requests"] == 0
        assert lab.run(parts="mmlupro").code == 0
        assert server.summary()["statuses"] == {"200": 4}


def test_context_that_nobody_tells_is_said(tmp_path: Path) -> None:
    """Not checked is not the same as fits."""
    with running(slots=4, dialect="openai") as server:
        lab = Lab(tmp_path, server).list_of(2)
        lab.card["server"]["dialect"] = "openai"
        done = lab.run()
        assert done.code == 0
        assert "context per slot is not known" in done.err
        assert "prompt cache not controlled" in done.out.lower()


@pytest.mark.parametrize(
    ("dialect", "source"),
    [("llama.cpp", "server: /props"), ("sglang", "server: /get_server_info")],
)
def test_slots_come_from_the_server_when_the_card_has_none(
    tmp_path: Path, dialect: str, source: str
) -> None:
    """And where they came from is recorded."""
    with running(slots=3, dialect=dialect) as server:
        lab = Lab(tmp_path, server).list_of(12)
        lab.card["server"]["dialect"] = dialect
        del lab.card["server"]["slots"]
        with served_once_all_are_there((server, 3)):
            assert lab.run().code == 0
        [session] = lab.job().sessions()
        assert (session["slots"], session["slots_source"]) == (3, source)
        assert server.summary()["max_in_flight"] == 3


def test_slots_that_nobody_tells_are_asked_for(lab: Lab) -> None:
    """Exit 2 that names the field."""
    del lab.card["server"]["slots"]
    refused = lab.run()
    assert refused.code == 2 and "server.slots" in refused.err
    assert "--max-num-seqs" in refused.err
    assert lab.requests() == 0 and not (lab.job().folder / "mmlupro.gen.jsonl").exists()


def test_card_and_server_that_differ_about_slots_are_warned_of(tmp_path: Path) -> None:
    """The card rules, and the difference is said."""
    with running(slots=3, dialect="llama.cpp") as server:
        lab = Lab(tmp_path, server).list_of(6)
        lab.card["server"] |= {"dialect": "llama.cpp", "slots": 2, "slots_source": "start script"}
        done = lab.run()
        assert done.code == 0 and "the card says 2 slots, the server 3" in done.err
        [session] = lab.job().sessions()
        assert (session["slots"], session["slots_source"]) == (2, "start script")


def test_model_that_is_not_served_is_refused_with_the_nearest_name(lab: Lab) -> None:
    """Before the first request; exit 2."""
    lab.card["server"]["model"] = "test-modell"
    refused = lab.run()
    assert refused.code == 2
    assert "'test-modell' is not served" in refused.err
    assert "did you mean 'test-model'?" in refused.err
    assert lab.requests() == 0


@pytest.mark.parametrize("name", ["second-name", "test-model.gguf", "test-model"])
def test_model_may_be_named_by_alias_path_or_stem(tmp_path: Path, name: str) -> None:
    """The name that the server lists is the one that is sent."""
    options: dict[str, Any] = {"model": "/models/test-model.gguf", "require_model": True}
    with running(slots=2, dialect="llama.cpp", aliases=["second-name"], **options) as server:
        lab = Lab(tmp_path, server).list_of(2)
        lab.card["server"] |= {"dialect": "llama.cpp", "model": name}
        assert lab.run().code == 0
        sent = {record["body"]["model"] for record in lab.asked()}
        assert sent == {"second-name" if name == "second-name" else "/models/test-model.gguf"}


def test_llama_cpp_requests_turn_the_prompt_cache_off(tmp_path: Path) -> None:
    """`cache_prompt: false` there, a fresh salt elsewhere; both as the contract says."""
    with running(slots=2, dialect="llama.cpp") as server:
        lab = Lab(tmp_path, server).list_of(3)
        lab.card["server"]["dialect"] = "llama.cpp"
        assert lab.run().code == 0
        for record in lab.asked():
            assert record["body"]["cache_prompt"] is False and "cache_salt" not in record["body"]
        conditions = lab.job().contract()["conditions"]
        assert conditions["request"]["cache_prompt"] is False
        assert "cache_prompt false" in conditions["prompt_cache"]
        assert lab.job().sessions()[0]["server"]["server_defaults"]["temperature"] == 0.8


def test_key_variable_that_is_not_set_is_refused(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit 2 that names the variable; nothing is sent."""
    monkeypatch.delenv("QUALEVAL_TEST_KEY", raising=False)
    lab.card["server"]["api_key_env"] = "QUALEVAL_TEST_KEY"
    refused = lab.run()
    assert refused.code == 2 and "QUALEVAL_TEST_KEY is not set" in refused.err
    assert lab.requests() == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--parts", "gqpa"], "did you mean 'gpqa'?"),
        (["--parts", ","], "names no part"),
        (["--job", "../elsewhere"], "no name of a folder"),
        (["--limit", "0"], "limit"),
        (["--schedule", "fast"], "schedule"),
    ],
)
def test_option_that_cannot_be_used_is_refused(lab: Lab, options: list[str], said: str) -> None:
    """Exit 2, the option, nothing sent and nothing written."""
    parts = None if "--parts" in options else "mmlupro"
    refused = lab.run(*options, parts=parts)
    assert refused.code == 2 and said in refused.err
    assert lab.requests() == 0 and not (lab.folder / "runs").exists()


def test_version_that_a_server_does_not_tell_is_read_from_the_file_that_the_card_names(
    tmp_path: Path,
) -> None:
    with running(slots=2, dialect="openai") as server:
        lab = Lab(tmp_path, server).list_of(2)
        lab.card["server"]["engine_version_file"] = "version.txt"
        refused = lab.run()
        assert refused.code == 2 and "server.engine_version_file: " in refused.err
        assert "version.txt cannot be read: No such file" in refused.err
        assert not (lab.folder / "runs").exists()
        for empty in ("\n", "x" * 1000):
            (lab.folder / "version.txt").write_text(empty)
            assert "does not begin with a version" in lab.run().err
        (lab.folder / "version.txt").write_bytes(b"\xff\xfe")
        assert "version.txt cannot be read: is not UTF-8 text" in lab.run().err
        (lab.folder / "version.txt").write_text("vLLM 0.11.2+ours\nbuilt on monday\n")
        assert lab.run().code == 0
    [session] = lab.job().sessions()
    assert session["server"]["engine_version"] == "vLLM 0.11.2+ours (from version.txt)"


def test_session_records_who_served(lab: Lab) -> None:
    """Identity of the server, so that a reader can tell two starts apart."""
    lab.card["setup"] = {"hardware": "two cores", "engine": {"name": "vLLM"}}
    assert lab.run().code == 0
    [session] = lab.job().sessions()
    server = session["server"]
    assert "test-model" in server["models"] and server["engine_version"] == "vLLM 0.11.2"
    assert server["process_started"].endswith("Z")
    assert session["setup"]["hardware"] == "two cores"
    assert session["started"] <= session["ended"]
    assert lab.job().summary()["server_starts"] == [server["process_started"]]
