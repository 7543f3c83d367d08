"""LiveCodeBench rows: what makes an item, what is refused, and that no pickle is ever obeyed.

Question texts of the real data are printed nowhere: its rows are told by their ids alone.
"""

import base64
import io
import json
import os
import pickle
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from qualeval.records import sha256_of
from qualeval.tasks import lcb_rows
from qualeval.tasks.lcb_rows import (
    LEFT_OUT,
    canonical,
    clean,
    count_tests,
    function_in,
    item,
    official_item,
    unpacked,
)

each_test = lcb_rows.tests

ROOT = Path(__file__).parents[1]

# The same examples on every machine, however slow it is, and no file left behind.

ADD = {"input": "2 3\n", "output": "5\n", "testtype": "stdin"}
MORE = {"input": "4 5\n", "output": "9\n", "testtype": "stdin"}
CALLED = {"input": "[1, 2]\n3", "output": "true", "testtype": "functional"}
STARTER = "class Solution:\n    def isThere(self, nums: List[int], n: int) -> bool:\n        "


def packed(text: object, protocol: int | None = None) -> str:
    """A field in the form that hidden tests have."""
    return base64.b64encode(zlib.compress(pickle.dumps(text, protocol))).decode()


def row(**changes: Any) -> dict[str, Any]:
    """A made-up problem as published: a script, one public test, one hidden one."""
    return {
        "question_title": "Sum",
        "question_content": "Print the sum of two numbers.",
        "platform": "atcoder",
        "question_id": "abc999_a",
        "contest_id": "abc999",
        "contest_date": "2025-03-01T00:00:00",
        "starter_code": "",
        "difficulty": "easy",
        "public_test_cases": json.dumps([ADD]),
        "private_test_cases": packed(json.dumps([MORE])),
        "metadata": "{}",
    } | changes


def called(**changes: Any) -> dict[str, Any]:
    """A made-up problem whose answer is a function."""
    return row(
        starter_code=STARTER,
        public_test_cases=json.dumps([CALLED]),
        private_test_cases="[]",
        metadata=json.dumps({"func_name": "isThere"}),
    ) | dict(changes)


def refused(made: dict[str, Any]) -> str:
    with pytest.raises(ValueError) as caught:
        item(made)
    return str(caught.value)


# Items


def test_item_holds_the_problem_and_its_tests_as_published() -> None:
    found = item(row())
    assert (found.id, found.stratum, found.function) == ("abc999_a", "easy", None)
    assert (found.platform, found.contest_date) == ("atcoder", "2025-03-01T00:00:00")
    assert found.public_test_cases == row()["public_test_cases"]
    assert found.private_test_cases == row()["private_test_cases"]
    assert found.sha256 == sha256_of(canonical(row()))


def test_tests_are_all_public_ones_and_then_all_private_ones() -> None:
    assert list(each_test(item(row()))) == [("2 3\n", "5\n"), ("4 5\n", "9\n")]
    assert count_tests(item(row())) == 2


PRIVATE = {
    "json text": json.dumps([MORE]),
    "a list": [MORE],
    "packed": packed(json.dumps([MORE])),
    "packed with a line end": packed(json.dumps([MORE])) + "\n",
    **{f"protocol {p}": packed(json.dumps([MORE]), p) for p in range(6)},
    "many": packed(json.dumps([{**MORE, "input": "é\U0001d538\n" * 50}]), 4),
}


@pytest.mark.parametrize("form", PRIVATE)
def test_every_published_form_of_tests_is_read(form: str) -> None:
    found = list(each_test(item(row(private_test_cases=PRIVATE[form]))))
    assert [output for _, output in found] == ["5\n", "9\n"]


@pytest.mark.parametrize("field", [None, "", "[]", []])
def test_problem_may_have_public_tests_only(field: object) -> None:
    assert count_tests(item(row(private_test_cases=field))) == 1
    without = {name: value for name, value in row().items() if name != "private_test_cases"}
    assert count_tests(item(without)) == 1


def test_problem_may_have_private_tests_only() -> None:
    assert count_tests(item(row(public_test_cases="[]"))) == 1
    alone = called(public_test_cases="", private_test_cases=[CALLED], metadata=None)
    assert item(alone).function == "isThere"
    assert official_item(alone).function == "isThere"


def test_columns_that_nobody_knows_are_accepted() -> None:
    assert item(row(source_commit="abc", note=[1])).sha256 == item(row()).sha256


