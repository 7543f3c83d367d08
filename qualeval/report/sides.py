"""One answer, or one request given up -> what a page shows of it, whatever graded it. Pure.

What a kind of grading knows beyond its verdict is told in a form of its own where there is one
(instructions, values, a program), else by its name.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from qualeval.findings import number_of
from qualeval.records import Answer, FailedRequest, Json
from qualeval.report.facts import UNKNOWN, moment
from qualeval.report.read import Told


@dataclass(frozen=True, slots=True)
class Side:
    """One answer, or one request given up, as a page shows it. `given` is what was read of it and
    `span` where in `text`; `brief` is the same or why nothing counts; `wanted` is the key, where
    there is one.
    """

    outcome: str
    reason: str
    given: str
    wanted: str
    rule: str
    brief: str = ""
    text: str | None = None
    span: tuple[int, int] | None = None
    reasoning: str | None = None
    reasoning_source: str = "none"
    code: str | None = None
    facts: Sequence[tuple[str, str]] = ()
    instructions: Sequence[tuple[str, bool, bool, str]] = ()
    values: Sequence[tuple[str, Sequence[str]]] = ()
    note: str = ""

    def texts(self) -> Iterator[str]:
        """The texts that the budget is about."""
        yield from (text for text in (self.text, self.reasoning, self.code) if text)


def side_of(told: Told) -> Side:
    """An answer as a page shows it."""
    answer = told.answer
    details = dict(answer.details or {})
    span = details.pop("span", None)
    code = answer.extracted if _is_long(answer.extracted) else None
    outcome = "cut off" if answer.cut_off else "right" if answer.right else "wrong"
    note = f"The text is not in this published copy (rule {told.withheld})." * bool(told.withheld)
    given = _given(answer, details)
    return Side(
        outcome=outcome,
        reason=answer.reason,
        given=given,
        wanted=_wanted(answer, details),
        rule=answer.rule,
        brief=_brief(answer, details, given),
        text=None if told.withheld else answer.text,
        span=_span(span, answer.text),
        reasoning=answer.reasoning,
        reasoning_source=answer.reasoning_source,
        code=code,
        instructions=tuple(_instructions(details)),
        values=tuple(_values(details)),
        facts=tuple(_facts(answer, details, shown_as_code=code is not None)),
        note=note,
    )


def side_of_failure(failed: FailedRequest) -> Side:
    """A request that was given up: no answer, and nothing wrong with the model's."""
    attempts = number_of(failed.attempts, "attempt")
    return Side(
        outcome="error",
        reason=f"Given up after {attempts}: {failed.kind}: {failed.message}",
        given=failed.kind,
        wanted="",
        rule=failed.kind,
        brief=failed.kind,
        facts=(("attempts", str(failed.attempts)), ("ended", moment(failed.ended, seconds=True))),
    )


def _is_long(extracted: str | None) -> bool:
    return extracted is not None and ("\n" in extracted or len(extracted) > 200)


def _span(span: JsonValue, text: str) -> tuple[int, int] | None:
    """Code points of the text that decided; None where they are no place in it."""
    if not isinstance(span, list) or len(span) != 2:
        return None
    start, end = span
    if isinstance(start, int) and isinstance(end, int) and 0 <= start < end <= len(text):
        return start, end
    return None


def _given(answer: Answer, details: Json) -> str:
    """What was read of an answer, in a few words."""
    strict, found, missing = (details.get(n) for n in ("strict_inst", "found", "missing"))
    if isinstance(strict, list):
        return f"{strict.count(True)} of {len(strict)} followed"
    if isinstance(found, list) and isinstance(missing, list):
        return f"{len(found)} of {len(found) + len(missing)} named"
    if "verdict" in details:
        failed = details.get("failed_test")
        return _words(str(details["verdict"])) + (f", test {failed}" if failed is not None else "")
    seen = details.get("letter_seen")
    read = answer.extracted if answer.extracted is not None else seen
    return _shown(read) if read is not None else "none"


def _brief(answer: Answer, details: Json, given: str) -> str:
    """What was read where it counts, else why it does not: a letter seen in a reply that was cut
    off would look like an answer beside another one.
    """
    if answer.cut_off:
        return "cut off"
    return given if answer.extracted is not None or _counted(details) else _words(answer.rule)


def _counted(details: Json) -> bool:
    """Whether what was read is told as a count or as the verdict on a program."""
    return bool({"strict_inst", "found", "verdict"} & details.keys())


