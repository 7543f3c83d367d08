"""The newest rows of a data set: chosen, locked, proved, from files that are never held."""

import base64
import dataclasses
import gzip
import itertools
import json
import os
import pickle
import subprocess
import sys
import zlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import hub
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from qualeval import cli, lists, newest_list, streamed_rows
from qualeval.errors import ListError
from qualeval.lists import describe, drawn_pin, import_rows, load_list, pin_of, proof
from qualeval.newest_list import choose, lock_path
from qualeval.pins import Lock, list_sha256, origin_path, rows_path
from qualeval.records import sha256_of
from qualeval.streamed_rows import Place, columns_of, read, scan
from qualeval.tasks import TASKS, lcb
from qualeval.tasks.lcb_rows import LEFT_OUT, canonical

TASK = dataclasses.replace(lcb.TASK, draw=dataclasses.replace(lcb.DRAW, size=3))
"""The part with a list of three."""

SOURCE = lcb.SOURCE
DATASET = "livecodebench/code_generation_lite"


def made(id: str, date: str, **changes: Any) -> dict[str, Any]:
    """A made-up problem as published, with one public and one hidden test."""
    hidden = json.dumps([{"input": f"{id}\n", "output": "2\n", "testtype": "stdin"}])
    return {
        "question_title": f"Title {id}",
        "question_content": f"Problem {id}\u2028é?",
        "platform": "atcoder",
        "question_id": id,
        "contest_id": "abc",
        "contest_date": date,
        "starter_code": "",
        "difficulty": "easy",
        "public_test_cases": json.dumps([{"input": "1", "output": "1", "testtype": "stdin"}]),
        "private_test_cases": base64.b64encode(zlib.compress(pickle.dumps(hidden))).decode(),
        "metadata": "{}",
    } | changes


ROWS = [
    made("b", "2025-04-05T00:00:00"),
    made("a", "2025-04-05T00:00:00", platform="leetcode", difficulty="hard"),
    made("c", "2025-03-01T18:30:00"),
    made("d", "2025-03-01T00:00:00"),
    made("e", "2024-12-31T23:59:59"),
]
NEWEST = ["a", "b", "c"]


