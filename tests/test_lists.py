"""Lists: how they are drawn and pinned, what a user's file may hold, what an import takes."""

import csv
import errno
import hashlib
import io
import json
import os
import re
import signal
import string
import struct
import subprocess
import sys
import tracemalloc
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qualeval import lists, pins
from qualeval.errors import ListError
from qualeval.graders import letter
from qualeval.lists import (
    draw_key,
    drawn,
    fetch,
    import_rows,
    load_list,
    make_pin,
    pin_of,
    quotas,
)
from qualeval.pins import Pin, PinnedRow, list_sha256
from qualeval.records import sha256_of
from qualeval.tasks import TASKS, gpqa, mmlupro
from qualeval.tasks.base import Draw, Row
from qualeval.tasks.letters import LetterItem

PARTS = [n for n, task in TASKS.items() if task.maker is None and isinstance(task.draw, Draw)]
"""Parts whose list is drawn by hash and pinned as shipped."""
SIZES = {"mmlupro": 400, "gpqa": 198, "ifeval": 200, "think": 30}
LETTERS = string.ascii_uppercase
DOMAINS = ("Biology", "Chemistry", "Physics")

slow_to_draw = settings(suppress_health_check=[HealthCheck.too_slow])

each_part = pytest.mark.parametrize("part", PARTS)


def gpqa_rows(count: int = 36) -> list[dict[str, str]]:
    """Made-up rows in the columns of GPQA; some text is hard on readers."""
    return [
        {
            "Record ID": f"made-up-{n:03d}",
            "Question": f'Question {n}, "quoted",\non two\r\nor three lines\u2028with é?',
            "Correct Answer": f" right {n} ",
            **{f"Incorrect Answer {i}": f"wrong {n}.{i}" for i in (1, 2, 3)},
            "High-level domain": DOMAINS[n % 3],
            "Canary String": "made up",
        }
        for n in range(count)
    ]


def mmlupro_row(id: int, **changes: Any) -> dict[str, Any]:
    """One made-up row in the columns of MMLU-Pro."""
    row = {
        "question_id": id,
        "question": f"Question {id}?",
        "options": [f"option {id}.{i}" for i in range(5)],
        "answer": "C",
        "answer_index": 2,
        "category": ("law", "math")[id % 2],
        "src": "made up",
    }
    return row | changes


# Drawing


counts = st.dictionaries(st.text("abCé ", max_size=3), st.integers(1, 400), min_size=1, max_size=12)
counts_and_size = counts.flatmap(
    lambda found: st.tuples(st.just(found), st.integers(0, sum(found.values())))
)


@slow_to_draw
@given(counts_and_size)
def test_seats_fill_the_list_and_none_is_above_its_count(asked: tuple[dict[str, int], int]) -> None:
    found, size = asked
    seats = quotas(found, size)
    assert sum(seats.values()) == size
    assert [n for n, count in found.items() if not 0 <= seats[n] <= count] == []


@slow_to_draw
@given(counts_and_size)
def test_seats_are_the_exact_share_up_or_down(asked: tuple[dict[str, int], int]) -> None:
    found, size = asked
    seats, total = quotas(found, size), sum(found.values())
    assert [n for n in found if abs(seats[n] * total - size * found[n]) >= total] == []


@slow_to_draw
@given(counts_and_size, st.randoms(use_true_random=False))
def test_seats_do_not_depend_on_the_order_of_strata(
    asked: tuple[dict[str, int], int], random: Any
) -> None:
    found, size = asked
    names = list(found)
    random.shuffle(names)
    assert quotas({name: found[name] for name in names}, size) == quotas(found, size)


def test_equal_remainders_go_by_name() -> None:
    assert quotas({"c": 1, "b": 1, "a": 1}, 2) == {"a": 1, "b": 1, "c": 0}


def test_draw_key_is_the_published_recipe() -> None:
    """The draw can be repeated in any language: sha256 of one short text."""
    recipe = hashlib.sha256(b"qualeval/mmlu-pro/v1/42/3524").hexdigest()
    assert draw_key("mmlu-pro", 3524) == recipe
    assert draw_key("mmlu-pro", "3524") == recipe


pools = st.lists(
    st.tuples(st.integers(0, 10_000), st.sampled_from(DOMAINS)),
    min_size=1,
    max_size=60,
    unique_by=lambda pair: pair[0],
)


def ids_drawn(pool: Sequence[tuple[int, str]], size: int) -> list[tuple[str, int]]:
    rows = [{"Record ID": id, "High-level domain": name} for id, name in pool]
    chosen = drawn(gpqa.SOURCE, Draw("test", size), rows)
    return [(row["High-level domain"], row["Record ID"]) for row in chosen]


