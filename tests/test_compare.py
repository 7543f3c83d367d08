"""What `compare` says of runs: refusals, numbers, verdicts, the gate. Pure values, no file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qualeval import stats
from qualeval.comparable import ComparedRun, Outcome, PartOfRun, Question, check_comparable, shown
from qualeval.compare import (
    DEFAULT_MARGIN,
    Comparison,
    GateWord,
    Options,
    Row,
    Verdict,
    compare,
    gate_of,
    verdict_of,
)
from qualeval.contract import Conditions, ListCondition, PromptCondition
from qualeval.errors import ContractError, OptionError
from qualeval.measured import cause_of, mean_interval, mean_test
from qualeval.records import SUITE, Count, Json, Session, sha256_of

CAUSE = {"r": "right", "w": "wrong", "c": "cut off", "n": "no letter", "m": "misrouted"}


def conditions(**changed: Any) -> Json:
    """The conditions of a part as a contract holds them, some fields changed."""
    fields: dict[str, Any] = {
        "suite": SUITE,
        "part": "gpqa",
        "list": ListCondition(id="gpqa-198", kind="official", sha256="aa", items=198),
        "prompt": PromptCondition(template="{question}", sha256="bb"),
        "request": {"model": "m", "max_tokens": 48, "temperature": 1.0, "seed": "42 + repeat"},
        "sampling": {"temperature": 1.0},
        "sampling_source": "model card",
        "seed": 42,
        "repeats": 1,
        "max_tokens": 48,
        "limits": (),
        "thinking": "off",
        "thinking_object": {"enable_thinking": False},
        "prompt_cache": "off",
        "model": "m",
        "dialect": "vllm",
        "grader": "letter 1",
    }
    record = Conditions.model_validate(fields | changed)
    dumped: Json = record.model_dump(mode="json")
    return dumped


def session(**changed: Any) -> Session:
    fields: dict[str, Any] = {
        "command": "qualeval run card.json",
        "started": "2026-11-01T00:00:00Z",
        "qualeval": "0.1.0",
        "card_sha256": "cc",
        "items": 198,
        "slots": 16,
        "slots_source": "card",
        "schedule": "default",
        "alone": True,
        "endpoints": ("http://secret-host:8000/v1",),
        "server": {"engine_version": "0.9", "endpoint": "http://secret-host:8000"},
        "setup": None,
    }
    return Session.model_validate(fields | changed)


def part(*answers: str, name: str = "gpqa", **changed: Any) -> PartOfRun:
    """A part with one letter an answer (`r`, `w`, `c`, `n`, `m`), one string a repeat."""
    questions = {
        str(i): Question(i, tuple(Outcome(x == "r", x == "c", CAUSE[x]) for x in letters))
        for i, letters in enumerate(zip(*answers, strict=True))
    }
    told = changed.pop("conditions", None) or conditions(repeats=len(answers))
    everything = "".join(answers)
    made = PartOfRun(
        name=name,
        title=name.upper(),
        subtitle=f"{len(answers[0])} questions",
        sample_list=False,
        incomplete=None,
        n=len(everything),
        right=everything.count("r"),
        cut_off=everything.count("c"),
        repeats=len(answers),
        beside={},
        conditions=told,
        conditions_sha256=sha256_of(told),
        sessions=(session(),),
        questions=questions,
    )
    return replace(made, **changed)


def run(name: str, *parts: PartOfRun, margin: float | None = None) -> ComparedRun:
    return ComparedRun(name, f"label of {name}", "m", {p.name: p for p in parts}, margin)


def pairs_of(a: int, b: int, c: int, d: int) -> tuple[ComparedRun, ComparedRun]:
    """Two runs whose table is a, b, c, d: right in both, base alone, new alone, in neither."""
    old = "r" * a + "r" * b + "w" * c + "w" * d
    new = "r" * a + "w" * b + "r" * c + "w" * d
    return run("old", part(old)), run("new", part(new))


def only_row(result: Comparison) -> Row:
    (row,) = result.rows
    return row


def compared(base: Sequence[ComparedRun], new: Sequence[ComparedRun], **options: Any) -> Comparison:
    return compare(base, new, Options(**options))


# ------------------------------------------------------------------ golden numbers


@pytest.mark.parametrize(
    "table, low, high, midp, exact",
    [
        pytest.param((59, 6, 16, 80), 0.0054, 0.1240, 0.034690, 0.052479, id="Tango; test-ch8.R"),
        pytest.param((1, 1, 7, 12), 0.026, 0.517, 0.03906, 0.07031, id="Fagerland 2013, 2014"),
    ],
)
def test_numbers_of_a_pair_are_those_of_the_papers(
    table: tuple[int, int, int, int], low: float, high: float, midp: float, exact: float
) -> None:
    """method/stats.md part 9; the papers' tables are (b - c) / n, ours is new minus base."""
    a, b, c, d = table
    old, new = pairs_of(a, b, c, d)

    pair = only_row(compared([old], [new])).pairs[0]

    assert pair.ci_low == pytest.approx(low, abs=5e-4)
    assert pair.ci_high == pytest.approx(high, abs=5e-4)
    assert pair.ci_method == "tango"
    assert pair.p == pytest.approx(midp, abs=5e-6)
    assert pair.p_exact == pytest.approx(exact, abs=5e-6)
    assert (pair.lost, pair.gained) == (b, c)
    assert pair.difference == pytest.approx((c - b) / sum(table))


