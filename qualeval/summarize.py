"""Answers -> the numbers of a row. Pure: values in, a Summary out, no path anywhere.

The headline is right / n over the whole list. A cut-off answer is wrong and counted apart. A failed
request is neither right nor wrong: with one left the part is incomplete and has no headline, and n
never shrinks.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from statistics import median
from typing import Literal, TypedDict

from qualeval import stats
from qualeval.contract import Conditions
from qualeval.records import (
    AmongFinished,
    Answer,
    CacheCheck,
    Contract,
    Count,
    CutBy,
    CutOffRate,
    FailedRequest,
    InFlight,
    RunSummary,
    Session,
    Summary,
    Totals,
    count_words,
    seconds_between,
)
from qualeval.tasks.base import Task

CUT_OFF_NOTE_FROM = 0.05
"""Share of cut-off answers from which a row is said to be shaped by its limit."""


@dataclass(slots=True)
class Tally:
    """What is kept of the answers while they pass by: counts and short numbers, no text."""

    scores: dict[str, list[float]] = field(default_factory=dict)
    strata: dict[str, list[int]] = field(default_factory=dict)
    cut: list[CutBy] = field(default_factory=list)
    rules: list[str] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    cached: list[int | None] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    right: int = 0
    answered: int = 0
    with_reasoning: int = 0
    misrouted: int = 0

    beside: dict[str, list[int]] = field(default_factory=dict)

    def add(self, answer: Answer, beside: Mapping[str, tuple[int, int]]) -> None:
        """Count one answer, and what its verdict adds to the figures beside the score."""
        for name, (k, n) in beside.items():
            shown = self.beside.setdefault(name, [0, 0])
            shown[0] += k
            shown[1] += n
        self.answered += 1
        self.right += answer.right
        self.scores.setdefault(str(answer.id), []).append(float(answer.right))
        if answer.stratum is not None:
            count = self.strata.setdefault(answer.stratum, [0, 0])
            count[0] += answer.right
            count[1] += 1
        if answer.cut_by is not None:
            self.cut.append(answer.cut_by)
        self.rules.append(answer.rule)
        if answer.usage.completion_tokens is not None:
            self.tokens.append(answer.usage.completion_tokens)
        if answer.seconds is not None:
            self.seconds.append(answer.seconds)
        if answer.ended is not None:
            self.ended.append(answer.ended)
        self.cached.append(answer.cached_tokens)
        self.with_reasoning += answer.reasoning is not None
        self.misrouted += answer.rule == "misrouted"


def summarize(
    task: Task,
    label: str,
    contract: Contract,
    answers: Iterable[Answer],
    failures: Mapping[tuple[str, int], FailedRequest],
) -> Summary:
    """The summary of one part. `failures` are the requests given up and not answered since."""
    tally = Tally()
    for answer in answers:
        tally.add(answer, task.beside(answer))
    conditions = Conditions.model_validate(contract.conditions)
    n = conditions.list.items * conditions.repeats
    missing = n - tally.answered
    status: Literal["ok", "incomplete"] = "incomplete" if missing or n == 0 else "ok"
    interval = _interval(tally, conditions.repeats) if status == "ok" else None
    cut = len(tally.cut)
    return Summary(
        part=task.name,
        title=task.title,
        subtitle=_subtitle(task, conditions),
        label=label,
        model=conditions.model,
        suite=conditions.suite,
        status=status,
        incomplete_because=_why_incomplete(contract, n, tally.answered, len(failures)),
        list=conditions.list.id,
        sample_list=conditions.list.kind == "sample",
        limits=conditions.limits,
        n=n,
        repeats=conditions.repeats,
        answered=tally.answered,
        right=tally.right,
        accuracy=tally.right / n if interval else None,
        margin=stats.half_width(interval) if interval else None,
        ci_low=interval.low if interval else None,
        ci_high=interval.high if interval else None,
        ci_method=interval.method if interval else None,
        cut_off=cut,
        cut_by=count_words(tally.cut),
        cut_off_rate=_cut_off_rate(tally) if status == "ok" else None,
        errors=len(failures),
        error_kinds=count_words([failure.kind for failure in failures.values()]),
        among_finished=_among_finished(tally) if status == "ok" else None,
        bounds=(tally.right / max(n, 1), (tally.right + cut + missing) / max(n, 1)),
        strata={name: Count(right=k, n=m) for name, (k, m) in sorted(tally.strata.items())},
        beside={name: Count(right=k, n=m) for name, (k, m) in tally.beside.items()},
        rules=count_words(tally.rules),
        median_completion_tokens=median(tally.tokens) if tally.tokens else None,
        median_seconds=median(tally.seconds) if tally.seconds else None,
        cache_check=_cache_check(tally.cached),
        items_with_reasoning=tally.with_reasoning,
        misrouted=tally.misrouted,
        thinking=conditions.thinking,
        thinking_object=conditions.thinking_object,
        max_tokens=conditions.max_tokens,
        seed=conditions.seed,
        sampling=conditions.sampling,
        sampling_source=conditions.sampling_source,
        prompt_cache=conditions.prompt_cache,
        conditions_sha256=contract.conditions_sha256,
        warnings=tuple(_warnings(tally, conditions, contract.sessions)),
        **_timing(contract.sessions, sorted(tally.ended)),
    )


def _subtitle(task: Task, conditions: Conditions) -> str:
    """The published words for the published list; for any other what was really asked."""
    if conditions.list.kind == "official":
        return task.subtitle
    own = "own list, " if conditions.list.kind == "file" else ""
    return f"{own}{conditions.list.items} items, limit {conditions.max_tokens:,} tokens"


def _interval(tally: Tally, repeats: int) -> stats.Interval:
    """Wilson's interval; with repeats an interval over questions, whose answers hang together.

    Where all questions score alike neither t nor bootstrap has any width, which is no certainty:
    Wilson's interval over questions is taken then.
    """
    questions = list(tally.scores.values())
    if repeats == 1:
        return stats.wilson(tally.right, tally.answered)
    if len({sum(scores) for scores in questions}) == 1:
        return stats.wilson(tally.right // repeats, len(questions))
    if len(questions) < 100:
        return stats.question_bootstrap(questions, seed=42)
    wide = stats.clustered_mean(questions).interval
    return replace(wide, low=max(0.0, wide.low), high=min(1.0, wide.high))


def _why_incomplete(contract: Contract, n: int, answered: int, errors: int) -> str | None:
    if n == 0:
        return "the list is empty"
    if answered == n:
        return None
    asked = contract.sessions[-1].items if contract.sessions else n
    why = [f"limit {asked}"] if asked < n and answered + errors >= asked else []
    if errors:
        why.append(f"{errors} failed")
    rest = n - answered - errors
    if rest and not (asked < n and answered + errors >= asked):
        why.append(f"{rest} not asked yet")
    return ", ".join(why)


def _cut_off_rate(tally: Tally) -> CutOffRate:
    cut = len(tally.cut)
    interval = stats.wilson(cut, tally.answered)
    return CutOffRate(share=cut / tally.answered, ci_low=interval.low, ci_high=interval.high)


def _among_finished(tally: Tally) -> AmongFinished:
    finished = tally.answered - len(tally.cut)
    interval = stats.wilson(tally.right, finished) if finished else None
    return AmongFinished(
        right=tally.right,
        n=finished,
        accuracy=tally.right / finished if finished else None,
        ci_low=interval.low if interval else None,
        ci_high=interval.high if interval else None,
    )


def _cache_check(cached: Sequence[int | None]) -> CacheCheck:
    told = [count for count in cached if count is not None]
    if len(told) < len(cached) or not cached:
        seen = [count for count in told if count]
        if not seen:
            return CacheCheck(
                state="not reported by this server",
                answers_with_cached_tokens=None,
                cached_tokens=None,
            )
    return CacheCheck(
        state="cached tokens seen" if any(told) else "none cached",
        answers_with_cached_tokens=sum(1 for count in told if count),
        cached_tokens=sum(told),
    )


def _warnings(tally: Tally, conditions: Conditions, sessions: Sequence[Session]) -> Iterable[str]:
    """What a reader of the row must know, with the count."""
    answered = tally.answered
    if conditions.thinking == "off" and tally.with_reasoning:
        yield f"thinking is off, yet {tally.with_reasoning} of {answered} answers have reasoning"
    if conditions.thinking == "on" and tally.with_reasoning < answered:
        without = answered - tally.with_reasoning
        yield f"thinking is on, yet {without} of {answered} answers have no reasoning"
    if conditions.thinking_object is None:
        yield f"no thinking switch was sent (the card has no thinking.{conditions.thinking})"
    if tally.misrouted:
        yield f"{tally.misrouted} answers came in the reasoning field and count as wrong"
    cached = sum(1 for count in tally.cached if count)
    if cached:
        yield f"{cached} answers reused cached prompt tokens"
    if answered and len(tally.cut) / answered > CUT_OFF_NOTE_FROM:
        yield f"{len(tally.cut)} of {answered} answers were cut off: the limit shapes this row"
    for before, after in pairwise(sessions):
        for what in ("models", "engine_version", "server_defaults"):
            if before.server.get(what) != after.server.get(what):
                yield f"the server's {what} changed between two sessions of this part"


class _Timing(TypedDict):
    in_flight: InFlight | None
    alone: bool
    schedule: str
    wall_time: float | None
    started: str | None
    finished: str | None
    server_starts: tuple[str | None, ...]


def _timing(sessions: Sequence[Session], ended: Sequence[str]) -> _Timing:
    """Times of all sessions together. A session that was killed ended with its last answer."""
    wall, weighted, most = 0.0, 0.0, 0
    for index, session in enumerate(sessions):
        following = sessions[index + 1].started if index + 1 < len(sessions) else None
        seconds = session.wall_time
        if seconds is None:
            own = [e for e in ended if e >= session.started and (not following or e < following)]
            seconds = seconds_between(session.started, own[-1]) if own else 0.0
        wall += seconds
        if session.in_flight is not None:
            weighted += session.in_flight.mean * seconds
            most = max(most, session.in_flight.most)
    measured = sum(s.wall_time or 0.0 for s in sessions if s.in_flight is not None)
    return {
        "in_flight": InFlight(mean=weighted / measured, most=most) if measured else None,
        "alone": all(session.alone for session in sessions),
        "schedule": ", ".join(dict.fromkeys(session.schedule for session in sessions)),
        "wall_time": round(wall, 3) if sessions else None,
        "started": sessions[0].started if sessions else None,
        "finished": ended[-1] if ended else None,
        "server_starts": tuple(dict.fromkeys(_server_start(session) for session in sessions)),
    }


def _server_start(session: Session) -> str | None:
    """When the server process of a session started; None when it does not tell."""
    start = session.server.get("process_started")
    return start if isinstance(start, str) else None


def summarize_run(label: str, parts: Mapping[str, Summary]) -> RunSummary:
    """The summary of a run: its parts and what is counted over them. No overall score."""
    off = [part for part in parts.values() if part.thinking == "off"]
    requests, cut = sum(part.n for part in off), sum(part.cut_off for part in off)
    starts = {start for part in parts.values() for start in part.server_starts}
    one_start: Literal["yes", "no", "not known"] = "not known"
    if len(starts - {None}) > 1:
        one_start = "no"
    elif starts and None not in starts:
        one_start = "yes"
    return RunSummary(
        label=label,
        parts=dict(parts),
        totals_thinking_off=Totals(
            requests=requests, cut_off=cut, share=cut / requests if requests else None
        ),
        one_server_start=one_start,
    )
