"""Answers to numbers: what counts as what, and what is never printed."""

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
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
from qualeval.records import InFlight, Usage
from qualeval.stats import half_up, wilson
from qualeval.summarize import summarize_run


def server(start: str | None, **facts: Any) -> dict[str, Any]:
    return {"models": ["m"], "process_started": start, **facts}


# The headline


@pytest.mark.parametrize(
    ("right", "n", "cut", "margin", "low", "high"),
    [
        (259, 400, 59, "4.7", 0.5995, 0.6927),
        (75, 198, 60, "6.7", 0.3141, 0.4481),
        (180, 200, 0, "4.2", 0.8506, 0.9343),
        (27, 40, 0, "13.9", 0.5202, 0.7992),
        (29, 40, 1, "13.4", 0.5716, 0.8389),
        (24, 40, 0, "14.5", 0.4460, 0.7365),
        (25, 30, 4, "13.1", 0.6644, 0.9266),
    ],
)
def test_published_rows_have_their_published_margins(
    right: int, n: int, cut: int, margin: str, low: float, high: float
) -> None:
    """sta-02: half of the Wilson interval's width, without correction, on all seven rows."""
    row = summary(answers(right, n - right - cut, cut))
    assert row.margin is not None
    assert margin == half_up(Fraction(row.margin) * 100, 1)
    assert (right, n, cut, right / n) == (row.right, row.n, row.cut_off, row.accuracy)
    assert pytest.approx(low, abs=6e-5) == row.ci_low
    assert pytest.approx(high, abs=6e-5) == row.ci_high
    assert ("wilson", 0.95, "ok") == (row.ci_method, row.confidence, row.status)


def test_cut_answers_are_wrong_and_counted_apart() -> None:
    """trc-01: one right, three cut; n stays 4."""
    row = summary(answers(1, 0, 3))
    assert (1, 3, 4, 0.25) == (row.right, row.cut_off, row.n, row.accuracy)


def test_cut_answers_are_counted_by_what_cut_them() -> None:
    """DESIGN 6: cut by the cap and cut by the context are counted apart."""
    kinds = ["max_tokens", "context", "context", "unclosed_thinking"]
    row = summary([answer(n, **(CUT | {"cut_by": kind})) for n, kind in enumerate(kinds)])
    assert {"context": 2, "max_tokens": 1, "unclosed_thinking": 1} == row.cut_by
    assert 4 == row.cut_off


@settings(max_examples=50)
@given(st.integers(0, 30), st.integers(0, 30), st.integers(0, 30))
def test_counts_add_up_and_the_interval_holds_the_share(right: int, wrong: int, cut: int) -> None:
    """For any counts."""
    row = summary(answers(right, wrong, cut))
    n = right + wrong + cut
    if not n:
        assert ("incomplete", "the list is empty") == (row.status, row.incomplete_because)
        return
    assert row.accuracy is not None
    assert row.ci_low is not None
    assert row.ci_high is not None
    assert row.ci_low <= right / n == row.accuracy <= row.ci_high
    assert (right / n, (right + cut) / n) == row.bounds
    assert n == sum(row.rules.values())


def test_right_among_finished_is_labelled_as_no_score() -> None:
    """stats.md 8: 259 of 341 finished, 71.1 to 80.2, and what it is not."""
    finished = summary(answers(259, 82, 59)).among_finished
    assert finished is not None
    assert "of finished answers only, not a score" == finished.label
    assert (259, 341, 259 / 341) == (finished.right, finished.n, finished.accuracy)
    expected = wilson(259, 341)
    assert (expected.low, expected.high) == (finished.ci_low, finished.ci_high)


def test_part_whose_answers_were_all_cut_has_no_share_among_finished() -> None:
    """thk-07: thinking that could not be switched off; no division by zero."""
    row = summary(answers(0, 0, 5))
    assert row.among_finished is not None
    assert (0, None, None) == (
        row.among_finished.n,
        row.among_finished.accuracy,
        row.among_finished.ci_low,
    )
    assert (0.0, (0.0, 1.0)) == (row.accuracy, row.bounds)


# Incomplete