@pytest.mark.parametrize(
    "change",
    [
        {"question_content": "Print the product."},
        {"public_test_cases": json.dumps([MORE])},
        {"private_test_cases": packed(json.dumps([ADD]))},
        {"contest_date": "2025-03-02T00:00:00"},
        {"metadata": '{"x": 1}'},
    ],
)
def test_hash_covers_statement_and_tests(change: dict[str, Any]) -> None:
    assert item(row(**change)).sha256 != item(row()).sha256


def test_row_of_a_locked_list_is_not_decoded_when_it_is_loaded() -> None:
    """lcb-26: what cannot be decoded shows that nobody has tried."""
    made = row(private_test_cases="never decoded")
    assert official_item(made).private_test_cases == "never decoded"
    assert "private_test_cases" in refused(made)


# Style and name of the function


@pytest.mark.parametrize(
    "metadata", ['{"func_name": "isThere"}', {"func_name": "isThere"}, None, "", "{}", {}]
)
def test_function_is_the_one_in_the_metadata_or_in_the_starter_code(metadata: object) -> None:
    assert item(called(metadata=metadata)).function == "isThere"


def test_metadata_goes_before_the_starter_code() -> None:
    assert item(called(metadata={"func_name": "other"})).function == "other"
    no_code = called(metadata={"func_name": "other"}, starter_code="")
    assert item(no_code).function == "other"


def test_tests_that_do_not_tell_their_kind_are_told_by_the_starter_code() -> None:
    bare = {name: CALLED[name] for name in ("input", "output")}
    assert item(called(public_test_cases=[bare], metadata=None)).function == "isThere"
    assert item(row(public_test_cases=[{"input": "", "output": ""}])).function is None


@pytest.mark.parametrize(
    ("code", "name"),
    [
        (STARTER, "isThere"),
        ("def solve(a: int) -> int:\n", "solve"),
        ("class Solution(object):\n  async def f (self):\n", "f"),
        ("# class Node:\n#     def __init__(self):\n" + STARTER, "isThere"),
        ("class Node:\n    def step(self): ...\n\n" + STARTER, "isThere"),
        ("class Solution:\n    def __init__(self):\n        pass\n    def größe(self):\n", "größe"),
    ],
)
def test_function_is_found_in_code_that_has_no_body(code: str, name: str) -> None:
    assert function_in(code) == name


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("", "no function found"),
        ("x = 1\n", "no function found"),
        ("def a():\ndef b():\n", "several functions found"),
    ],
)
def test_starter_code_without_one_function_is_refused(code: str, words: str) -> None:
    message = refused(called(starter_code=code, metadata=None))
    assert message.startswith(f"field 'starter_code': {words}")


def test_starter_code_is_never_run(tmp_path: Path) -> None:
    mark = tmp_path / "was_run"
    code = f"open({str(mark)!r}, 'w')\nclass Solution:\n    def f(self):\n"
    assert item(called(starter_code=code, metadata=None)).function == "f"
    assert not mark.exists()


# What is refused


def test_no_test_at_all_is_an_error_of_the_data() -> None:
    """lcb-13: never a pass, for every program passes no tests."""
    none = row(public_test_cases=[], private_test_cases=[])
    assert refused(none) == "fields 'public_test_cases', 'private_test_cases': hold no test"
    assert refused(row(public_test_cases=None, private_test_cases=packed("[]")))


def test_inputs_and_outputs_that_differ_in_number_are_refused() -> None:
    """lcb-13: two inputs and one output; the second test must not be dropped."""
    lonely = [ADD, {"input": "1 1\n", "testtype": "stdin"}]
    message = refused(row(public_test_cases=lonely))
    assert message == "field 'public_test_cases': test 2: has no text 'output'"
    columns = {"inputs": ["1", "2"], "outputs": ["1"]}
    message = refused(row(public_test_cases=json.dumps(columns)))
    assert message == "field 'public_test_cases': is no list of tests"