def test_unpaired_numbers_are_newcombes() -> None:
    """Newcombe 1998b table II method 10: 56/70 - 48/80."""
    old = run("old", part("r" * 48 + "w" * 32, questions=None))
    new = run("new", part("r" * 56 + "w" * 14, questions=None))

    result = compared([old], [new], unpaired=True)

    pair = only_row(result).pairs[0]
    assert (pair.ci_low, pair.ci_high) == pytest.approx((0.0524, 0.3339), abs=5e-5)
    assert (pair.ci_method, result.paired) == ("newcombe-10", False)
    assert (pair.lost, pair.gained, pair.p_exact, pair.flips) == (None, None, None, ())
    assert pair.smallest_shown == stats.mde_unpaired(70, 0.6)
    assert 0 < pair.smallest_margin < 0.3


def test_holm_runs_over_all_parts_of_the_command() -> None:
    """Raw .03125 (0 : 5) twice becomes .0625 twice; with one part it stays."""
    old = run("old", part("w" * 5 + "r" * 35), part("w" * 5 + "r" * 35, name="mmlupro"))
    new = run("new", part("r" * 40), part("r" * 40, name="mmlupro"))

    both = compared([old], [new])
    one = compared([run("old", old.parts["gpqa"])], [run("new", new.parts["gpqa"])])

    assert pytest.approx([0.0625, 0.0625]) == [row.pairs[0].p_holm for row in both.rows]
    assert ["mmlupro", "gpqa"] == [row.part for row in both.rows]
    assert ("can't tell", "better") == (both.rows[0].verdict, only_row(one).verdict)
    assert pytest.approx(0.03125) == only_row(one).pairs[0].p_holm


def test_holm_of_several_new_runs_runs_over_them_too() -> None:
    old = run("old", part("w" * 5 + "r" * 35))
    better = part("r" * 40)

    result = compared([old], [run("n1", better), run("n2", better)])

    assert pytest.approx([0.0625, 0.0625]) == [row.pairs[0].p_holm for row in result.rows]
    assert [1, 1] == [len(row.pairs) for row in result.rows]


def test_smallest_difference_shown_is_connors_at_the_observed_discordance() -> None:
    """method/stats.md part 7: n = 198 with 20 % discordant, 8.9 points; gate margin 8.9."""
    old, new = pairs_of(100, 20, 20, 60)

    pair = only_row(compared([old], [new])).pairs[0]

    assert pair.discordant == pytest.approx(0.2)
    assert pair.smallest_shown == stats.mde_paired(200, 0.2)
    assert pair.smallest_margin == pytest.approx(2.80 * (0.2 / 200) ** 0.5, rel=1e-3)


def test_cut_offs_are_compared_with_a_test_of_their_own() -> None:
    old, new = (
        run("old", part("r" * 20 + "w" * 20)),
        run("new", part("r" * 20 + "c" * 9 + "w" * 11)),
    )

    pair = only_row(compared([old], [new])).pairs[0]

    assert (0, 9, 0, 9) == (
        pair.base.cut_off,
        pair.new.cut_off,
        pair.cut_lost,
        pair.cut_gained,
    )
    assert stats.mcnemar_midp(0, 9) == pair.cut_p
    assert (0, 0, 1.0) == (pair.lost, pair.gained, pair.p)


def test_scores_carry_the_raw_integers_and_the_figures_beside() -> None:
    beside = {"loose": Count(right=3, n=4)}
    old = run("old", part("rrrw", beside=beside))

    score = only_row(compared([old], [old])).pairs[0].base

    assert (3, 4, beside) == (score.right, score.n, score.beside)
    assert Fraction(score.accuracy) == Fraction(3, 4)


# ------------------------------------------------------------------ flips


def test_flips_name_id_and_cause_of_each_side_in_list_order() -> None:
    old = run("old", part("rrrrwnrw"))
    new = run("new", part("rwcnrrmw"))

    flips = only_row(compared([old], [new])).pairs[0].flips

    assert [1, 2, 3, 4, 5, 6] == [flip.id for flip in flips]
    assert [
        ({}, {"wrong": 1}),
        ({}, {"cut off": 1}),
        ({}, {"no letter": 1}),
        ({"wrong": 1}, {}),
        ({"no letter": 1}, {}),
        ({}, {"misrouted": 1}),
    ] == [(flip.base_causes, flip.new_causes) for flip in flips]
    assert (1, 0, 1, 1) == (
        flips[0].base_right,
        flips[0].new_right,
        flips[0].base_answers,
        flips[0].new_answers,
    )


def test_questions_are_paired_by_id_whatever_their_order() -> None:
    old = part("rrww")
    assert old.questions is not None
    turned = dict(reversed([*old.questions.items()]))

    result = compared([run("old", old)], [run("new", replace(old, questions=turned))])

    assert (0, 0) == (only_row(result).pairs[0].lost, only_row(result).pairs[0].gained)


