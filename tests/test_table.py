"""The printed table: the published rows as published, and nothing that looks better than it is."""

from dataclasses import replace
from typing import Any

import pytest
from made_up import (
    CUT,
    LETTERS,
    WRONG,
    StandInTask,
    answer,
    answers,
    failure,
    session,
    summary,
    thinking,
)

from qualeval.contract import ListCondition
from qualeval.records import NOT_COMPARABLE, SUITE, RunSummary, Summary, Usage
from qualeval.summarize import summarize_run
from qualeval.table import (
    footer,
    markdown_table,
    notes,
    percent_of,
    points,
    rows,
    text_table,
    thousands,
    totals,
)

PUBLISHED = [
    # part, title, subtitle, max_tokens, thinking, right, n, cut off, result as published
    ("mmlupro", "MMLU-Pro", "400 fixed questions, letter only", 259, 400, 59, "64.8 % ± 4.7 pts"),
    ("gpqa", "GPQA Diamond", "198 questions, letter only", 75, 198, 60, "37.9 % ± 6.7 pts"),
    ("ifeval", "IFEval", "200 fixed prompts, strict", 180, 200, 0, "90.0 % ± 4.2 pts"),
    ("lcb", "LiveCodeBench", "40 newest tasks, the code runs", 27, 40, 0, "67.5 % ± 13.9 pts"),
    ("ruler8k", "Long text 8K", "4 tasks x 10", 29, 40, 1, "72.5 % ± 13.4 pts"),
    ("ruler32k", "Long text 32K", "4 tasks x 10", 24, 40, 0, "60.0 % ± 14.5 pts"),
    ("think", "GPQA 30, thinking on", "30 questions", 25, 30, 4, "83.3 % ± 13.1 pts"),
]
SAMPLE = ListCondition(id="sample/mmlupro", kind="sample", sha256="0" * 64, items=4)


def published(
    part: str, title: str, subtitle: str, right: int, n: int, cut: int, _: str
) -> Summary:
    task = StandInTask(part, title, subtitle)
    task = thinking(task) if part == "think" else task
    reasoning = "hm" if part == "think" else None
    return summary(answers(right, n - right - cut, cut, reasoning=reasoning), task=task)


def published_run() -> RunSummary:
    return summarize_run("ds41f", {row[0]: published(*row) for row in PUBLISHED})


def run_of(*parts: Summary) -> RunSummary:
    return summarize_run("x", {f"part {n}": part for n, part in enumerate(parts)})


# Rounding


@pytest.mark.parametrize(
    ("right", "n", "expected"),
    [
        (259, 400, "64.8"),
        (75, 198, "37.9"),
        (120, 918, "13.1"),
        (49, 400, "12.3"),
        (1, 8, "12.5"),
        (1, 2000, "0.1"),
        (0, 7, "0.0"),
        (7, 7, "100.0"),
    ],
)
def test_percent_is_rounded_half_up_from_the_integers(right: int, n: int, expected: str) -> None:
    """259 of 400 is 64.75 and prints 64.8; 49 of 400 is 12.25 and prints 12.3, not 12.2."""
    assert expected == percent_of(right, n)


@pytest.mark.parametrize(
    ("value", "expected"), [(2182.5, "2,183"), (2, "2"), (0.5, "1"), (1234567.4, "1,234,567")]
)
def test_tokens_are_rounded_half_up_with_thousands_marked(value: float, expected: str) -> None:
    """The published median, 2182.5, prints 2,183."""
    assert expected == thousands(value)


def test_points_are_a_share_times_hundred() -> None:
    """An exact half goes up."""
    assert ("12.5", "12.3", "13") == (points(0.125), points(0.12250001), points(0.125, 0))


# The published table


@pytest.mark.parametrize("row", PUBLISHED, ids=lambda row: str(row[0]))
def test_published_row_prints_as_published(row: tuple[str, str, str, int, int, int, str]) -> None:
    """DESIGN 8: the seven rows, each with right / n, margin and number of cut-off answers."""
    _, title, subtitle, right, n, cut, result = row
    first, second, *_ = rows(published(*row))
    assert (title, result, f"{right} / {n}", str(cut)) == first[:4]
    assert second[0].strip().startswith(subtitle)


def test_low_and_high_stand_beside_the_margin() -> None:
    """stats.md 2: ± is not the interval; both are printed, always."""
    (first, *_) = rows(published(*PUBLISHED[-1]))
    assert "66.4 to 92.7" == first[4]
    assert "is not centred on the result" in "\n".join(footer([published(*PUBLISHED[-1])]))


def test_totals_are_the_published_ones() -> None:
    """120 of 918 = 13.1 %, over the six rows with thinking off."""
    said = "Cut off over all parts with thinking off: 120 of 918 = 13.1 %"
    assert said == totals(published_run())
    assert f"{said}." in text_table(published_run())


