"""A reply taken apart: what is answer, what is thinking, and whether it ended by itself."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qualeval.errors import RequestError
from qualeval.records import Usage
from qualeval.reply import cut_by, read_message, split_tags, to_completion

PAIRS = [
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<seed:think>", "</seed:think>"),
    ("◁think▷", "◁/think▷"),
    ("[THINK]", "[/THINK]"),
]
MARKS = [tag for pair in PAIRS for tag in pair] + [
    *("<|channel|>", "<|message|>", "<|end|>", "<|return|>", "<|start|>", "<|constrain|>"),
    *("final", "analysis", "assistant", "`", "'", '"', "\\", "<", "|>", "\n", " ", "B", "\ud835"),
]
ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()), max_size=60) | st.lists(
    st.sampled_from(MARKS), max_size=25
).map("".join)
PLAIN = st.text(alphabet="ABCxyz .,:\n", max_size=30)
"""Text without any mark of thinking."""


# Fields


@pytest.mark.parametrize("name", ["reasoning", "reasoning_content"])
def test_reasoning_field_of_either_name_is_read_and_named(name: str) -> None:
    """thk-05: newer vLLM says `reasoning`, older servers `reasoning_content`."""
    message = read_message({"content": "B", name: "so it is B"})
    assert ("B", "so it is B", name) == (message.text, message.reasoning, message.reasoning_source)


def test_newer_reasoning_field_wins_over_the_older_one() -> None:
    """Both names are sent for a while: the text is not taken twice."""
    message = read_message({"content": "B", "reasoning": "new", "reasoning_content": "old"})
    assert ("new", "reasoning") == (message.reasoning, message.reasoning_source)


@pytest.mark.parametrize("blank", ["", "\n\n", None, []])
def test_blank_reasoning_field_is_passed_over_for_the_other_one(blank: Any) -> None:
    """A server that thinks nothing sends an empty field or a line feed."""
    message = read_message({"content": "B", "reasoning": blank, "reasoning_content": "thought"})
    assert ("thought", "reasoning_content") == (message.reasoning, message.reasoning_source)


@pytest.mark.parametrize("blank", ["", "\n\n", None])
def test_blank_reasoning_alone_is_no_reasoning(blank: str | None) -> None:
    """White space in the field neither counts as thinking nor makes a reply misrouted."""
    message = read_message({"content": "B", "reasoning": blank})
    assert (None, "none") == (message.reasoning, message.reasoning_source)


@pytest.mark.parametrize("content", [None, "", []])
def test_null_content_is_an_empty_answer(content: Any) -> None:
    """thk-05: content may be null when all tokens went into thinking."""
    assert "" == read_message({"content": content, "reasoning": "hm"}).text


def test_missing_content_is_an_empty_answer() -> None:
    """A message may hold nothing but reasoning."""
    assert "" == read_message({"role": "assistant"}).text


def test_typed_content_parts_are_told_apart() -> None:
    """Mistral sends thinking and text as parts of the content."""
    content: Any = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "is it "}, "B?"]},
        {"type": "text", "text": "B"},
        ".",
        {"type": "image_url", "image_url": "x"},
        7,
    ]
    message = read_message({"content": content})
    assert "B." == message.text
    assert ("is it B?", "content parts") == (message.reasoning, message.reasoning_source)


def test_reasoning_field_wins_over_thinking_parts() -> None:
    """One source is named; the field comes first."""
    content: Any = [{"type": "thinking", "thinking": "part"}, {"type": "text", "text": "B"}]
    message = read_message({"content": content, "reasoning": "field"})
    assert ("field", "reasoning") == (message.reasoning, message.reasoning_source)


@pytest.mark.parametrize("kind", ["text", "thinking", "reasoning"])
def test_reasoning_field_in_list_form_is_read(kind: str) -> None:
    """thk-05: accept both field names and list form, whatever the parts call themselves."""
    parts: Any = [{"type": kind, "text": "first "}, {"type": kind, "text": "second"}]
    assert "first second" == read_message({"content": "B", "reasoning": parts}).reasoning


@pytest.mark.parametrize("key", ["text", "thinking", "reasoning"])
def test_text_of_a_thinking_part_may_have_three_names(key: str) -> None:
    """Each vendor has a name of its own for the text inside a part."""
    content: Any = [{"type": "reasoning", key: "hm"}, {"type": "text", "text": "B"}]
    message = read_message({"content": content})
    assert ("B", "hm") == (message.text, message.reasoning)


def test_field_and_tags_are_both_kept_and_both_named() -> None:
    """A server may leak a part of the thinking into the content."""
    message = read_message({"content": "leak</think>B", "reasoning_content": "field"})
    assert ("B", "field\nleak") == (message.text, message.reasoning)
    assert "reasoning_content+tags" == message.reasoning_source


# Tags


@pytest.mark.parametrize(("opening", "closing"), PAIRS)
def test_every_kind_of_pair_is_cut_out(opening: str, closing: str) -> None:
    """thk-01: the letter is never taken from the thinking text."""
    content = f"{opening}I believe the answer is A. No wait.{closing}\nThe answer is C."
    expected = ("The answer is C.", "I believe the answer is A. No wait.", False)
    assert expected == split_tags(content)


@pytest.mark.parametrize(("opening", "closing"), PAIRS)
def test_closing_tag_alone_ends_thinking_that_the_template_opened(
    opening: str, closing: str
) -> None:
    """R1-like templates put the opening tag into the prompt."""
    assert ("C", "maybe A", False) == split_tags(f"maybe A{closing}\n\nC")


@pytest.mark.parametrize(("opening", "closing"), PAIRS)
def test_opening_tag_alone_leaves_no_answer(opening: str, closing: str) -> None:
    """thk-04: thinking that never closes holds no answer."""
    assert ("", "The answer is (D)", True) == split_tags(f"{opening}The answer is (D)")


def test_text_before_an_opening_tag_stays_visible() -> None:
    """Only what stands between the tags is thinking."""
    assert ("Well. B", "hm", False) == split_tags("Well. <think>hm</think> B")


def test_blank_before_an_opening_tag_goes() -> None:
    """White space in front of thinking is no answer."""
    assert ("B", "hm", False) == split_tags("\n <think>hm</think>\n\nB")


def test_text_before_an_unclosed_tag_is_kept_with_the_reasoning() -> None:
    """Nothing of an unclosed reply is answer, and nothing of it is lost."""
    assert ("", "B, but wait, no", True) == split_tags("B, but <think>wait, no")


def test_second_pair_right_behind_the_first_is_thinking_too() -> None:
    """Some models think in several blocks before they answer."""
    assert ("B", "one\ntwo", False) == split_tags("<think>one</think>\n<think>two</think>B")


def test_second_block_left_open_leaves_no_answer() -> None:
    """An open tag right behind a closed one is still open."""
    assert ("", "one\ntwo", True) == split_tags("<think>one</think><think>two")


def test_stray_second_closing_tag_is_text() -> None:
    """thk-03: when the reply opens with a tag, cut at the matching close only."""
    content = "<think>reason</think>The answer is B. The tag </think> is only markup."
    text, _, _ = split_tags(content)
    assert "The answer is B. The tag </think> is only markup." == text


@pytest.mark.parametrize("quote", ["`", "'", '"'])
def test_tags_in_quotes_are_talked_about(quote: str) -> None:
    """An answer that explains tags is not thinking."""
    content = f"Put {quote}<think>{quote} first and {quote}</think>{quote} last."
    assert (content, None, False) == split_tags(content)


def test_tag_behind_a_backslash_is_talked_about() -> None:
    """An escaped tag is no tag."""
    assert ("a \\<think> b", None, False) == split_tags("a \\<think> b")


@pytest.mark.parametrize("quote", ["`", "'", '"'])
def test_thinking_that_ends_in_a_quote_is_still_ended(quote: str) -> None:
    """A quotation mark right before a lone closing tag does not hide the tag."""
    thinking = f"so I reply {quote}A{quote}"
    assert ("B", thinking, False) == split_tags(f"{thinking}</think>B")
    assert ("B", thinking, False) == split_tags(f"<think>{thinking}</think>B")


@pytest.mark.parametrize("quote", ["`", "'", '"'])
def test_closing_tag_in_quotes_does_not_end_thinking(quote: str) -> None:
    """Thinking about the tag is thinking."""
    thinking = f"I end with {quote}</think>{quote} soon"
    assert ("B", thinking, False) == split_tags(f"<think>{thinking}</think>B")


def test_only_closing_tag_ends_thinking_even_in_quotes() -> None:
    """With no other close the quoted one is better than none."""
    assert ("'B", "so '", False) == split_tags("<think>so '</think>'B")


def test_tags_of_two_kinds_do_not_close_each_other() -> None:
    """The matching close counts."""
    assert ("B", "a [/THINK] b", False) == split_tags("<think>a [/THINK] b</think>B")


# Channels


def test_only_the_final_channel_is_the_answer() -> None:
    """gpt-oss without a parser leaves its channels in the content."""
    content = (
        "<|channel|>analysis<|message|>maybe A<|end|>"
        "<|start|>assistant<|channel|>final<|message|>B<|return|>"
    )
    assert ("B", "maybe A", False) == split_tags(content)


def test_reply_cut_in_a_channel_of_thinking_has_no_answer() -> None:
    """Without a final channel there is no answer."""
    content = "<|channel|>analysis<|message|>the answer is B"
    assert ("", "the answer is B", True) == split_tags(content)


def test_channel_marker_without_message_is_unclosed() -> None:
    """A reply that was cut inside the markers."""
    assert ("", "<|channel|>anal", True) == split_tags("<|channel|>anal")


def test_final_channel_with_a_constraint_is_the_answer() -> None:
    """A constrained final channel names its format between the markers."""
    content = '<|channel|>final <|constrain|>json<|message|>{"answer":"B"}<|return|>'
    assert ('{"answer":"B"}', "", False) == split_tags(content)


def test_text_outside_all_channels_is_kept_as_reasoning() -> None:
    """Nothing that was said is lost, and only the final channel counts."""
    content = "A? <|channel|>final<|message|>B<|end|> or C"
    assert ("B", "A? \n or C", False) == split_tags(content)


# Properties


@given(ANY_TEXT)
def test_any_content_is_taken_apart(content: str) -> None:
    """Whatever a model writes, reading it does not fail."""
    message = read_message({"content": content, "reasoning": None})
    assert (message.reasoning_source == "none") == (split_tags(content)[1] is None)


@given(ANY_TEXT)
def test_no_letter_of_a_reply_is_lost(content: str) -> None:
    """Answer and reasoning together hold every letter that is no part of a mark."""

    def letters(text: str) -> str:
        for mark in sorted((t for pair in PAIRS for t in pair), key=len, reverse=True):
            text = text.replace(mark, "")
        return "".join(sorted(c for c in text if c.isalnum()))

    if "<|channel|>" in content:
        return  # names of channels are no letters of the reply; see the tests above
    text, reasoning, _ = split_tags(content)
    assert letters(content) == letters(text + "\x00" + (reasoning or ""))


@given(before=PLAIN, thoughts=st.lists(PLAIN, min_size=1, max_size=3), answer=PLAIN, data=st.data())
def test_no_thinking_is_left_in_the_answer(
    before: str, thoughts: list[str], answer: str, data: st.DataObject
) -> None:
    """Of any blocks and any answer, the answer is found and nothing else."""
    content = before
    for thought in thoughts:
        opening, closing = data.draw(st.sampled_from(PAIRS))
        content += opening + thought + closing
    expected = (before if before.strip() else "") + (answer.lstrip())
    assert (expected, "\n".join(thoughts), False) == split_tags(content + answer)


@given(thought=PLAIN, pair=st.sampled_from(PAIRS), cut=st.integers(0, 60))
def test_reply_cut_anywhere_in_its_thinking_has_no_answer(
    thought: str, pair: tuple[str, str], cut: int
) -> None:
    """However early the tokens run out."""
    content = pair[0] + thought[:cut]
    assert ("", thought[:cut], True) == split_tags(content)


@pytest.mark.parametrize("piece", ["<think>", "</think>", "'<think>", "<|channel|>", "`</think>`"])
def test_a_megabyte_of_tags_is_read_at_once(piece: str) -> None:
    """Linear work: a model in a loop does not stop the run (a quadratic one takes minutes)."""
    content = piece * (1_000_000 // len(piece))
    text, reasoning, _ = split_tags(content)
    assert len(text) + len(reasoning or "") <= len(content)


# How an answer ended


@pytest.mark.parametrize(
    ("finish_reason", "tokens", "unclosed", "expected"),
    [
        ("length", 48, False, "max_tokens"),
        ("length", None, False, "max_tokens"),
        ("length", 20, False, "context"),
        ("max_tokens", 48, True, "max_tokens"),
        ("stop", 5, False, None),
        ("stop", 48, False, None),
        ("stop", None, False, None),
        ("eos_token", 5, False, None),
        ("content_filter", 0, False, None),
        ("stop", 48, True, "unclosed_thinking"),
        (None, 48, False, "max_tokens"),
        (None, 49, True, "max_tokens"),
    ],
)
def test_end_of_an_answer_is_known(
    finish_reason: str | None, tokens: int | None, unclosed: bool, expected: str | None
) -> None:
    """trc-02: cut off in all its disguises; `stop` at exactly max_tokens is finished."""
    assert expected == cut_by(finish_reason, tokens, 48, unclosed)


@pytest.mark.parametrize(
    ("finish_reason", "tokens", "kind"),
    [
        (None, 5, "unknown_finish"),
        (None, None, "unknown_finish"),
        ("abort", 48, "abort"),
        ("tool_calls", 5, "unknown_finish"),
        ("STOP", 5, "unknown_finish"),
    ],
)
def test_unknown_end_is_an_error_that_may_be_retried(
    finish_reason: str | None, tokens: int | None, kind: str
) -> None:
    """trc-02: unknown is never treated as finished in silence."""
    with pytest.raises(RequestError) as caught:
        cut_by(finish_reason, tokens, 48, False)
    assert (kind, True) == (caught.value.kind, caught.value.retry)


# Completions


def test_reply_cut_while_thinking_is_a_cut_answer_not_an_error() -> None:
    """thk-05: null content, text in `reasoning`, 16,384 tokens used."""
    message: Any = {"role": "assistant", "content": None, "reasoning": "Let me see whether B holds"}
    completion = to_completion(message, "length", {"completion_tokens": 16_384}, 16_384)
    assert ("", 26, True, False) == (
        completion.text,
        len(completion.reasoning or ""),
        completion.cut_off,
        completion.misrouted,
    )


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
def test_finished_reply_in_the_reasoning_field_is_misrouted(field: str) -> None:
    """tasks.md 2.4: content empty, reasoning not, finish stop."""
    assert to_completion({"content": None, field: "B"}, "stop", None, 48).misrouted


@pytest.mark.parametrize(
    "message",
    [
        {"content": "B", "reasoning": "hm"},
        {"content": "<think>B</think>"},
        {"content": None},
        {"content": "", "reasoning": "\n"},
    ],
)
def test_reply_with_an_answer_or_without_a_reasoning_field_is_not_misrouted(message: Any) -> None:
    """Tags were in the content: nothing was routed wrongly. Neither was silence."""
    assert not to_completion(message, "stop", None, 48).misrouted


def test_token_counts_are_taken_as_reported() -> None:
    """Counts of usage, in every block that servers use."""
    usage: Any = {
        "prompt_tokens": 100,
        "completion_tokens": 7,
        "completion_tokens_details": {"reasoning_tokens": 3},
        "prompt_tokens_details": {"cached_tokens": 64},
    }
    completion = to_completion({"content": "B"}, "stop", usage, 48)
    assert Usage(prompt_tokens=100, completion_tokens=7, reasoning_tokens=3) == completion.usage
    assert 64 == completion.cached_tokens


def test_reasoning_tokens_of_sglang_stand_in_usage_itself() -> None:
    """The second place where servers put the count."""
    usage: Any = {"reasoning_tokens": 5, "completion_tokens_details": None}
    assert 5 == to_completion({"content": "B"}, "stop", usage, 48).usage.reasoning_tokens


@pytest.mark.parametrize(
    "usage",
    [
        None,
        {},
        {"completion_tokens": None, "prompt_tokens_details": None},
        {"completion_tokens": "7", "prompt_tokens_details": {"cached_tokens": None}},
        {"completion_tokens": True, "prompt_tokens_details": []},
        {"completion_tokens": -1, "prompt_tokens_details": {"cached_tokens": -1}},
        {"completion_tokens": 7.0, "completion_tokens_details": {"reasoning_tokens": 0}},
    ],
)
def test_counts_that_are_not_reported_are_unknown_never_zero(usage: Any) -> None:
    """None is "not reported"; a wrong type is no report; 0 reasoning tokens means unknown."""
    completion = to_completion({"content": "B"}, "stop", usage, 48)
    assert (Usage(), None) == (completion.usage, completion.cached_tokens)


def test_zero_cached_tokens_are_a_report() -> None:
    """0 that was said is not the same as nothing said."""
    usage: Any = {"prompt_tokens_details": {"cached_tokens": 0}}
    assert 0 == to_completion({"content": "B"}, "stop", usage, 48).cached_tokens