@pytest.mark.parametrize(
    "right, cut_off, rule, cause",
    [
        (True, False, "anchored", "right"),
        (False, True, "cut_off", "cut off"),
        (False, False, "bare", "wrong"),
        (False, False, "no_letter", "no letter"),
        (False, False, "empty", "empty"),
        (False, False, "refusal", "refusal"),
        (False, False, "misrouted", "misrouted"),
        (False, False, "several_letters:AC", "several letters"),
        (False, False, "out_of_range:J", "letter out of range"),
        (False, False, "letter_text_conflict", "wrong"),
        (False, False, "not_followed:2", "wrong"),
        (False, False, "a rule of another grader", "wrong"),
    ],
)
def test_cause_is_read_from_the_rule(right: bool, cut_off: bool, rule: str, cause: str) -> None:
    assert cause == cause_of(right, cut_off, rule)


def test_worse_by_cut_offs_alone_is_said_to_be_an_effect_of_the_limit() -> None:
    old = run("old", part("r" * 40))
    cut = compared([old], [run("new", part("r" * 30 + "c" * 10))])
    mixed = compared([old], [run("new", part("r" * 30 + "c" * 9 + "w"))])

    assert "worse" == only_row(cut).verdict
    assert ("every lost answer was cut off: an effect of the limit",) == only_row(cut).notes
    assert () == only_row(mixed).notes


# ------------------------------------------------------------------ verdict and gate

TINY, LARGE = 0.001, 0.5


@pytest.mark.parametrize(
    "low, high, p, verdict",
    [
        (-0.09, -0.01, TINY, "worse"),
        (-0.04, -0.01, TINY, "worse"),
        (-0.09, -0.01, LARGE, "can't tell"),
        (-0.04, -0.01, LARGE, "same"),
        (0.01, 0.09, TINY, "better"),
        (0.01, 0.09, LARGE, "can't tell"),
        (0.01, 0.04, LARGE, "same"),
        (-0.04, 0.04, TINY, "same"),
        (-0.04, 0.04, LARGE, "same"),
        (-0.05, 0.04, LARGE, "can't tell"),
        (-0.04, 0.05, LARGE, "can't tell"),
        (-0.09, 0.0, TINY, "can't tell"),
        (-0.09, -0.01, 0.05, "can't tell"),
    ],
)
def test_verdict_table(low: float, high: float, p: float, verdict: Verdict) -> None:
    """With a margin of 5 points: worse or better needs interval and Holm's p, same the margin."""
    assert verdict == verdict_of(low, high, p, 5)


@pytest.mark.parametrize(
    "low, high, p, word, code",
    [
        pytest.param(-0.20, -0.06, LARGE, "regression", 1, id="1: all beyond the margin"),
        pytest.param(-0.20, -0.05, LARGE, "inconclusive", 3, id="1: touching it is not beyond"),
        pytest.param(-0.04, 0.02, LARGE, "pass", 0, id="2: all inside"),
        pytest.param(-0.04, -0.01, TINY, "worse, within M", 0, id="2: before 3"),
        pytest.param(-0.05, 0.02, LARGE, "inconclusive", 3, id="2: touching is not inside"),
        pytest.param(-0.09, -0.01, TINY, "regression", 1, id="3: worse for sure"),
        pytest.param(-0.09, -0.01, 0.05, "inconclusive", 3, id="3: not at .05"),
        pytest.param(-0.09, 0.00, TINY, "inconclusive", 3, id="3: zero is inside"),
        pytest.param(-0.09, 0.09, LARGE, "inconclusive", 3, id="4: nothing is known"),
        pytest.param(0.01, 0.09, TINY, "pass", 0, id="2: better"),
    ],
)
def test_gate_in_its_order(low: float, high: float, p: float, word: GateWord, code: int) -> None:
    assert word == gate_of(low, high, p, 5)


GATED = [
    pytest.param((100, 40, 0, 60), 5.0, "regression", 1, id="regression"),
    pytest.param((198, 0, 0, 202), 5.0, "pass", 0, id="pass"),
    pytest.param((380, 8, 0, 12), 5.0, "worse, within M", 0, id="worse, within the margin"),
    pytest.param((20, 0, 0, 20), 5.0, "inconclusive", 3, id="too few to pass"),
]


@pytest.mark.parametrize("table, gate, word, code", GATED)
def test_gate_sets_the_exit_code(
    table: tuple[int, int, int, int], gate: float, word: str, code: int
) -> None:
    old, new = pairs_of(*table)

    result = compared([old], [new], gate=gate)

    assert (word, word, code) == (result.gate, only_row(result).gate, result.exit_code)


def test_without_gate_option_nothing_is_gated() -> None:
    """A margin of the cards gives "same" its meaning and no exit code."""
    old, new = pairs_of(100, 40, 0, 60)

    result = compared([replace(old, margin_points=1.0)], [new])

    assert (None, None, 0) == (result.gate, only_row(result).gate, result.exit_code)
    assert (1.0, "gate.margin_points of the card") == (result.margin, result.margin_source)


