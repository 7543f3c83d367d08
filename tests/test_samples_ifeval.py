"""The IFEval sample list can be graded, says what it demands, and is not copied."""

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from qualeval.graders.ifeval import INSTRUCTION_TYPES, check_item, grade

ROOT = Path(__file__).parents[1]
FILE = ROOT / "tasks" / "samples" / "ifeval.jsonl"
FIELDS = ["key", "prompt", "instruction_id_list", "kwargs"]
RUN = 8
MOST_WORDS = 80  # of a reply that follows: small models are run with few tokens
NUMBERS = {2: "two", 3: "three", 4: "four", 5: "five"}
RELATIONS = {"at least": "at least", "less than": "fewer than"}
LANGUAGES = {"de": "German", "es": "Spanish"}
FIXED_ANSWERS = ("My answer is yes.", "My answer is no.", "My answer is maybe.")

# Key -> a reply that follows every instruction, and one that breaks the first and no other.
REPLIES: dict[int, tuple[str, str]] = {
    1: (
        "Push the spade straight down and turn the soil over. Then mix in plenty of compost.",
        "Push the shovel straight down and turn the soil over. Then mix in plenty of compost.",
    ),
    2: (
        "The watchman lit his lantern. A lost boat saw the lantern and came home. Then the lantern"
        " went out, and he slept.",
        "The watchman lit his lantern. A lost boat saw the lantern and came home. Then the light"
        " went out, and he slept.",
    ),
    3: (
        "Frost lies on every roof. Smoke climbs from the chimneys and a dog barks once.",
        "Snow lies on every roof. Smoke climbs from the chimneys and a dog barks once.",
    ),
    4: ("Buzz Pizza: a slice with a buzz.", "Hive Pizza: a slice with a hum."),
    5: (
        "Stellen Sie zuerst eine Tasse unter den Auslauf. Drücken Sie dann den Knopf und warten"
        " Sie eine Minute. Danach ist der Kaffee fertig.",
        "First put a cup under the spout. Then press the button and wait for a minute. After that"
        " the coffee is ready.",
    ),
    6: (
        "Cats study gravity. Every cup is an experiment. The loud crash is the result.",
        "Cats study gravity and every cup is an experiment. The loud crash is the result.",
    ),
    7: (
        "Sunday is the only day on which many families have time to read.\n***\nThe two librarians"
        " need a day of rest.",
        "Sunday is the only day on which many families have time to read.\n\nThe two librarians"
        " need a day of rest.",
    ),
    8: (
        "We collect things that people leave on buses, label them and give them back to whoever"
        " can describe them.",
        "We collect things that people leave on buses, label them and give them back. " * 5,
    ),
    9: (
        "Build a ship from the sofa! Spread a blanket over two chairs as a sail, draw a map of the"
        " flat, and take turns at being captain. Whoever finds all seven hidden spoons before the"
        " kettle boils wins the treasure, which is a biscuit.",
        "Build a ship from the sofa and spread a blanket over two chairs as a sail.",
    ),
    10: (
        "A red kite tore its string on the hill.\n\nMeanwhile, its owner ran through the whole"
        " town.\n\nThey met again on the roof of the school.",
        "A red kite tore its string on the hill.\n\nIts owner, meanwhile, ran through the whole"
        " town.\n\nThey met again on the roof of the school.",
    ),
    11: (
        "Dear tenants, the lift will be repaired on [date] from [time]. Questions? Ask [name].",
        "Dear tenants, the lift will be repaired on [date] from [time]. Questions? Ask us.",
    ),
    12: (
        "Dear Ada,\nthank you for watering my tomatoes.\nTom\nP.S. The red ones are for you.",
        "Dear Ada,\nthank you for watering my tomatoes.\nTom\nAlso, the red ones are for you.",
    ),
    13: (
        "<<Before you lend it>>\n* the brakes\n* the lights\n* the tyres\n* the saddle",
        "<<Before you lend it>>\n* the brakes\n* the lights\n* the tyres",
    ),
    14: ("My answer is no.", "No, it could not."),
    15: (
        "Say the name *out loud* and link it to *one thing you see*.",
        "Say the name *out loud* and link it to one thing you see.",
    ),
    16: (
        "Day 1\nThrow one ball.\n\nDay 2\nThrow two balls.\n\nDay 3\nThrow three balls.",
        "Friday\nThrow one ball.\n\nSaturday\nThrow two balls.\n\nSunday\nThrow three balls.",
    ),
    17: (
        '```json\n{"name": "Otter", "seats": 40, "route": "mill to market"}\n```',
        'Here is it: {"name": "Otter", "seats": 40, "route": "mill to market"}. Enjoy.',
    ),
    18: (
        "<<Time to spare>>\nThis clock runs backwards, so you are younger every hour.",
        "Time to spare\nThis clock runs backwards, so you are younger every hour.",
    ),
    19: (
        "Which two animals sleep through the winter?\n\nThe dormouse and the hedgehog.",
        "The dormouse and the hedgehog.",
    ),
    20: ("The Floating Loaf\n******\nBread Ahoy", "The Floating Loaf\n\nBread Ahoy"),
    21: (
        "Mia, it is warm outside! Walk with me at eight? See you at the bridge.",
        "Mia, it is warm outside! Walk with me at eight? See you at the station.",
    ),
    22: (
        '"Keep to my left, and I will keep you dry."',
        "“Keep to my left, and I will keep you dry.”",
    ),
    23: (
        "PLEASE WALK SOFTLY. Whoever wakes a robot must sing to it.",
        "PLEASE walk softly. Whoever wakes a robot must sing to it.",
    ),
    24: (
        "THE TRAIN TO THE SEASIDE IS LATE TODAY AND WILL ARRIVE IN TWENTY MINUTES. FREE TEA IS"
        " WAITING FOR ALL OF YOU ON THE PLATFORM.",
        "The train to the seaside is late today and will arrive in twenty minutes. Free tea is"
        " waiting for all of you on the platform.",
    ),
    25: (
        "soon the water will be hot and my long wait will be over. i hope that nobody forgets me"
        " in the cup.",
        "Soon the water will be hot and my long wait will be over. I hope that nobody forgets me"
        " in the cup.",
    ),
    26: (
        "- binoculars\n- a notebook\n- warm socks\n\nHappy watching!",
        "- binoculars\n- a notebook\n- warm, dry socks\n\nHappy watching!",
    ),
    27: (
        "Dear Jo, the lake is now where the path was. I cook under an umbrella.\nSam\nP.P.S The"
        " tent swims well.",
        "Dear Jo, the lake is now where the path was. I cook under an umbrella.\nSam\nBy the way,"
        " the tent swims well.",
    ),
    28: (
        "<<Un barco de papel>>\n- Dobla la hoja de papel por la mitad.\n- Lleva las esquinas de"
        " arriba hacia el centro.\n- Abre el barco con los dedos y ponlo en el agua.",
        "<<A paper boat>>\n- Fold the sheet of paper in half.\n- Bring the upper corners to the"
        " middle.\n- Open the boat with your fingers and put it on the water.",
    ),
    29: (
        "Fog is a cool soft wall that tastes of rain. It makes the whole garden feel near.",
        "FOG is a COOL and SOFT wall that tastes of rain. It makes the whole garden feel near.",
    ),
    30: (
        "A bridge lets people cross the water without getting wet feet.",
        "A bike, a truck and a duck like to look back at the river from it.",
    ),
}