def test_failed_requests_leave_the_part_incomplete_and_n_as_it_is() -> None:
    """sta-03: 80 right, 10 wrong, 10 failed: 80/100 to 90/100, never 80/90 = 88.9 %."""
    lost = [failure(n) for n in range(90, 100)]
    row = summary(answers(80, 10), n=100, failures=lost)
    assert ("incomplete", "10 failed") == (row.status, row.incomplete_because)
    assert (80, 90, 100, 10) == (row.right, row.answered, row.n, row.errors)
    assert (0.8, 0.9) == row.bounds
    nothing = (row.accuracy, row.margin, row.ci_low, row.ci_high, row.ci_method, row.among_finished)
    assert (None,) * 6 == nothing


@pytest.mark.parametrize(
    ("answered", "failed", "limit", "why"),
    [
        (3, 0, None, "7 not asked yet"),
        (3, 2, None, "2 failed, 5 not asked yet"),
        (8, 2, None, "2 failed"),
        (5, 0, 5, "limit 5"),
        (4, 1, 5, "limit 5, 1 failed"),
        (3, 0, 5, "7 not asked yet"),
        (0, 0, None, "10 not asked yet"),
    ],
)
def test_reason_for_an_incomplete_part_is_told(
    answered: int, failed: int, limit: int | None, why: str
) -> None:
    """res-03: a limited part is `incomplete (limit 5)`, and what failed is told apart."""
    row = summary(
        answers(answered),
        n=10,
        failures=[failure(100 + n) for n in range(failed)],
        sessions=[session(items=limit or 10)],
    )
    assert ("incomplete", why) == (row.status, row.incomplete_because)


def test_complete_part_has_no_reason_to_be_incomplete() -> None:
    """Also when its first session was limited."""
    row = summary(answers(10), sessions=[session(items=5), session(items=10)])
    assert ("ok", None) == (row.status, row.incomplete_because)


def test_part_without_a_session_is_not_asked_yet() -> None:
    """A contract that was written before the first request, and no more."""
    row = summary([], n=4, sessions=[session(in_flight=None, wall_time=None, ended=None)])
    assert ("4 not asked yet", None, 0.0) == (row.incomplete_because, row.in_flight, row.wall_time)


def test_errors_are_counted_by_kind() -> None:
    """Most frequent first."""
    lost = [failure(1), failure(2, kind="http_500"), failure(3, kind="http_500")]
    row = summary(answers(0), n=3, failures=lost)
    assert [("http_500", 2), ("timeout", 1)] == list(row.error_kinds.items())


# Repeats


def repeated(*scores: str) -> list[Any]:
    """Answers to one question a text, one letter a repeat: R right, w wrong."""
    return [
        answer(id, repeat=repeat, **({} if mark == "R" else WRONG))
        for id, marks in enumerate(scores)
        for repeat, mark in enumerate(marks)
    ]


def test_repeats_are_counted_as_answers_over_questions() -> None:
    """Two answers a question: 8 answers, and an interval over 4 questions."""
    row = summary(repeated("RR", "Rw", "ww", "RR"), n=4, repeats=2)
    assert ("ok", 8, 5, 0.625) == (row.status, row.n, row.right, row.accuracy)
    assert row.ci_low is not None
    assert row.ci_high is not None
    assert row.ci_high - row.ci_low > 0.4
    assert "wilson" != row.ci_method


def test_one_repeat_short_is_incomplete() -> None:
    """n is questions times repeats."""
    row = summary(repeated("RR", "R"), n=2, repeats=2)
    assert (4, "1 not asked yet") == (row.n, row.incomplete_because)


@pytest.mark.parametrize("lost", [0, 1, 2, 100, 198, 199, 200])
def test_interval_of_repeats_stays_between_none_and_all(lost: int) -> None:
    """A t interval near the ends runs over them; the shares of a summary cannot."""
    marks = ["w" * min(2, max(0, lost - 2 * n)) for n in range(100)]
    row = summary(repeated(*(m.ljust(2, "R") for m in marks)), n=100, repeats=2)
    assert row.ci_low is not None
    assert row.ci_high is not None
    assert 0 <= row.ci_low <= 1 - lost / 200 <= row.ci_high <= 1


@pytest.mark.parametrize(
    ("questions", "method"), [(99, "bootstrap-percentile"), (100, "t-clustered")]
)
def test_method_for_repeats_depends_on_the_number_of_questions(questions: int, method: str) -> None:
    """stats.py: t goes wrong below 100 questions."""
    row = summary(repeated(*["Rw", "RR"] * 49, *["ww"] * (questions - 98)), n=questions, repeats=2)
    assert method == row.ci_method


