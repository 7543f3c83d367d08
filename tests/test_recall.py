"""Which replies name which values: the scoring cases of the published page, and any text."""

import pytest
from growth import assert_linear
from hypothesis import given
from hypothesis import strategies as st

from qualeval.graders.recall import VERSION, recall
from qualeval.records import Answer, Completion, RawReply, Request, Verdict
from qualeval.tasks.ruler import TASK
from qualeval.tasks.ruler_items import RulerItem, build, item_of, item_of_row

CHAIN = ("KEZJOL", "MAVJAM", "ROVGIR", "MAVJET")
OTHERS = ("KUVKIP", "HUVJIL")

# Reply, value, whether the reply names it.
NAMED = [
    # rul-05
    ("142107 is the code", "42107", False),
    ("The code is 42107.", "42107", True),
    ("42,107", "42107", True),
    ("VAR10 VAR11", "VAR1", False),
    # alone
    ("42107", "42107", True),
    ("**42107**", "42107", True),
    ("`42107`", "42107", True),
    ("_42107_", "42107", True),
    ("$42107$", "42107", True),
    ("\\boxed{42107}", "42107", True),
    ("(42107)", "42107", True),
    ("-42107", "42107", True),
    ("=42107;", "42107", True),
    ("1. 42107\n2. 42108", "42107", True),
    ("x\n42107\ny", "42107", True),
    ("11111,42107,22222", "42107", True),
    ("11111/42107", "42107", True),
    ("42107,22222", "42107", True),
    ("42107, 107", "42107", True),
    # a longer number or word
    ("421070", "42107", False),
    ("042107", "42107", False),
    ("42107.5", "42107", False),
    ("0.42107", "42107", False),
    ("v42107", "42107", False),
    ("42107th", "42107", False),
    ("42107²", "42107", False),
    ("", "42107", False),
    ("42 107", "42107", False),
    ("42.107", "42107", False),
    # thousands set off
    ("1,234,567", "1234567", True),
    ("1'234'567", "1234567", True),
    ("1\u202f234\u202f567", "1234567", True),
    ("1\u00a0234\u00a0567.", "1234567", True),
    ("1_234_567", "1234567", True),
    ("**1,234,567**, 7654321", "1234567", True),
    ("1,234,567,7654321", "1234567", True),
    ("1,234,567,890", "1234567", False),
    ("9,1,234,567", "1234567", False),
    ("51,234,567", "1234567", False),
    ("1,234,5678", "1234567", False),
    ("1,234,567.25", "1234567", False),
    ("123,4567", "1234567", False),
    ("123,456", "456", True),
    ("123,456", "123456", True),
    ("1,234", "234", True),
    # words
    ("kezjol", "KEZJOL", True),
    ("Variable KEZJOL.", "kezjol", True),
    ("KEZJOL_2", "KEZJOL", True),
    ("KEZJOLS", "KEZJOL", False),
    ("XKEZJOL", "KEZJOL", False),
    ("KEZJOL's", "KEZJOL", True),
    ("KEZJOL\u0301", "KEZJOL", False),
    ("éKEZJOL", "KEZJOL", False),
    ("KEZ JOL", "KEZJOL", False),
    # other scripts and invisible characters
    ("答案是42107。", "42107", True),
    ("答案是KEZJOL和MAVJAM", "MAVJAM", True),
    ("42107입니다", "42107", True),
    ("ответ42107", "42107", False),
    ("４２１０７", "42107", True),
    ("４２，１０７", "42107", True),
    ("42\u200b107", "42107", True),
    ("\ufeff42107", "42107", True),
    # values of other forms
    ("id 3f2a-77bc here", "3F2A-77BC", True),
    ("id 3f2a-77bcd here", "3f2a-77bc", False),
    ("I use C++ here", "C++", True),
    ("I use C++11", "C++", True),
    ("ObjC++", "C++", False),
    ("new york, old york", "New York", True),
    ("it costs a.b", "a+b", False),
    ("one,two", ",", True),
    ("STRASSE", "straße", True),
    ("anything", "\u200b", False),
]


