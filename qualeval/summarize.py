"""Answers -> the numbers of a row. Pure: values in, a Summary out, no path anywhere.

The headline is right / n over the whole list. A cut-off answer is wrong and counted apart. A failed
request is neither right nor wrong: with one left the part is incomplete and has no headline, and n
never shrinks.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from statistics import median
from typing import Literal

from qualeval import stats
from qualeval.contract import Conditions, conditions_in
from qualeval.records import (
    NO_SANDBOX,
    NOT_JUDGED,
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
    canonical,
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
    templates: list[int] = field(default_factory=list)
    inexact: int = 0
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
        self._compare_lengths(answer)

    def _compare_lengths(self, answer: Answer) -> None:
        """Tokens that the server adds to a prompt whose own are known: its template."""
        details, used = answer.details or {}, answer.usage.prompt_tokens
        tokens = details.get("tokens")
        if isinstance(tokens, int) and used is not None:
            self.templates.append(used - tokens)
        self.inexact += details.get("exact") is False


def summarize(
    task: Task,
    label: str,
    contract: Contract,
    outcomes: Iterable[Answer | FailedRequest],
) -> Summary:
    """The summary of one part, from its answers and the requests that have none: given up and not
    answered since, or answered with a program that has no verdict.

    Raises RunFolderError for a contract whose conditions are not of this version's form, KeyError,
    TypeError or ValueError where the details of an answer are not of this part's.
    """
    conditions = conditions_in(contract, f"{task.name}.contract.json")
    whole, rows = Tally(), {row: Tally() for row in conditions.list.rows}
    failed: list[FailedRequest] = []
    not_judged = 0
    for outcome in outcomes:
        if isinstance(outcome, Answer):
            beside = task.beside(outcome)
            whole.add(outcome, beside)
            if (row := task.row_of(outcome.id)) in rows:
                rows[row].add(outcome, beside)
        elif outcome.kind == NOT_JUDGED:
            not_judged += 1
        else:
            failed.append(outcome)
    n = conditions.list.items * conditions.repeats
    summary = Summary.model_validate(
        {
            "part": task.name,
            "title": task.title,
            "subtitle": _subtitle(task, conditions),
            "label": label,
            "model": conditions.model,
            "suite": conditions.suite,
            "incomplete_because": _why_incomplete(
                contract, n, whole.answered, len(failed), not_judged
            ),
            "not_judged": not_judged,
            "list": conditions.list.id,
            "sample_list": conditions.list.kind == "sample",
            "limits": conditions.limits,
            "repeats": conditions.repeats,
            "thinking": conditions.thinking,
            "thinking_object": conditions.thinking_object,
            "max_tokens": conditions.max_tokens,
            "seed": conditions.seed,
            "sampling": conditions.sampling,
            "sampling_source": conditions.sampling_source,
            "prompt_cache": conditions.prompt_cache,
            "sandbox": conditions.sandbox,
            "release": conditions.list.release,
            "dates": conditions.list.dates,
            "conditions_sha256": contract.conditions_sha256,
            "warnings": (
                *_warnings(whole, conditions),
                *(_cut_off_warnings(task, rows) if rows else _cut_off_warning(whole)),
                *_server_warnings(contract.sessions),
            ),
        }
        | _figures(whole, n, conditions.repeats, failed)
        | _timing(contract.sessions, sorted(whole.ended))
    )
    return summary.model_copy(
        update={
            "rows": tuple(
                _row(task, summary, row, tally, conditions.list.rows[row], failed)
                for row, tally in rows.items()
            )
        }
    )


def _figures(
    tally: Tally, n: int, repeats: int, failed: Sequence[FailedRequest]
) -> dict[str, object]:
    """The numbers of a part, or of one row of it, by the names of their fields in a Summary."""
    missing = n - tally.answered
    complete = not missing and n > 0
    interval = _interval(tally, repeats) if complete else None
    cut = len(tally.cut)
    return {
        "status": "ok" if complete else "incomplete",
        "n": n,
        "answered": tally.answered,
        "right": tally.right,
        "accuracy": tally.right / n if interval else None,
        "margin": stats.half_width(interval) if interval else None,
        "ci_low": interval.low if interval else None,
        "ci_high": interval.high if interval else None,
        "ci_method": interval.method if interval else None,
        "cut_off": cut,
        "cut_by": count_words(tally.cut),
        "cut_off_rate": _cut_off_rate(tally) if complete else None,
        "errors": len(failed),
        "error_kinds": count_words([failure.kind for failure in failed]),
        "among_finished": _among_finished(tally) if complete else None,
        "bounds": (tally.right / max(n, 1), (tally.right + cut + missing) / max(n, 1)),
        "strata": {name: Count(right=k, n=m) for name, (k, m) in sorted(tally.strata.items())},
        "beside": {name: Count(right=k, n=m) for name, (k, m) in tally.beside.items()},
        "rules": count_words(tally.rules),
        "median_completion_tokens": median(tally.tokens) if tally.tokens else None,
        "median_seconds": median(tally.seconds) if tally.seconds else None,
        "cache_check": _cache_check(tally.cached),
        "items_with_reasoning": tally.with_reasoning,
        "misrouted": tally.misrouted,
    }


def _row(
    task: Task,
    part: Summary,
    row: str,
    tally: Tally,
    items: int,
    failed: Sequence[FailedRequest],
) -> Summary:
    """One row of a part that has several: its own numbers, all else as the part's."""
    title, subtitle = task.row_names(row, items)
    own = [failure for failure in failed if task.row_of(failure.id) == row]
    figures = _figures(tally, items * part.repeats, part.repeats, own)
    update = {"title": title, "subtitle": subtitle, "rows": (), "warnings": ()} | figures
    return part.model_copy(update=update)


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
    wide = stats.question_interval(questions)
    return replace(wide, low=max(0.0, wide.low), high=min(1.0, wide.high))