def test_whole_table_holds_every_row_in_aligned_columns() -> None:
    """A person pastes it: the figures of a column end at one place."""
    lines = text_table(published_run()).split("\n")
    shown = [line for line in lines if " pts " in line]
    assert [row[1] for row in PUBLISHED] == [line.split("   ")[0].rstrip() for line in shown]
    assert 1 == len({line.index(" pts ") for line in shown})
    assert 1 == len({line.index(" to ") for line in shown})
    assert all(line == line.rstrip() for line in lines)
    assert "ds41f · m" == lines[0]


def test_one_part_has_no_totals() -> None:
    """They would be the row again."""
    assert totals(run_of(summary(answers(1)))) is None


def test_wide_characters_take_two_columns() -> None:
    """Labels and titles may be in any script."""
    wide = StandInTask("mmlupro", "長文", "x")
    parts = run_of(summary(answers(1), task=wide), summary(answers(2)))
    shown = [line for line in text_table(parts).split("\n") if " pts " in line]
    at = [line.index(" pts ") + sum(c in "長文" for c in line) for line in shown]
    assert 1 == len(set(at))


# Incomplete


def incomplete() -> Summary:
    """sta-03: 80 right, 10 wrong, 10 failed."""
    return summary(answers(80, 10), n=100, failures=[failure(n) for n in range(90, 100)])


def test_incomplete_part_prints_no_headline() -> None:
    """sta-03: never 80/90 = 88.9 %, no percentage at all in its row."""
    first, *_ = rows(incomplete())
    assert "incomplete (10 failed)" == first[1]
    assert "%" not in "".join(first)
    assert "88.9" not in text_table(run_of(incomplete()))


def test_incomplete_part_prints_its_bounds() -> None:
    """sta-03: bounds "80/100 to 90/100"."""
    assert "80/100 to 90/100" in "\n".join(" ".join(row) for row in rows(incomplete()))


def test_errors_are_told_by_kind_with_the_file() -> None:
    """Where to look."""
    (line,) = [line for line in notes(run_of(incomplete())) if line.startswith("Errors")]
    assert "Errors, MMLU-Pro: 10 x timeout; see mmlupro.errors.jsonl." == line


def test_part_that_was_not_asked_at_all_prints_a_whole_table() -> None:
    """Every line ends as a sentence; nothing is divided by zero."""
    text = text_table(run_of(summary([], n=4)))
    assert "incomplete (4 not asked yet)" in text
    assert "Cached tokens: \n" not in text
    assert not text.endswith(": ")


def test_no_part_is_said_in_words() -> None:
    """An empty run folder."""
    assert "no part has been run yet" == text_table(run_of())


# Rows that need a word


def effort(given: list[Any], **fields: Any) -> str:
    *_, last = rows(summary(given, task=thinking(LETTERS), **fields))
    return last[0].strip()


def test_thinking_row_has_a_second_line_with_tokens_and_seconds() -> None:
    """DESIGN 8: median tokens, seconds per question."""
    given = [
        answer(n, usage=Usage(completion_tokens=t), seconds=s, reasoning="hm")
        for n, (t, s) in enumerate([(1, 1), (2000, 100), (2365, 150.2), (9000, 300)])
    ]
    assert "median 2,183 tokens, 125.1 s per question" == effort(given)


def test_seconds_of_a_part_that_was_not_alone_are_marked() -> None:
    """DESIGN 6: (mixed load)."""
    said = effort(answers(1, reasoning="hm"), sessions=[session(alone=False)])
    assert said.endswith("s per question (mixed load)")


def test_unknown_effort_is_said_to_be_unknown() -> None:
    """A server that reports no usage."""
    given = [answer(1, usage=Usage(), seconds=None)]
    assert "tokens and seconds not known" == effort(given)
    assert "median 2 tokens" == effort([answer(1, seconds=None)])
    assert "0.5 s per question" == effort([answer(1, usage=Usage())])


def test_row_without_thinking_has_no_effort_line() -> None:
    """Two lines: row and subtitle."""
    assert 2 == len(rows(summary(answers(1))))


def test_value_off_the_method_is_labelled() -> None:
    """DESIGN 4: "not the published limits"."""
    row = summary(answers(1), limits=("max_tokens 300 instead of 16,384",), repeats=1)
    said = "400 fixed questions, letter only; not the published limits: "
    assert f"{said}max_tokens 300 instead of 16,384" == rows(row)[1][0].strip()


def test_repeats_are_labelled() -> None:
    """n counts answers then, not questions."""
    given = [answer(n, repeat=r) for n in range(2) for r in range(3)]
    row = summary(given, n=2, repeats=3)
    assert rows(row)[1][0].endswith("; 3 answers a question")


def test_figures_beside_the_score_stand_below_it() -> None:
    """IFEval's other levels, in percent."""
    task = StandInTask("ifeval", "IFEval", "strict", shown={"loose prompts": (1, 1)})
    assert "beside it: loose prompts 100.0 %" == rows(summary(answers(1), task=task))[2][0].strip()
    open_part = summary(answers(1), task=task, n=2)
    assert not any("beside it" in row[0] for row in rows(open_part))


