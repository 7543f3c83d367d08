"""What the page keeps of each answer, kind by kind, and how much of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from compare_folders import Made
from hypothesis import given
from hypothesis import strategies as st
from made_up import answers as made_up
from made_up import summary

from qualeval.compare import Options, compare
from qualeval.compare_runs import read_run
from qualeval.graders import letter
from qualeval.records import Answer, Completion, FailedRequest, Usage, sha256_text
from qualeval.report import answers
from qualeval.report.answers import OUTCOMES, PAIR_OUTCOMES, Entry, data_of
from qualeval.report.plot import bars, differences, intervals
from qualeval.report.read import Told
from qualeval.report.sides import Side, side_of, side_of_failure
from qualeval.tasks import TASKS

Json = dict[str, Any]


def answer(**fields: Any) -> Answer:
    """A finished answer of which only the given fields matter."""
    raw: Json = {"id": 1, "repeat": 0, "request_sha256": "0" * 64, "attempts": 1, "text": "B"}
    raw |= {"reasoning": None, "reasoning_source": "none", "finish_reason": "stop", "cut_by": None}
    raw |= {"usage": {}, "cached_tokens": None, "seconds": None, "time_to_first_token": None}
    raw |= {"ended": None, "stratum": None, "gold": None, "order": None, "extracted": None}
    raw |= {"rule": "bare", "right": True, "partial": None, "cut_off": False, "reason": "r"}
    return Answer.model_validate(raw | {"details": None} | fields)


def graded(part: str, row: Json, text: str, **completion: Any) -> Side:
    """A reply to an item of a user's list, graded as a run does it."""
    task = TASKS[part]
    task.prepare()
    item = task.item(row)
    reply = Completion(text=text, finish_reason="stop", **completion)
    verdict = task.grade(item, reply)
    facts = {**dict(verdict), "stratum": item.stratum, "gold": item.gold, "order": item.order}
    fields = {name: getattr(reply, name) for name in ("text", "cut_by", "reasoning")}
    return side_of(Told(answer(**facts, **fields)))


def facts(side: Side) -> dict[str, str]:
    return dict(side.facts)


LETTERS: Json = {"id": 1, "question": "?", "options": ["red", "green", "blue"], "answer": "B"}


def test_letter_is_marked_where_it_was_read() -> None:
    """The span that decided, by code points of the reply."""
    text = "\U0001f600 Answer: **B**"
    side = graded("mmlupro", LETTERS, text)
    reading = letter.read_letter(text, LETTERS["options"])
    assert side.span == reading.span
    assert (side.given, side.wanted) == (reading.letter or "none", "key B")
    (piece,) = [p for p in record(side)["text"] if isinstance(p, list)]
    assert piece[0] == "mark" and "B" in piece[1]


def record(side: Side, limit: int | None = None) -> Json:
    fields: Json = json.loads(json.dumps(answers._record(side, limit, {})))
    return fields


def test_cut_off_answer_shows_the_letter_seen_and_is_not_right() -> None:
    """Whatever the text says."""
    side = graded("mmlupro", LETTERS, "B", cut_by="max_tokens")
    assert (side.outcome, side.given) == ("cut off", "B")


def test_each_instruction_is_followed_or_not_with_why() -> None:
    """Strictly and loosely."""
    row = {
        "key": 1,
        "prompt": "p",
        "instruction_id_list": ["punctuation:no_comma", "detectable_format:title"],
        "kwargs": [{}, {}],
    }
    side = graded("ifeval", row, "No comma here")
    assert [(id, strict) for id, strict, _, _ in side.instructions] == [
        ("punctuation:no_comma", True),
        ("detectable_format:title", False),
    ]
    assert all(why for *_, why in side.instructions)
    assert side.given == "1 of 2 followed"
    assert "why" not in facts(side)


def test_wanted_values_are_named_or_missing() -> None:
    """And those that nobody asked for are told."""
    row = {"id": "vt-1", "task": "vt", "expected": ["AAA", "BBB"], "distractors": ["CCC"]}
    side = graded("ruler", row, "AAA and CCC")
    assert dict(side.values) == {
        "named": ["AAA"],
        "missing": ["BBB"],
        "not asked for": ["CCC"],
    }
    assert side.given == "1 of 2 named"
    assert facts(side)["wanted"] == "AAA, BBB"


def test_verdict_on_a_program_is_shown_with_its_code_and_measures() -> None:
    """In units, with the sandbox; the code is a text of its own."""
    details = {"verdict": "wrong_answer", "failed_test": 3, "tests": 12, "cpu_ms": 1234}
    details |= {"max_rss_mib": 40, "sandbox": "bubblewrap", "same_as_official": True}
    code = "import sys\nprint(1)"
    one = answer(extracted=code, rule="wrong_answer", right=False, details=details)
    side = side_of(Told(one))
    assert (side.given, side.wanted, side.code) == ("wrong answer, test 3", "", code)
    said = facts(side)
    assert said["most CPU of a test"] == "1,234 ms" and said["most memory of a test"] == "40 MiB"
    assert said["failed test, counted from 0, public ones first"] == "3"
    assert said["tests run"] == "12" and said["LiveCodeBench takes the same program"] == "yes"
    assert "read as" not in said