def test_all_parts_must_pass() -> None:
    fine, few, bad = part("r" * 200), part("r" * 9), part("r" * 200)
    few, bad = replace(few, name="think"), replace(bad, name="mmlupro")
    worse = part("r" * 150 + "w" * 50, name="mmlupro")

    def word(old: Sequence[PartOfRun], new: Sequence[PartOfRun]) -> GateWord | None:
        return compared([run("old", *old)], [run("new", *new)], gate=5.0).gate

    assert "pass" == word([fine], [fine])
    assert "inconclusive" == word([fine, few], [fine, few])
    assert "regression" == word([fine, few, bad], [fine, few, worse])


def test_gate_says_how_many_questions_would_be_enough() -> None:
    old, new = pairs_of(10, 5, 5, 20)

    (note,) = only_row(compared([old], [new], gate=5.0)).notes

    assert note == (
        "not enough data for this gate: 40 questions can prove a margin of 22.1 points, "
        "not 5; about 785 could"
    )
    assert stats.smallest_gate_margin(785, 0.25) <= 0.0501


def test_gate_on_equal_runs_asks_for_what_no_difference_at_all_needs() -> None:
    """Z^2 (1 / M - 1) questions: 73 for 5 points."""
    old, new = pairs_of(20, 0, 0, 20)

    (note,) = only_row(compared([old], [new], gate=5.0)).notes

    assert note.endswith("not 5; about 73 could")
    assert stats.smallest_gate_margin(73, 0.0) <= 0.05 < stats.smallest_gate_margin(72, 0.0)


def test_gate_with_enough_questions_but_a_drop_near_the_margin_says_nothing_of_numbers() -> None:
    """Inconclusive because the change lies at the margin, not because n is small."""
    old, new = pairs_of(800, 70, 50, 80)

    row = only_row(compared([old], [new], gate=3.2))

    assert ("inconclusive", ()) == (row.gate, row.notes)


@pytest.mark.parametrize("gate", [0.0, -1.0, 100.0, float("nan"), float("inf")])
def test_gate_that_is_no_margin_is_refused(gate: float) -> None:
    old, new = pairs_of(1, 1, 1, 1)

    with pytest.raises(OptionError, match="--gate: must be more than 0"):
        compared([old], [new], gate=gate)


@pytest.mark.parametrize(
    "of_old, of_new, gate, margin, source, notes",
    [
        (None, None, None, DEFAULT_MARGIN, "default", ()),
        (4.0, None, None, 4.0, "gate.margin_points of the card", ()),
        (4.0, 3.0, None, 3.0, "gate.margin_points of the card", ()),
        (None, None, 2.0, 2.0, "--gate", ()),
        (2.0, 2.0, 2.0, 2.0, "--gate", ()),
        (2.0, None, 8.0, 8.0, "--gate", ("this gate is 8 points; the card set 2 before the run",)),
    ],
)
def test_margin_is_the_options_else_the_stricter_cards_else_five_points(
    of_old: float | None,
    of_new: float | None,
    gate: float | None,
    margin: float,
    source: str,
    notes: tuple[str, ...],
) -> None:
    old, new = run("old", part("rw"), margin=of_old), run("new", part("rw"), margin=of_new)

    result = compared([old], [new], gate=gate)

    assert (margin, source, notes) == (result.margin, result.margin_source, result.notes)


# ------------------------------------------------------------------ several runs a side


def share(right: int, of: int = 200) -> PartOfRun:
    return part("r" * right + "w" * (of - right))


def test_several_runs_are_compared_pair_by_pair_and_never_merged() -> None:
    result = compared(
        [run("a1", share(150)), run("a2", share(148))],
        [run("n1", share(120)), run("n2", share(122))],
    )

    row = only_row(result)
    shown_pairs = [(p.base.run, p.base.right, p.new.run, p.new.right, p.base.n) for p in row.pairs]
    assert [
        ("a1", 150, "n1", 120, 200),
        ("a1", 150, "n2", 122, 200),
        ("a2", 148, "n1", 120, 200),
        ("a2", 148, "n2", 122, 200),
    ] == shown_pairs
    assert (2, 0.74, 0.75) == (row.base_spread.runs, row.base_spread.low, row.base_spread.high)
    assert (2, 0.60, 0.61) == (row.new_spread.runs, row.new_spread.low, row.new_spread.high)
    assert "worse" == row.verdict


SPREAD_NOTE = "runs of one side lie as far apart as the two sides do"


@pytest.mark.parametrize(
    "base, new",
    [
        pytest.param((150, 90), (120,), id="base runs on both sides of the change"),
        pytest.param((150, 120), (90,), id="spread as large as the smallest change"),
        pytest.param((150, 120), (91, 90), id="spread beyond it"),
    ],
)
def test_spread_that_reaches_the_change_makes_it_cannot_tell(
    base: tuple[int, ...], new: tuple[int, ...]
) -> None:
    result = compared(
        [run(f"a{n}", share(n)) for n in base], [run(f"n{n}", share(n)) for n in new], gate=5.0
    )

    row = only_row(result)
    assert ("can't tell", "inconclusive") == (row.verdict, row.gate)
    assert SPREAD_NOTE in row.notes


def test_spread_below_the_change_leaves_the_verdict() -> None:
    result = compared(
        [run("a1", share(150)), run("a2", share(121))], [run("n", share(91))], gate=5.0
    )

    row = only_row(result)
    assert ("worse", "regression", ()) == (row.verdict, row.gate, row.notes)