@slow_to_draw
@given(pools, st.data())
def test_draw_does_not_depend_on_row_order(pool: list[tuple[int, str]], data: Any) -> None:
    size = data.draw(st.integers(0, len(pool)))
    assert ids_drawn(data.draw(st.permutations(pool)), size) == ids_drawn(pool, size)


@slow_to_draw
@given(pools, st.data())
def test_smaller_draw_is_the_start_of_a_larger_one_in_every_stratum(
    pool: list[tuple[int, str]], data: Any
) -> None:
    larger = data.draw(st.integers(0, len(pool)))
    smaller = data.draw(st.integers(0, larger))
    for name in DOMAINS:
        few = [id for stratum, id in ids_drawn(pool, smaller) if stratum == name]
        many = [id for stratum, id in ids_drawn(pool, larger) if stratum == name]
        shorter = min(len(few), len(many))
        assert few[:shorter] == many[:shorter]


@slow_to_draw
@given(pools)
def test_draw_of_everything_is_everything_by_stratum(pool: list[tuple[int, str]]) -> None:
    chosen = ids_drawn(pool, len(pool))
    assert sorted(chosen) == sorted((name, id) for id, name in pool)
    assert [name for name, _ in chosen] == sorted(name for _, name in pool)


# Cleaning


def left_out(*rows: Row) -> dict[str, int]:
    return {reason: n for reason, n in mmlupro.clean(rows).left_out.items() if n}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"answer": "B"}, "key contradicts itself"),
        ({"answer": "F", "answer_index": 5}, "key contradicts itself"),
        ({"answer": "@", "answer_index": -1}, "key contradicts itself"),
        ({"options": ["N/A", "a", "b", "c"]}, "N/A before the key"),
        ({"options": ["a", "b", "N/A", "c"]}, "N/A before the key"),
        ({"options": ["N/A", "a", "b", "b"]}, "N/A before the key"),
    ],
)
def test_row_without_one_clear_key_is_left_out(change: dict[str, Any], reason: str) -> None:
    assert left_out(mmlupro_row(1), mmlupro_row(2, **change)) == {reason: 1}


def test_padding_behind_the_key_goes_and_no_letter_moves() -> None:
    row = mmlupro_row(1, options=["a", "b", "c", "N/A", "N/A"])
    assert left_out(row) == {}
    item = mmlupro.item(row)
    assert (item.options, item.gold) == (("a", "b", "c"), "C")
    assert item.sha256 == sha256_of(row)


def test_repeated_question_keeps_its_lowest_id() -> None:
    same = mmlupro_row(7)
    other = same | {"question_id": 3, "question": " question  7? ", "category": "other"}
    kept = mmlupro.clean([same, other])
    assert [row["question_id"] for row in kept.rows] == [3]
    assert left_out(same, other) == {"duplicate": 1}


def test_text_that_moves_from_question_to_option_is_no_repetition() -> None:
    one = mmlupro_row(1, question="a b", options=["c", "d", "e"])
    two = mmlupro_row(2, question="a", options=["b c", "d", "e"])
    assert left_out(one, two) == {}


@pytest.mark.parametrize("cell", ["", " \n", None])
def test_gpqa_row_with_an_empty_option_is_left_out(cell: str | None) -> None:
    row = gpqa_rows(1)[0] | {"Incorrect Answer 2": cell}
    assert gpqa.clean([row]).left_out == {"empty option": 1}
    with pytest.raises(ValueError, match="an option is empty"):
        gpqa.item(row)


# Pins


@each_part
def test_pin_names_its_list_and_recipe(part: str) -> None:
    pin, task = pin_of(part), TASKS[part]
    assert isinstance(pin, Pin) and isinstance(task.draw, Draw)
    assert pin.list == f"qualeval/{part}-{SIZES[part]}/v1"
    assert (pin.dataset, pin.config) == (task.source.dataset, task.source.config)
    assert (pin.split, pin.namespace) == (task.source.split, task.draw.namespace)
    assert pin.seed == 42


@each_part
def test_pin_has_its_size_and_every_id_once(part: str) -> None:
    ids = [str(row.id) for row in pin_of(part).rows]
    assert (len(ids), len(set(ids))) == (SIZES[part], SIZES[part])


@each_part
def test_list_hash_is_that_of_the_row_hashes_in_order(part: str) -> None:
    pin = pin_of(part)
    lines = b"".join(row.sha256.encode() + b"\n" for row in pin.rows)
    assert pin.sha256 == hashlib.sha256(lines).hexdigest()
    assert pin.sha256 == list_sha256(row.sha256 for row in pin.rows)


@each_part
def test_pin_holds_hashes_and_no_text(part: str) -> None:
    stored = json.loads((Path(__file__).parents[1] / "tasks/lists" / f"{part}.json").read_bytes())
    assert {name for row in stored["rows"] for name in row} == {"id", "stratum", "sha256"}
    assert [r for r in pin_of(part).rows if not re.fullmatch("[0-9a-f]{64}", r.sha256)] == []
    assert [r for r in pin_of(part).rows if not re.fullmatch(r"rec\w{14}|\d+", str(r.id))] == []


