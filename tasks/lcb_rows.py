"""LiveCodeBench: rows as published -> items, and their tests, decoded safely when they are asked.

A row's tests stand in `public_test_cases` and `private_test_cases`: JSON text of a list of
{"input", "output", "testtype"}, that list itself, or (private ones) base64 of zlib of a pickled
text which is that JSON. A pickle can run code when it is loaded, so none is loaded: one that is a
text and nothing else has it read out where it stands. Items keep both fields as they were
published, and tests are made one at a time: forty problems have gigabytes of them.
"""

import base64
import binascii
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Literal

from pydantic import JsonValue

from qualeval.records import Item, Json, sha256_of, sha256_text
from qualeval.tasks.base import Pool, Row

COLUMNS = (
    "question_id",
    "question_title",
    "question_content",
    "platform",
    "contest_id",
    "contest_date",
    "starter_code",
    "difficulty",
    "public_test_cases",
    "private_test_cases",
    "metadata",
)
"""The published columns."""

REQUIRED = (
    "question_id",
    "question_content",
    "platform",
    "contest_date",
    "difficulty",
    "public_test_cases",
    "private_test_cases",
)
"""What a row of the official list must have; the others may be missing in a copy."""

TestField = Literal["public_test_cases", "private_test_cases"]
TEST_FIELDS: tuple[TestField, ...] = ("public_test_cases", "private_test_cases")
"""In the order in which tests are run."""

MAX_DECODED_BYTES = 512 * 1024**2
"""A field that unpacks to more is refused: some kilobytes can be made to unpack to any size."""

PIECE_BYTES = 4 * 1024**2

MANY_ANSWERS = "several answers are right, and the tests know one"
INTERACTIVE = "the program talks with a judge"
BAD_TESTS = "the tests are wrong"

LEFT_OUT: Mapping[str, str] = {
    "abc311_c": MANY_ANSWERS,
    "abc326_d": MANY_ANSWERS,
    "abc327_b": MANY_ANSWERS,
    "abc333_e": MANY_ANSWERS,
    "abc343_a": MANY_ANSWERS,
    "abc343_e": MANY_ANSWERS,
    "abc362_c": MANY_ANSWERS,
    "arc185_c": MANY_ANSWERS,
    "3194": MANY_ANSWERS,
    "find-words-containing-character": MANY_ANSWERS,
    "3221": MANY_ANSWERS,
    "find-the-peaks": MANY_ANSWERS,
    "3453": MANY_ANSWERS,
    "generate-binary-strings-without-adjacent-zeros": MANY_ANSWERS,
    "abc337_e": INTERACTIVE,
    "abc355_e": INTERACTIVE,
    "abc350_c": BAD_TESTS,
    "3308": BAD_TESTS,
    "apply-operations-to-make-string-empty": BAD_TESTS,
    "3363": BAD_TESTS,
    "most-frequent-ids": BAD_TESTS,
    "arc189_a": BAD_TESTS,
}
"""Problems that no judge without a checker of its own can decide, by question_id: the list
ERRATA.md of LiveCodeBench (28fef95), which names LeetCode problems by their title; a copy may use
either as the id.
"""

RELEASES: Mapping[int, str] = {
    400: "release_v1",
    511: "release_v2",
    612: "release_v3",
    713: "release_v4",
    880: "release_v5",
    1055: "release_v6",
}
"""Problems that a release has in all; a release holds those before it."""


class ProblemItem(Item):
    """A problem, with its tests as published. `function` is None where a script is asked."""

    question_title: str | None
    question_content: str
    platform: str | None
    contest_date: str | None
    starter_code: str
    function: str | None
    public_test_cases: str
    private_test_cases: str


def canonical(row: Row) -> Json:
    """What pins a row: every column as published; a field of tests goes in by its own hash."""
    facts: Json = {name: row.get(name) for name in COLUMNS if name not in TEST_FIELDS}
    return facts | {f"{name}_sha256": _hash_of(row.get(name)) for name in TEST_FIELDS}