def test_pairs_that_do_not_agree_are_cannot_tell() -> None:
    """One pair is worse, the other not surely: neither word is given."""
    result = compared(
        [run("a1", share(150)), run("a2", share(147))], [run("n", share(143))], gate=2.0
    )

    row = only_row(result)
    assert ["worse", "can't tell"] == [pair.verdict for pair in row.pairs]
    assert ["regression", "inconclusive"] == [pair.gate for pair in row.pairs]
    assert ("can't tell", "inconclusive") == (row.verdict, row.gate)
    assert SPREAD_NOTE not in row.notes


def test_runs_that_all_are_the_same_stay_the_same() -> None:
    """A spread of half a point does not undo that every pair is within the margin."""
    result = compared(
        [run("a1", share(150)), run("a2", share(151))], [run("n", share(150))], gate=5.0
    )

    row = only_row(result)
    assert ("same", "pass") == (row.verdict, row.gate)
    assert (SPREAD_NOTE,) == row.notes


def test_gate_passes_when_all_pairs_do_in_either_way() -> None:
    result = compared(
        [run("a1", share(388, 400)), run("a2", share(381, 400))],
        [run("n", share(380, 400))],
        gate=5.0,
    )

    row = only_row(result)
    assert ["worse, within M", "pass"] == [pair.gate for pair in row.pairs]
    assert "worse, within M" == row.gate
    assert 0 == result.exit_code


def test_one_base_and_several_new_runs_is_a_table_against_the_first() -> None:
    parts = [run("old", share(150)), run("n1", share(150)), run("n2", share(100))]

    result = compared(parts[:1], parts[1:], gate=5.0)

    assert [("n1", "same"), ("n2", "worse")] == [
        (row.pairs[0].new.run, row.verdict) for row in result.rows
    ]
    assert (1, "regression", 1) == (result.bases, result.gate, result.exit_code)


# ------------------------------------------------------------------ repeats


def repeated(*shares: tuple[int, int], questions: int = 120) -> tuple[str, ...]:
    """Four repeats; the first questions are right as often as said: (how many, of four)."""
    counts = [times for many, times in shares for _ in range(many)]
    counts += [4] * (questions - len(counts))
    return tuple("".join("r" if repeat < k else "w" for k in counts) for repeat in range(4))


def test_repeats_of_many_questions_use_the_t_interval_of_mean_differences() -> None:
    old, new = part(*repeated((30, 3))), part(*repeated((20, 1), (10, 4), (5, 2)))
    gaps = [-0.5] * 20 + [0.25] * 10 + [-0.5] * 5 + [0.0] * 85

    result = compared([run("old", old)], [run("new", new)])

    pair = only_row(result).pairs[0]
    expected = stats.clustered_mean([[gap] for gap in gaps])
    assert "t-clustered" == pair.ci_method
    assert (expected.interval.low, expected.interval.high) == pytest.approx(
        (pair.ci_low, pair.ci_high)
    )
    assert expected.mean == pytest.approx(pair.difference)
    assert (25, 10, 120) == (pair.lost, pair.gained, pair.questions)
    assert pair.p_exact is None
    assert sum(gap**2 for gap in gaps) / 120 == pytest.approx(pair.discordant)
    assert "worse" == only_row(result).verdict


def test_repeats_of_few_questions_use_a_seeded_bootstrap() -> None:
    shares = [(10, 1)], [(5, 2), (5, 4)]
    old, new = (part(*repeated(*own, questions=40)) for own in shares)

    one, two = (compared([run("old", old)], [run("new", new)]) for _ in range(2))

    pair = only_row(one).pairs[0]
    assert one == two
    assert "bootstrap-percentile" == pair.ci_method
    assert pair.ci_low <= pair.difference <= pair.ci_high


def test_flips_of_repeats_count_right_answers_and_causes() -> None:
    old, new = part("rr", "rw", "rw"), part("rr", "cw", "wr")

    pair = only_row(compared([run("old", old)], [run("new", new)])).pairs[0]

    lost, gained = pair.flips
    assert (3, 1, {"cut off": 1, "wrong": 1}) == (lost.base_right, lost.new_right, lost.new_causes)
    assert (1, 2, {"wrong": 2}) == (gained.base_right, gained.new_right, gained.base_causes)


def test_questions_that_all_move_alike_are_not_surer_than_their_number() -> None:
    """Without spread t and bootstrap have no width: two questions prove nothing."""
    old, new = part("ww", "ww"), part("rr", "rr")

    row = only_row(compared([run("old", old)], [run("new", new)]))

    assert "can't tell" == row.verdict
    assert row.pairs[0].ci_low < 1.0 <= row.pairs[0].ci_high


@pytest.mark.parametrize("questions", [30, 300])
def test_equal_repeated_runs_reach_as_far_as_tango_without_a_difference(questions: int) -> None:
    interval = mean_interval([0.0] * questions)
    tango = stats.tango(0, 0, 0, questions)

    assert (tango.low, tango.high) == pytest.approx((interval.low, interval.high), abs=1e-6)


