"""What the long texts are made of: drawn names, numbers and sentences, the same everywhere."""

import hashlib
import os
import re
import subprocess
import sys
from collections import Counter
from itertools import combinations, islice, pairwise

import pytest
from tokenizers_for_tests import NAMES, file_of, words

from qualeval.errors import ListError
from qualeval.records import Completion, Item, sha256_text
from qualeval.tasks.ruler import TASK, TEMPLATE
from qualeval.tasks.ruler_drafts import DRAFTS, draft_of
from qualeval.tasks.ruler_items import (
    Prompt,
    RulerItem,
    build,
    item_of,
    item_of_row,
    items,
    prompt_of,
    row_of_item,
)
from qualeval.tasks.ruler_length import Meter
from qualeval.tasks.ruler_text import CODED, SENTENCES, WordsDraft, names, numbers

TARGET = 2048
PROSE = " ".join([*SENTENCES, TEMPLATE])
COMMON = """
    bacon banjo baker basket button cactus candle carpet castle cobweb copper cotton dancer dentist
    doctor donkey falcon fabric figure filter finger garden gentle goblin goblet hamlet harbor
    helmet hermit jacket jargon kitten lantern lizard magnet market marble mikvah mirror muffin
    napkin novel number pardon pencil picnic pocket poker problem puzzle rabbit random robber rocket
    salmon sector silver signal sister socket subzero sultan system tablet target temper tendon
    timber turnip velvet victor vulgar walnut winter zigzag zombie
"""

each_task = pytest.mark.parametrize("task", list(DRAFTS))


def prompts(target: int = TARGET) -> list[Prompt]:
    meter = Meter(words)
    return [build(task, index, target, meter) for task in DRAFTS for index in range(10)]


def filler_lines(prompt: Prompt) -> list[str]:
    return prompt.text.split("\n\n")[1].split("\n")


def test_names_are_distinct_and_none_is_inside_another() -> None:
    """A reply that names one can never seem to name two."""
    drawn = [*names("any", 700), *CODED]
    assert len(drawn) == len(set(drawn))
    assert [] == [(a, b) for a, b in combinations(drawn, 2) if a in b or b in a]


def test_names_are_no_words_and_stand_in_no_sentence() -> None:
    """Not in our prose, not in a list of words, and holding letter pairs that words lack."""
    drawn = {*names("any", 700), *CODED}
    spoken = set(re.findall(r"[a-z]+", PROSE.lower())) | set(COMMON.split())
    assert set() == drawn & spoken
    assert [] == [name for name in drawn if name in PROSE.lower()]


@pytest.mark.parametrize("tokenizer", NAMES)
def test_no_name_is_a_single_token(tokenizer: str) -> None:
    """Words that people write are one token of some big tokenizer; names never are."""
    from tokenizers import Tokenizer

    path = file_of(tokenizer)
    if path is None:
        pytest.skip(f"no tokenizer '{tokenizer}': .ci/tokenizers installs it")
    known = Tokenizer.from_file(str(path)).get_vocab()
    for name in (*names("any", 700), *CODED):
        for form in (name, name.title(), name.upper()):
            assert form not in known and f"Ġ{form}" not in known


def test_numbers_are_distinct_and_of_seven_digits() -> None:
    drawn = numbers("any", 700)
    assert len(drawn) == len(set(drawn)) == 700
    assert all(re.fullmatch(r"[1-9]\d{6}", number) for number in drawn)


def test_sentences_are_of_one_form() -> None:
    """Every border is a full stop, a line break and a capital, so that costs hold anywhere."""
    assert len(set(SENTENCES)) == len(SENTENCES)
    assert all(re.fullmatch(r"[A-Z][a-z]*( [A-Za-z]+)*\.", line) for line in SENTENCES)


def test_first_line_differs_in_every_prompt() -> None:
    """No prefix cache helps: the texts part in the first few characters."""
    beginnings = [p.text[:8] for target in (TARGET, 4096) for p in prompts(target)]
    assert len(beginnings) == len(set(beginnings)) == 80


def test_each_prompt_holds_each_value_where_it_should() -> None:
    """Wanted values stand in the text; numbers once, so that there is one needle for each."""
    for prompt in prompts():
        body = prompt.text.split("\n\n")[1]
        for value in (*prompt.expected, *prompt.distractors):
            times = len(re.findall(rf"\b{value}\b", body))
            assert times == 1 if prompt.task.startswith("niah") else times >= 1
        assert set(prompt.expected).isdisjoint(prompt.distractors)


def test_asked_name_is_the_one_of_the_wanted_number() -> None:
    for index in range(10):
        prompt = build("niah_multikey", index, TARGET, words)
        asked = re.search(r"pass number of (\w+) in the text", prompt.text)
        assert asked is not None
        line = f"The pass number of {asked[1]} is {prompt.expected[0]}."
        assert 1 == filler_lines(prompt).count(line)
        assert len(prompt.distractors) == TARGET // 256