@each_part
def test_pinned_rows_stand_by_stratum_and_then_in_draw_order(part: str) -> None:
    pin = pin_of(part)
    assert isinstance(pin, Pin)
    namespace = pin.namespace

    def place(row: PinnedRow) -> tuple[str, str]:
        return row.stratum, draw_key(namespace, row.id)

    assert [row.id for row in pin.rows] == [row.id for row in sorted(pin.rows, key=place)]


def test_strata_of_the_pins() -> None:
    strata = {part: dict(Counter(r.stratum for r in pin_of(part).rows)) for part in PARTS}
    assert strata["gpqa"] == {"Biology": 19, "Chemistry": 93, "Physics": 86}
    assert strata["think"] == {"Biology": 3, "Chemistry": 14, "Physics": 13}
    assert strata["mmlupro"] == {
        **{"math": 45, "physics": 44, "chemistry": 38, "law": 35, "engineering": 33, "other": 31},
        **{"economics": 28, "business": 27, "psychology": 27, "health": 24, "biology": 24},
        **{"philosophy": 17, "computer science": 14, "history": 13},
    }


def test_thinking_questions_are_pinned_as_in_the_whole_list() -> None:
    whole = set(pin_of("gpqa").rows)
    assert [row.id for row in pin_of("think").rows if row not in whole] == []


def test_row_hash_does_not_depend_on_the_order_of_columns() -> None:
    row = mmlupro_row(1)
    turned = dict(reversed(row.items()))
    assert mmlupro.item(turned).sha256 == mmlupro.item(row).sha256
    cells = gpqa_rows(1)[0]
    assert gpqa.item(dict(reversed(cells.items()))).sha256 == gpqa.item(cells).sha256


# The key of a GPQA row


def test_gpqa_key_is_found_by_place_when_two_options_are_equal() -> None:
    """gpq-02: the correct entry is followed by its slot, never looked up by its text."""
    for n in range(50):
        texts = {"Correct Answer": "4 J ", "Incorrect Answer 1": "4 J"}
        row = gpqa_rows(1)[0] | texts | {"Record ID": f"equal-{n}"}
        item = gpqa.item(row)
        assert item.order is not None
        assert item.gold == LETTERS[item.order.index(0)]
        assert sorted(item.order) == [0, 1, 2, 3]
        assert item.order == gpqa.option_order(f"equal-{n}")


def test_gpqa_text_is_stripped_and_not_changed_inside() -> None:
    """gpq-02: double spaces stay, so options that differ by them stay apart."""
    row = gpqa_rows(1)[0] | {"Correct Answer": " 4 J\n", "Incorrect Answer 1": "4  J [a] "}
    item = gpqa.item(row)
    assert item.order is not None
    by_slot = dict(zip(item.order, item.options, strict=True))
    assert (by_slot[0], by_slot[1]) == ("4 J", "4  J [a]")


def test_gpqa_keys_spread_over_the_letters() -> None:
    """gpq-03: each row has an order of its own, so no letter is right for all."""
    share = Counter(gpqa.item(row).gold for row in gpqa_rows(200))
    assert set(share) == set("ABCD")
    assert [a for a, n in share.items() if not 0.15 <= n / 200 <= 0.35] == []


def test_reply_in_plain_words_is_read_wherever_the_key_lies() -> None:
    """gpq-04: "The answer is C", without a full stop, is C; the key is not always one letter."""
    golds = set()
    for row in gpqa_rows(40):
        item = gpqa.item(row)
        reading = letter.read_letter(f"The answer is {item.gold}", item.options)
        assert reading.letter == item.gold
        golds.add(item.gold)
    assert golds == set("ABCD")


# A user's own file


GOOD = {"id": "a", "question": "Which?", "options": ["x", "y", "z"], "answer": "B"}


def line(**changes: Any) -> str:
    return json.dumps({k: v for k, v in (GOOD | changes).items() if v is not ...})


def own_list(path: Path, content: str | bytes) -> tuple[LetterItem, ...]:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    found = load_list(TASKS["mmlupro"], path.name, path.parent).items
    assert all(isinstance(item, LetterItem) for item in found)
    return found  # type: ignore[return-value]


def complaint(path: Path, content: str | bytes) -> str:
    """What is said about a file, from the place in it on."""
    with pytest.raises(ListError) as caught:
        own_list(path, content)
    return str(caught.value).removeprefix(str(path))


@pytest.fixture
def own(tmp_path: Path) -> Path:
    return tmp_path / "mine.jsonl"


