"""How fast the IFEval grader is: `python bench/ifeval.py`. Exits 1 when a limit is passed.

All four levels (strict and loose, prompt and instruction), one process, CPU seconds after import.
The GPT-4 replies come from the reference data beside the repository (`../shared/data`, or
`$QUALEVAL_REFERENCE_DATA`); without it that part is skipped and said so.
"""

import json
import sys
import time
from collections.abc import Callable
from functools import partial

from harness import reference_data

from qualeval.graders.ifeval import INSTRUCTION_TYPES, grade, prepare

DATA = reference_data("ifeval")
LIMIT_REPLIES = 1.5  # seconds for the 541 replies
LIMIT_GROWTH = 1.5  # time per reply of four times the replies, against once
LIMIT_MEGABYTE = 10.0  # seconds for all checkers on one reply of 1 MB

AT_LEAST = "at least"
STRICT_ON_NOTHING: dict[str, dict[str, object]] = {
    "keywords:existence": {"keywords": ["zebra"]},
    "keywords:frequency": {"keyword": "zebra", "frequency": 2, "relation": AT_LEAST},
    "keywords:forbidden_words": {"forbidden_words": ["zebra"]},
    "keywords:letter_frequency": {
        "letter": "#",
        "let_frequency": 10**7,
        "let_relation": AT_LEAST,
    },
    "language:response_language": {"language": "de"},
    "length_constraints:number_sentences": {"num_sentences": 10**7, "relation": AT_LEAST},
    "length_constraints:number_paragraphs": {"num_paragraphs": 77},
    "length_constraints:number_words": {"num_words": 10**7, "relation": AT_LEAST},
    "length_constraints:nth_paragraph_first_word": {
        "num_paragraphs": 5,
        "nth_paragraph": 2,
        "first_word": "zebra",
    },
    "detectable_content:number_placeholders": {"num_placeholders": 10**7},
    "detectable_content:postscript": {"postscript_marker": "P.S."},
    "detectable_format:number_bullet_lists": {"num_bullets": 77},
    "detectable_format:number_highlighted_sections": {"num_highlights": 10**7},
    "detectable_format:multiple_sections": {"section_spliter": "Section", "num_sections": 10**6},
    "combination:repeat_prompt": {"prompt_to_repeat": "zebra"},
    "startend:end_checker": {"end_phrase": "zebra"},
    "change_case:capital_word_frequency": {
        "capital_frequency": 10**7,
        "capital_relation": AT_LEAST,
    },
}
MEGABYTES = {
    "1 MB of *": "*" * 1_000_000,
    "1 MB of line feeds": "x" + "\n" * 1_000_000 + "x",
    "1 MB of [": "[" * 1_000_000,
    "1 MB of '<<>'": "<<>" * 333_333,
    "1 MB of '. '": ". " * 500_000,
    "1 MB of prose": "Mr. Vale left at 5 p.m. on Monday. Did he?! Nobody knows...\n" * 16_400,
    "1 MB, all periods new": "\n".join(f"{n % 97}. {n * 7919 % 999_983}. x" for n in range(65_000)),
}


def seconds(work: Callable[[], object]) -> float:
    """CPU seconds of one call."""
    start = time.process_time()
    work()
    return time.process_time() - start


def show(name: str, used: float, limit: float | None = None) -> bool:
    """Print one row of the table; false when the limit is passed."""
    fits = limit is None or used <= limit
    print(
        f"{name:<38}{used:8.2f} s{'' if limit is None else f'   limit {limit:.1f}'}"
        f"{'' if fits else '   TOO SLOW'}"
    )
    return fits


def replies() -> list[tuple[str | None, list[str], list[dict[str, object]]]]:
    """The GPT-4 replies with their items, matched by prompt; empty when the data is absent."""
    if not (DATA / "responses_gpt4.jsonl").is_file():
        return []
    with (DATA / "responses_gpt4.jsonl").open(encoding="utf-8") as lines:
        found = {row["prompt"]: row["response"] for row in map(json.loads, lines)}
    with (DATA / "input_data.jsonl").open(encoding="utf-8") as lines:
        items = [row for row in map(json.loads, lines) if row["prompt"] in found]
    return [(found[row["prompt"]], row["instruction_id_list"], row["kwargs"]) for row in items]


def main() -> int:
    """Run all measurements."""
    show("profiles and tables, once per process", seconds(prepare))
    fits = []
    work = replies()
    if work:
        once = seconds(lambda: [grade(*row) for row in work])
        fits.append(show(f"{len(work)} GPT-4 replies", once, LIMIT_REPLIES))
        again = seconds(lambda: [grade(*row) for row in work])
        fits.append(show("the same again", again, LIMIT_REPLIES))
        four = seconds(lambda: [grade(*row) for row in work * 4])
        fits.append(show("four times the replies", four, 4 * again * LIMIT_GROWTH))
    else:
        print("GPT-4 replies: skipped, no reference data (QUALEVAL_REFERENCE_DATA)")
    kwargs = [STRICT_ON_NOTHING.get(name, {}) for name in INSTRUCTION_TYPES]
    for name, text in MEGABYTES.items():
        used = seconds(partial(grade, text, INSTRUCTION_TYPES, kwargs))
        fits.append(show(f"{name}, all 25 checkers", used, LIMIT_MEGABYTE))
    return 0 if all(fits) else 1


if __name__ == "__main__":
    sys.exit(main())