def _hash_of(field: Any) -> str | None:
    if field is None:
        return None
    return sha256_text(field) if isinstance(field, str) else sha256_of(field)


def difficulty(row: Row) -> str:
    """`easy`, `medium` or `hard`."""
    return str(row.get("difficulty") or "not given")


def clean(rows: Iterable[Row]) -> Pool:
    """All rows but those of LEFT_OUT; only `question_id` is looked at."""
    kept = []
    left_out = dict.fromkeys((MANY_ANSWERS, INTERACTIVE, BAD_TESTS), 0)
    for row in rows:
        why = LEFT_OUT.get(str(row["question_id"]))
        if why is None:
            kept.append(row)
        else:
            left_out[why] += 1
    return Pool(tuple(kept), left_out)


# Items


def item(row: Row) -> ProblemItem:
    """The item of a row of a user's or the sample list; everything in it is looked at.

    Raises ValueError naming the field, and the test in it, that cannot be graded: no test at all,
    one without input or output, tests of two kinds, a function that nothing names, its arguments
    or result not JSON.
    """
    found = official_item(row)
    count_tests(found)
    return found


def count_tests(item: Item) -> int:
    """How many tests a problem has, each looked at. Raises ValueError as `item` does."""
    assert isinstance(item, ProblemItem)
    count = 0
    kinds: set[str] = set()
    for name in TEST_FIELDS:
        for number, test in enumerate(_decoded(getattr(item, name), name), start=1):
            kinds |= _checked(test, f"field '{name}': test {number}", item.function)
            count += 1
    if not count:
        raise ValueError("fields 'public_test_cases', 'private_test_cases': hold no test")
    if len(kinds) > 1:
        raise ValueError("field 'testtype': stdin and functional tests are mixed")
    if item.function is None and "functional" in kinds:
        raise ValueError("field 'testtype': functional, and nothing names the function")
    return count


def official_item(row: Row) -> ProblemItem:
    """The item of a row that a hash has proved. Its private tests are not decoded unless nothing
    else tells the style. Raises ValueError naming the field.
    """
    for name in ("question_id", "question_content"):
        if name not in row:
            raise ValueError(f"field '{name}' is missing")
    id = row["question_id"]
    if not isinstance(id, int | str) or isinstance(id, bool):
        raise ValueError("field 'question_id' must be a text or a whole number")
    content = _text(row, "question_content")
    if content is None:
        raise ValueError("field 'question_content' must be a text")
    for name, empty in (("question_id", id == ""), ("question_content", not content.strip())):
        if empty:
            raise ValueError(f"field '{name}' is empty")
    fields = {name: _field(row, name) for name in TEST_FIELDS}
    starter = _text(row, "starter_code") or ""
    return ProblemItem(
        id=id,
        stratum=_text(row, "difficulty") or None,
        question_title=_text(row, "question_title"),
        question_content=content,
        platform=_text(row, "platform"),
        contest_date=_date(row),
        starter_code=starter,
        function=_function(row.get("metadata"), fields, starter),
        public_test_cases=fields["public_test_cases"],
        private_test_cases=fields["private_test_cases"],
        sha256=sha256_of(canonical(row)),
    )


def _text(row: Row, name: str) -> str | None:
    value = row.get(name)
    if value is not None and not isinstance(value, str):
        raise ValueError(f"field '{name}' must be a text")
    return value


def _date(row: Row) -> str | None:
    """Kept as published; only an official list needs one that can be read."""
    value = row.get("contest_date")
    return value.isoformat() if isinstance(value, datetime) else _text(row, "contest_date")


def _field(row: Row, name: str) -> str:
    """A field of tests as text; a list as the JSON that stands for it; empty when there is none."""
    value = row.get(name)
    if value is None or value == "" or value == []:
        return ""
    if isinstance(value, list):
        return json.dumps(value)
    if not isinstance(value, str):
        raise ValueError(f"field '{name}' must be a list of tests, or its text")
    return value