def jsonl(rows: Sequence[Mapping[str, Any]]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def write(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(jsonl(rows))
    return path


def write_parquet(path: Path, rows: Sequence[Mapping[str, Any]], **settings: Any) -> Path:
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(list(rows)), path, **settings)
    return path


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty list cache, and a part whose list is the three newest rows."""
    monkeypatch.setenv("QUALEVAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(lists, "TASKS", {**TASKS, "lcb": TASK})
    return tmp_path / "cache" / "lists"


def imported(path: Path) -> list[str]:
    """Ids of the list after an import."""
    import_rows(SOURCE, path)
    return [str(item.id) for item in load_list(TASK, "official", Path()).items]


def refused(path: Path) -> str:
    with pytest.raises(ListError) as caught:
        import_rows(SOURCE, path)
    return str(caught.value)


def not_loaded() -> str:
    with pytest.raises(ListError) as caught:
        load_list(TASK, "official", Path())
    return str(caught.value)


# Choosing


def test_newest_come_by_date_and_then_by_id(cache: Path, tmp_path: Path) -> None:
    assert imported(write(tmp_path / "test.jsonl", ROWS)) == NEWEST


def test_newest_is_the_same_for_all_orders(tmp_path: Path) -> None:
    """lcb-27: one of two rows of one date is taken by its id, whatever the order of rows."""
    draw = dataclasses.replace(lcb.DRAW, size=1)
    for number, order in enumerate(itertools.permutations(ROWS[:3])):
        path = write(tmp_path / f"{number}.jsonl", order)
        assert choose(SOURCE, draw, [path]).ids == ("a",)


FIRST, LAST = datetime.fromisoformat("2023-01-01"), datetime.fromisoformat("2025-12-31")
dates = st.datetimes(FIRST, LAST).map(datetime.isoformat)
pools = st.lists(
    st.tuples(st.text("ab1_", min_size=1, max_size=3), st.one_of(dates, st.just("2025-01-01"))),
    min_size=3,
    max_size=12,
    unique_by=lambda pair: pair[0],
)


@settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(pools, st.data())
def test_choice_does_not_depend_on_rows_files_or_copies(
    tmp_path: Path, pool: list[tuple[str, str]], data: Any
) -> None:
    rows = [made(id, date) for id, date in pool]
    by_hand = sorted(pool, key=lambda pair: pair[0])
    by_hand.sort(key=lambda pair: datetime.fromisoformat(pair[1]), reverse=True)
    again = data.draw(st.lists(st.sampled_from(rows), max_size=3))
    order = data.draw(st.permutations(rows + again))
    cut = data.draw(st.integers(0, len(order)))
    files = [write(tmp_path / "1.jsonl", order[:cut]), write(tmp_path / "2.jsonl", order[cut:])]
    chosen = choose(SOURCE, TASK.draw, files)
    assert chosen.ids == tuple(id for id, _ in by_hand[:3])
    assert (chosen.dates[1], chosen.rows) == (by_hand[0][1], len(rows))


def test_problems_that_no_judge_can_decide_are_passed_over(cache: Path, tmp_path: Path) -> None:
    other = [made(id, "2025-05-01T00:00:00") for id in LEFT_OUT]
    assert imported(write(tmp_path / "test.jsonl", [*other, *ROWS])) == NEWEST
    lock = pin_of("lcb")
    assert (sum(lock.left_out.values()), lock.pool) == (len(LEFT_OUT), len(ROWS))


def test_problem_that_is_there_twice_counts_once(cache: Path, tmp_path: Path) -> None:
    """Two copies of the data in one folder, one of them as Parquet."""
    write(tmp_path / "in" / "test.jsonl", ROWS + ROWS[:2])
    write_parquet(tmp_path / "in" / "copy.parquet", ROWS)
    assert imported(tmp_path / "in") == NEWEST
    assert pin_of("lcb").pool == 5


def test_problem_that_is_there_in_two_versions_is_refused(cache: Path, tmp_path: Path) -> None:
    other = [*ROWS, made("e", "2024-12-31T23:59:59", question_content="Another?")]
    path = write(tmp_path / "test.jsonl", other)
    assert refused(path) == f"{path}:6: question_id e is not what it is at {path}:5"
    assert not rows_path(SOURCE).exists()


@pytest.mark.parametrize(
    "date", [None, 7, "", "yesterday", "2025-13-01", "2025-01-01T00:00:00Z", "2025-01-01T00+02:00"]
)
def test_date_that_cannot_be_compared_is_named_by_its_line(
    cache: Path, tmp_path: Path, date: object
) -> None:
    path = write(tmp_path / "test.jsonl", [*ROWS, made("f", "") | {"contest_date": date}])
    assert refused(path).startswith(f"{path}:6: field 'contest_date' must be an ISO date")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"{", "is not JSON"),
        (b"\xff", "is not UTF-8"),
        (b"[]", "is no JSON object"),
        (b'{"question_id": null}', "field 'question_id' must be"),
        (b'{"question_id": true, "contest_date": "2025-01-01"}', "field 'question_id' must be"),
        (b'{"question_id": "x"}', "field 'contest_date' must be"),
    ],
)
def test_line_that_is_no_row_is_named(cache: Path, tmp_path: Path, line: bytes, words: str) -> None:
    path = tmp_path / "test.jsonl"
    path.write_bytes(jsonl(ROWS) + b"\n" + line)
    assert refused(path).startswith(f"{path}:7: {words}")


def test_line_without_end_is_refused(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streamed_rows, "MAX_LINE_BYTES", 2 * 1024**2)
    path = tmp_path / "test.jsonl"
    path.write_bytes(jsonl(ROWS) + b" " * 3 * 1024**2)
    assert refused(path) == f"{path}:6: is longer than 2 MiB"


def test_too_few_problems_are_refused(cache: Path, tmp_path: Path) -> None:
    path = write(tmp_path / "test.jsonl", [ROWS[0], made("abc337_e", "2025-01-01"), ROWS[1]])
    assert refused(path) == (
        f"{path}: the list is the 3 newest rows of {DATASET}, and 2 are here to choose from"
    )
    write(tmp_path / "in" / "a.jsonl", ROWS[:1])
    write(tmp_path / "in" / "b.jsonl", ROWS[:1])
    assert refused(tmp_path / "in").endswith("and 1 is here to choose from")


def test_chosen_problem_is_looked_at_in_full(cache: Path, tmp_path: Path) -> None:
    """lcb-13: one without tests is refused when the list is taken, not when it is graded."""
    path = tmp_path / "test.jsonl"
    write(path, [*ROWS, made("f", "2025-06-01", public_test_cases="[]", private_test_cases="[]")])
    assert refused(path).startswith(f"{path}:6: fields 'public_test_cases', 'private_test_cases'")
    write(path, [*ROWS, made("f", "2025-06-01", private_test_cases=None)])
    assert refused(path) == f"{path}:6: column 'private_test_cases' is null"
    write(path, [*ROWS, made("f", "2025-06-01", question_content="")])
    assert refused(path) == f"{path}:6: field 'question_content' is empty"
    write(path, [*ROWS, made("", "2025-06-01")])
    assert refused(path) == f"{path}:6: field 'question_id' is empty"
    lacking = made("f", "2025-06-01")
    del lacking["private_test_cases"]
    write(path, [*ROWS, lacking])
    assert refused(path) == f"{path}:6: lacks column 'private_test_cases'"
    write(path, [*ROWS, made("f", "2024-01-01", private_test_cases="not looked at")])
    assert imported(path) == NEWEST


def test_columns_that_a_copy_may_lack_are_null(cache: Path, tmp_path: Path) -> None:
    few = [{n: v for n, v in row.items() if n not in ("contest_id", "metadata")} for row in ROWS]
    assert imported(write(tmp_path / "test.jsonl", few)) == NEWEST


# Files and folders


def test_folder_is_one_set_of_rows(cache: Path, tmp_path: Path) -> None:
    """Tables of another kind, hidden files and other formats are passed over."""
    folder = tmp_path / "in"
    write(folder / "test.jsonl", ROWS[:2])
    write(folder / "deep" / "test2.jsonl", ROWS[2:])
    write(folder / "replies.jsonl", [{"id": "a", "text": "?"}])
    (folder / "._test.jsonl").write_bytes(b"\0\5")
    (folder / "empty.jsonl").write_bytes(b"")
    (folder / "notes.txt").write_bytes(b"\xff")
    (folder / "folder.jsonl").mkdir()
    write_parquet(folder / "other.parquet", [{"x": 1}])
    assert imported(folder) == NEWEST
    lock = pin_of("lcb")
    assert isinstance(lock, Lock)
    assert lock.release == "5 problems"


def test_import_of_nothing_says_what_is_read(cache: Path, tmp_path: Path) -> None:
    (tmp_path / "x.zip").write_bytes(b"PK")
    (tmp_path / "in").mkdir()
    assert refused(tmp_path / "x.zip") == f"{tmp_path}/x.zip: is none of .jsonl, .parquet"
    assert refused(tmp_path / "in") == f"{tmp_path}/in: holds no file of .jsonl, .parquet"
    assert refused(tmp_path / "no") == f"{tmp_path}/no: there is no such file or folder"


def test_columns_that_no_file_has_are_named(cache: Path, tmp_path: Path) -> None:
    """A file of something else, or a copy whose columns were renamed."""
    ten = "'question_id', 'contest_date', 'question_content', 'platform', 'difficulty', "
    ten += "'public_test_cases', 'private_test_cases'"
    replies = [{"id": 1}]
    assert refused(write(tmp_path / "replies.jsonl", replies)) == (
        f"{tmp_path}/replies.jsonl: the list is the 3 newest rows of {DATASET}, and 0 are here to "
        f"choose from: no first row has {ten}"
    )
    renamed = [{"id" if n == "question_id" else n: v for n, v in r.items()} for r in ROWS]
    for path in (
        write(tmp_path / "renamed.jsonl", renamed),
        write_parquet(tmp_path / "renamed.parquet", renamed),
    ):
        assert refused(path).endswith(" 0 are here to choose from: no first row has 'question_id'")
    undated = [{name: v for name, v in row.items() if name != "contest_date"} for row in ROWS]
    write(tmp_path / "in" / "renamed.jsonl", renamed)
    write(tmp_path / "in" / "undated.jsonl", undated)
    assert refused(tmp_path / "in").endswith(
        ": no first row has both 'question_id' and 'contest_date'"
    )
    assert refused(write(tmp_path / "empty.jsonl", [])).endswith(": no row is there")
    with pytest.raises(ListError, match="cannot be read as Parquet"):
        columns_of(tmp_path / "no.parquet")


def test_half_and_packed_files_say_what_next(cache: Path, tmp_path: Path) -> None:
    """A download that broke off, and one that was never unpacked."""
    half, whole = tmp_path / "half.jsonl", jsonl(ROWS)
    half.write_bytes(whole[:-9])
    assert refused(half) == (
        f"{half}:5: is not JSON; the file ends inside this line: an incomplete download? "
        "take it anew"
    )
    half.write_bytes(jsonl(ROWS[:1]) + '{"question_content": "é'.encode()[:-1])
    assert refused(half).startswith(f"{half}:2: is not UTF-8; the file ends inside this line")
    packed = tmp_path / "packed.jsonl"
    packed.write_bytes(gzip.compress(whole))
    assert refused(packed).endswith(" is not UTF-8; the file is packed with gzip: unpack it first")
    (tmp_path / "x.jsonl").write_bytes(b"{\n" + whole)
    assert refused(tmp_path / "x.jsonl") == f"{tmp_path}/x.jsonl:1: is not JSON"


def test_parquet_copy_makes_the_same_list(cache: Path, tmp_path: Path) -> None:
    """In groups of two rows, and with the date stored as a moment."""
    assert imported(write(tmp_path / "test.jsonl", ROWS)) == NEWEST
    first = rows_path(SOURCE).read_bytes()
    rows = [row | {"contest_date": datetime.fromisoformat(row["contest_date"])} for row in ROWS]
    write_parquet(tmp_path / "x.parquet", rows, row_group_size=2)
    assert imported(tmp_path / "x.parquet") == NEWEST
    kept = [sorted(path.split(b"\n")) for path in (first, rows_path(SOURCE).read_bytes())]
    assert kept[0] == kept[1]


def test_damaged_parquet_is_named(cache: Path, tmp_path: Path) -> None:
    (tmp_path / "x.parquet").write_bytes(b"PAR1")
    assert refused(tmp_path / "x.parquet").startswith(
        f"{tmp_path}/x.parquet: cannot be read as Parquet: "
    )


def test_bytes_in_parquet_are_no_texts(cache: Path, tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "x.parquet", [row | {"contest_id": b"x"} for row in ROWS])
    assert f"{path}:" in refused(path)
    assert "not JSON serializable" in refused(path)


def test_row_is_found_again_only_where_it_was(tmp_path: Path) -> None:
    """A file that is changed between the two readings is not half read."""
    path = write(tmp_path / "test.jsonl", ROWS)
    places = [place for place, _ in scan(path, ("question_id",))]
    assert [row["question_id"] for _, row in read(places[1:3], ("question_id",))] == ["a", "c"]
    path.write_bytes(b"")
    with pytest.raises(ListError, match="changed while it was read"):
        list(read(places, ("question_id",)))
    table = write_parquet(tmp_path / "x.parquet", ROWS)
    with pytest.raises(ListError, match="changed while it was read"):
        list(read([Place(table, 99, 0)], ("question_id",)))
    for path in (tmp_path / "no.jsonl", tmp_path / "no.parquet"):
        with pytest.raises(ListError, match="cannot be read"):
            list(read([Place(path, 1, 0)], ()))
        with pytest.raises(ListError, match="cannot be read"):
            list(scan(path, ()))


def test_rows_that_moved_between_the_two_readings_are_not_taken(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "test.jsonl", ROWS)
    wrong = dataclasses.replace(choose(SOURCE, TASK.draw, [path]), ids=("a", "b", "z"))
    monkeypatch.setattr(newest_list, "choose", lambda *_: wrong)
    assert refused(path) == f"{path}: changed while it was read; try again"
    assert [p.name for p in cache.iterdir()] == []


# The lock


def test_first_import_locks_the_list(cache: Path, tmp_path: Path) -> None:
    import_rows(SOURCE, write(tmp_path / "test6.jsonl", ROWS))
    lock = Lock.model_validate_json((cache / "lcb.lock.json").read_bytes())
    by_id = {row["question_id"]: row for row in ROWS}
    assert [(row.id, row.stratum) for row in lock.rows] == [
        ("a", "hard"),
        ("b", "easy"),
        ("c", "easy"),
    ]
    assert [row.sha256 for row in lock.rows] == [sha256_of(canonical(by_id[i])) for i in NEWEST]
    assert lock.sha256 == list_sha256(row.sha256 for row in lock.rows)
    assert (lock.list, lock.dataset, lock.revision) == ("qualeval/lcb-3/v1", DATASET, None)
    assert (lock.release, lock.tests) == ("5 problems", 6)
    assert lock.dates == ("2025-03-01T18:30:00", "2025-04-05T00:00:00")
    assert lock.platforms == {"atcoder": 2, "leetcode": 1}
    assert sorted(p.name for p in cache.iterdir()) == [
        *("lcb.jsonl", "lcb.lock.json", "lcb.origin.json")
    ]
    assert "Problem" not in (cache / "lcb.lock.json").read_text()


def test_list_names_what_the_contract_wants(cache: Path, tmp_path: Path) -> None:
    import_rows(SOURCE, write(tmp_path / "test6.jsonl", ROWS))
    found = load_list(TASK, "official", Path())
    assert (found.id, found.kind, found.sha256) == (
        "qualeval/lcb-3/v1",
        "official",
        pin_of("lcb").sha256,
    )
    assert found.release == "5 problems"
    assert found.dates == ("2025-03-01T18:30:00", "2025-04-05T00:00:00")
    assert (found.origin["from"], found.origin["file"]) == ("file", "test6.jsonl")


@pytest.mark.parametrize(
    ("names", "rows", "told"),
    [
        (["test6.jsonl"], 175, "175 problems"),
        (["test.jsonl", "test6.jsonl"], 1055, "release_v6 (1,055 problems)"),
        (["all.parquet"], 1055, "release_v6 (1,055 problems)"),
        (["test.jsonl"], 400, "release_v1 (400 problems)"),
    ],
)
def test_release_is_the_same_whatever_its_files_are_called(
    names: list[str], rows: int, told: str
) -> None:
    files = tuple(Path("x") / name for name in names)
    chosen = newest_list.Chosen((), (), files, rows, rows, {}, ("", ""))
    assert newest_list._release(lcb.DRAW, chosen) == told


def test_same_list_is_taken_again_from_other_files(cache: Path, tmp_path: Path) -> None:
    """Older problems more or fewer are the same list; the lock stays as it was."""
    import_rows(SOURCE, write(tmp_path / "test.jsonl", ROWS))
    lock = lock_path(SOURCE).read_bytes()
    rows_path(SOURCE).unlink()
    assert imported(write(tmp_path / "more.jsonl", [*ROWS, made("z", "2023-01-01")])) == NEWEST
    assert lock_path(SOURCE).read_bytes() == lock


OTHERS: dict[str, tuple[list[dict[str, Any]], str]] = {
    "a newer one": (
        [*ROWS, made("f", "2025-06-01T00:00:00")],
        "dates 2025-04-05 to 2025-06-01, are others: f stands where a is locked.",
    ),
    "one is gone": (
        ROWS[1:],
        "dates 2025-03-01 to 2025-04-05, are others: c stands where b is locked.",
    ),
    "another text": (
        [ROWS[0] | {"question_content": "?"}, *ROWS[1:]],
        "dates 2025-03-01 to 2025-04-05, are others: b has another text or other tests.",
    ),
    "another test": (
        [*ROWS[:2], ROWS[2] | {"private_test_cases": "[]"}, *ROWS[3:]],
        "dates 2025-03-01 to 2025-04-05, are others: c has another text or other tests.",
    ),
}


@pytest.mark.parametrize("case", OTHERS)
def test_other_newest_rows_are_refused_and_nothing_is_changed(
    cache: Path, tmp_path: Path, case: str
) -> None:
    """lcb-27: an id, both spans of dates, and how to go on."""
    import_rows(SOURCE, write(tmp_path / "test.jsonl", ROWS))
    before = {path.name: path.read_bytes() for path in cache.iterdir()}
    rows, words = OTHERS[case]
    message = refused(write(tmp_path / "other.jsonl", rows))
    assert message.startswith(
        "list 'qualeval/lcb-3/v1' is locked to 5 problems, dates 2025-03-01 to "
        f"2025-04-05; the newest rows here, {len(rows)} problems, "
    )
    assert words in message
    assert f"remove {lock_path(SOURCE)} and run this again" in message
    assert {path.name: path.read_bytes() for path in cache.iterdir()} == before
    lock_path(SOURCE).unlink()
    import_rows(SOURCE, tmp_path / "other.jsonl")
    assert load_list(TASK, "official", Path()).sha256 == pin_of("lcb").sha256


def test_cached_rows_are_proved_at_every_load(cache: Path, tmp_path: Path) -> None:
    """lcb-24: a warm cache is never believed; its text is not told."""
    import_rows(SOURCE, write(tmp_path / "test.jsonl", ROWS))
    kept = rows_path(SOURCE).read_bytes()
    rows_path(SOURCE).write_bytes(kept.replace(b"Problem c", b"Problem C"))
    message = not_loaded()
    assert "row c differs from the pinned one of list 'qualeval/lcb-3/v1'" in message
    assert "`qualeval lists fetch lcb`, or `qualeval lists import lcb FILE_OR_FOLDER`" in message
    assert "Problem" not in message
    rows_path(SOURCE).write_bytes(kept.split(b"\n", 1)[1])
    assert "is missing" in not_loaded()
    rows_path(SOURCE).write_bytes(kept[:-40])
    assert "lcb.jsonl:3: is not JSON" in not_loaded()


def test_stratum_of_a_cached_row_is_proved(cache: Path, tmp_path: Path) -> None:
    import_rows(SOURCE, write(tmp_path / "test.jsonl", ROWS))
    kept = rows_path(SOURCE).read_bytes()
    rows_path(SOURCE).write_bytes(kept.replace(b'"hard"', b'"easy"'))
    assert "row a differs" in not_loaded()


def test_missing_list_says_the_three_ways(cache: Path) -> None:
    """Gigabytes are not downloaded because a run was started."""
    assert not_loaded() == (
        f"list 'qualeval/lcb-3/v1' is not on this machine ({cache}/lcb.jsonl); `qualeval lists "
        "fetch lcb`, or `qualeval lists import lcb FILE_OR_FOLDER`; to try things out without it: "
        "`--lists sample`"
    )


def damaged(lock: bytes, **changes: Any) -> bytes:
    return json.dumps(json.loads(lock) | changes).encode()


def test_cache_without_a_whole_lock_is_not_used(cache: Path, tmp_path: Path) -> None:
    path = write(tmp_path / "test.jsonl", ROWS)
    import_rows(SOURCE, path)
    lock = lock_path(SOURCE).read_bytes()
    for data, words in (
        (lock[:-9], "lcb.lock.json: is damaged; remove it, and take the list anew: `qualeval"),
        (damaged(lock, rows=[]), "lcb.lock.json: is damaged: its hashes do not make its sha256; "),
        (damaged(lock, sha256="0" * 64), "is damaged: its hashes do not make its sha256; remove"),
        (damaged(lock, list="qualeval/lcb-40/v0"), "is of list 'qualeval/lcb-40/v0', not "),
    ):
        lock_path(SOURCE).write_bytes(data)
        assert words in not_loaded()
        assert words in refused(path)
    lock_path(SOURCE).unlink()
    assert "lcb.lock.json: there is no such file; `qualeval lists fetch lcb`, or" in not_loaded()
    lock_path(SOURCE).mkdir()
    assert "lcb.lock.json: cannot be read: Is a directory" in not_loaded()
    lock_path(SOURCE).rmdir()
    assert imported(path) == NEWEST
    assert lock_path(SOURCE).read_bytes() == lock


def test_lock_of_a_list_that_is_not_here_is_read_without_it(cache: Path, tmp_path: Path) -> None:
    import_rows(SOURCE, write(tmp_path / "test.jsonl", ROWS))
    rows_path(SOURCE).unlink()
    origin_path(SOURCE).unlink()
    assert [row.id for row in pin_of("lcb").rows] == NEWEST
    assert "is not on this machine" in not_loaded()


def test_cache_that_cannot_be_written_is_told(tmp_path: Path, cache: Path) -> None:
    cache.parent.write_bytes(b"a file in the way")
    message = refused(write(tmp_path / "test.jsonl", ROWS))
    assert message == f"{cache}/lcb.jsonl: cannot be written: Not a directory"


def test_origin_that_cannot_be_read_is_unknown(cache: Path, tmp_path: Path) -> None:
    import_rows(SOURCE, write(tmp_path / "test.jsonl", ROWS))
    origin_path(SOURCE).write_bytes(b"{")
    assert load_list(TASK, "official", Path()).origin == {"from": "unknown"}


def test_list_has_no_pin_that_could_be_shipped(cache: Path, tmp_path: Path) -> None:
    with pytest.raises(ListError, match="part 'lcb' has no pin to ship"):
        drawn_pin(TASK, tmp_path)


# Showing


def test_list_that_is_not_here_is_described(cache: Path) -> None:
    assert describe(TASK) == [
        "list      qualeval/lcb-3/v1, 3 items; locked once it is here",
        f"drawn     the 3 newest rows of {DATASET} by contest_date",
        f"here      no ({cache}/lcb.jsonl); qualeval lists fetch lcb, or: "
        "qualeval lists import lcb FILE_OR_FOLDER",
    ]


def test_list_that_is_here_is_described_without_its_text(cache: Path, tmp_path: Path) -> None:
    extra = made("abc337_e", "2025-05-01T00:00:00")
    import_rows(SOURCE, write(tmp_path / "test6.jsonl", [*ROWS, extra]))
    lines = describe(TASK)
    assert lines == [
        f"list      qualeval/lcb-3/v1, 3 items, sha256 {pin_of('lcb').sha256}",
        f"drawn     the 3 newest rows of {DATASET} by contest_date, then by id, out of 5",
        "release   6 problems, revision not known",
        "dates     2025-03-01T18:30:00 to 2025-04-05T00:00:00",
        "left out  0 several answers are right, and the tests know one, "
        "1 the program talks with a judge, 0 the tests are wrong",
        "platforms atcoder 2, leetcode 1",
        "strata    easy 2, hard 1",
        "tests     6",
        f"lock      {cache}/lcb.lock.json",
        f"here      yes, every row proved: {cache}/lcb.jsonl",
    ]
    rows_path(SOURCE).unlink()
    assert describe(TASK)[:-1] == lines[:-1]
    assert describe(TASK)[-1].startswith(f"here      no ({cache}/lcb.jsonl); qualeval lists fetch")


def test_commands_show_and_import(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cli, "_task", lambda part: TASK)
    path = write(tmp_path / "test.jsonl", ROWS)

    def call(*words: str) -> tuple[int, str]:
        ended = CliRunner().invoke(cli.app, ["lists", *words])
        return ended.exit_code, ended.output

    code, text = call("show", "lcb")
    assert (code, "qualeval lists fetch lcb" in text) == (0, True)
    code, text = call("import", "lcb", str(path))
    assert (code, text) == (0, f"wrote {cache}/lcb.jsonl; {proof(TASK)}\n")
    assert proof(TASK) == (
        "the 3 newest rows of 5 problems, dates 2025-03-01 to 2025-04-05, locked in lcb.lock.json"
    )
    code, text = call("import", "lcb", str(write(tmp_path / "x.jsonl", ROWS[1:])))
    assert code == 2
    code, text = call("show", "lcb")
    assert (code, "every row proved" in text) == (0, True)


# From the hub

PROGRAM = """
import dataclasses, json, sys
from pathlib import Path
from qualeval import lists
from qualeval.errors import ListError
from qualeval.tasks import lcb
task = dataclasses.replace(lcb.TASK, draw=dataclasses.replace(lcb.DRAW, size=3))
lists.TASKS = {**lists.TASKS, "lcb": task}
reply = {}
try:
    lists.fetch(task.source)
    found = lists.load_list(task, "official", Path())
    reply = {"ids": [i.id for i in found.items], "release": found.release}
    reply |= {"origin": dict(found.origin), "revision": lists.pin_of("lcb").revision}
except ListError as error:
    reply["error"] = str(error)
reply["imported"] = sorted({"datasets", "huggingface_hub"} & set(sys.modules))
Path(sys.argv[1]).write_text(json.dumps(reply))
"""


def fetched(folder: Path, url: str) -> dict[str, Any]:
    """What a fresh process with empty caches says of a fetch."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if "proxy" not in name.lower() and not name.startswith(("HF_", "HUGGING", "QUALEVAL"))
    }
    own = {
        "HOME": str(folder),
        "HF_HOME": str(folder / "hf"),
        "HF_HUB_CACHE": str(folder / "hf" / "hub"),
        "QUALEVAL_CACHE": str(folder / "cache"),
        "HF_ENDPOINT": url,
    }
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(folder / "reply.json")],
        env=kept | own,
        capture_output=True,
        timeout=120,
    )
    assert (ended.returncode, ended.stdout, b"Traceback" in ended.stderr) == (0, b"", False)
    reply: dict[str, Any] = json.loads((folder / "reply.json").read_bytes())
    return reply