def _wanted(answer: Answer, details: Json) -> str:
    """The key of a question that has a short one."""
    short = isinstance(answer.gold, str | int) and not _counted(details)
    return f"key {_shown(answer.gold)}" if short else ""


def _words(name: str) -> str:
    return name.replace("_", " ")


def _shown(value: JsonValue) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list) and all(isinstance(inner, str) for inner in value):
        return ", ".join(map(str, value))
    return json.dumps(value, ensure_ascii=False)


def _instructions(details: Json) -> Iterator[tuple[str, bool, bool, str]]:
    """Each instruction: followed strictly, followed loosely, and why."""
    names = ("instructions", "strict_inst", "loose_inst", "why")
    columns = [details.get(name) for name in names]
    if all(isinstance(column, list) for column in columns):
        for name in names:
            details.pop(name)
        for id, strict, loose, why in zip(*columns, strict=False):
            yield str(id), strict is True, loose is True, str(why)


def _values(details: Json) -> Iterator[tuple[str, list[str]]]:
    """Values that an answer should name, and did or did not."""
    if isinstance(details.get("found"), list) and isinstance(details.get("missing"), list):
        for name, title in (("found", "named"), ("missing", "missing"), ("extra", "not asked for")):
            values = details.pop(name, None)
            if isinstance(values, list):
                yield title, [_shown(value) for value in values]


def _facts(answer: Answer, details: Json, *, shown_as_code: bool) -> Iterator[tuple[str, str]]:
    """All else that is known of an answer; a count that no server told is not reported, never 0."""
    usage = answer.usage
    yield "rule", answer.rule
    if answer.extracted is not None and not shown_as_code:
        yield "read as", answer.extracted
    if answer.gold is not None:
        yield "wanted", _shown(answer.gold)
    if answer.order is not None:
        slots = ("right", "wrong 1", "wrong 2", "wrong 3")
        named = (slots[i] if 0 <= i < len(slots) else str(i) for i in answer.order)
        yield "options in the order", ", ".join(named)
    yield from ((_detail(name), _measure(name, value)) for name, value in details.items())
    if answer.partial is not None:
        yield "share found", f"{answer.partial * 100:.0f} %"
    end = answer.finish_reason or "not told"
    yield "finish reason", f"{end}, cut by {answer.cut_by}" if answer.cut_by else end
    yield "tokens in, out", f"{_told(usage.prompt_tokens)}, {_told(usage.completion_tokens)}"
    if usage.reasoning_tokens is not None:
        yield "tokens of reasoning", f"{usage.reasoning_tokens:,}"
    yield "tokens from a cache", _told(answer.cached_tokens)
    yield "seconds", _seconds(answer.seconds)
    if answer.time_to_first_token is not None:
        yield "seconds to the first token", _seconds(answer.time_to_first_token)
    yield "attempts", str(answer.attempts)
    if answer.ended:
        yield "ended", moment(answer.ended, seconds=True)


def _told(count: int | None) -> str:
    return f"{count:,}" if count is not None else "not reported"


def _seconds(seconds: float | None) -> str:
    return f"{seconds:.2f}" if seconds is not None else "not reported"


NAMES = {
    "failed_test": "failed test, counted from 0, public ones first",
    "tests": "tests run",
    "cpu_ms": "most CPU of a test",
    "wall_ms": "longest test",
    "max_rss_mib": "most memory of a test",
    "extraction": "program taken from",
    "blocks": "blocks of code in the reply",
    "same_as_official": "LiveCodeBench takes the same program",
    "target": "tokens wanted in the prompt",
    "tokens": "tokens in the prompt",
    "exact": "prompt of exactly that length",
}
"""Details whose own name does not say what they are."""


def _detail(name: str) -> str:
    """What a detail is called on a page; a unit in its name stands at its value."""
    return NAMES.get(name) or _words(name.removesuffix("_ms").removesuffix("_mib"))


def _measure(name: str, value: JsonValue) -> str:
    unit = " ms" if name.endswith("_ms") else " MiB" if name.endswith("_mib") else ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) and unit:
        return f"{value:,}{unit}"
    if value is None and name.endswith("sha256"):
        return UNKNOWN  # what was hashed elsewhere has one, only nobody told it
    return (_shown(value) if value is not None else "none") + unit * (value is not None)