def _why_incomplete(
    contract: Contract, n: int, answered: int, errors: int, not_judged: int
) -> str | None:
    if n == 0:
        return "the list is empty"
    if answered == n:
        return None
    asked = contract.sessions[-1].items if contract.sessions else n
    done = answered + errors + not_judged
    why = [f"limit {asked}"] if done >= asked < n else []
    if errors:
        why.append(f"{errors} failed")
    if not_judged:
        why.append(f"{not_judged} not judged yet")
    rest = n - done
    if rest and done < asked:
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


def _warnings(tally: Tally, conditions: Conditions) -> Iterator[str]:
    """What a reader of the row must know of its answers, with the count."""
    answered = tally.answered
    if conditions.sandbox is not None and conditions.sandbox.startswith(NO_SANDBOX):
        yield "programs ran without a sandbox (--unsafe-no-sandbox) and could do anything"
    if conditions.thinking == "off" and tally.with_reasoning:
        yield f"thinking is off, yet {tally.with_reasoning} of {answered} answers have reasoning"
    if conditions.thinking == "on" and tally.with_reasoning < answered:
        without = answered - tally.with_reasoning
        yield f"thinking is on, yet {without} of {answered} answers have no reasoning"
    if conditions.thinking_object is None:
        yield f"no thinking switch was sent (the card has no thinking.{conditions.thinking})"
    if tally.misrouted:
        yield (
            f"{_answers(tally.misrouted)} came in the reasoning field "
            f"and {'counts' if tally.misrouted == 1 else 'count'} as wrong"
        )
    cached = sum(1 for count in tally.cached if count)
    if cached:
        yield f"{_answers(cached)} reused cached prompt tokens"
    if tally.inexact:
        yield f"{tally.inexact} of {answered} prompts: not exactly the wanted length"
    if len(set(tally.templates)) > 1:
        low, high = min(tally.templates), max(tally.templates)
        yield (
            f"the server counts {low} to {high} tokens more than our prompts have: "
            "its tokenizer is another one, or its template changes texts"
        )


def _answers(count: int) -> str:
    return f"{count} answer" if count == 1 else f"{count} answers"


def _cut_off_warning(tally: Tally, where: str = "") -> Iterator[str]:
    cut = len(tally.cut)
    if tally.answered and cut / tally.answered > CUT_OFF_NOTE_FROM:
        were = "was" if cut == 1 else "were"
        yield f"{cut} of {tally.answered} answers{where} {were} cut off: the limit shapes this row"


def _cut_off_warnings(task: Task, rows: Mapping[str, Tally]) -> Iterator[str]:
    for row, tally in rows.items():
        title, _ = task.row_names(row, tally.answered)
        yield from _cut_off_warning(tally, f" in {title}")


def _server_warnings(sessions: Sequence[Session]) -> Iterator[str]:
    """What of the server changed between sessions, or differs between replicas."""
    for session in sessions:
        for what in ("engine_version", "server_defaults"):
            each = {canonical(server.get(what)): server.get(what) for server in session.servers}
            if len(each) > 1:
                yield f"the replicas differ in {what}: {', '.join(map(str, each.values()))}"
    for before, after in pairwise(sessions):
        for what in ("models", "engine_version", "server_defaults"):
            old, new = before.server.get(what), after.server.get(what)
            if old != new:
                told = f" ({old} -> {new})" if what == "engine_version" else ""
                yield f"the server's {what} changed between two sessions of this part{told}"


def _timing(sessions: Sequence[Session], ended: Sequence[str]) -> dict[str, object]:
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
    """When the server process of a session started, or those of all replicas; None when one does
    not tell.
    """
    starts = [server.get("process_started") for server in session.servers]
    told = [start for start in starts if isinstance(start, str)]
    return " and ".join(told) if len(told) == len(starts) else None


def summarize_run(label: str, parts: Mapping[str, Summary]) -> RunSummary:
    """The summary of a run: its parts and what is counted over them. No overall score."""
    off = [part for part in parts.values() if part.thinking == "off"]
    requests, cut = sum(part.answered for part in off), sum(part.cut_off for part in off)
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