def repository(*, rows: Sequence[Mapping[str, Any]] = ROWS) -> hub.Repository:
    """As it is published: two files of rows, and a loading script that must not be run."""
    files = {
        ".gitattributes": b"",
        "README.md": b"# LiveCodeBench\n",
        "code_generation_lite.py": b"raise SystemExit('was run')\n",
        "test.jsonl": jsonl(rows[:3]),
        "test2.jsonl": jsonl(rows[3:]),
    }
    return hub.Repository(DATASET, files)


def test_fetch_reads_the_published_files_and_no_program(tmp_path: Path) -> None:
    """lcb-24: the rows of one pinned commit, without `datasets` and without the loading script."""
    with hub.serving(repository()) as server:
        reply = fetched(tmp_path, server.url)
    assert reply == {
        "ids": NEWEST,
        "release": "5 problems",
        "origin": reply["origin"],
        "revision": hub.COMMIT,
        "imported": ["huggingface_hub"],
    }
    assert (reply["origin"]["from"], reply["origin"]["revision"]) == ("hub", hub.COMMIT)
    assert server.files_sent() == ["test.jsonl", "test2.jsonl"]
    assert [r for r in server.requests if "/resolve/" in r and hub.COMMIT not in r] == []


def test_warm_cache_of_another_release_is_not_believed(tmp_path: Path) -> None:
    """lcb-24: the second fetch finds another newest row, and stops."""
    with hub.serving(repository()) as server:
        fetched(tmp_path, server.url)
    newer = dataclasses.replace(
        repository(rows=[*ROWS, made("f", "2025-06-01T00:00:00")]), commit="c0ffee" * 6 + "abcd"
    )
    with hub.serving(newer) as server:
        reply = fetched(tmp_path, server.url)
    assert "f stands where a is locked" in reply["error"]


