"""Exact lengths with real tokenizers; skipped where `.ci/tokenizers` has not put them."""

from collections import Counter

import pytest
from tokenizers_for_tests import NAMES, real

from qualeval.tasks.ruler_drafts import DRAFTS
from qualeval.tasks.ruler_items import build, items, prompt_of
from qualeval.tasks.ruler_length import Meter

each_tokenizer = pytest.mark.parametrize("tokenizer", NAMES)


@each_tokenizer
def test_80_of_80_prompts_are_exact(tokenizer: str) -> None:
    """The published page had 5 of 80 one token short; the rule here is none, at the first try."""
    meter = Meter(real(tokenizer))
    made = list(items(count=meter))
    exact = Counter(item.target for item in made if item.made and item.made.exact)
    assert {8192: 40, 32768: 40} == exact
    assert meter.calls <= 33 + 17 + 2 * 80 + 4


@each_tokenizer
def test_count_of_the_text_made_again_is_the_target(tokenizer: str) -> None:
    """The proof is a count of the whole text as it is sent, by a tokenizer that built nothing."""
    count = real(tokenizer)
    for item in items((2048, 8192), 2, count=count):
        assert item.target == count(prompt_of(item))


@each_tokenizer
def test_131072_tokens_are_exact(tokenizer: str) -> None:
    meter = Meter(real(tokenizer))
    for task in DRAFTS:
        assert build(task, 9, 131072, meter).exact


@each_tokenizer
def test_odd_lengths_are_exact(tokenizer: str) -> None:
    meter = Meter(real(tokenizer))
    for target in range(2001, 2031):
        for task in DRAFTS:
            assert build(task, 0, target, meter).exact