def test_own_list_is_named_after_its_file_and_keeps_its_order(own: Path) -> None:
    own.write_text("\n".join([line(id=2), line(id="b", answer="A"), line(id=1)]))
    found = load_list(TASKS["gpqa"], "mine.jsonl", own.parent)
    assert (found.id, found.kind, dict(found.origin)) == ("file:mine.jsonl", "file", {})
    assert [item.id for item in found.items] == [2, "b", 1]
    assert [item.gold for item in found.items] == ["B", "A", "B"]
    assert found.sha256 == list_sha256(item.sha256 for item in found.items)


def test_options_of_an_own_list_are_never_reordered(own: Path) -> None:
    (item,) = own_list(own, line(options=["z ", "a", " m\n", "a"], answer="D"))
    assert (item.options, item.order, item.gold) == (("z", "a", "m", "a"), None, "D")


def test_other_columns_are_accepted_and_category_is_the_stratum(own: Path) -> None:
    items = own_list(
        own, "\n".join([line(category="law", src={"x": [1]}), line(id="b"), line(id=3, category=4)])
    )
    assert [item.stratum for item in items] == ["law", None, None]


def test_question_id_names_a_row_that_has_no_id(own: Path) -> None:
    items = own_list(own, "\n".join([line(id=..., question_id=7), line(id=8, question_id=9)]))
    assert [item.id for item in items] == [7, 8]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"id": ...}, "field 'id' (or 'question_id') must be a text or a whole number"),
        ({"id": 1.5}, "field 'id' (or 'question_id') must be a text or a whole number"),
        ({"id": True}, "field 'id' (or 'question_id') must be a text or a whole number"),
        ({"question": ...}, "field 'question' must be a text"),
        ({"question": " "}, "field 'question' must be a text"),
        ({"options": ...}, "field 'options' must be a list of 2 to 26 texts"),
        ({"options": "xyz"}, "field 'options' must be a list of 2 to 26 texts"),
        ({"options": ["x"]}, "field 'options' must be a list of 2 to 26 texts"),
        ({"options": ["x"] * 27}, "field 'options' must be a list of 2 to 26 texts"),
        ({"options": ["x", 2]}, "field 'options' holds something that is no text, or an empty one"),
        (
            {"options": ["x", " "]},
            "field 'options' holds something that is no text, or an empty one",
        ),
        ({"answer": ...}, "field 'answer' must be one capital letter from A to C"),
        ({"answer": "D"}, "field 'answer' must be one capital letter from A to C"),
        ({"answer": "b"}, "field 'answer' must be one capital letter from A to C"),
        ({"answer": "AB"}, "field 'answer' must be one capital letter from A to C"),
        ({"answer": ""}, "field 'answer' must be one capital letter from A to C"),
        ({"answer": 1}, "field 'answer' must be one capital letter from A to C"),
        ({"answer_index": 2}, "fields 'answer' and 'answer_index' name different options"),
    ],
)
def test_wrong_field_is_named_with_its_line(own: Path, changes: Any, reason: str) -> None:
    assert complaint(own, line(id="first") + "\n\n" + line(**changes)) == f":3: {reason}"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (line() + "\n" + line(), ":2: id 'a' occurs twice"),
        (line(id=1) + "\n" + line(id=1), ":2: id 1 occurs twice"),
        (line(id=1) + "\n" + line(id="1"), ":2: id '1' occurs twice"),
        (line() + "\n{", ":2: is not JSON"),
        (line() + "\nB", ":2: is not JSON"),
        ("[" * 100_000, ":1: is not JSON"),
        ('{"id": ' + "1" * 5_000 + "}", ":1: is not JSON"),
        (f"[{line()}]", ":1: is no JSON object"),
        (line(question="naïve").encode().replace(b"\\u00ef", b"\xef"), ":1: is not UTF-8"),
        (b'{"id": "\xed\xa0\x80"}', ":1: is not UTF-8"),
        (line().encode("utf-16"), ":1: is not UTF-8"),
        ("", ": holds no question"),
        ("\n \n\r\n", ": holds no question"),
    ],
)
def test_unreadable_content_is_named_with_its_line(own: Path, content: Any, message: str) -> None:
    assert complaint(own, content) == message


def test_list_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ListError) as caught:
        load_list(TASKS["gpqa"], "gone.jsonl", tmp_path)
    assert str(caught.value) == f"{tmp_path}/gone.jsonl: cannot be read: No such file or directory"
    with pytest.raises(ListError) as caught:
        load_list(TASKS["gpqa"], ".", tmp_path)
    assert str(caught.value) == f"{tmp_path}: cannot be read: Is a directory"


def test_line_ends_of_windows_and_a_byte_order_mark_change_nothing(own: Path) -> None:
    plain = own_list(own, line(id=1) + "\n" + line(id=2) + "\n")
    assert own_list(own, line(id=1) + "\r\n" + line(id=2) + "\r\n") == plain
    assert own_list(own, "\ufeff" + line(id=1) + "\n" + line(id=2)) == plain