@pytest.mark.parametrize(("marks", "right"), [("RRR", 10), ("www", 0)])
def test_all_repeats_alike_is_no_certainty(marks: str, right: int) -> None:
    """Ten questions all right three times: the interval of ten questions, not ± 0.0."""
    row = summary(repeated(*[marks] * 10), n=10, repeats=3)
    expected = wilson(right, 10)
    assert (expected.low, expected.high) == (row.ci_low, row.ci_high)


# Strata, rules, figures beside the score


def test_strata_are_counts_by_name() -> None:
    """k of n, sorted by name; an answer without one is in none."""
    given = [
        answer(1, stratum="law"),
        answer(2, stratum="law", **WRONG),
        answer(3, stratum="art", **CUT),
        answer(4),
    ]
    found = [(name, k.right, k.n) for name, k in summary(given).strata.items()]
    assert [("art", 0, 1), ("law", 1, 2)] == found


def test_rules_are_counted() -> None:
    """How the answers were read."""
    given = [answer(1), answer(2), answer(3, rule="anchored")]
    assert {"bare": 2, "anchored": 1} == summary(given).rules


def test_figures_beside_the_score_are_sums_over_answers() -> None:
    """As IFEval's three other levels; never mixed into the score."""
    task = StandInTask("ifeval", "IFEval", "", shown={"loose prompts": (1, 2)})
    row = summary(answers(1, 2), task=task)
    assert [("loose prompts", 3, 6)] == [(name, c.right, c.n) for name, c in row.beside.items()]
    assert 1 / 3 == row.accuracy


# Medians and time


def with_tokens(*tokens: int | None) -> list[Any]:
    return [answer(n, usage=Usage(completion_tokens=t)) for n, t in enumerate(tokens)]


def test_median_of_tokens_is_over_all_answers_cut_ones_too() -> None:
    """tasks.md 2.6: the published 2,182.5 is between two answers."""
    assert 2182.5 == summary(with_tokens(1, 2000, 2365, 16_384)).median_completion_tokens


def test_medians_are_unknown_where_nothing_was_reported() -> None:
    """Never 0."""
    given = [answer(1, usage=Usage(), seconds=None, ended=None)]
    row = summary(given)
    assert (None, None, None) == (row.median_completion_tokens, row.median_seconds, row.finished)


def test_median_of_tokens_leaves_out_what_was_not_reported() -> None:
    """None is no 0."""
    assert 6 == summary(with_tokens(4, None, 8)).median_completion_tokens


def test_wall_time_is_the_sum_over_sessions() -> None:
    """DESIGN 5; the mean in flight is weighted by their seconds."""
    one = session(wall_time=60.0, in_flight=InFlight(mean=4, most=4))
    two = session(
        started="2026-11-30T13:00:00.000Z", wall_time=20.0, in_flight=InFlight(mean=2, most=5)
    )
    row = summary(answers(2), sessions=[one, two])
    assert (80.0, InFlight(mean=3.5, most=5)) == (row.wall_time, row.in_flight)


def test_killed_session_ended_with_its_last_answer() -> None:
    """kill -9 writes no end: answers tell how long it ran."""
    lost = {"ended": None, "wall_time": None, "in_flight": None}
    sessions = [
        session(started="2026-11-30T12:00:00.000Z", wall_time=5.0),
        session(started="2026-11-30T13:00:00.000Z", **lost),
        session(started="2026-11-30T14:00:00.000Z", **lost),
        session(started="2026-11-30T15:00:00.000Z", wall_time=10.0),
    ]
    given = [
        answer(1, ended="2026-11-30T12:00:05.000Z"),
        answer(2, ended="2026-11-30T13:00:30.000Z"),
        answer(3, ended="2026-11-30T15:00:10.000Z"),
    ]
    row = summary(given, sessions=sessions)
    assert (5.0 + 30.0 + 0.0 + 10.0, "2026-11-30T15:00:10.000Z") == (row.wall_time, row.finished)
    assert "2026-11-30T12:00:00.000Z" == row.started


def test_part_that_never_ran_alone_is_told() -> None:
    """One shared session is enough: its seconds are those of mixed load."""
    sessions = [session(), session(alone=False, schedule="packed")]
    row = summary(answers(1), sessions=sessions)
    assert (False, "default, packed") == (row.alone, row.schedule)


