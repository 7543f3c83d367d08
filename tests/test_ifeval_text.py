"""Sentences, capital words and languages as the IFEval reference sees them."""

from collections.abc import Callable
from importlib.resources import files

import pytest
from langdetect.detector_factory import DetectorFactory  # type: ignore[import-untyped]

from qualeval.graders.ifeval import PackagedDataError, language, prepare, sentences
from qualeval.graders.ifeval.errors import Once
from qualeval.graders.ifeval.sentences import split_sentences
from qualeval.graders.ifeval.words import count_capital_words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" Hi there. ", [" Hi there."]),
        ('He said "Go." Then he left.', ['He said "Go."', "Then he left."]),
        ("(It rains.) We stay.", ["(It rains.)", "We stay."]),
        ("“Stop!” she said.", ["“Stop!” she said."]),
        ("It costs 3. 50 is more.", ["It costs 3.", "50 is more."]),
        ("Very bad acting!!! I left.", ["Very bad acting!!!", "I left."]),
        ("Go.", ["Go."]),
        ("One.\u3000Two. Three.", ["One.\u3000Two.", "Three."]),
        ("Is it (really?) so?", ["Is it (really?)", "so?"]),
        ("He left.) --And so on.", ["He left.)", "--And so on."]),
        (("x" * 80) + ". The end.", ["x" * 80 + ".", "The end."]),
    ],
)
def test_sentences_are_cut_as_the_reference_cuts_them(text: str, expected: list[str]) -> None:
    assert expected == split_sentences(text)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("I saw A B", 3),
        ("The U.S. and 3D", 2),
        ("DON'T", 2),
        ("He CAN'T, WON'T", 4),
        ("DON'T. \"", 1),
        ("WE DON'T.", 3),
        ("CANNOT GONNA", 4),
        ("WANNA", 2),
        ("WANNA.", 2),
        ("'TIS OK", 3),
        ("X'A", 2),
        ("I'LL I'll", 3),
        ("WAIT...WHAT", 2),
        ("AB-CD", 1),
        ("A--B", 2),
        ("A,B", 2),
        ("1,000A", 1),
        ("“QUOTED” „LOW", 2),
        ('"START and ("IN")', 2),
        ("42 --- !!", 0),
        ("ÉCOLE ΟΔΟΣ", 2),
        ("one A\x1eB. TWO", 3),
    ],
)
def test_capital_words_are_counted_over_the_tokens_of_the_reference(text: str, count: int) -> None:
    assert count == count_capital_words(text)


def test_language_of_short_texts_is_the_one_of_seed_zero() -> None:
    assert tuple(map(language.detect, ("HELLO", "YES.", "no"))) == ("vi", "cy", "tl")


def test_language_of_a_text_without_letters_cannot_be_told() -> None:
    assert language.detect("12345 !!!") is None


def test_detector_of_other_code_in_the_process_is_not_touched() -> None:
    DetectorFactory.seed = 77
    try:
        prepare()
        assert language.detect("HELLO") == "vi"
        assert DetectorFactory.seed == 77
    finally:
        DetectorFactory.seed = None


def test_codes_are_those_of_the_packaged_profiles() -> None:
    packaged = [entry.name for entry in (files("langdetect") / "profiles").iterdir()]
    assert sorted(packaged) == sorted(language.CODES)


@pytest.mark.parametrize(
    "text",
    [
        "Der Hund schläft im Garten. " * 3000,
        "http://example.org/a?b=c " * 4000 + "Der Hund schläft im Garten. " * 1000,
        "a.b@example.org " * 3000 + "The dog sleeps in the garden. " * 1000,
        "e\u0301" * 40_000,
        "http://x.y/" + "a" * 200_000,
    ],
)
def test_beginning_of_a_long_text_is_judged_as_the_whole(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = language.detect(text)
    monkeypatch.setattr(language, "_HEAD", len(text))
    assert language.detect(text) == short


def test_long_text_is_read_only_as_far_as_the_detector_reads() -> None:
    assert len(language._head("word " * 200_000)) == language._HEAD
    assert len(language._head("a.b@example.org " * 200_000)) == 8 * language._HEAD


def test_profiles_are_loaded_once_however_many_ask() -> None:
    calls: list[int] = []

    def load() -> str:
        calls.append(1)
        return "value"

    once = Once(load)
    assert [once(), once()] == ["value", "value"]
    assert calls == [1]


def test_value_that_failed_to_load_is_tried_again() -> None:
    answers = iter([False, True])

    def load() -> str:
        if not next(answers):
            raise PackagedDataError("not yet")
        return "value"

    once = Once(load)
    with pytest.raises(PackagedDataError):
        once()
    assert once() == "value"


@pytest.mark.parametrize(
    ("module", "attribute", "value", "load", "message"),
    [
        (sentences, "TABLES", "punkt.data.nowhere", sentences._load_punkt, "sentence tables: No"),
        (sentences, "TABLES_SHA256", "0" * 64, sentences._load_punkt, "not the pinned 0000"),
        (language, "CODES", ("en", "xx"), language._load_factory, "language profiles: "),
        (language, "PROFILES_SHA256", "0" * 64, language._load_factory, "not the pinned 0000"),
    ],
)
def test_missing_or_changed_packaged_data_is_one_clear_error(
    module: object,
    attribute: str,
    value: object,
    load: Callable[[], object],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """ife-18: found in a preflight, before server time is spent, and it says what to install."""
    monkeypatch.setattr(module, attribute, value)
    with pytest.raises(PackagedDataError) as caught:
        load()
    assert message in str(caught.value)
    assert "; install '" in str(caught.value)


def test_profiles_that_are_not_loaded_are_an_error_not_a_verdict(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The reference counts that error as followed."""
    empty = Once(DetectorFactory)
    monkeypatch.setattr(language, "_factory", empty)
    with pytest.raises(PackagedDataError, match="Need to load profiles"):
        language.detect("some text")