def test_four_numbers_belong_to_the_asked_name_and_four_to_another() -> None:
    prompt = build("niah_multivalue", 0, TARGET, words)
    asked = re.search(r"pass numbers does (\w+) have", prompt.text)
    found = re.findall(r"One of the pass numbers of (\w+) is (\d+)\.", prompt.text)
    assert asked is not None
    assert prompt.expected == tuple(number for name, number in found if name == asked[1])
    assert 4 == len(prompt.expected) == len(prompt.distractors)
    assert 2 == len({name for name, _ in found})


@pytest.mark.parametrize("index", range(10))
def test_following_the_statements_in_order_gives_exactly_the_four_variables(index: int) -> None:
    """Each variable is set before it is used, and only one chain has the number asked."""
    prompt = build("vt", index, TARGET, words)
    value: dict[str, str] = {}
    for line in filler_lines(prompt):
        if found := re.fullmatch(r"Variable (\w+) is set to (\d+)\.", line):
            value[found[1]] = found[2]
        elif found := re.fullmatch(r"Variable (\w+) is set to the value of variable (\w+)\.", line):
            value[found[1]] = value[found[2]]
    asked = re.search(r"have the value (\d+)", prompt.text)
    assert asked is not None
    assert sorted(prompt.expected) == sorted(n for n, number in value.items() if number == asked[1])
    assert 16 == len(value) == len(prompt.expected) + len(prompt.distractors)
    assert [4, 4, 4, 4] == list(Counter(value.values()).values())


@pytest.mark.parametrize("target", [512, 1024, 8192, 32768])
def test_three_wanted_words_are_well_ahead_of_all_others(target: int) -> None:
    """Ranks hold at any length: each wanted word leads the next by a tenth at least."""
    for index in range(10):
        prompt = build("fwe", index, target, words)
        often = Counter(re.findall("|".join(CODED), prompt.text)).most_common()
        assert prompt.expected == tuple(word for word, _ in often[:3])
        for (_, more), (_, fewer) in pairwise(often[:4]):
            assert more >= 1.1 * fewer


def test_shares_of_words_follow_the_square_law() -> None:
    """Rank r has 4 / (r + 1)² of the first one's count, to the nearest word."""
    draft = draft_of("fwe", 0, 8192)
    assert isinstance(draft, WordsDraft)
    times = Counter(islice(draft.stream(), 5000))
    first = times[draft.ranks[0]]
    for rank, word in enumerate(draft.ranks):
        assert abs(times[word] - first * 4 / (rank + 2) ** 2) <= 1


@pytest.mark.parametrize(
    ("task", "needle", "needles"),
    [
        ("niah_multikey", r"The pass number of \w+ is {}\.", 1),
        ("niah_multivalue", r"One of the pass numbers of \w+ is {}\.", 4),
        ("vt", r"Variable {} is set to .+\.", 4),
    ],
)
def test_each_depth_occurs_once(task: str, needle: str, needles: int) -> None:
    """Over ten items the needles stand in the middle of each tenth (or fortieth) of the text."""
    found = []
    for index in range(10):
        prompt = build(task, index, 32768, words)
        lines = filler_lines(prompt)
        pattern = re.compile("|".join(needle.format(value) for value in prompt.expected))
        found += [place / len(lines) for place, line in enumerate(lines) if pattern.fullmatch(line)]
    steps = 10 * needles
    assert len(found) == steps
    for step, depth in enumerate(sorted(found)):
        assert abs(depth - (step + 0.5) / steps) < 0.006


def test_first_half_of_the_items_reaches_from_top_to_bottom() -> None:
    """A part cut by --limit has not only shallow needles."""
    places = []
    for index in range(5):
        prompt = build("niah_multikey", index, TARGET, words)
        places.append(prompt.text.index(f"{prompt.expected[0]}.") / len(prompt.text))
    assert min(places) < 0.2
    assert max(places) > 0.8


def test_same_bytes_in_two_fresh_processes() -> None:
    """No hash seed, locale or order of a set reaches the text."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from test_ruler_text import prompts\n"
        "print(*[p.text_sha256 for p in prompts()], sep='\\n')"
    )
    said = []
    for seed in ("1", "2"):
        environment = os.environ | {"PYTHONHASHSEED": seed, "LC_ALL": "C"}
        command = [sys.executable, "-c", code, os.path.dirname(__file__)]
        done = subprocess.run(command, env=environment, capture_output=True, check=True, text=True)
        said.append(done.stdout.split())
    assert said[0] == said[1] == [prompt.text_sha256 for prompt in prompts()]


def test_texts_are_those_of_suite_1() -> None:
    """A changed sentence, name, number or wording changes prompts: raise the suite's version."""
    hashes = "".join(prompt.text_sha256 for prompt in prompts())
    assert hashlib.sha256(hashes.encode()).hexdigest() == (
        "e00a7b70ae6fc0ebca264a7ffe146aeaf985e33bbdd780220653fa1c3143c7c3"
    )