def _function(metadata: Any, fields: Mapping[TestField, str], starter_code: str) -> str | None:
    """Name of the function that is called; None when a script is asked.

    `func_name` in the metadata decides, as in the official grader. Without it the kind of the
    tests does, and the name is the one in the starter code.
    """
    named = _func_name(metadata)
    if named is not None:
        return named
    for name, text in fields.items():
        for test in _decoded(text, name):
            kind = test.get("testtype") if isinstance(test, dict) else None
            called = kind == "functional" or (kind is None and bool(starter_code.strip()))
            return function_in(starter_code) if called else None
    return None


def _func_name(metadata: Any) -> str | None:
    if isinstance(metadata, str) and metadata.strip():
        try:
            metadata = json.loads(metadata)
        except (ValueError, RecursionError):
            raise ValueError("field 'metadata': is not JSON") from None
    if metadata is None or metadata == "":
        return None
    if not isinstance(metadata, dict):
        raise ValueError("field 'metadata' must be an object, or its text")
    name = metadata.get("func_name")
    if name is None or name == "":
        return None
    if not isinstance(name, str) or not name.isidentifier():
        raise ValueError("field 'metadata': func_name is no name of a function")
    return name


SOLUTION = re.compile(r"^class[ \t]+Solution\b", re.MULTILINE)
DEFINITION = re.compile(r"^[ \t]*(?:async[ \t]+)?def[ \t]+([^\W\d]\w*)[ \t]*\(", re.MULTILINE)


def function_in(starter_code: str) -> str:
    """The one function in starter code, in its class Solution if there is one. It is looked for in
    the text: the code ends where the body should be, so it could not even be parsed.

    Raises ValueError when there is none, or more than one.
    """
    solution = SOLUTION.search(starter_code)
    code = starter_code[solution.start() :] if solution else starter_code
    names = {name for name in DEFINITION.findall(code) if not name.startswith("__")}
    if len(names) != 1:
        found = "no function" if not names else "several functions"
        raise ValueError(
            f"field 'starter_code': {found} found, and field 'metadata' names none (func_name)"
        )
    return str(names.pop())


# Tests


def tests(item: ProblemItem) -> Iterator[tuple[str, str]]:
    """(input, output) of every test: all public ones, then all private ones.

    Each field is decoded when its first test is asked for, and not kept. Raises ValueError.
    """
    for name in TEST_FIELDS:
        for number, test in enumerate(_decoded(getattr(item, name), name), start=1):
            where = f"field '{name}': test {number}"
            yield _part(test, "input", where), _part(test, "output", where)


def _part(test: JsonValue, name: str, where: str) -> str:
    value = test.get(name) if isinstance(test, dict) else None
    if not isinstance(value, str):
        raise ValueError(f"{where}: has no text '{name}'")
    return value


def _checked(test: JsonValue, where: str, function: str | None) -> set[str]:
    """The kind of a test, if it says one. Raises ValueError when it could not be run."""
    given, expected = _part(test, "input", where), _part(test, "output", where)
    if function is not None:
        arguments = given.strip().split("\n") if given.strip() else []
        for text in (*arguments, expected):
            try:
                json.loads(text, parse_int=str)  # an integer may have any number of digits
            except (ValueError, RecursionError):
                what = "a line of 'input'" if text is not expected else "'output'"
                raise ValueError(f"{where}: {what} is not JSON") from None
    assert isinstance(test, dict)
    kind = test.get("testtype")
    if kind is None:
        return set()
    if kind not in ("stdin", "functional"):
        raise ValueError(f"{where}: testtype is neither 'stdin' nor 'functional'")
    return {str(kind)}


def _decoded(text: str, name: TestField) -> Iterator[JsonValue]:
    """The tests in a field, made one at a time. Raises ValueError naming it."""
    plain = text.lstrip(WHITESPACE).startswith(("[", "{"))
    if not text.strip():
        return
    try:
        yield from _elements(text if plain else unpacked(text))
    except json.JSONDecodeError:
        what = "is not JSON" if plain else "is packed, but what is packed is not JSON"
        raise ValueError(f"field '{name}': {what}") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise ValueError(f"field '{name}': {_said(error)}") from None