# Cache


def cached(*counts: int | None) -> Any:
    check = summary([answer(n, cached_tokens=c) for n, c in enumerate(counts)]).cache_check
    return check.state, check.answers_with_cached_tokens, check.cached_tokens


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ((0, 0), ("none cached", 0, 0)),
        ((0, 64, 32), ("cached tokens seen", 2, 96)),
        ((None, 64), ("cached tokens seen", 1, 64)),
        ((None, None), ("not reported by this server", None, None)),
        ((None, 0), ("not reported by this server", None, None)),
        ((), ("not reported by this server", None, None)),
    ],
)
def test_cache_check_has_three_states(counts: tuple[int | None, ...], expected: Any) -> None:
    """DESIGN 6: never 0 for not reported; half a report is none, and a cached token is one."""
    assert expected == cached(*counts)


# Warnings


def warnings_of(given: list[Any], **fields: Any) -> tuple[str, ...]:
    return summary(given, **fields).warnings


def test_clean_part_has_no_warning() -> None:
    """Warnings mean something."""
    assert () == warnings_of(answers(3, 1))


def test_reasoning_with_thinking_off_is_warned_with_the_count() -> None:
    """thk-07."""
    given = [answer(1, reasoning="hm"), answer(2)]
    row = summary(given)
    assert 1 == row.items_with_reasoning
    assert ("thinking is off, yet 1 of 2 answers have reasoning",) == row.warnings


def test_missing_reasoning_with_thinking_on_is_warned_with_the_count() -> None:
    """thk-07: the part would measure an answer without thinking."""
    given = [answer(1, reasoning="hm"), answer(2)]
    said = warnings_of(given, task=thinking(LETTERS))
    assert ("thinking is on, yet 1 of 2 answers have no reasoning",) == said
    assert () == warnings_of([answer(1, reasoning="hm")], task=thinking(LETTERS))


def test_missing_switch_is_warned() -> None:
    """DESIGN 4: default none, with a warning."""
    said = warnings_of(answers(1), thinking_object=None)
    assert ("no thinking switch was sent (the card has no thinking.off)",) == said


def test_misrouted_answers_are_warned_with_the_count() -> None:
    """tasks.md 2.4: doctor finds it before a run; the summary after one."""
    given = [answer(1, **(WRONG | {"rule": "misrouted", "reasoning": "B", "text": ""})), answer(2)]
    row = summary(given)
    assert 1 == row.misrouted
    assert "1 answer came in the reasoning field and counts as wrong" in row.warnings


def test_cached_answers_are_warned_with_the_count() -> None:
    """DESIGN 6."""
    said = warnings_of([answer(1, cached_tokens=64), answer(2, cached_tokens=0)])
    assert ("1 answer reused cached prompt tokens",) == said


@pytest.mark.parametrize(("cut", "warned"), [(4, False), (5, False), (6, True)])
def test_row_shaped_by_its_limit_is_warned(cut: int, warned: bool) -> None:
    """stats.md 8: more than 5 in 100 cut off."""
    said = warnings_of(answers(100 - cut, 0, cut))
    assert warned == (f"{cut} of 100 answers were cut off: the limit shapes this row" in said)


class InLengths(StandInTask):
    """Ids below 40 are short."""

    def row_of(self, id: int | str) -> str:
        return "8192" if int(id) < 40 else "32768"

    def row_names(self, row: str, items: int) -> tuple[str, str]:
        return f"Long text {int(row) // 1024}K", ""


@pytest.mark.parametrize(
    ("cut", "said"),
    [
        (2, ()),
        (3, ("3 of 40 answers in Long text 32K were cut off: the limit shapes this row",)),
    ],
)
def test_each_row_of_a_part_is_warned_by_its_own_share(cut: int, said: tuple[str, ...]) -> None:
    """3 of 40 are 7.5 %, and 3 of 80 less than 5 %."""
    listed = ListCondition(
        id="list", kind="official", sha256="0" * 64, items=80, rows={"8192": 40, "32768": 40}
    )
    task = InLengths("ruler", "Long text", "")
    assert said == summary(answers(80 - cut, 0, cut), task=task, list=listed).warnings


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"models": ["other"]}, "models"),
        ({"engine_version": "vLLM 2"}, "engine_version"),
        ({"server_defaults": {"top_k": 1}}, "server_defaults"),
    ],
)
def test_server_that_changed_between_sessions_is_warned(change: Any, what: str) -> None:
    """DESIGN 5: a restarted server goes on with a warning when model or engine changed."""
    before = {"models": ["m"], "engine_version": "vLLM 1"}
    sessions = [session(server=before), session(server=before | change)]
    said = warnings_of(answers(1), sessions=sessions)
    (line,) = said
    assert line.startswith(f"the server's {what} changed between two sessions of this part")
    assert ("(vLLM 1 -> vLLM 2)" in line) == (what == "engine_version")