@pytest.mark.parametrize(("reply", "value", "named"), NAMED)
def test_value_is_named_or_not(reply: str, value: str, named: bool) -> None:
    assert named == (recall(reply, [value]).found == (value,))


def test_version_names_the_verdict_rules() -> None:
    assert VERSION == "recall 1"


def test_values_are_told_in_the_order_of_the_item() -> None:
    """Found and missing of the wanted, extra of the others; order in the reply plays no part."""
    found = recall("rovgir, HUVJIL and Kezjol", CHAIN, OTHERS)
    assert ("KEZJOL", "ROVGIR") == found.found
    assert ("MAVJAM", "MAVJET") == found.missing
    assert ("HUVJIL",) == found.extra
    assert (0.5, False) == (found.partial, found.all_found)


def test_naming_everything_is_told_as_extra_and_still_right() -> None:
    found = recall(" ".join((*CHAIN, *OTHERS)), CHAIN, OTHERS)
    assert found.all_found
    assert OTHERS == found.extra


def test_substring_score_is_the_one_of_the_reference() -> None:
    """RULER's string_match_all: what it finds in longer numbers, and what it misses."""
    assert 1.0 == recall("142107 is the code", ["42107"]).substring_score
    assert 0.0 == recall("42,107", ["42107"]).substring_score
    assert 0.5 == recall("xkezjolx and nothing", ["KEZJOL", "MAVJAM"]).substring_score


@pytest.mark.parametrize(("expected", "distractors"), [([], []), ([""], []), (["a"], [""])])
def test_empty_values_are_refused(expected: list[str], distractors: list[str]) -> None:
    with pytest.raises(ValueError, match="no value may be empty"):
        recall("text", expected, distractors)


ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()), max_size=60)
PIECES = st.lists(
    st.sampled_from([*CHAIN, "1234567", "1,234,567", ",", ".", " ", "x", "答", "0", "\u0301", "_"]),
    max_size=12,
).map("".join)
VALUES = st.lists(
    ANY_TEXT.filter(bool) | st.sampled_from(["1234567", "KEZJOL"]),
    min_size=1,
    max_size=4,
    unique=True,
)


@given(ANY_TEXT | PIECES, VALUES, VALUES)
def test_any_text_and_any_values_give_an_answer(
    text: str, expected: list[str], distractors: list[str]
) -> None:
    """No exception; every wanted value is found or missing; the same again."""
    found = recall(text, expected, distractors)
    assert sorted(expected) == sorted((*found.found, *found.missing))
    assert set(found.extra) <= set(distractors)
    assert 0 <= found.partial <= 1
    assert 0 <= found.substring_score <= 1
    assert found == recall(text, expected, distractors)


@given(st.integers(1, 10**12), ANY_TEXT, ANY_TEXT)
def test_number_set_apart_by_spaces_is_always_found(number: int, before: str, after: str) -> None:
    """Plain, and with commas."""
    for form in (str(number), f"{number:,}"):
        assert recall(f"{before} {form} {after}", [str(number)]).all_found


@given(st.integers(1, 10**12), st.text("0123456789", min_size=1), st.text("0123456789"))
def test_number_inside_a_longer_number_is_never_found(number: int, one: str, two: str) -> None:
    value = str(number)
    for longer in (one + value + two, two + value + one):
        assert not recall(longer, [value]).found
        assert not recall(f"it is {longer}.", [value]).found