def _said(error: BaseException) -> str:
    if isinstance(error, ValueError):
        return str(error)
    return "is nested too deep" if isinstance(error, RecursionError) else "is too large"


WHITESPACE = " \t\n\r"
_SPACE = re.compile(f"[{WHITESPACE}]*")


def _elements(text: str) -> Iterator[JsonValue]:
    """The elements of a JSON list, parsed as they are asked for: a list of tests may be hundreds
    of megabytes. Raises ValueError for another value, JSONDecodeError for no JSON.
    """
    decoder = json.JSONDecoder()

    def token(place: int) -> int:
        space = _SPACE.match(text, place)
        assert space is not None
        return space.end()

    place = token(0)
    if not text.startswith("[", place):
        json.loads(text)
        raise ValueError("is no list of tests")
    place = token(place + 1)
    if not text.startswith("]", place):
        while True:
            element, place = decoder.raw_decode(text, place)
            yield element
            place = token(place)
            if not text.startswith(",", place):
                break
            place = token(place + 1)
    if not text.startswith("]", place) or token(place + 1) != len(text):
        raise json.JSONDecodeError("no end of a list", "", 0)


def unpacked(text: str) -> str:
    """The text in base64(zlib(pickle(text))). Nothing in it is run, whatever it holds.

    Raises ValueError for anything else: other objects, rests behind the end, a size of more than
    MAX_DECODED_BYTES.
    """
    try:
        data = base64.b64decode(text.strip(), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("is neither JSON nor base64") from None
    return _unpickled(_inflated(data))


def _inflated(data: bytes) -> bytearray:
    """In pieces, and into one place: `decompress` would hold all of it twice."""
    stream = zlib.decompressobj()
    found = bytearray()
    try:
        while not stream.eof and (piece := stream.decompress(data, PIECE_BYTES)):
            found += piece
            data = stream.unconsumed_tail
            if len(found) > MAX_DECODED_BYTES:
                raise ValueError(f"unpacks to more than {MAX_DECODED_BYTES // 1024**2} MiB")
    except zlib.error:
        raise ValueError("what is in the base64 is not zlib data") from None
    if not stream.eof:
        raise ValueError("what is in the base64 ends too early")
    if stream.unused_data or stream.unconsumed_tail:
        raise ValueError("has something behind the end of the zlib data")
    return found


PICKLED_TEXT = re.compile(
    rb"(?:\x80[\x00-\x05])?(?:\x95.{8})?(?:\x8c(.)|X(.{4})|\x8d(.{8}))", re.DOTALL
)
"""How the pickle of a text begins, protocols 1 to 5: PROTO, FRAME, then SHORT_BINUNICODE,
BINUNICODE or BINUNICODE8 with the length of the text in bytes, little-endian.
"""

PICKLED_END = re.compile(rb"(?:\x95.{8})?(?:\x94|q.|r.{4})?\.", re.DOTALL)
"""What is behind the text: FRAME, MEMOIZE or BINPUT, STOP."""

PICKLED_LINE = re.compile(rb"V([^\n]*)\n(?:p\d+\n)?\.")
"""All of it in protocol 0: UNICODE, PUT, STOP."""


def _unpickled(data: bytearray) -> str:
    """The text in a pickle that is nothing else. It is read where it stands, no pickle is loaded.

    The opcodes are those of `pickletools`.
    """
    try:
        if line := PICKLED_LINE.fullmatch(data):
            return line[1].decode("raw-unicode-escape")
        if head := PICKLED_TEXT.match(data):
            end = head.end() + int.from_bytes(head[head.lastindex or 0], "little")
            if end < len(data) and PICKLED_END.fullmatch(data, end):
                return str(memoryview(data)[head.end() : end], "utf-8", "surrogatepass")
    except UnicodeDecodeError:
        pass
    raise ValueError("holds a pickle that is no plain text; it was not loaded")
