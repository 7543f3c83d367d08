"""Every rule finds what it is for, in every disguise, and nothing in what a model really writes."""

from collections import Counter

import pytest
from growth import assert_linear
from publish_samples import (
    GATED,
    OPTION,
    SAMPLES,
    Sample,
    benign,
    checker,
    forms,
    full_width,
    made,
    place,
    rules_in,
    uuid,
)

from qualeval.publish.rules import SEVERITY, TextClass, load_rules

BOOK = load_rules()
SEARCHED = [rule.id for rule in BOOK.rules.values() if rule.builtin != "files"]
NOT_SAMPLED = {"root-path", "gated-list-missing"}
"""Found by place, not by text: tested with literals and with bundles."""

each_sample = pytest.mark.parametrize(
    ("rule", "sample"), SAMPLES, ids=[f"{rule}-{n}" for n, (rule, _) in enumerate(SAMPLES)]
)


@pytest.mark.parametrize(("why", "text"), benign(), ids=[why for why, _ in benign()])
def test_what_models_write_passes_unchanged(why: str, text: str) -> None:
    """pub-04: no unit, word or variable is taken out, withheld, or holds a file back."""
    for form in (text, full_width(text)):
        checked = checker().check(form, place())
        assert ([], form) == ([f for f in checked.findings if f.action != "note"], checked.text)


@each_sample
def test_value_is_found_in_every_form(rule: str, sample: Sample) -> None:
    """pub-05: raw, escaped for JSON, split over lines, full width, in percent signs."""
    for kind in ("model_text", "operator_text"):
        missed = [name for name, text in forms(sample).items() if rule not in rules_in(text, kind)]
        assert [] == missed


@each_sample
def test_redacted_value_is_in_no_form_in_what_is_shown(rule: str, sample: Sample) -> None:
    """What is replaced is the whole of it, at its place in the text as it stands."""
    for name, text in forms(sample).items():
        for kind in ("model_text", "operator_text"):
            checked = checker().check(text, place(kind))
            if SEVERITY[checked.action] < SEVERITY["redact"]:
                assert checked.text == text
                continue
            assert sample.value not in checked.text, name
            assert checked.text != text, name
            assert rule not in {
                f.rule
                for f in checker().check(checked.text, place(kind)).findings
                if f.action != "note"
            }


@pytest.mark.parametrize("removed", SEARCHED)
def test_without_a_rule_exactly_its_samples_are_missed(removed: str) -> None:
    """No rule hides behind another one, and none is there for nothing."""
    book = BOOK.without(removed)
    missed = {rule for rule, sample in SAMPLES if rule not in rules_in(sample.text, book=book)}
    assert {removed} - NOT_SAMPLED == missed


def test_every_rule_has_three_samples() -> None:
    """4.8: at least three positives a rule."""
    counts = Counter(rule for rule, _ in SAMPLES)
    assert {} == {r: counts[r] for r in SEARCHED if counts[r] < 3 and r not in NOT_SAMPLED}


@pytest.mark.parametrize(
    ("rule", "in_answers", "elsewhere"),
    [
        ("token-github", "hold", "hold"),
        ("private-key", "hold", "hold"),
        ("url-credentials", "redact", "hold"),
        ("auth-header", "note", "hold"),
        ("home-path", "note", "redact"),
        ("local-literal", "redact", "redact"),
        ("private-ip", "note", "redact"),
        ("mac", "note", "redact"),
        ("internal-host", "note", "redact"),
        ("email", "note", "redact"),
        ("phone", "note", "redact"),
        ("canary", "withhold", "hold"),
        ("gated-overlap", "redact", "hold"),
        ("schema", "hold", "hold"),
    ],
)
def test_outcomes_are_those_of_the_method(rule: str, in_answers: str, elsewhere: str) -> None:
    """publication.md 4.2."""
    assert (in_answers, elsewhere) == (
        BOOK[rule].action("model_text"),
        BOOK[rule].action("operator_text"),
    )


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ('File "/home/selfmade/qe/run.py"', 'File "$HOME/qe/run.py"'),
        ("server 192.168.7.31:8000 up", "server ⟦redacted:private-ip⟧:8000 up"),
        ("box-selfmade.local: start", "⟦redacted:internal-host⟧: start"),
    ],
)
def test_log_lines_lose_home_address_and_host(line: str, shown: str) -> None:
    """pub-03."""
    assert shown == checker().check(line, place("operator_text")).text


@pytest.mark.parametrize("kind", ["model_text", "operator_text"])
def test_roots_have_names_in_what_the_operator_wrote(kind: TextClass) -> None:
    """Folders of the machine are replaced whole, and never a part of another name."""
    text = "in /srv/evals/runs/job, not /srv/evals/runs2 nor x//srv/evals/runs"
    shown = text.replace("in /srv/evals/runs/", "in $RUNS/") if kind == "operator_text" else text
    assert shown == checker().check(text, place(kind)).text


def test_mostly_protected_text_is_withheld_and_little_is_redacted() -> None:
    """publication.md 4.2: more than half of it is overlap."""
    little = checker().check(f"{'Well, I do not know. ' * 30}{GATED}", place())
    assert ("redact", 1) == (little.action, little.text.count("⟦redacted:gated-overlap⟧"))
    assert "withhold" == checker().check(f"It says: {GATED}", place()).action


def test_twelve_words_in_a_row_are_no_overlap_and_five_word_options_neither() -> None:
    """13 words of a question, 6 of an option."""
    words = GATED.split()
    assert set() == rules_in(" ".join(words[:12]))
    assert {"gated-overlap"} == rules_in(" ".join(words[:13]).upper().replace(" ", ", "))
    assert set() == rules_in(" ".join(OPTION.split()[:-1]))


def test_canary_string_of_a_list_is_found_without_the_word() -> None:
    """Its value is taken from the list, wherever it stands."""
    assert {"canary"} == rules_in(f"it ends with {uuid(77)}!")
    assert set() == rules_in(f"it ends with {uuid(78)}!")


def test_value_across_two_windows_of_a_long_text_is_found_once() -> None:
    """Patterns see a long text in pieces that overlap."""
    token = "gh" + "p_" + made(5, "abcdefgh1234567", 36)
    for before in (65_500, 65_536 - 4096 - 10, 200_000):
        text = " x" * (before // 2) + " " + token + " y" * 40_000
        found = checker().check(text, place()).findings
        assert [text.index(token)] == [f.start for f in found]


def test_unclosed_shapes_of_a_long_text_are_searched_in_linear_time() -> None:
    """A text made to be slow ends all the same."""
    shapes = ("eyJ", "a@", "10.", "    ", "//x", "%41", "\\n", "://a:", "-----BEGIN ", "\n \u200b")
    for shape in shapes:
        text = shape * 50_000
        assert_linear(lambda n: checker().check(text[:n], place("operator_text")), len(text))  # noqa: B023


def test_rules_explain_themselves_without_a_value() -> None:
    """A person can look up what a finding means."""
    assert "rule      email: an e-mail address" == BOOK.explain("email")[0]
    assert ["rule 'emali' is unknown (did you mean 'email'?)"] == BOOK.explain("emali")
    assert "found by  aws.AWSKeyDetector" == BOOK.explain("token-aws")[1]
    assert "found by  overlap" == BOOK.explain("gated-overlap")[1]