MIXED = "field 'testtype': stdin and functional tests are mixed"
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no id": ({"question_id": None}, "field 'question_id' must be a text or a whole number"),
    "id true": ({"question_id": True}, "field 'question_id' must be a text or a whole number"),
    "empty id": ({"question_id": ""}, "field 'question_id' is empty"),
    "empty content": ({"question_content": " "}, "field 'question_content' is empty"),
    "no content": ({"question_content": None}, "field 'question_content' must be a text"),
    "content 7": ({"question_content": 7}, "field 'question_content' must be a text"),
    "starter": ({"starter_code": 7}, "field 'starter_code' must be a text"),
    "platform": ({"platform": []}, "field 'platform' must be a text"),
    "metadata text": ({"metadata": "{"}, "field 'metadata': is not JSON"),
    "metadata list": ({"metadata": "[]"}, "field 'metadata' must be an object, or its text"),
    "func_name": (
        {"metadata": {"func_name": "a b"}},
        "field 'metadata': func_name is no name of a function",
    ),
    "number": ({"public_test_cases": 7}, "must be a list of tests, or its text"),
    "torn": ({"public_test_cases": '[{"input": "1"'}, "'public_test_cases': is not JSON"),
    "strange": ({"public_test_cases": ["1"]}, "test 1: has no text 'input'"),
    "no text": ({"public_test_cases": [ADD, {**ADD, "input": 5}]}, "test 2: has no text 'input'"),
    "kind": ({"public_test_cases": [{**ADD, "testtype": "other"}]}, "test 1: testtype is neither"),
    "mixed": ({"public_test_cases": [ADD, CALLED]}, MIXED),
    "mixed fields": ({"private_test_cases": [CALLED]}, MIXED),
    "deep": ({"public_test_cases": "[" * 100_000}, "'public_test_cases': "),
}


@pytest.mark.parametrize("case", REFUSED)
def test_row_that_cannot_be_graded_is_refused_by_field(case: str) -> None:
    change, words = REFUSED[case]
    assert words in refused(row(**change))


@pytest.mark.parametrize("name", ["question_id", "question_content"])
def test_missing_field_is_named(name: str) -> None:
    short = {field: value for field, value in row().items() if field != name}
    assert refused(short) == f"field '{name}' is missing"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"input": "[1, 2]\nthree"}, "test 1: a line of 'input' is not JSON"),
        ({"input": "[1, 2]\n\n3"}, "test 1: a line of 'input' is not JSON"),
        ({"output": "True"}, "test 1: 'output' is not JSON"),
        ({"output": "[" * 100_000}, "test 1: 'output' is not JSON"),
    ],
)
def test_call_that_is_not_json_is_refused(change: dict[str, str], words: str) -> None:
    assert words in refused(called(public_test_cases=[{**CALLED, **change}]))


def test_integers_of_a_call_may_have_any_number_of_digits() -> None:
    long = {**CALLED, "input": f"[1, 2]\n{'7' * 5000}", "output": "7" * 6000}
    assert item(called(public_test_cases=[long])).function == "isThere"


@pytest.mark.parametrize("given", ["[1, 2]\n3\n", "", "\n"])
def test_line_end_behind_the_arguments_is_none(given: str) -> None:
    assert item(called(public_test_cases=[{**CALLED, "input": given}])).function == "isThere"


def test_functional_test_behind_a_test_of_no_kind_needs_a_name() -> None:
    bare = {"input": "1", "output": "1"}
    message = refused(row(public_test_cases=[bare, CALLED], private_test_cases=""))
    assert message == "field 'testtype': functional, and nothing names the function"


# Packed tests