def raw_lines() -> list[str]:
    # Not splitlines(): it also splits at U+2028 and U+0085, which may stand inside a line.
    return FILE.read_bytes().decode("utf-8").removesuffix("\n").split("\n")


def rows() -> list[dict[str, Any]]:
    return [json.loads(line) for line in raw_lines()]


def instructions() -> Iterator[tuple[int, str, str, dict[str, Any]]]:
    """Key, prompt, type and kwargs of every instruction of the list."""
    for row in rows():
        for instruction_id, kwargs in zip(row["instruction_id_list"], row["kwargs"], strict=True):
            yield row["key"], row["prompt"], instruction_id, kwargs


def occurs(text: str, words: str) -> bool:
    """Whether the words stand in the text, in any case, not as parts of longer words."""
    return re.search(rf"(?<!\w){words}(?!\w)", text, re.IGNORECASE) is not None


each_row = pytest.mark.parametrize("row", rows(), ids=lambda row: f"key{row['key']}")


def test_every_line_is_one_object_in_unescaped_utf8() -> None:
    def is_canonical(line: str) -> bool:
        return json.dumps(json.loads(line), ensure_ascii=False) == line

    assert b"\r" not in FILE.read_bytes()
    assert FILE.read_bytes().endswith(b"\n")
    assert [n for n, line in enumerate(raw_lines(), 1) if not is_canonical(line)] == []