def test_sign_flips_give_the_exact_randomisation_p() -> None:
    """Six questions, all better: 2 of 64 sign patterns are as extreme."""
    assert 2 / 64 == pytest.approx(mean_test([0.5] * 6), abs=0.005)
    assert 1.0 == mean_test([0.0] * 6)
    assert 1.0 == mean_test([0.5])


def test_mean_test_of_many_is_students_t_and_signs_where_nothing_spreads() -> None:
    gaps = [0.25] * 60 + [-0.25] * 60

    assert 1.0 == pytest.approx(mean_test(gaps))
    assert stats.mcnemar_midp(0, 120) == mean_test([0.25] * 120)
    assert 1.0 == mean_test([0.0] * 120)


def test_unpaired_counts_of_repeats_are_refused() -> None:
    """Answers to one question hang together, and counts do not tell how."""
    both = run("old", part("rw", "rw")), run("new", part("rw", "rr"))

    with pytest.raises(ContractError, match="asked several times a question"):
        compared([both[0]], [both[1]], unpaired=True)


# ------------------------------------------------------------------ what must be the same

MUST: list[tuple[str, dict[str, Any], str]] = [
    ("suite", {"suite": "qualeval suite 2"}, "suite"),
    ("list", {"list": ListCondition(id="x", kind="file", sha256="zz", items=9)}, "list.sha256"),
    ("prompt", {"prompt": PromptCondition(template="?", sha256="zz")}, "prompt.sha256"),
    ("grader", {"grader": "letter 2"}, "grader"),
    ("limits", {"max_tokens": 64}, "max_tokens"),
    ("sampling", {"sampling": {"temperature": 0.6}}, "sampling.temperature"),
    ("sampling", {"sampling": {"temperature": 1.0, "top_k": 20}}, "sampling.top_k"),
    ("seed", {"seed": 43}, "seed"),
    ("thinking", {"thinking": "on"}, "thinking"),
    ("thinking", {"thinking_object": None}, "thinking_object.enable_thinking"),
    ("thinking", {"thinking_object": {"enable_thinking": 0}}, "thinking_object.enable_thinking"),
]


@pytest.mark.parametrize("word, changed, field", MUST)
def test_field_that_must_be_the_same_is_refused_and_named_with_both_values(
    word: str, changed: dict[str, Any], field: str
) -> None:
    old = run("old", part("rw"))
    new = run("new", part("rw", conditions=conditions(**changed)))

    with pytest.raises(ContractError) as refused:
        compared([old], [new])

    line = next(x for x in str(refused.value).splitlines() if x.startswith(f"  {field} "))
    assert line.startswith(f"  {field} (gpqa): old ")
    assert "; new " in line
    assert f"--allow {word}" in str(refused.value)
    assert 2 == refused.value.exit_code


@pytest.mark.parametrize("word, changed, field", MUST)
def test_field_that_is_allowed_is_compared_and_said(
    word: str, changed: dict[str, Any], field: str
) -> None:
    old = run("old", part("rw"))
    new = run("new", part("rw", conditions=conditions(**changed)))

    result = compared([old], [new], allow=(word,))

    assert field in [difference.field for difference in result.allowed]


@pytest.mark.parametrize("word", ["sampling.temperature", "sampling"])
def test_dotted_name_or_its_first_word_allows_a_field(word: str) -> None:
    old, new = part("rw"), part("rw", conditions=conditions(sampling={"temperature": 0.0}))

    (difference,) = compared([run("old", old)], [run("new", new)], allow=(word,)).allowed

    assert ("sampling.temperature", (1.0, 0.0)) == (difference.field, difference.values)


def test_allowed_field_does_not_allow_its_neighbour() -> None:
    new = part("rw", conditions=conditions(sampling={"temperature": 0.0, "top_p": 0.9}))

    with pytest.raises(ContractError) as refused:
        compared(
            [run("old", part("rw"))], [run("new", new)], allow=("sampling.temperature", "seed")
        )

    assert "sampling.top_p (gpqa): old not given; new 0.9" in str(refused.value)
    assert "sampling.temperature" not in str(refused.value)


def test_repeats_must_be_the_same_and_can_be_allowed() -> None:
    old, new = run("old", part("rw", "rw")), run("new", part("rw"))

    with pytest.raises(ContractError, match="repeats"):
        compared([old], [new])
    pair = only_row(compared([old], [new], allow=("repeats",))).pairs[0]

    assert (4, 2, 2) == (pair.base.n, pair.new.n, pair.questions)


def test_unknown_allow_word_is_refused_with_the_nearest() -> None:
    old = run("old", part("rw"))

    with pytest.raises(OptionError, match=r"'sampeling' .*did you mean 'sampling'"):
        compared([old], [old], allow=("sampeling",))


def test_every_field_that_differs_is_named_at_once() -> None:
    new = part("rw", conditions=conditions(seed=1, grader="letter 2"))

    with pytest.raises(ContractError) as refused:
        compared([run("old", part("rw"))], [run("new", new)])

    assert str(refused.value) == (
        "old, new cannot be compared: they differ in\n"
        "  seed (gpqa): old 42; new 1\n"
        "  grader (gpqa): old letter 1; new letter 2\n"
        "if that is what you want to compare: --allow seed --allow grader"
    )