def test_unusual_line_separators_stay_inside_their_line(own: Path) -> None:
    """Only \\n ends a line: splitlines would cut this one at every other mark."""
    row = GOOD | {"question": "a\u2028b\u2029c\u0085d"}
    (item,) = own_list(own, json.dumps(row, ensure_ascii=False, separators=(",\r", ":")))
    assert item.question == "a\u2028b\u2029c\u0085d"


def test_half_of_a_surrogate_pair_is_kept_and_hashed(own: Path) -> None:
    (item,) = own_list(own, line(question="half \ud83d of a pair"))
    assert item.question == "half \ud83d of a pair"
    assert re.fullmatch("[0-9a-f]{64}", item.sha256)


def test_row_nested_to_any_depth_is_an_item_or_a_clear_error(own: Path) -> None:
    """What a reader can just take apart may be too deep to be written again for its hash."""
    for depth in range(600, 1000):
        nested = "[" * depth + "]" * depth
        own.write_text(line()[:-1] + f', "extra": {nested}}}')
        try:
            load_list(TASKS["mmlupro"], own.name, own.parent)
        except ListError as error:
            assert str(error).startswith(f"{own}:1: ")


@pytest.mark.parametrize(("part", "source"), [("mmlupro",) * 2, ("gpqa",) * 2, ("think", "gpqa")])
def test_sample_list_of_every_part_can_be_asked(part: str, source: str) -> None:
    task = TASKS[part]
    found = load_list(task, "sample", Path("/nowhere"))
    assert (found.id, found.kind) == (f"sample/{source}", "sample")
    assert [item.order for item in found.items if item.order is not None] == []
    for item in found.items:
        (message,) = task.messages(item)
        assert message["role"] == "user"
        assert isinstance(item, LetterItem)
        assert str(message["content"]).count(f"\n{item.gold}. ") == 1
    assert found.sha256 == list_sha256(item.sha256 for item in found.items)


