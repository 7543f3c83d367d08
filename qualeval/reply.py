"""What a reply says: visible answer, reasoning before it, and whether it ended by itself. Pure.

Servers hand reasoning over in four ways: a field `reasoning` (newer vLLM), a field
`reasoning_content` (older vLLM, SGLang, llama.cpp), typed parts of the content (Mistral), or tags
left in the content when no reasoning parser runs. The rules here:

1. A non-empty `reasoning`, else `reasoning_content`, else content parts of a thinking type.
2. Then the content is scanned for tags. A pair: what stands between is reasoning; the first
   matching closing tag ends it, a later stray one is text; a second pair right behind the first
   is reasoning too. A closing tag alone: everything before it is reasoning (the template
   had opened it in the prompt). An opening tag alone: nothing is answer, the reply is `unclosed`,
   which counts as cut off.
3. An opening tag right behind a backtick, quote or backslash is talked about, not used; so is a
   closing tag between two equal ones (behind one alone it may end thoughts that end in a quote).
4. White space after a removed closing tag is dropped; other text is never trimmed.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from qualeval.errors import RequestError
from qualeval.records import Completion, CutBy, Usage

FINISHED = frozenset(("stop", "eos", "eos_token", "end_turn", "stop_sequence", "content_filter"))
"""finish reasons of an answer that ended by itself (a filtered one ended too: with no letter)."""

CUT = frozenset(("length", "max_tokens", "max_length", "model_length"))
"""finish reasons of an answer that was cut off."""

_TAG_PAIRS = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<seed:think>", "</seed:think>"),
    ("◁think▷", "◁/think▷"),
    ("[THINK]", "[/THINK]"),
)
_CLOSING = dict(_TAG_PAIRS)
_ANY_TAG = re.compile("|".join(re.escape(tag) for pair in _TAG_PAIRS for tag in pair))
_QUOTES = ("`", "'", '"', "\\")
_OPENING_NEXT = re.compile(r"\s{0,20}(" + "|".join(map(re.escape, _CLOSING)) + ")")
_CHANNEL = re.compile(
    r"(?:<\|start\|>\w{0,20})?<\|channel\|>(\w{1,20})[^<]{0,100}"
    r"(?:<\|constrain\|>[^<]{0,100})?<\|message\|>"
)
_CHANNEL_END = re.compile(r"<\|(?:end|return|start|call)\|>")


@dataclass(frozen=True, slots=True)
class Message:
    """A reply taken apart: visible text, reasoning, where that came from, tag left open or not."""

    text: str
    reasoning: str | None
    reasoning_source: str
    unclosed: bool


def read_message(message: Mapping[str, JsonValue]) -> Message:
    """Take a chat message apart by the rules above. Content may be null, text, or typed parts."""
    content, thought_parts = text_and_thinking(message.get("content"))
    field, reasoning = "none", ""
    for name in ("reasoning", "reasoning_content"):
        value = "".join(text_and_thinking(message.get(name)))
        if value.strip() and not reasoning:
            field, reasoning = name, value
    if thought_parts.strip() and not reasoning:
        field, reasoning = "content parts", thought_parts
    text, tagged, unclosed = split_tags(content)
    sources = [field] if reasoning else []
    if tagged is not None:
        sources.append("tags")
    thoughts = [part for part in (reasoning, tagged) if part and part.strip()]
    return Message(
        text=text,
        reasoning="\n".join(thoughts) if thoughts else None,
        reasoning_source="+".join(sources) or "none",
        unclosed=unclosed,
    )


def text_and_thinking(value: JsonValue) -> tuple[str, str]:
    """Text and thinking of a content value: null, a string, or a list of typed parts."""
    if isinstance(value, str):
        return value, ""
    text: list[str] = []
    thought: list[str] = []
    for part in value if isinstance(value, list) else []:
        if isinstance(part, str):
            text.append(part)
        elif isinstance(part, dict):
            kind = str(part.get("type"))
            said = part.get("text") or part.get("thinking") or part.get("reasoning") or ""
            inner, _ = text_and_thinking(said)
            (thought if kind in ("thinking", "reasoning") else text).append(inner)
    return "".join(text), "".join(thought)


def split_tags(content: str) -> tuple[str, str | None, bool]:
    """(visible text, reasoning or None when there is no tag, left open) of a content string."""
    if "<|channel|>" in content:
        return _split_channels(content)
    used = (tag for tag in _ANY_TAG.finditer(content) if not _is_mention(content, tag))
    first = next(used, None)
    if first is None:
        return content, None, False
    if first.group() not in _CLOSING:
        return content[first.end() :].lstrip(), content[: first.start()], False
    before = content[: first.start()]
    thoughts: list[str] = []
    opening: re.Match[str] | None = first
    end = first.start()
    while opening is not None:
        closing_tag = _CLOSING[opening.group(opening.lastindex or 0)]
        close = _close_of(content, closing_tag, opening.end())
        if close < 0:
            return "", "\n".join([*thoughts, before + content[opening.end() :]]), True
        thoughts.append(content[opening.end() : close])
        end = close + len(closing_tag)
        opening = _OPENING_NEXT.match(content, end)
    text = content[end:].lstrip()
    return before + text if before.strip() else text, "\n".join(thoughts), False


def _is_mention(content: str, tag: re.Match[str]) -> bool:
    """Whether a tag is talked about (rule 3)."""
    if tag.group() in _CLOSING:
        return content[max(0, tag.start() - 1) : tag.start()] in _QUOTES
    return _is_quoted(content, tag.start(), tag.end())


def _is_quoted(content: str, start: int, end: int) -> bool:
    before = content[max(0, start - 1) : start]
    return before in _QUOTES and content[end : end + 1] == before


def _close_of(content: str, closing_tag: str, start: int) -> int:
    """Where the next closing tag that is used stands; one that is talked about where all are."""
    first = at = content.find(closing_tag, start)
    while at >= 0 and _is_quoted(content, at, at + len(closing_tag)):
        at = content.find(closing_tag, at + 1)
    return at if at >= 0 else first


def _split_channels(content: str) -> tuple[str, str | None, bool]:
    """The same for channel markers: only the channel `final` is the answer, all else reasoning."""
    marks = list(_CHANNEL.finditer(content))
    if not marks:
        return "", content, True
    final: list[str] = []
    other = [content[: marks[0].start()]]
    for mark, following in zip(marks, [*marks[1:], None], strict=True):
        body = content[mark.end() : following.start() if following else len(content)]
        said, *behind = _CHANNEL_END.split(body)
        (final if mark.group(1) == "final" else other).append(said)
        other += behind
    return "".join(final), "\n".join(filter(str.strip, other)), not final


def cut_by(
    finish_reason: str | None, completion_tokens: int | None, max_tokens: int, unclosed: bool
) -> CutBy | None:
    """What cut an answer off, or None when it ended by itself.

    A reply without a finish_reason that used all its tokens is cut off. Raises RequestError
    (retryable) when it is not known how the answer ended: no finish_reason, `abort`, a word
    that no server documents.
    """
    all_used = completion_tokens is not None and completion_tokens >= max_tokens
    if finish_reason in CUT:
        return "max_tokens" if all_used or completion_tokens is None else "context"
    if finish_reason in FINISHED:
        return "unclosed_thinking" if unclosed else None
    if finish_reason is None and all_used:
        return "max_tokens"
    if finish_reason is None:
        raise RequestError("unknown_finish", "the reply has no finish_reason", retry=True)
    kind = "abort" if finish_reason == "abort" else "unknown_finish"
    raise RequestError(kind, f"the reply ended with finish_reason {finish_reason!r}", retry=True)


def to_completion(
    message: Mapping[str, JsonValue],
    finish_reason: str | None,
    usage: Mapping[str, JsonValue] | None,
    max_tokens: int,
) -> Completion:
    """The completion that a message, a finish_reason and a usage block make, not yet timed.

    Raises RequestError when the end of the answer is unknown (see `cut_by`).
    """
    parts = read_message(message)
    counts = usage or {}
    tokens = Usage(
        prompt_tokens=_count(counts.get("prompt_tokens")),
        completion_tokens=_count(counts.get("completion_tokens")),
        reasoning_tokens=_reasoning_tokens(counts),
    )
    return Completion(
        text=parts.text,
        reasoning=parts.reasoning,
        reasoning_source=parts.reasoning_source,
        finish_reason=finish_reason,
        cut_by=cut_by(finish_reason, tokens.completion_tokens, max_tokens, parts.unclosed),
        usage=tokens,
        cached_tokens=_cached_tokens(counts),
    )


def _count(value: JsonValue) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _detail(usage: Mapping[str, JsonValue], block: str, name: str) -> int | None:
    details = usage.get(block)
    return _count(details.get(name)) if isinstance(details, dict) else None


def _reasoning_tokens(usage: Mapping[str, JsonValue]) -> int | None:
    """Reasoning tokens; 0 is "not known", as several servers report it for any reply."""
    found = _detail(usage, "completion_tokens_details", "reasoning_tokens")
    return found or _count(usage.get("reasoning_tokens")) or None


def _cached_tokens(usage: Mapping[str, JsonValue]) -> int | None:
    """Prompt tokens that came from a cache; None when this server does not report them."""
    return _detail(usage, "prompt_tokens_details", "cached_tokens")