def test_one_list_under_two_names_is_one_list() -> None:
    """The hash counts; that the names differ is said."""
    renamed = ListCondition(id="file:mine.jsonl", kind="file", sha256="aa", items=198)
    new = part("rw", conditions=conditions(list=renamed))

    result = compared([run("old", part("rw"))], [run("new", new)])

    assert ["list.id", "list.kind"] == [difference.field for difference in result.same_except]


def test_parts_that_not_all_have_are_refused_or_left_out_and_named() -> None:
    old = run("old", part("rw"), part("rw", name="mmlupro"))
    new = run("new", part("rw"))

    with pytest.raises(ContractError, match="parts: old mmlupro, gpqa; new gpqa"):
        compared([old], [new])
    result = compared([old], [new], allow=("parts",))

    assert (["gpqa"], ("mmlupro",)) == ([row.part for row in result.rows], result.left_out)


def test_runs_without_a_part_in_common_cannot_be_compared() -> None:
    old, new = run("old", part("rw")), run("new", part("rw", name="lcb"))

    with pytest.raises(ContractError, match="there is nothing to compare"):
        compared([old], [new], allow=("parts",))


def test_part_keys_beyond_the_table_are_compared_after_it() -> None:
    parts = [part("rw", name=n) for n in ("ruler/32768", "custom", "ruler/8192", "gpqa")]

    rows = compared([run("old", *parts)], [run("new", *parts)]).rows

    assert ["gpqa", "ruler/32768", "ruler/8192", "custom"] == [row.part for row in rows]


@pytest.mark.parametrize("why", ["limit 5", "3 failed"])
def test_incomplete_part_is_never_a_number(why: str) -> None:
    new = run("new", part("rw", incomplete=why))

    with pytest.raises(ContractError, match=rf"new: part 'gpqa' is incomplete \({why}\)"):
        compared([run("old", part("rw"))], [new])


def test_part_without_questions_is_never_a_number() -> None:
    new = run("new", part("rw", n=0, right=0, questions={}))

    with pytest.raises(ContractError, match="it has no questions"):
        compared([run("old", part("rw"))], [new])


def test_other_questions_cannot_be_paired() -> None:
    old, new = run("old", part("rw")), run("new", part("rww"))

    with pytest.raises(ContractError, match="questions in one run only: 1, the first is '2'"):
        compared([old], [new])


@pytest.mark.parametrize("side", ["old", "new"])
def test_counts_alone_cannot_be_paired(side: str) -> None:
    runs = [run(n, part("rw", questions=None if n == side else part("rw").questions))
            for n in ("old", "new")]  # fmt: skip

    with pytest.raises(ContractError, match=f"{side}: part 'gpqa': only its counts are known"):
        compared(runs[:1], runs[1:])


# ------------------------------------------------------------------ same except


def test_everything_else_that_differs_is_said_with_all_values() -> None:
    told = conditions(
        model="m2",
        dialect="llama.cpp",
        limits=("max_tokens 48 instead of 40",),
        request={"model": "m2", "temperature": 0.1, "cache_prompt": False, "seed": "x"},
    )
    sessions = (
        session(
            qualeval="0.2.0",
            slots=8,
            schedule="parts",
            server={"engine_version": "1.0", "process_started": "2026-11-02T00:00:00Z"},
            setup={"model": {"revision": "abc"}, "credits": []},
        ),
    )
    new = run("new", part("rw", conditions=told, sessions=sessions))

    result = compared([run("old", part("rw"))], [new])

    assert {
        "model": ("m", "m2"),
        "dialect": ("vllm", "llama.cpp"),
        "limits": (None, ["max_tokens 48 instead of 40"]),
        "request.cache_prompt": (None, False),
        "qualeval": ("0.1.0", "0.2.0"),
        "slots": (16, 8),
        "schedule": ("default", "parts"),
        "server.engine_version": ("0.9", "1.0"),
        "server.process_started": (None, "2026-11-02T00:00:00Z"),
        "setup.model.revision": (None, "abc"),
    } == {difference.field: difference.values for difference in result.same_except}


def test_values_of_several_sessions_are_all_shown() -> None:
    restarted = (session(), session(server={"engine_version": "0.10"}), session())
    new = run("new", part("rw", sessions=restarted))

    (difference,) = compared([run("old", part("rw"))], [new]).same_except

    assert ("server.engine_version", ("0.9", ["0.9", "0.10"])) == (
        difference.field,
        difference.values,
    )


def test_addresses_of_servers_are_not_shown() -> None:
    replicas = [{"endpoint": "http://secret-two:1", "engine_version": "0.9"}]
    moved = (session(endpoints=("http://a", "http://b"), server={"replicas": replicas}),)
    new = run("new", part("rw", sessions=moved))

    result = compared([run("old", part("rw"))], [new])

    assert "secret" not in result.model_dump_json()
    assert ("endpoints", (1, 2)) in [(d.field, d.values) for d in result.same_except]


