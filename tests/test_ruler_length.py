"""Exact lengths with counters of every kind, honest and not."""

from pathlib import Path

import pytest
from tokenizers_for_tests import Odd, tiny_bpe, words

from qualeval.errors import CardError
from qualeval.tasks.ruler_drafts import DRAFTS
from qualeval.tasks.ruler_items import build, items
from qualeval.tasks.ruler_length import ROUNDS, Meter, counter, file_sha256

each_task = pytest.mark.parametrize("task", list(DRAFTS))


@pytest.mark.parametrize("target", [600, 601, 997, 1024, 4096])
@each_task
def test_every_length_is_hit_by_a_plain_counter(task: str, target: int) -> None:
    prompt = build(task, 1, target, words)
    assert (True, 0, target) == (prompt.exact, prompt.short_by, prompt.tokens)
    assert words(prompt.text) == target


@each_task
def test_every_length_is_hit_where_characters_are_tokens(task: str) -> None:
    """Long units need wide gaps; they close all the same."""
    meter = Meter(len)
    for index in range(10):
        assert build(task, index, 8192, meter).exact


@each_task
def test_length_that_does_not_exist_gives_the_nearest_below_marked(task: str) -> None:
    """Every count is odd: one short is the best there is, found in a bounded number of rounds."""
    count = Odd()
    prompt = build(task, 0, 8192, count)
    assert (False, 1, 8191) == (prompt.exact, prompt.short_by, prompt.tokens)
    assert prompt.rounds == ROUNDS
    assert count.calls <= 1 + 33 + ROUNDS


@each_task
def test_counter_whose_parts_never_add_up_ends_and_is_never_over(task: str) -> None:
    """A count that jumps with every change of the text is met by chance or marked."""

    def jumping(text: str) -> int:
        return words(text) + (len(text) * 7919 % 5 if len(text) > 2000 else 0)

    for index in range(10):
        prompt = build(task, index, 2048, jumping)
        assert prompt.tokens == jumping(prompt.text) == 2048 - prompt.short_by
        assert 0 <= prompt.short_by < 40
        assert prompt.rounds <= ROUNDS


def test_counter_that_is_always_above_at_first_is_brought_below() -> None:
    """Long texts cost a tenth more than their parts."""
    prompt = build("vt", 0, 8192, lambda text: words(text) * (11 if len(text) > 9000 else 10) // 10)
    assert 0 <= prompt.short_by < 20


@each_task
def test_length_below_the_fixed_text_is_an_error_at_once(task: str) -> None:
    """rul-03: no loop that cannot end; the message has both numbers."""
    counted = []

    def count(text: str) -> int:
        counted.append(text)
        return words(text)

    with pytest.raises(CardError, match=rf"40 tokens are too few for '{task}-40-0': .* \d"):
        build(task, 0, 40, count)
    assert len(counted) <= 1 + 33 + ROUNDS


def test_length_with_too_few_words_for_a_fair_question_is_an_error() -> None:
    with pytest.raises(CardError, match="fewer than the 80 units"):
        build("fwe", 0, 140, words)


def test_shortest_possible_text_is_built() -> None:
    """Fixed text alone, and one token more than that, which no sentence fits in."""
    shortest = next(t for t in range(100, 600) if not _too_short(t))
    assert build("vt", 0, shortest, words).exact
    above = build("vt", 0, shortest + 1, words)
    assert (False, 1) == (above.exact, above.short_by)


def _too_short(target: int) -> bool:
    try:
        build("vt", 0, target, words)
    except CardError:
        return True
    return False


@pytest.mark.parametrize("stuck", [0, 7, 512])
def test_counter_that_cuts_texts_is_an_error(stuck: int) -> None:
    """A cut count would make endless texts of a length that is not true."""
    with pytest.raises(CardError, match=r"cuts? texts"):
        build("vt", 0, 8192, lambda text: min(words(text), stuck))


def test_each_unit_is_counted_once_and_each_prompt_twice() -> None:
    """With a server's /tokenize each count is a round trip."""
    meter = Meter(words)
    assert all(item.made and item.made.rounds == 1 for item in items((1024,), 10, count=meter))
    assert meter.calls == 33 + 17 + 2 * 40


def test_meter_of_a_meter_is_that_meter() -> None:
    meter = Meter(words)
    assert Meter.of(meter) is meter


def test_tiny_tokenizer_hits_every_length(tmp_path: Path) -> None:
    """80 of 80 with a BPE of 400 tokens, trained here."""
    meter = Meter(counter(tiny_bpe(tmp_path / "tokenizer.json")))
    made = [item.made for item in items(count=meter)]
    assert 80 == sum(prompt is not None and prompt.exact for prompt in made)


def test_truncation_and_padding_inside_the_file_are_switched_off(tmp_path: Path) -> None:
    """A file that cuts at 512 tokens, or fills up to 4,096, still counts what is there."""
    text = "Rain fell on the harbour all morning.\n" * 300
    true = counter(tiny_bpe(tmp_path / "plain.json"))(text)
    cutting = {"direction": "Right", "max_length": 512, "strategy": "LongestFirst", "stride": 0}
    filling = {
        "strategy": {"Fixed": 4096},
        "direction": "Right",
        "pad_to_multiple_of": None,
        "pad_id": 0,
        "pad_type_id": 0,
        "pad_token": "!",
    }
    both = tiny_bpe(tmp_path / "both.json", truncation=cutting, padding=filling)
    count = counter(both)
    assert true > 4096
    assert true == count(text)
    assert 1 == count("a")
    assert build("vt", 0, 8192, count).exact


def test_special_tokens_are_not_counted(tmp_path: Path) -> None:
    """rul-01: a token that the file adds at the start is the server's, not the text's."""
    from tokenizers import Tokenizer, processors

    path = tiny_bpe(tmp_path / "tokenizer.json")
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.add_special_tokens(["<s>"])
    begin = tokenizer.token_to_id("<s>")
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", begin)]
    )
    tokenizer.save(str(path))
    assert [begin] == tokenizer.encode("").ids
    assert 0 == counter(path)("")


def test_missing_tokenizer_says_where_one_is_found(tmp_path: Path) -> None:
    with pytest.raises(CardError, match=r"there is no file .*beside its weights"):
        counter(tmp_path / "tokenizer.json")


@pytest.mark.parametrize("content", ["", "{}", "<html>not found</html>", '{"model": 1}'])
def test_file_that_is_no_tokenizer_is_an_error(tmp_path: Path, content: str) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(content)
    with pytest.raises(CardError, match=r"cannot be read as a tokenizer\.json"):
        counter(path)


def test_tokenizer_is_told_by_its_bytes(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_bytes(b"abc")
    assert file_sha256(path) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