@pytest.mark.parametrize(
    "piece",
    ["1", ",", "1,234,567,890 ", "1,", "KEZJO", "kezjolx ", "1234567x", " ", "答", "\u0301"],
)
def test_time_grows_with_the_length_only(piece: str) -> None:
    """A megabyte with forty values, whatever it is made of."""
    values = ["1234567", *CHAIN, *(str(7_000_000 + n) for n in range(40))]
    assert_linear(lambda size: recall(piece * (size // len(piece)), values), 1_000_000)


def variables(**made: object) -> RulerItem:
    row = {"id": 1, "task": "vt", "expected": [*CHAIN], "distractors": [*OTHERS]}
    return item_of_row(row | made)


def grade(text: str, **fields: object) -> Verdict:
    completion = Completion.model_validate({"text": text, "finish_reason": "stop"} | fields)
    return TASK.grade(variables(), completion)


def test_four_of_four_variables_is_right() -> None:
    verdict = grade("KEZJOL, MAVJAM, ROVGIR, MAVJET")
    assert (True, 1.0, "all_named") == (verdict.right, verdict.partial, verdict.rule)
    assert "KEZJOL, MAVJAM, ROVGIR, MAVJET" == verdict.extracted
    assert "All wanted values are named (4)." == verdict.reason


def test_two_of_four_variables_is_wrong_with_half() -> None:
    verdict = grade("KEZJOL and MAVJET")
    assert (False, 0.5, "missing:2") == (verdict.right, verdict.partial, verdict.rule)
    assert "2 of 4 named; missing MAVJAM, ROVGIR." == verdict.reason
    assert verdict.details is not None
    assert 0.5 == verdict.details["substring_score"]


def test_reply_that_names_nothing_says_so() -> None:
    verdict = grade("I cannot tell.")
    assert (False, 0.0, "none_named", None) == (
        verdict.right,
        verdict.partial,
        verdict.rule,
        verdict.extracted,
    )


def test_answer_cut_at_the_limit_is_wrong_whatever_it_names() -> None:
    verdict = grade(", ".join(CHAIN), finish_reason="length", cut_by="max_tokens")
    assert (False, True, "cut_off") == (verdict.right, verdict.cut_off, verdict.rule)
    assert "The answer was cut off by the token limit." == verdict.reason
    assert verdict.details is not None
    assert [*CHAIN] == verdict.details["found"]


def test_reply_in_the_reasoning_field_is_misrouted() -> None:
    verdict = grade("", reasoning="KEZJOL", reasoning_source="reasoning_content")
    assert (False, "misrouted") == (verdict.right, verdict.rule)


def test_verdict_carries_the_facts_of_the_prompt() -> None:
    """Target, count, shortfall and hashes stand in every answer."""
    prompt = build("niah_multikey", 3, 601, len)
    item = item_of(prompt, "f" * 64)
    completion = Completion(text=prompt.expected[0], finish_reason="stop")
    details = TASK.grade(item, completion).details
    assert {
        "found": [*prompt.expected],
        "missing": [],
        "extra": [],
        "substring_score": 1.0,
        "target": 601,
        "tokens": 601 - prompt.short_by,
        "short_by": prompt.short_by,
        "exact": prompt.exact,
        "prompt_sha256": prompt.text_sha256,
        "tokenizer_sha256": "f" * 64,
    } == details


def answered(text: str, item: RulerItem, cut: bool = False) -> Answer:
    completion = Completion(
        text=text, finish_reason="stop", cut_by="max_tokens" if cut else None, attempts=1
    )
    raw = RawReply.of(Request(id=item.id, max_tokens=128, body={}), completion)
    return Answer.of_verdict(raw, item, TASK.grade(item, completion))


@pytest.mark.parametrize(
    ("text", "cut", "named", "fate"),
    [
        (", ".join(CHAIN), False, 4, "all named"),
        ("KEZJOL", False, 1, "some named"),
        ("none", False, 0, "none named"),
        ("KEZJOL", True, 1, "cut off"),
    ],
)
def test_beside_tells_how_each_task_fared(text: str, cut: bool, named: int, fate: str) -> None:
    """Shares and fates stand beside the score and add up over answers."""
    counts = TASK.beside(answered(text, variables(), cut))
    assert (named, 4) == counts.pop("values named")
    assert {f"vt: {fate}": (1, 1)} == {name: pair for name, pair in counts.items() if pair[0]}
    assert [(1, 1)] + [(0, 1)] * 3 == sorted(counts.values(), reverse=True)


def test_details_of_another_form_are_refused() -> None:
    """A text has letters, which are no values."""
    answer = answered("x", variables())
    with pytest.raises(ValueError, match=r"details\.found"):
        TASK.beside(answer.model_copy(update={"details": {"found": "AAA", "missing": []}}))


def test_beside_counts_exact_prompts() -> None:
    item = item_of(build("vt", 0, 4096, len))
    counts = TASK.beside(answered("x", item))
    assert (1, 1) == counts["prompts of exactly the wanted length"]