class MakesFolder:
    """Its pickle makes a folder when it is loaded."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (self.path,)


def as_field(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data)).decode()


@pytest.mark.parametrize("protocol", range(6))
def test_payload_that_runs_code_is_refused_and_nothing_runs(tmp_path: Path, protocol: int) -> None:
    """lcb-25: the payload is refused and the folder not made."""
    folder = tmp_path / "qe_pwned"
    field = packed(MakesFolder(folder), protocol)
    message = refused(row(private_test_cases=field))
    assert message == (
        "field 'private_test_cases': holds a pickle that is no plain text; it was not loaded"
    )
    assert not folder.exists()
    pickle.loads(zlib.decompress(base64.b64decode(field)))
    assert folder.exists()  # it would have been


def test_packed_control_payload_is_decoded() -> None:
    """lcb-25, the control: a pickle of a JSON text with one test."""
    field = packed(json.dumps([{"input": "2 3", "output": "5", "testtype": "stdin"}]))
    assert list(each_test(item(row(public_test_cases="", private_test_cases=field)))) == [
        ("2 3", "5")
    ]


TEXT = pickle.dumps("[]", 4)
PICKLES: dict[str, bytes] = {
    "a list": pickle.dumps([ADD]),
    "bytes": pickle.dumps(b"[]"),
    "a number": pickle.dumps(1),
    "None": pickle.dumps(None),
    "two texts": TEXT[:-1] + TEXT,
    "something behind the end": TEXT + b"x",
    "a second pickle behind": TEXT + TEXT,
    "no end": TEXT[:-1],
    "nothing": b"",
    "only an end": b".",
    "an empty stack": b"\x80\x04.",
    "a long text that is not there": b"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\x7f[].",
    "a stored object": b"Pos.system\n.",
    "a name": b"cos\nsystem\n.",
    "a name from the stack": b"\x80\x04\x8c\x02os\x8c\x06system\x93.",
    "an extension": b"\x82\x01.",
    "an unknown protocol": b"\x80\xff\x8c\x02[].",
    "an unknown opcode": b"\xfe.",
}


@pytest.mark.parametrize("case", PICKLES)
def test_pickle_that_is_not_one_text_is_refused(case: str) -> None:
    message = refused(row(private_test_cases=as_field(PICKLES[case])))
    assert message.endswith("holds a pickle that is no plain text; it was not loaded")


@pytest.mark.parametrize("data", [b"V[]\np3000000000\n.", b"\x8c\x02[]r\xff\xff\xff\x7f."])
def test_memo_slot_far_away_reserves_nothing(data: bytes) -> None:
    """An unpickler would make room for all the slots before it."""
    assert unpacked(as_field(data)) == "[]"


STREAMS: dict[str, tuple[str, str]] = {
    "not base64": ("oops]", "is neither JSON nor base64"),
    "no list": ("[oops", "is not JSON"),
    "no end": ('[{"input": "1", "output": "1"}', "is not JSON"),
    "no comma": ('[{"input": "1", "output": "1"} {}]', "is not JSON"),
    "a rest": ('[{"input": "1", "output": "1"}] []', "is not JSON"),
    "not ASCII": ("é", "is neither JSON nor base64"),
    "not zlib": (base64.b64encode(b"hello there").decode(), "is not zlib data"),
    "torn": (base64.b64encode(zlib.compress(TEXT)[:-6]).decode(), "ends too early"),
    "rest": (base64.b64encode(zlib.compress(TEXT) + b"x").decode(), "behind the end of the zlib"),
    "not JSON": (packed("hello"), "what is packed is not JSON"),
    "packed number": (packed("7"), "is no list of tests"),
    "packed deep": (packed("[" * 100_000), "field 'private_test_cases': "),
}


@pytest.mark.parametrize("case", STREAMS)
def test_field_that_is_no_packed_text_is_refused(case: str) -> None:
    field, words = STREAMS[case]
    assert words in refused(row(private_test_cases=field))


def test_field_that_unpacks_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some kilobytes of zlib can stand for any size."""
    monkeypatch.setattr(lcb_rows, "MAX_DECODED_BYTES", 10 * 1024**2)
    bomb = packed(" " * 11 * 1024**2)
    assert len(bomb) < 20_000
    assert "unpacks to more than 10 MiB" in refused(row(private_test_cases=bomb))
    fits = packed(json.dumps([ADD]) + " " * 9 * 1024**2)
    assert count_tests(item(row(private_test_cases=fits))) == 2


@given(st.text())
def test_text_that_was_packed_is_unpacked(text: str) -> None:
    for protocol in range(6):
        assert unpacked(packed(text, protocol)) == text


PIECES = st.sampled_from(
    [b"\x80\x04", b"\x95", b"\x8c\x02[]", b"\x94", b"V[]\n", b"p0\n", b".", b"cos\nsystem\n"]
    + [b"\x8c\x02os", b"\x8c\x06system", b"\x93", b"(", b"R", b"S'id'\n", b"\x85", b"h\x00", b"0"]
    + [b"X\x02\0\0\0[]", b"q\x00", b"}", b"]", b"e", b"b", b"i", b"o", b"\x81", b"\x92", b"Q"]
)


@given(st.one_of(st.binary(max_size=200), st.lists(PIECES, max_size=12).map(b"".join)))
def test_no_pickle_raises_anything_but_a_value_error_or_finds_a_class(data: bytes) -> None:
    """What is loaded is a text, or nothing was loaded."""
    for field in (as_field(data), base64.b64encode(data).decode(), data.decode("latin-1")):
        try:
            found = item(row(private_test_cases=field))
        except ValueError as error:
            assert str(error).startswith(("field 'private_test_cases'", "fields "))
        else:
            assert count_tests(found) >= 1


class FindsNothing(pickle.Unpickler):
    """Loads what needs no class."""

    def find_class(self, module_name: str, global_name: str) -> Any:
        raise pickle.UnpicklingError("a class")