def test_count_that_no_server_told_is_not_zero() -> None:
    """Not reported is said so."""
    side = side_of(Told(answer(usage=Usage(prompt_tokens=3))))
    assert facts(side)["tokens in, out"] == "3, not reported"
    assert facts(side)["tokens from a cache"] == "not reported"
    assert facts(side)["seconds"] == "not reported"


def test_option_order_is_told_by_what_stood_there() -> None:
    """Slot 0 is the right one."""
    side = side_of(Told(answer(order=(2, 0, 1, 3), gold="B")))
    assert facts(side)["options in the order"] == "wrong 2, right, wrong 1, wrong 3"


@pytest.mark.parametrize("span", [None, [5, 9], [1], ["a", 2], [1, 0], "B", [-1, 1]])
def test_span_that_is_no_place_in_the_text_marks_nothing(span: object) -> None:
    """A file made elsewhere may hold anything."""
    side = side_of(Told(answer(details={"span": span})))
    assert side.span is None
    assert record(side)["text"] == "B"


def test_details_of_unknown_kind_are_told_by_name() -> None:
    """A new grader needs no change here."""
    details = {"new_thing": {"a": [1, None]}, "share": 0.123456789, "nothing": None}
    said = facts(side_of(Told(answer(details=details))))
    assert said["new thing"] == '{"a": [1, null]}'
    assert said["share"] == "0.123457" and said["nothing"] == "none"


def test_details_that_only_look_like_a_known_kind_are_shown_as_they_are() -> None:
    """No traceback for a verdict from elsewhere."""
    details = {"instructions": "x", "found": 3, "missing": [1]}
    said = facts(side_of(Told(answer(details=details))))
    assert said["instructions"] == "x" and said["found"] == "3"


def test_request_given_up_is_an_error_and_no_wrong_answer() -> None:
    """With its kind."""
    failed = FailedRequest(
        id=1, repeat=0, kind="timeout", message="no byte", attempts=5, ended="2026-01-01T00:00:00Z"
    )
    side = side_of_failure(failed)
    assert (side.outcome, side.text) == ("error", None)
    assert side.reason == "Given up after 5 attempts: timeout: no byte"
    assert facts(side)["ended"] == "2026-01-01 00:00:00 UTC"
    once = side_of_failure(failed.model_copy(update={"attempts": 1}))
    assert once.reason == "Given up after 1 attempt: timeout: no byte"


def test_moments_are_written_as_everywhere_on_the_page() -> None:
    """To the second, where an answer ended."""
    side = side_of(Told(answer(ended="2026-11-30T20:33:02.044Z")))
    assert facts(side)["ended"] == "2026-11-30 20:33:02 UTC"


def test_hash_that_nobody_told_is_unknown() -> None:
    """As in the conditions of its part."""
    said = facts(side_of(Told(answer(details={"tokenizer_sha256": None}))))
    assert said["tokenizer sha256"] == "unknown"


@pytest.mark.parametrize(
    ("fields", "brief"),
    [
        ({"extracted": "B"}, "B"),
        ({"cut_off": True, "rule": "cut_off", "details": {"letter_seen": "B"}}, "cut off"),
        ({"rule": "no_letter", "details": {}}, "no letter"),
        ({"rule": "misrouted", "details": {"letter_seen": "B"}}, "misrouted"),
        ({"rule": "not_followed:1", "details": {"strict_inst": [True, False]}}, "1 of 2 followed"),
        ({"rule": "no_code", "details": {"verdict": "no_code"}}, "no code"),
    ],
)
def test_side_of_a_pair_says_why_it_does_not_count(fields: Json, brief: str) -> None:
    """Beside the other one, before it is opened: a letter of a cut-off reply is no answer."""
    side = side_of(Told(answer(**fields)))
    assert side.brief == brief
    other = side_of(Told(answer(extracted="A")))
    entry = Entry("1", 0, "mmlupro", "lost", "", (other, side), None)
    rows = json.loads(data_of("pair", [("mmlupro", "")], PAIR_OUTCOMES, [entry]).index)["rows"]
    assert rows[0][6] == f"A → {brief}"


# How much is kept


def entries(texts: Sequence[str]) -> list[Entry]:
    sides = [side_of(Told(answer(id=n, text=text))) for n, text in enumerate(texts)]
    return [
        Entry(str(n), 0, "mmlupro", side.outcome, "", (side,), None) for n, side in enumerate(sides)
    ]


def made(texts: Sequence[str]) -> answers.Data:
    return data_of("run", [("mmlupro", "MMLU-Pro")], OUTCOMES, entries(texts))


def test_texts_are_whole_while_they_fit() -> None:
    """A single line of a megabyte, too."""
    data = made(["x" * 1_000_000, "short"])
    assert data.limit is None
    assert json.loads(data.records[0])[0][0]["text"] == "x" * 1_000_000