# Import into the cache


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty list cache, and pins of the made-up rows in the place of the real ones."""
    monkeypatch.setenv("QUALEVAL_CACHE", str(tmp_path / "cache"))
    pins = {part: make_pin(TASKS[part], gpqa_rows(), None) for part in ("gpqa", "think")}
    monkeypatch.setattr(lists, "pin_of", pins.__getitem__)

    def no_fetch(source: object) -> None:
        pytest.fail("contacted the hub")

    monkeypatch.setattr(lists, "rows_of_hub", no_fetch)
    return tmp_path / "cache" / "lists"


def as_csv(rows: Sequence[Mapping[str, str]]) -> bytes:
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()


def as_jsonl(rows: Sequence[Mapping[str, Any]]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def as_parquet(rows: Sequence[Mapping[str, Any]]) -> bytes:
    import pyarrow
    import pyarrow.parquet

    out = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(list(rows)), out)
    return out.getvalue()


def as_zip(members: Mapping[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return out.getvalue()


def with_password(archive: bytes, password: bytes) -> bytes:
    """A zip of one member, encrypted as old zips are (APPNOTE 6.1); zipfile can only read that."""

    def crc(old: int, byte: int) -> int:
        return zlib.crc32(bytes([byte]), old ^ 0xFFFFFFFF) ^ 0xFFFFFFFF

    keys = [0x12345678, 0x23456789, 0x34567890]

    def turn(byte: int) -> None:
        keys[0] = crc(keys[0], byte)
        keys[1] = ((keys[1] + (keys[0] & 0xFF)) * 134775813 + 1) & 0xFFFFFFFF
        keys[2] = crc(keys[2], keys[1] >> 24)

    def encrypt(byte: int) -> int:
        half = (keys[2] | 2) & 0xFFFF
        pad = (half * (half ^ 1) >> 8) & 0xFF
        turn(byte)
        return byte ^ pad

    for byte in password:
        turn(byte)
    found = bytearray(archive)
    (check, size), name = struct.unpack_from("<II", found, 14), struct.unpack_from("<H", found, 26)
    start = 30 + name[0]
    plain = bytes(11) + bytes([check >> 24]) + bytes(found[start : start + size])
    found[start : start + size] = bytes(map(encrypt, plain))
    end = found.rindex(b"PK\5\6")
    (directory,) = struct.unpack_from("<I", found, end + 16)
    struct.pack_into("<I", found, end + 16, directory + 12)
    struct.pack_into("<I", found, 18, size + 12)
    struct.pack_into("<I", found, directory + 12 + 20, size + 12)
    found[6] |= 1
    found[directory + 12 + 8] |= 1
    return bytes(found)


def claiming(archive: bytes, size: int) -> bytes:
    """A zip of one member that says it has another size than it has."""
    found = bytearray(archive)
    struct.pack_into("<I", found, 22, size)
    struct.pack_into("<I", found, found.rindex(b"PK\1\2") + 24, size)
    return bytes(found)


def hashes() -> list[str]:
    return [item.sha256 for item in load_list(TASKS["gpqa"], "official", Path()).items]


def pinned() -> list[str]:
    return [row.sha256 for row in lists.pin_of("gpqa").rows]


def refused(path: Path) -> str:
    """What is said about an import, in lines without the path they start with."""
    with pytest.raises(ListError) as caught:
        import_rows(gpqa.SOURCE, path)
    return str(caught.value).replace(str(path), "")


DIFFERS = (
    "differs from the pinned one of list 'qualeval/gpqa-36/v1'; this is another revision, and its "
    "results would not be comparable"
)
ROWS = gpqa_rows()
PASSWORD = b"deserted-untie-orchid"
FILES: dict[str, Callable[[], bytes]] = {
    "rows.jsonl": lambda: as_jsonl(ROWS),
    "rows.csv": lambda: as_csv(ROWS),
    "rows.parquet": lambda: as_parquet(ROWS),
    "csv.zip": lambda: as_zip({"dataset/license.txt": b"-", "dataset/rows.csv": as_csv(ROWS)}),
    "jsonl.zip": lambda: as_zip({"rows.jsonl": as_jsonl(ROWS)}),
    "parquet.zip": lambda: as_zip({"a/b/rows.parquet": as_parquet(ROWS)}),
    "password.zip": lambda: with_password(as_zip({"rows.csv": as_csv(ROWS)}), PASSWORD),
    "bom.csv": lambda: b"\xef\xbb\xbf" + as_csv(ROWS),
    "turned.csv": lambda: as_csv([dict(reversed(row.items())) for row in reversed(ROWS)]),
}


@pytest.mark.parametrize("name", FILES)
def test_import_takes_every_format_without_changing_a_byte(
    cache: Path, tmp_path: Path, name: str
) -> None:
    (tmp_path / name).write_bytes(FILES[name]())
    written = import_rows(gpqa.SOURCE, tmp_path / name)
    assert written == cache / "gpqa.jsonl"
    assert hashes() == pinned()


def test_imported_list_says_where_it_came_from(cache: Path, tmp_path: Path) -> None:
    """The name of the file is told, and not the folders above it."""
    (tmp_path / "x.zip").write_bytes(as_zip({"dataset/rows.csv": as_csv(ROWS)}))
    import_rows(gpqa.SOURCE, tmp_path / "x.zip")
    found = load_list(TASKS["think"], "official", Path())
    facts = {name: value for name, value in found.origin.items() if name != "taken"}
    assert facts == {"dataset": "Idavidrein/gpqa", "from": "file", "file": "rows.csv"}
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z", found.origin["taken"] or "")
    assert (found.id, found.kind) == ("qualeval/think-30/v1", "official")


def test_import_finds_the_right_table_among_others(cache: Path, tmp_path: Path) -> None:
    """Neither a smaller or changed table nor a damaged file nor a strange one is in the way."""
    folder = tmp_path / "downloads"
    (folder / "deep").mkdir(parents=True)
    (folder / "a_damaged.parquet").write_bytes(b"PAR1")
    (folder / "b_damaged.zip").write_bytes(b"PK\3\4")
    (folder / "c_other.csv").write_bytes(b"name,value\nx,1\n")
    (folder / "d_few.csv").write_bytes(as_csv(ROWS[:5]))
    (folder / "e_mac.zip").write_bytes(
        as_zip({"__MACOSX/._rows.csv": b"\0\5\xff", "rows.csv": as_csv(ROWS)})
    )
    (folder / "notes.txt").write_bytes(b"\xff")
    (folder / "e.csv").mkdir()
    import_rows(gpqa.SOURCE, folder)
    assert hashes() == pinned()


def test_import_of_the_wrong_tables_says_what_each_one_lacks(cache: Path, tmp_path: Path) -> None:
    changed = [row | {"Question": row["Question"] + " "} for row in ROWS]
    (tmp_path / "a.csv").write_bytes(as_csv(changed))
    (tmp_path / "b.csv").write_bytes(b"Record ID,Question\nmade-up-999,?\n")
    (tmp_path / "c.zip").write_bytes(b"PK\3\4")
    first = lists.pin_of("gpqa").rows[0].id
    assert refused(tmp_path).split("\n") == [
        f"/a.csv: row {first} {DIFFERS}",
        f"/b.csv: row {first} of list 'qualeval/gpqa-36/v1' is missing",
        "/c.zip: cannot be read as .zip: File is not a zip file",
    ]
    assert not cache.exists()


def without(rows: Sequence[Mapping[str, str]], column: str) -> list[dict[str, str]]:
    return [{name: text for name, text in row.items() if name != column} for row in rows]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", as_csv(without(ROWS, "Record ID")), ": holds no table with the columns of DATA"),
        ("a.csv", as_csv(without(ROWS, "Question")), ": row ID lacks column 'Question'"),
        (
            "a.jsonl",
            as_jsonl(without(ROWS, "High-level domain")),
            ": row ID lacks column 'High-level domain'",
        ),
        ("a.csv", b"", ": holds no table with the columns of DATA"),
        ("a.csv", b"\xff\xfe", ": cannot be read as .csv: 'utf-8' codec can't decode byte 0xff"),
        ("a.jsonl", b'{"Record ID"', ":1: is not JSON"),
        ("a.parquet", as_parquet(ROWS)[:-20], ": cannot be read as .parquet: "),
        ("a.parquet", b"", ": cannot be read as .parquet: "),
        ("a.zip", b"PK\3\4", ": cannot be read as .zip: File is not a zip file"),
        ("a.zip", as_zip({"b.csv": as_csv(ROWS)})[:-30], ": cannot be read as .zip: "),
        ("a.zip", as_zip({"b.txt": b"?"}), ": holds no table with the columns of DATA"),
        ("a.zip", as_zip({"b.zip": FILES["csv.zip"]()}), ": holds no table with the columns"),
        ("a.txt", as_csv(ROWS), ": is none of .jsonl, .csv, .parquet, .zip"),
    ],
)
def test_unfit_file_is_refused_by_name_and_nothing_is_kept(
    cache: Path, tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    (tmp_path / name).write_bytes(content)
    first = str(lists.pin_of("gpqa").rows[0].id)
    expected = message.replace("DATA", "Idavidrein/gpqa").replace("ID", first)
    assert refused(tmp_path / name)[: len(expected)] == expected
    assert not cache.exists()


def test_path_that_is_not_there_is_named(cache: Path, tmp_path: Path) -> None:
    assert refused(tmp_path / "gone") == ": there is no such file or folder"


def test_damaged_member_of_a_zip_is_named(cache: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    archive = bytearray(as_zip({"rows.csv": as_csv(ROWS)}))
    archive[200:260] = bytes(60)
    path.write_bytes(bytes(archive))
    assert refused(path).startswith("/rows.csv: cannot be unpacked: ")
    path.write_bytes(with_password(as_zip({"rows.csv": as_csv(ROWS)}), b"another"))
    assert refused(path).startswith("/rows.csv: cannot be unpacked: Bad password")


def test_zip_that_unpacks_to_more_than_the_limit_is_refused(cache: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    path.write_bytes(claiming(as_zip({"rows.csv": as_csv(ROWS)}), 3 * 2**30))
    assert refused(path) == ": unpacks to more than 2 GiB"


def test_zip_that_hides_its_size_does_not_fill_the_memory(cache: Path, tmp_path: Path) -> None:
    """64 MiB in a member that says 100 bytes."""
    path = tmp_path / "a.zip"
    path.write_bytes(claiming(as_zip({"rows.csv": bytes(64 * 2**20)}), 100))
    tracemalloc.start()
    try:
        message = refused(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert message == "/rows.csv: cannot be unpacked: Bad CRC-32 for file 'rows.csv'"
    assert peak < 8 * 2**20


def test_column_of_bytes_is_another_revision_and_no_crash(cache: Path, tmp_path: Path) -> None:
    rows = [row | {"Question": row["Question"].encode()} for row in ROWS]
    (tmp_path / "a.parquet").write_bytes(as_parquet(rows))
    first = lists.pin_of("gpqa").rows[0].id
    assert refused(tmp_path / "a.parquet") == f": row {first} {DIFFERS}"


def test_row_in_another_stratum_is_refused(cache: Path, tmp_path: Path) -> None:
    """The domain is none of the hashed columns of GPQA, yet strata are counted by it."""
    rows = [row | {"High-level domain": "Biology"} for row in ROWS]
    (tmp_path / "a.csv").write_bytes(as_csv(rows))
    first = next(row.id for row in lists.pin_of("gpqa").rows if row.stratum != "Biology")
    assert refused(tmp_path / "a.csv") == f": row {first} {DIFFERS}"


# The cache


@pytest.fixture
def filled(cache: Path, tmp_path: Path) -> Path:
    """A cache that holds the rows; its file of rows."""
    (tmp_path / "rows.csv").write_bytes(as_csv(ROWS))
    return import_rows(gpqa.SOURCE, tmp_path / "rows.csv")


def stored(path: Path) -> list[dict[str, Any]]:
    return [json.loads(row) for row in path.read_bytes().split(b"\n")[:-1]]


def official_complaint() -> str:
    with pytest.raises(ListError) as caught:
        load_list(TASKS["gpqa"], "official", Path())
    return str(caught.value)


AGAIN = "\n`qualeval lists fetch gpqa` takes it anew"


def test_changed_row_in_the_cache_is_named(filled: Path) -> None:
    rows = stored(filled)
    rows[3]["Incorrect Answer 2"] += "."
    filled.write_bytes(as_jsonl(rows))
    assert official_complaint() == f"{filled}: row {rows[3]['Record ID']} {DIFFERS}{AGAIN}"


def test_warm_cache_of_another_version_is_refused(filled: Path) -> None:
    """lcb-24: the rows are counted and proved on every load, a cache is never trusted."""
    rows = stored(filled)
    filled.write_bytes(as_jsonl(rows[:20]))
    missing = f"row {rows[20]['Record ID']} of list 'qualeval/gpqa-36/v1' is missing"
    assert official_complaint() == f"{filled}: {missing}{AGAIN}"


@pytest.mark.parametrize("size", [0, 1, 700])
def test_cut_cache_is_refused(filled: Path, size: int) -> None:
    filled.write_bytes(filled.read_bytes()[:size])
    assert official_complaint().endswith(AGAIN)


def test_order_of_the_cached_rows_does_not_matter(filled: Path) -> None:
    filled.write_bytes(as_jsonl([dict(reversed(row.items())) for row in reversed(stored(filled))]))
    assert hashes() == pinned()


def test_lost_origin_is_told_as_unknown(filled: Path) -> None:
    filled.with_suffix(".origin.json").unlink()
    found = load_list(TASKS["gpqa"], "official", Path())
    assert dict(found.origin) == {"from": "unknown"}


def test_half_of_a_surrogate_pair_survives_the_cache(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [row | {"Question": "half \ud83d, \\ud83d"} for row in ROWS]
    pins = {part: make_pin(TASKS[part], rows, None) for part in ("gpqa", "think")}
    monkeypatch.setattr(lists, "pin_of", pins.__getitem__)
    (tmp_path / "rows.jsonl").write_bytes(as_jsonl(rows))
    import_rows(gpqa.SOURCE, tmp_path / "rows.jsonl")
    assert hashes() == pinned()


def test_full_disk_is_a_clear_error_and_leaves_no_file(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "rows.csv").write_bytes(as_csv(ROWS))

    def full(file: int) -> None:
        os.truncate(file, os.fstat(file).st_size // 2)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    message = f"{cache}/gpqa.jsonl: cannot be written: No space left on device"
    with pytest.raises(ListError) as caught:
        import_rows(gpqa.SOURCE, tmp_path / "rows.csv")
    assert str(caught.value) == message
    assert list(cache.iterdir()) == []


KILLED = """
import os, signal, sys
from pathlib import Path
from qualeval import lists, pins
from qualeval.tasks import TASKS, gpqa
rows = [row for _, row in lists.rows_of_user_file(Path(sys.argv[1]))]
pins = {part: lists.make_pin(TASKS[part], rows, None) for part in ("gpqa", "think")}
lists.pin_of = pins.__getitem__
writes = iter(range(100))
def write(file):
    if next(writes) == int(sys.argv[2]):
        os.truncate(file, os.fstat(file).st_size // 2)
        os.kill(os.getpid(), signal.SIGKILL)
os.fsync = write
lists.import_rows(gpqa.SOURCE, Path(sys.argv[1]))
"""


@pytest.mark.parametrize("at", [0, 1])
def test_kill_while_writing_leaves_no_half_list(cache: Path, tmp_path: Path, at: int) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(as_jsonl(ROWS))
    done = subprocess.run([sys.executable, "-c", KILLED, str(path), str(at)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert not (cache / "gpqa.jsonl").exists()
    import_rows(gpqa.SOURCE, path)
    assert hashes() == pinned()


def test_failed_import_leaves_the_older_list_in_place(filled: Path, tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in filled.parent.iterdir()}
    (tmp_path / "few.csv").write_bytes(as_csv(ROWS[:30]))
    refused(tmp_path / "few.csv")
    assert {path: path.read_bytes() for path in filled.parent.iterdir()} == before


def test_fetched_rows_are_proved_before_they_are_kept(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lists, "rows_of_hub", lambda source: (ROWS[1:], "abc"))
    with pytest.raises(ListError) as caught:
        fetch(gpqa.SOURCE)
    message = "hub:Idavidrein/gpqa: row made-up-000 of list 'qualeval/gpqa-36/v1' is missing"
    assert str(caught.value) == message
    assert not cache.exists()


def test_cache_folder_is_the_chosen_one_or_that_of_the_user(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("QUALEVAL_CACHE", str(tmp_path))
    assert pins.cache_folder() == tmp_path / "lists"
    monkeypatch.delenv("QUALEVAL_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    if sys.platform == "linux":
        assert pins.cache_folder() == tmp_path / "qualeval" / "lists"