def test_every_line_has_the_four_fields_in_order() -> None:
    assert [n for n, row in enumerate(rows(), 1) if list(row) != FIELDS] == []


def test_keys_count_from_one_and_prompts_are_enough() -> None:
    keys = [row["key"] for row in rows()]
    assert keys == list(range(1, len(keys) + 1))
    assert len(keys) >= 25


def test_prompts_are_stripped_and_none_stands_twice() -> None:
    counts = Counter(row["prompt"] for row in rows())
    assert [row["key"] for row in rows() if row["prompt"] != row["prompt"].strip()] == []
    assert max(counts.values()) == 1


def test_all_25_types_occur_and_every_family_comes_first_somewhere() -> None:
    assert {instruction_id for _, _, instruction_id, _ in instructions()} == set(INSTRUCTION_TYPES)
    assert len(INSTRUCTION_TYPES) == 25
    families = {name.split(":")[0] for name in INSTRUCTION_TYPES}
    assert {row["instruction_id_list"][0].split(":")[0] for row in rows()} == families


def test_rows_have_one_two_or_three_instructions_without_repeats() -> None:
    sizes = Counter(len(row["instruction_id_list"]) for row in rows())
    assert set(sizes) == {1, 2, 3}
    assert sizes[3] == 3
    repeated = [
        row["key"]
        for row in rows()
        if len(set(row["instruction_id_list"])) < len(row["instruction_id_list"])
    ]
    assert repeated == []


@each_row
def test_row_can_be_graded(row: dict[str, Any]) -> None:
    check_item(row["instruction_id_list"], row["kwargs"])
    assert all(value is not None for kwargs in row["kwargs"] for value in kwargs.values())


def numbers_not_stated(prompt: str, kwargs: Mapping[str, Any]) -> list[str]:
    """Names of the number kwargs the prompt states neither in digits nor in words."""
    relation = next((kwargs[name] for name in kwargs if name.endswith("relation")), None)
    missing = []
    for name, value in kwargs.items():
        if not isinstance(value, int):
            continue
        number = f"(?:{value}|{NUMBERS[value]})" if value in NUMBERS else str(value)
        stated = number if relation is None else f"{RELATIONS[relation]} {number}"
        if not occurs(prompt, stated):
            missing.append(name)
    return missing


def test_every_number_stands_in_the_prompt_after_its_relation() -> None:
    missing = [
        (key, name)
        for key, prompt, _, kwargs in instructions()
        for name in numbers_not_stated(prompt, kwargs)
    ]
    assert missing == []


def test_a_number_that_differs_from_the_prompt_is_found() -> None:
    prompt = "Use at least three words and fewer than 60 letters."
    assert numbers_not_stated(prompt, {"num_words": 3, "relation": "at least"}) == []
    assert numbers_not_stated(prompt, {"num_words": 3, "relation": "less than"}) == ["num_words"]
    assert numbers_not_stated(prompt, {"num_words": 6, "relation": "less than"}) == ["num_words"]
    assert numbers_not_stated(prompt, {"num_bullets": 4}) == ["num_bullets"]