def test_replicas_that_differ_are_warned() -> None:
    """Their answers are counted as those of one server."""
    one = {"engine_version": "vLLM 1", "server_defaults": {"top_k": 1}}
    same = session(server=one | {"replicas": [one]})
    assert () == warnings_of(answers(1), sessions=[same])
    other = session(server=one | {"replicas": [one | {"engine_version": "vLLM 2"}, "damaged"]})
    assert warnings_of(answers(1), sessions=[other]) == (
        "the replicas differ in engine_version: vLLM 1, vLLM 2, None",
        "the replicas differ in server_defaults: {'top_k': 1}, None",
    )


# The run


def run_of(*parts: Any) -> Any:
    return summarize_run("x", {str(n): part for n, part in enumerate(parts)})


def test_totals_are_over_answers_that_are_there() -> None:
    """A request that was not answered was not cut off either."""
    run = run_of(summary(answers(6, 0, 2), n=100), summary(answers(2)))
    assert (10, 2, 0.2) == (
        run.totals_thinking_off.requests,
        run.totals_thinking_off.cut_off,
        run.totals_thinking_off.share,
    )


def test_cut_answers_are_totalled_over_the_parts_with_thinking_off() -> None:
    """DESIGN 8: the published 120 of 918 = 13.1 %."""
    rows = [(259, 400, 59), (75, 198, 60), (180, 200, 0), (27, 40, 0), (29, 40, 1), (24, 40, 0)]
    parts = [summary(answers(k, n - k - cut, cut)) for k, n, cut in rows]
    on = summary(answers(25, 1, 4), task=thinking(LETTERS))
    total = run_of(*parts, on).totals_thinking_off
    assert (918, 120, 120 / 918) == (total.requests, total.cut_off, total.share)


def test_run_without_a_part_with_thinking_off_has_no_share() -> None:
    """No division by zero."""
    total = run_of(summary(answers(1), task=thinking(LETTERS))).totals_thinking_off
    assert (0, 0, None) == (total.requests, total.cut_off, total.share)


@pytest.mark.parametrize(
    ("starts", "expected"),
    [
        ([["a"], ["a"]], "yes"),
        ([["a", "a"], ["a"]], "yes"),
        ([["a"], ["b"]], "no"),
        ([["a", "b"]], "no"),
        ([["a"], [None]], "not known"),
        ([[None]], "not known"),
        ([["a", None], ["b"]], "no"),
        ([], "not known"),
    ],
)
def test_one_server_start_is_said_only_when_it_is_proved(starts: Any, expected: str) -> None:
    """DESIGN 5: "yes" when the start times prove it, "no" when they disprove it."""
    parts = [
        summary(answers(1), sessions=[session(server=server(start)) for start in part])
        for part in starts
    ]
    assert expected == run_of(*parts).one_server_start


def test_start_time_that_is_no_text_is_not_known() -> None:
    """A contract that another program wrote."""
    odd = session(server={"models": ["m"], "process_started": 7})
    assert (None,) == summary(answers(1), sessions=[odd]).server_starts


def test_start_of_replicas_is_known_only_when_each_of_them_tells() -> None:
    """Two boxes that serve a copy each: one that is silent may have been started anew."""
    told = {"models": ["m"], "process_started": "2026-11-30T11:00:00Z"}
    other = {"models": ["m"], "process_started": "2026-11-30T12:00:00Z"}
    silent = session(server={**told, "replicas": [{"models": ["m"]}]})
    both = session(server={**told, "replicas": [other]})
    assert (None,) == summary(answers(1), sessions=[silent]).server_starts
    (start,) = summary(answers(1), sessions=[both]).server_starts
    assert "2026-11-30T11:00:00Z and 2026-11-30T12:00:00Z" == start
