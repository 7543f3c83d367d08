"""What holds for the IFEval grader on any text: no exception, no race, no slow pattern."""

import hashlib
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from growth import assert_linear
from hypothesis import example, given
from hypothesis import strategies as st

from qualeval.graders.ifeval import INSTRUCTION_TYPES, Grade, grade, prepare
from qualeval.graders.ifeval.layout import _bracketed, _titled
from qualeval.graders.ifeval.sentences import split_sentences

LEAST = "at least"
KWARGS: dict[str, dict[str, object]] = {
    "keywords:existence": {"keywords": ["tea", "a"]},
    "keywords:frequency": {"keyword": "a", "frequency": 2, "relation": LEAST},
    "keywords:forbidden_words": {"forbidden_words": ["tea"]},
    "keywords:letter_frequency": {"letter": "*", "let_frequency": 2, "let_relation": "less than"},
    "language:response_language": {"language": "en"},
    "length_constraints:number_sentences": {"num_sentences": 3, "relation": LEAST},
    "length_constraints:number_paragraphs": {"num_paragraphs": 2},
    "length_constraints:number_words": {"num_words": 3, "relation": LEAST},
    "length_constraints:nth_paragraph_first_word": {
        "num_paragraphs": 2,
        "nth_paragraph": 2,
        "first_word": "a",
    },
    "detectable_content:number_placeholders": {"num_placeholders": 1},
    "detectable_content:postscript": {"postscript_marker": "P.S."},
    "detectable_format:number_bullet_lists": {"num_bullets": 2},
    "detectable_format:number_highlighted_sections": {"num_highlights": 1},
    "detectable_format:multiple_sections": {"section_spliter": "Section", "num_sections": 1},
    "combination:repeat_prompt": {"prompt_to_repeat": "a"},
    "startend:end_checker": {"end_phrase": "a"},
    "change_case:capital_word_frequency": {"capital_frequency": 2, "capital_relation": LEAST},
}
ALL_KWARGS = [KWARGS.get(name, {}) for name in INSTRUCTION_TYPES]

MARKUP = st.lists(
    st.sampled_from(
        [*"*-<>[]\"'.,!? \n\r\t{}1aA", "\n\n", "***", "P.S.", "Section 1", "```", "\xa0"]
    )
).map("".join)
ANY_TEXT = st.one_of(st.text(st.characters(exclude_categories=())), MARKUP)


def grade_all(reply: str | None) -> Grade:
    return grade(reply, INSTRUCTION_TYPES, ALL_KWARGS)


@given(ANY_TEXT)
@example("\ud835 half a pair")
@example("B\u2028note\u0085x\x00")
@example("\u202eשלום, עולם.\u202c مرحبا")
@example("[" * 3000)
def test_any_text_gets_a_verdict_and_strict_implies_loose(reply: str) -> None:
    """log-01, log-02, ife-21: half a surrogate pair, NUL, line separators, right to left."""
    graded = grade_all(reply)
    assert all(found.loose or not found.strict for found in graded.instructions)
    assert graded.loose_prompt or not graded.strict_prompt
    assert all(found.why.encode("utf-8") for found in graded.instructions)
    assert graded == grade_all(reply)


@given(ANY_TEXT)
def test_placeholders_equal_the_plain_pattern(text: str) -> None:
    assert len(re.findall(r"\[.*?\]", text)) == sum(map(_bracketed, text.split("\n")))


@given(ANY_TEXT)
@example("*\n\n* a\n \n\t\n* b")
def test_bullets_equal_the_plain_patterns(text: str) -> None:
    stars = re.findall(r"^\s*\*[^\*].*$", text, flags=re.MULTILINE)
    dashes = re.findall(r"^\s*-.*$", text, flags=re.MULTILINE)
    kind, kwargs = "detectable_format:number_bullet_lists", {"num_bullets": len(stars + dashes)}
    if text.strip():
        assert grade(text, [kind], [kwargs]).strict_prompt


@given(ANY_TEXT)
def test_title_equals_the_plain_pattern(text: str) -> None:
    plain = any(found.lstrip("<").rstrip(">").strip() for found in re.findall(r"<<[^\n]+>>", text))
    assert plain == any(map(_titled, text.split("\n")))


@given(ANY_TEXT, st.sampled_from([("P.S.", r"\s*p\.\s?s\..*$"), ("P.P.S", r"\s*p\.\s?p\.\s?s.*$")]))
def test_postscript_equals_the_plain_pattern(text: str, marker: tuple[str, str]) -> None:
    plain = bool(re.findall(marker[1], text.lower(), flags=re.MULTILINE))
    kind = "detectable_content:postscript"
    if text.strip():
        assert plain == grade(text, [kind], [{"postscript_marker": marker[0]}]).strict_prompt


@given(ANY_TEXT)
def test_sentences_hold_the_whole_text_but_white_space(text: str) -> None:
    assert "".join(text.split()) == "".join("".join(split_sentences(text)).split())


LONG = {
    "stars": "*" * 1_000_000,
    "one long line": "a" * 1_000_000,
    "blank lines": "x" + "\n" * 1_000_000 + "x",
    "blanks after an abbreviation": "Mr." + " " * 1_000_000 + "x",
    "open brackets": "[" * 1_000_000,
    "open angles": "<<>" * 330_000,
    "periods": ". " * 500_000,
    "exclamations": "!" * 1_000_000,
    "unclosed json": '{"a":' * 200_000,
    "addresses": "a.b@" * 250_000,
    "prose": "Mr. Vale left at 5 p.m. on Monday. Did he?! Nobody knows...\n" * 16_000,
}


@pytest.mark.parametrize("name", LONG)
def test_reply_of_a_megabyte_is_graded_in_linear_time(name: str) -> None:
    """The plain patterns take minutes to hours for it."""
    prepare()
    text = LONG[name]
    assert_linear(lambda size: grade_all(text[: size - 1] + text[-1]), len(text))


SAMPLE = [
    "HELLO",
    "no",
    "Dr. Vale left. He ran. “Stop!” she said.",
    "Der Hund schläft.\n\n* DON'T [go]\n* P.S. <<a>>",
    "Bonjour tout le monde, ça va?",
    "12345 !!!",
]


def test_threads_give_the_verdicts_of_one_thread() -> None:
    expected = [grade_all(reply) for reply in SAMPLE]
    with ThreadPoolExecutor(16) as pool:
        assert expected * 20 == list(pool.map(grade_all, SAMPLE * 20))


SCRIPT = """
import sys, threading
sys.path.insert(0, sys.argv[1])
from test_ifeval_properties import SAMPLE, grade_all
found = {}
def work(place):
    found[place] = grade_all(SAMPLE[place])
threads = [threading.Thread(target=work, args=(place,)) for place in range(len(SAMPLE))]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
sys.stdout.buffer.write(repr([found[place] for place in range(len(SAMPLE))]).encode())
"""


def test_two_fresh_processes_with_racing_threads_give_the_same_bytes() -> None:
    """The first use, not a warm one: profiles and tables are loaded under the race."""
    digests = set()
    for seed in ("1", "2"):
        made = subprocess.run(
            [sys.executable, "-c", SCRIPT, os.path.dirname(__file__)],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        )
        digests.add(hashlib.sha256(made.stdout).hexdigest())
    here = repr([grade_all(reply) for reply in SAMPLE]).encode()
    assert {hashlib.sha256(here).hexdigest()} == digests