def test_hub_that_cannot_be_used_is_told_with_the_way_round(tmp_path: Path) -> None:
    with hub.serving(hub.Repository("someone/else", {"x": b""})) as server:
        message = fetched(tmp_path, server.url)["error"]
    first, rest = message.split("\n")
    assert first.startswith("list 'lcb': cannot be fetched from the hub (")
    assert rest == (
        "with a copy at hand: `qualeval lists import lcb FILE_OR_FOLDER` (.jsonl, .parquet); to "
        "try things out without it: `--lists sample`"
    )
    with hub.serving(hub.Repository(DATASET, {"README.md": b""})) as server:
        message = fetched(tmp_path, server.url)["error"]
    assert message.startswith(f"hub:{DATASET}: has no file named test")


# Memory

IMPORT = """
import dataclasses, resource, sys
from pathlib import Path
from qualeval import lists
from qualeval.tasks import lcb
import pyarrow.parquet
lists.TASKS = {**lists.TASKS, "lcb": lcb.TASK}
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
lists.import_rows(lcb.SOURCE, Path(sys.argv[1]))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_import_of_a_large_file_costs_little_memory(tmp_path: Path, kind: str) -> None:
    """150 MB in 300 rows, as published: tests are most of a row, and hard to compress."""
    noise = os.urandom(370_000)
    rows = [
        made(
            f"x{n}",
            f"2025-{1 + n % 12:02d}-{1 + n % 28:02d}T00:00:00",
            private_test_cases=json.dumps(
                [
                    {
                        "input": base64.b64encode(noise).decode() + str(n),
                        "output": "",
                        "testtype": "stdin",
                    }
                ]
            ),
        )
        for n in range(300)
    ]
    path = tmp_path / f"test.{kind}"
    if kind == "jsonl":
        path.write_bytes(jsonl(rows))
    else:
        write_parquet(path, rows, compression="none", use_dictionary=False)
    assert path.stat().st_size > 140 * 1024**2
    ended = subprocess.run(
        [sys.executable, "-c", IMPORT, str(path)],
        env=os.environ | {"QUALEVAL_CACHE": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ended.returncode == 0, ended.stderr
    assert int(ended.stdout) < 40 * 1024  # KiB
    kept = (tmp_path / "cache" / "lists" / "lcb.jsonl").stat().st_size
    assert 15 * 1024**2 < kept < 30 * 1024**2
    path.unlink()