def test_difference_in_several_parts_is_said_once() -> None:
    slower = (session(slots=1),)
    old = run("old", part("rw"), part("rw", name="mmlupro"), part("rw", name="lcb"))
    new = run(
        "new",
        part("rw", sessions=slower),
        part("rw", name="mmlupro", sessions=slower),
        part("rw", name="lcb", sessions=(session(slots=2),)),
    )

    result = compared([old], [new])

    assert [((16, 1), ("mmlupro", "gpqa")), ((16, 2), ("lcb",))] == [
        (d.values, d.parts) for d in result.same_except
    ]


def counts_only(**changed: Any) -> PartOfRun:
    """A part known from its summary alone."""
    names = ("suite", "sampling", "seed", "repeats", "max_tokens", "thinking", "model")
    told: Json = {name: value for name, value in conditions().items() if name in names}
    told = {**told, "list": {"id": "gpqa-198"}, **changed.pop("told", {})}
    fields = {"sessions": None, "questions": None, "conditions": told, "conditions_sha256": "xx"}
    return part("rw", **{**fields, **changed})


def test_what_a_summary_does_not_tell_is_said_to_be_unknown() -> None:
    result = compared([run("page", counts_only())], [run("new", part("rw"))], unpaired=True)

    assert ("list.sha256", "prompt", "grader") == result.not_known
    assert ((), ()) == (result.same_except, result.allowed)


def test_summary_of_the_same_conditions_leaves_nothing_unknown() -> None:
    mine = part("rw")
    page = counts_only(conditions_sha256=mine.conditions_sha256)

    assert () == compared([run("page", page)], [run("new", mine)], unpaired=True).not_known


@pytest.mark.parametrize(
    "told, field", [({"seed": 1}, "seed"), ({"list": {"id": "other"}}, "list.id")]
)
def test_summary_that_tells_another_condition_is_refused(told: Json, field: str) -> None:
    """Unpaired or not, another list or seed is another measurement."""
    page = run("page", counts_only(told=told))

    with pytest.raises(ContractError, match=rf"{field} \(gpqa\): page"):
        compared([page], [run("new", part("rw"))], unpaired=True)


def test_shown_values_are_one_short_line() -> None:
    assert "a b" == shown("a\n b")
    assert "not given" == shown(None)
    assert 300 == len(shown("x" * 500))
    assert '[{"what": "64 KiB", "here": null, "in": "é"}]' == shown(
        [{"what": "64 KiB", "here": None, "in": "é"}]
    )
    assert '["a"]' == shown(["a"])


def test_check_alone_tells_the_parts() -> None:
    assert ("gpqa",) == check_comparable([run("old", part("rw"))] * 2, ()).parts


# ------------------------------------------------------------------ properties

answers = st.lists(
    st.sampled_from(["rr", "rw", "wr", "ww", "rc", "cr", "cc"]), min_size=1, max_size=60
)


def two(letters: list[str]) -> tuple[ComparedRun, ComparedRun]:
    old, new = ("".join(pair[side] for pair in letters) for side in (0, 1))
    return run("old", part(old)), run("new", part(new))


MIRRORED = {"better": "worse", "worse": "better", "same": "same", "can't tell": "can't tell"}


@settings(max_examples=60)
@given(answers)
def test_swapping_sides_mirrors_the_result(letters: list[str]) -> None:
    old, new = two(letters)

    there = only_row(compared([old], [new]))
    back = only_row(compared([new], [old]))

    one, other = there.pairs[0], back.pairs[0]
    assert MIRRORED[there.verdict] == back.verdict
    assert (one.lost, one.gained, one.cut_lost) == (other.gained, other.lost, other.cut_gained)
    assert -one.difference == other.difference
    assert (one.ci_low, one.ci_high) == pytest.approx((-other.ci_high, -other.ci_low), abs=1e-9)
    assert (one.p, one.cut_p) == (other.p, other.cut_p)


@settings(max_examples=15)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=40))
def test_swapping_sides_mirrors_repeats_too(counts: list[tuple[int, int]]) -> None:
    def side(which: int) -> PartOfRun:
        return part(*("".join("r" if r < c[which] else "w" for c in counts) for r in range(3)))

    old, new = run("old", side(0)), run("new", side(1))

    there, back = only_row(compared([old], [new])), only_row(compared([new], [old]))

    one, other = there.pairs[0], back.pairs[0]
    assert (one.ci_low, one.ci_high) == pytest.approx((-other.ci_high, -other.ci_low), abs=1e-9)
    assert (one.p, one.lost) == (other.p, other.gained)
    assert MIRRORED[there.verdict] == back.verdict


@settings(max_examples=30)
@given(answers, st.booleans(), st.floats(0.1, 50))
def test_equal_runs_are_never_better_or_worse(
    letters: list[str], unpaired: bool, gate: float
) -> None:
    old, _ = two(letters)
    again = replace(old, name="again")

    result = compared([old], [again], unpaired=unpaired, gate=gate)

    assert only_row(result).verdict in ("same", "can't tell")
    assert result.gate in ("pass", "inconclusive")


@settings(max_examples=60)
@given(answers, st.floats(0.5, 30))
def test_gate_never_passes_what_could_be_worse_than_the_margin(
    letters: list[str], gate: float
) -> None:
    old, new = two(letters)

    row = only_row(compared([old], [new], gate=gate))

    passed = row.gate in ("pass", "worse, within M")
    assert passed == (row.pairs[0].ci_low > -gate / 100)