def test_texts_that_do_not_fit_keep_their_ends_and_say_what_is_missing() -> None:
    """All by one rule; short ones stay whole; everything stays below the budget."""
    data = made(["a" * 12_000_000 + "end", "b" * 15_000_000, "short"])
    assert data.limit is not None
    (long,), _, (short,) = json.loads(data.records[0])
    head, (kind, left_out), tail = long["text"]
    assert kind == "cut" and tail.endswith("end")
    assert len(head) + left_out + len(tail) == 12_000_003
    assert len(head) + len(tail) == data.limit
    assert short["text"] == "short"
    assert sum(map(len, data.records)) + len(data.index) <= answers.BUDGET
    assert set(str(data.limit)[2:]) <= {"0"}, "two digits that can be said"


@given(
    st.text(max_size=60),
    st.integers(0, 60),
    st.tuples(st.integers(0, 60), st.integers(0, 60)),
)
def test_pieces_of_a_text_are_the_text(text: str, limit: int, ends: tuple[int, int]) -> None:
    """Whatever is cut and marked: the rest stands there in its order, the mark is in the span."""
    start, end = min(ends), min(max(ends), len(text))
    span = (start, end) if start < end else None
    found = answers._cut(text, limit, span)
    pieces = found if isinstance(found, list) else [found]
    plain = "".join(p if isinstance(p, str) else p[1] if p[0] == "mark" else "" for p in pieces)
    left_out = sum(p[1] for p in pieces if isinstance(p, list) and p[0] == "cut")
    if len(text) <= limit:
        assert plain == text and left_out == 0
        marks = [p[1] for p in pieces if isinstance(p, list)]
        assert marks == ([text[span[0] : span[1]]] if span else [])
    else:
        assert len(plain) == limit and left_out == len(text) - limit
        assert plain == text[: limit // 2] + text[len(text) - (limit - limit // 2) :]


def test_many_answers_are_in_blocks_and_each_is_found() -> None:
    """Row n is record n % block of block n // block."""
    data = made([f"text {n}" for n in range(250)])
    index = json.loads(data.index)
    assert [len(json.loads(block)) for block in data.records] == [100, 100, 50]
    for n in (0, 99, 100, 249):
        block = json.loads(data.records[n // index["block"]])
        assert block[n % index["block"]][0]["text"] == index["rows"][n][7] == f"text {n}"


def test_first_words_of_a_reply_are_one_short_line() -> None:
    """However it begins."""
    rows = json.loads(made(["\n\n  a\n b" + "c" * 500]).index)["rows"]
    assert rows[0][7].startswith("a bccc") and len(rows[0][7]) == answers.FIRST_WORDS


def test_hash_of_a_text_is_no_part_of_the_page() -> None:
    """A request's hash tells nothing to a reader, and gives prompts away to a guesser."""
    assert sha256_text("x") not in made(["x"]).records[0]
    assert "0" * 64 not in made(["x"]).records[0]


# Plots


def test_plot_places_are_the_published_row() -> None:
    """259 of 400, 59 cut off: 64.75 %, 59.95 to 69.27, at most 79.5."""
    (mark,) = intervals([summary(made_up(259, 82, 59))]).marks
    assert (mark.point, mark.low, mark.high) == ("64.75%", "59.95%", "69.27%")
    assert (mark.least, mark.most) == ("64.75%", "79.50%")
    assert (mark.cut_from, mark.cut_width) == ("64.75%", "14.75%")
    assert mark.value == "64.8 % (59.9 to 69.3), 14.8 % cut off"


def test_plot_of_an_incomplete_part_has_no_result() -> None:
    """Only the bounds."""
    (mark,) = intervals([summary(made_up(3, 1, 0), n=6)]).marks
    assert (mark.point, mark.low, mark.value) == (None, None, "incomplete")
    assert (mark.least, mark.most) == ("50.00%", "83.33%")
    (mark,) = intervals([summary(made_up(3, 1, 1), n=10)]).marks
    assert mark.value == "incomplete, 20.0 % of 5 answers cut off", "as its note says"
    assert (mark.cut_from, mark.cut_width) == ("30.00%", "10.00%"), "on the line of all questions"


def test_plot_names_lists_of_the_operator() -> None:
    """Their rows are not the published ones."""
    row = summary(made_up(3, 1, 0))
    assert intervals([row], {row.part}).marks[0].title == f"{row.title} (own list)"
    assert intervals([row]).marks[0].title == row.title


def test_counts_of_strata_have_their_thousands_marked() -> None:
    assert bars([("all", 6811, 12000)]) == [("all", "6,811 / 12,000", "56.76%")]


def test_plot_of_differences_has_zero_in_the_middle(tmp_path: Path) -> None:
    """And reaches as far as its widest interval."""
    folder = Made(tmp_path)
    runs = [folder.run("old", "r" * 40), folder.run("new", "r" * 30 + "w" * 10)]
    base, new = (read_run(path, path.name) for path in runs)
    plot = differences(compare([base], [new], Options()))
    (mark,) = plot.marks
    assert plot.zero == "50.00%"
    assert [word for _, word in plot.ticks] == ["-50", "-25", "0", "+25", "+50"]
    assert mark.point == "25.00%" and mark.value.startswith("-25.0 points")