@given(st.lists(PIECES, max_size=5).map(b"".join))
@example(pickle.dumps("x" * 70_000, 4))  # no part of a frame
@example(b"\x80\x04\x8c\x02[]\x95\x02\0\0\0\0\0\0\0\x94.")
@example(b"\x8d\x02\0\0\0\0\0\0\0[].")
@example(b"V\\u005b]\n.")
@example(b"\x8c\x02\xff\xff.")
def test_text_that_is_read_out_of_a_pickle_is_the_one_that_loading_it_gives(data: bytes) -> None:
    try:
        text = unpacked(as_field(data))
    except ValueError:
        return
    assert text == FindsNothing(io.BytesIO(data)).load()


@given(st.recursive(st.none() | st.booleans() | st.text(max_size=3), st.lists, max_leaves=8))
def test_no_value_in_a_field_raises_anything_but_a_value_error(value: Any) -> None:
    for name in row():
        try:
            found = item(row() | {name: value})
        except ValueError:
            continue
        assert found.sha256 == sha256_of(canonical(row() | {name: value}))


MEMORY = """
import json, resource, sys
from qualeval.tasks import lcb_rows
made = json.load(sys.stdin)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
found = lcb_rows.official_item(made)
loaded = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
size = sum(len(given) + len(expected) for given, expected in lcb_rows.tests(found))
decoded = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps([size, loaded - before, decoded - before]))
"""


def test_large_hidden_test_costs_memory_when_it_is_graded_and_a_few_times_its_size() -> None:
    """lcb-26, at a fifth of its size: 64 MiB decoded, about twice that while it is decoded.
    300 MiB then stay below 1 GiB. Loading the item costs nothing.
    """
    mib = 1024**2
    field = packed(
        json.dumps([{"input": "1 2\n" * (16 * mib), "output": "5", "testtype": "stdin"}])
    )
    found = subprocess.run(
        [sys.executable, "-c", MEMORY],
        input=json.dumps(row(private_test_cases=field)),
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    size, loaded, decoded = json.loads(found.stdout)
    assert size >= 64 * mib
    assert loaded < 8 * 1024  # ru_maxrss is KiB
    assert decoded < 3 * 64 * 1024


# The table of what is left out


def test_problems_that_no_judge_can_decide_are_left_out() -> None:
    rows = [row(question_id=id) for id in (*LEFT_OUT, "abc999_a", "3195")]
    pool = clean(rows)
    assert [kept["question_id"] for kept in pool.rows] == ["abc999_a", "3195"]
    assert sum(pool.left_out.values()) == len(LEFT_OUT) == 22


# The real rows


def reference_data(name: str) -> Path:
    folder = Path(os.environ.get("QUALEVAL_REFERENCE_DATA") or ROOT.parent / "shared" / "data")
    if not (folder / name).is_file():
        pytest.skip(f"no reference data: {name} (set QUALEVAL_REFERENCE_DATA to its folder)")
    return folder / name


def test_real_hidden_tests_are_decoded() -> None:
    sample = json.loads(reference_data("lcb/private_encoding_sample.json").read_bytes())
    same = json.loads(unpacked(sample["private_test_cases"])) == sample["decoded"]
    assert same
    made = row(public_test_cases="", private_test_cases=sample["private_test_cases"])
    assert len(list(each_test(item(made)))) == len(sample["decoded"])


def test_every_real_problem_makes_an_item() -> None:
    """219 scripts and 181 functions; a name taken from the starter code is the published one."""
    path = reference_data("lcb/problems_v1_public_tests.jsonl")
    rows = [json.loads(line) for line in path.read_bytes().split(b"\n") if line]
    functions, faulty = 0, []
    for made in rows:
        try:
            found = item(made)
            bare = item({name: value for name, value in made.items() if name != "metadata"})
        except ValueError:
            faulty.append(made["question_id"])
            continue
        functions += found.function is not None
        counted = count_tests(found) == len(made["public_test_cases"])
        if not counted or found.function != bare.function:
            faulty.append(found.id)
    assert (len(rows), functions, faulty) == (400, 181, [])


def test_ids_left_out_by_number_are_the_titles_of_the_errata() -> None:
    titles = {
        "3194": "find-words-containing-character",
        "3221": "find-the-peaks",
        "3453": "generate-binary-strings-without-adjacent-zeros",
        "3308": "apply-operations-to-make-string-empty",
        "3363": "most-frequent-ids",
    }
    path = reference_data("lcb/problems_v5_no_tests.jsonl")
    rows = [json.loads(line) for line in path.read_bytes().split(b"\n") if line]
    known = {made["question_id"]: made["question_title"] for made in rows}
    assert {id: known[id] for id in titles} == titles
    assert {id for id in LEFT_OUT if id not in known} == set(titles.values())