def test_sample_list_is_marked_in_row_and_footer() -> None:
    """DESIGN 7: labelled everywhere, never looks like a benchmark result."""
    row = summary(answers(4), list=SAMPLE)
    assert row.sample_list
    for text in (text_table(run_of(row)), markdown_table(run_of(row))):
        assert "sample list" in text
        assert "SAMPLE LIST" in text
        assert "not a benchmark result" in text
        assert "400 fixed questions" not in text
    assert "sample list" in "\n".join(" ".join(line) for line in rows(row))


def test_own_list_does_not_carry_the_published_subtitle() -> None:
    """A user's questions are not the 400."""
    own = ListCondition(id="file:mine.jsonl", kind="file", sha256="0" * 64, items=4)
    said = rows(summary(answers(4), list=own))[1][0]
    assert "own list" in said
    assert "400" not in said


# Footer and notes


def test_footer_says_what_must_stand_under_every_table() -> None:
    """DESIGN 8: thinking, seed, sampling source, cut-off rule, suite version, date."""
    text = "\n".join(footer([summary(answers(1))]))
    for words in (
        *("Thinking off;", "seed 42;", "sampling: model card.", SUITE, NOT_COMPARABLE),
        *("A cut-off answer counts as wrong.", "2026-11-30", "Prompt cache off"),
    ):
        assert words in text


def test_footer_tells_of_parts_that_differ() -> None:
    """Both modes, both sources, first and last day."""
    other = summary(
        answers(1, reasoning="hm"),
        task=thinking(LETTERS),
        sessions=[session(started="2026-12-02T00:00:00.000Z")],
        sampling_source=None,
        seed=7,
    )
    text = "\n".join(footer([summary(answers(1)), other]))
    assert "Thinking off and on as each row says; seed 42, 7;" in text
    assert "sampling: model card; source not stated." in text
    assert "2026-11-30 to 2026-12-02" in text


def cache_line(*counts: int | None) -> str:
    parts = [
        summary([answer(1, cached_tokens=count)], task=replace(LETTERS, title=f"Part {number}"))
        for number, count in enumerate(counts)
    ]
    (line,) = [line for line in footer(parts) if line.startswith("Prompt cache")]
    return line.split(". ", 1)[1]


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ((0, 0), "Checked: no cached tokens."),
        ((None, None), "Cached tokens: not reported by this server."),
        ((64,), "Cached tokens: Part 0: 64 in 1 answers"),
        (
            (0, None, 64),
            "Cached tokens: Part 0: none cached; Part 1: not reported by this server; "
            "Part 2: 64 in 1 answers",
        ),
    ],
)
def test_cache_check_is_printed_in_its_three_states(
    counts: tuple[int | None, ...], expected: str
) -> None:
    """DESIGN 6: 0 is never printed for "not reported"."""
    line = cache_line(*counts)
    assert expected.removesuffix(".") == line.removesuffix(".")
    if 0 not in counts and None in counts:
        assert "0" not in line.replace("Part 0", "")


@pytest.mark.parametrize(
    ("starts", "expected"),
    [(("a", "a"), "yes"), (("a", "b"), "no"), (("a", None), "not known")],
)
def test_server_starts_are_told(starts: tuple[str | None, ...], expected: str) -> None:
    """Yes, no or not known."""
    parts = [
        summary(answers(1), sessions=[session(server={"process_started": start})])
        for start in starts
    ]
    assert f"All parts on one server start: {expected}." in notes(run_of(*parts))


def test_warnings_are_printed_with_their_part() -> None:
    """A reader of the table sees them, not only a reader of the file."""
    row = summary([answer(1, reasoning="hm"), answer(2, **CUT), answer(3, **WRONG)])
    said = [line for line in notes(run_of(row)) if line.startswith("Note, MMLU-Pro: ")]
    assert len(row.warnings) == len(said) == 2


# Markdown


def test_markdown_has_the_same_rows_notes_and_footer() -> None:
    """The table a person pastes into a page."""
    text = markdown_table(published_run())
    for row in PUBLISHED:
        assert f"| **{row[1]}**<br>" in text
        assert f"| {row[6]} | {row[3]} / {row[4]} | {row[5]} |" in text
    for line in [*notes(published_run()), *footer(list(published_run().parts.values()))]:
        assert f"- {line}" in text
    widths = {line.count("|") for line in text.split("\n") if line.startswith("|")}
    assert 1 == len(widths)


def test_markdown_of_a_label_that_holds_markup_is_escaped() -> None:
    """A label is text: no column more, no tag."""
    task = StandInTask("mmlupro", "a|b", "c\nd")
    run = summarize_run("x <b> | y", {"mmlupro": summary(answers(1), task=task)})
    text = markdown_table(run)
    assert text.startswith("## x &lt;b> \\| y · m\n")
    assert "| **a\\|b**<br>c d |" in text