def test_every_word_of_the_kwargs_stands_in_the_prompt() -> None:
    missing = []
    for key, prompt, _, kwargs in instructions():
        for name, value in kwargs.items():
            if isinstance(value, int) or name.endswith("relation"):
                continue
            texts = value if isinstance(value, list) else [value]
            texts = [LANGUAGES[text] if name == "language" else text for text in texts]
            missing += [(key, name) for text in texts if not occurs(prompt, re.escape(text))]
    assert missing == []


def test_fixed_answers_and_dividers_are_spelled_out() -> None:
    wanted = {
        "detectable_format:constrained_response": FIXED_ANSWERS,
        "detectable_format:title": ("<<", ">>"),
        "detectable_format:json_format": ("JSON",),
        "combination:two_responses": (" ******,",),
        "length_constraints:number_paragraphs": (" ***,",),
        "punctuation:no_comma": ("comma",),
    }
    missing = [
        (key, text)
        for key, prompt, instruction_id, _ in instructions()
        for text in wanted.get(instruction_id, ())
        if text not in prompt
    ]
    assert missing == []


def test_the_text_to_repeat_opens_its_prompt() -> None:
    found = [
        prompt.startswith(kwargs["prompt_to_repeat"] + "\n")
        for _, prompt, instruction_id, kwargs in instructions()
        if instruction_id == "combination:repeat_prompt"
    ]
    assert found
    assert all(found)


def test_every_row_has_its_two_replies() -> None:
    assert list(REPLIES) == [row["key"] for row in rows()]


@each_row
def test_a_reply_that_follows_is_right(row: dict[str, Any]) -> None:
    graded = grade(REPLIES[row["key"]][0], row["instruction_id_list"], row["kwargs"])
    assert [found.why for found in graded.instructions if not found.strict] == []
    assert graded.strict_prompt


@each_row
def test_a_reply_that_breaks_only_the_first_instruction_is_wrong(row: dict[str, Any]) -> None:
    graded = grade(REPLIES[row["key"]][1], row["instruction_id_list"], row["kwargs"])
    others = len(graded.instructions) - 1
    assert not graded.strict_prompt
    assert not graded.loose_prompt
    assert [found.strict for found in graded.instructions] == [False] + [True] * others


@each_row
def test_row_can_be_followed_in_few_words(row: dict[str, Any]) -> None:
    assert len(re.findall(r"\w+", REPLIES[row["key"]][0])) <= MOST_WORDS


def word_runs(text: str) -> Iterator[tuple[str, ...]]:
    """Every run of RUN words in a row, whatever the case and the punctuation between them."""
    words = re.findall(r"\w+", text.casefold())
    return zip(*(words[start:] for start in range(RUN)), strict=False)


def official_prompts() -> Sequence[str]:
    folder = Path(os.environ.get("QUALEVAL_REFERENCE_DATA") or ROOT.parent / "shared" / "data")
    path = folder / "ifeval" / "input_data.jsonl"
    if not path.is_file():
        pytest.skip("no reference data: ifeval (set QUALEVAL_REFERENCE_DATA to its folder)")
    with path.open(encoding="utf-8") as file:
        return [json.loads(line)["prompt"] for line in file]


def keys_with_a_common_run(prompts: Iterable[str]) -> list[int]:
    """Keys, and never the text, of the samples that share a run of words with a prompt."""
    runs = {run for prompt in prompts for run in word_runs(prompt)}
    return [row["key"] for row in rows() if not runs.isdisjoint(word_runs(row["prompt"]))]


def test_a_copied_run_is_found_whatever_its_case_and_punctuation() -> None:
    words = re.findall(r"\w+", rows()[1]["prompt"])[:RUN]
    assert keys_with_a_common_run(["Now: " + " - ".join(words).upper() + "?"]) == [2]
    assert keys_with_a_common_run([" ".join(words[1:])]) == []


def test_no_run_of_eight_words_is_shared_with_the_benchmark() -> None:
    copied = keys_with_a_common_run(official_prompts())
    assert copied == []