@each_task
def test_text_is_made_again_without_a_tokenizer(task: str) -> None:
    """What an item keeps is enough, through JSON and back."""
    prompt = build(task, 7, TARGET, words)
    item = item_of(prompt, "f" * 64)
    again = item_of_row(row_of_item(item))
    assert again == item
    assert prompt_of(again) == prompt.text
    assert ({"role": "user", "content": prompt.text},) == TASK.messages(again)
    assert TASK.official_item(row_of_item(item)) == TASK.item(row_of_item(item)) == item
    assert again.made is not None
    assert sha256_text(prompt.text) == again.made.prompt_sha256


def test_text_that_is_not_the_first_one_is_refused() -> None:
    """A row that was changed, or made by another version, never asks something else."""
    row = row_of_item(item_of(build("vt", 0, TARGET, words)))
    assert isinstance(row["made"], dict)
    for change in ({"taken": 3}, {"closing": [1, 2]}, {"closing": [99]}, {"index": 4}):
        with pytest.raises(ListError, match="'vt-2048-0': the text made again has another sha256"):
            prompt_of(item_of_row(row | {"made": row["made"] | change}))


def test_text_of_an_item_graded_elsewhere_is_not_known() -> None:
    item = item_of_row({"id": 1, "task": "vt", "expected": ["AB"]})
    with pytest.raises(ListError, match="item 1: its text was made elsewhere"):
        TASK.messages(item)
    assert item.target is None
    assert {"id": 1, "task": "vt", "expected": ["AB"], "distractors": []} == row_of_item(item)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"id": None}, "field 'id' must be"),
        ({"id": True}, "field 'id' must be"),
        ({"task": ""}, "field 'task' must be a text"),
        ({"expected": None}, "field 'expected' must be a list of texts, at least one"),
        ({"expected": []}, "field 'expected' must be a list of texts, at least one"),
        ({"expected": "AB"}, "field 'expected' must be a list of texts"),
        ({"expected": ["AB", ""]}, "field 'expected' holds something that is no text"),
        ({"expected": [1234567]}, "field 'expected' holds something that is no text"),
        ({"expected": ["AB", "AB"]}, "field 'expected' holds a value twice"),
        ({"distractors": 3}, "field 'distractors' must be a list of texts$"),
        ({"distractors": ["AB"]}, "fields 'expected' and 'distractors' share a value"),
        ({"made": {"index": 0}}, r"field 'made\.target': Field required"),
    ],
)
def test_wrong_row_names_the_field(change: dict[str, object], message: str) -> None:
    row: dict[str, object] = {"id": "a", "task": "vt", "expected": ["AB"]}
    with pytest.raises(ValueError, match=message):
        item_of_row(row | change)


def test_made_row_of_an_unknown_task_names_those_there_are() -> None:
    row = row_of_item(item_of(build("vt", 0, TARGET, words)))
    with pytest.raises(ValueError, match="'qa' is not one of niah_multikey, niah_multivalue"):
        item_of_row(row | {"task": "qa"})


def test_items_come_length_by_length_with_the_tasks_in_turn() -> None:
    """The first few items of a limited part hold every task; nothing is built ahead."""
    meter = Meter(words)
    stream = items((1024, TARGET), 2, count=meter)
    first = [next(stream) for _ in range(4)]
    assert meter.calls == 2 * 4 + 33 + 17  # two counts a prompt, and each unit once
    assert list(DRAFTS) == [item.stratum for item in first]
    rest = list(stream)
    assert [1024] * 4 + [TARGET] * 8 == [item.target for item in rest]
    assert 16 == len({item.id for item in (*first, *rest)})
    assert 16 == len({item.sha256 for item in (*first, *rest)})
    assert [*(first[2].expected)] == first[2].gold


def test_row_names_are_the_printed_ones() -> None:
    assert ("Long text 8K", "4 tasks x 10 at 8192 tokens") == TASK.row_names("8192", 40)
    assert ("Long text 128K", "4 tasks x 5 at 131072 tokens") == TASK.row_names("131072", 20)
    assert "Long text 5,000" == TASK.row_names("5000", 40)[0]


def item(**made: object) -> RulerItem:
    return item_of_row({"id": 1, "task": "vt", "expected": ["KEZJOL", "MAVJAM"], **made})


def test_task_is_ready_without_a_list() -> None:
    TASK.prepare()
    assert ("ruler", 128, "off", "recall 1") == (
        TASK.name,
        TASK.max_tokens,
        TASK.thinking,
        TASK.grader,
    )
    assert "vt" == TASK.source.stratum({"task": "vt"})
    assert 1 == len(TASK.source.clean([{"id": 1}]).rows)
    assert isinstance(item(), Item)
    assert Completion(text="", finish_reason="stop").cut_by is None
