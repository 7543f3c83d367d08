"""`qualeval show RUN PART ID`: one answer in full, with its prompt made again from list and
contract.
"""

import json
import unicodedata
from collections.abc import Iterator, Mapping
from pathlib import Path

from qualeval.errors import ListError, OptionError, did_you_mean
from qualeval.plan import PartPlan, chosen_parts
from qualeval.recheck import AnswerLines, list_not_here, started_parts
from qualeval.records import FailedRequest, Item, Json, RawReply, key_of
from qualeval.reopen import contract_of, reopen
from qualeval.runfolder import RawReplies, read_failures
from qualeval.tasks import TASKS

NOT_FOR_PUBLICATION = (
    "The benchmark of this part is gated: its authors ask that no question appears in plain text "
    "online. Do not publish what stands below."
)

BIDI_CONTROLS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def show_command(run: Path, part: str, id: str) -> list[str]:
    """The lines of all answers to one item: prompt, reply, verdict, tokens, times.

    Raises QualevalError when the folder is no run, or the part or the id is not in it.
    """
    there = started_parts(run)
    if part not in there:
        hint = did_you_mean(part, there)
        raise OptionError(
            f"{run}: part '{part}' was never run{hint}; there are: {', '.join(there)}"
        )
    (part,) = chosen_parts(part)
    contract, conditions = contract_of(run, part)
    plan, why_not = _plan(run, part)
    items = plan.list.by_id if plan else {}
    replies = RawReplies(run / f"{part}.gen.jsonl")
    answers = AnswerLines(run / f"{part}.jsonl")
    failures = read_failures(run / f"{part}.errors.jsonl")
    lines = [
        f"{TASKS[part].title}, id {id} · {conditions.model} · {conditions.list.id} · "
        f"conditions {contract.conditions_sha256[:12]}"
    ]
    if TASKS[part].source.gated and conditions.list.kind != "sample":
        lines.append(NOT_FOR_PUBLICATION)
    found = False
    for repeat in range(conditions.repeats):
        key = key_of(id, repeat)
        raw = next(replies.get(iter([key])), None)
        failed = failures.get(key)
        if raw is None and failed is None and id not in items:
            continue
        found = True
        if conditions.repeats > 1:
            lines += ["", f"==== answer {repeat + 1} of {conditions.repeats}"]
        lines += _prompt(plan, items.get(id), repeat, raw, why_not)
        lines += _reply(raw, failed)
        lines += _verdict(run, part, raw, answers.get(key))
    if not found:
        ids = list(items) or [key[0] for key in (*answers.in_order(), *failures)]
        raise OptionError(f"{run}: part '{part}' has no item '{id}'{did_you_mean(id, ids)}")
    return [visible(line) for line in lines]


def _plan(run: Path, part: str) -> tuple[PartPlan | None, str]:
    """The plan of the part, or None and why its list cannot be had."""
    _, conditions = contract_of(run, part)
    if why := list_not_here(part, conditions):
        return None, why
    try:
        return reopen(run, part), ""
    except ListError as error:
        return None, str(error)


def _prompt(
    plan: PartPlan | None, item: Item | None, repeat: int, raw: RawReply | None, why_not: str
) -> Iterator[str]:
    """What was asked, and whether it is what the raw reply says was sent."""
    yield from ("", "---- prompt")
    if plan is None or item is None:
        yield f"cannot be made again: {why_not or 'the id is not in the list of this part'}"
        return
    request = plan.request(item, repeat)
    for message in plan.task.messages(item):
        yield f"[{message['role']}]"
        yield from str(message["content"]).split("\n")
    fields = {name: value for name, value in request.body.items() if name != "messages"}
    yield from ("", "---- request", _pairs(fields))
    if raw is None:
        yield f"sha256 {request.sha256}, no reply"
    elif raw.request_sha256 == request.sha256:
        yield f"sha256 {request.sha256}, the one that was sent"
    else:
        yield f"sha256 {request.sha256}, BUT {raw.request_sha256} was sent: see qualeval verify"


def _reply(raw: RawReply | None, failed: FailedRequest | None) -> Iterator[str]:
    """What came back."""
    if raw is None:
        yield from ("", "---- reply")
        if failed is None:
            yield "not asked yet"
        else:
            yield f"given up after {failed.attempts} attempts: {failed.kind}: {failed.message}"
        return
    if raw.reasoning is not None:
        yield from ("", f"---- reasoning (from {raw.reasoning_source})")
        yield from raw.reasoning.split("\n")
    yield from ("", "---- reply")
    yield from (raw.text or "(empty)").split("\n")
    usage = {**raw.usage.model_dump(), "cached_tokens": raw.cached_tokens}
    times = {"seconds": raw.seconds, "time_to_first_token": raw.time_to_first_token}
    yield from ("", "---- end, tokens, seconds")
    yield _pairs({"finish_reason": raw.finish_reason, "cut_by": raw.cut_by})
    yield _pairs(usage)
    yield _pairs({**times, "attempts": raw.attempts, "ended": raw.ended})


def _verdict(run: Path, part: str, raw: RawReply | None, stored: Json | None) -> Iterator[str]:
    """What the grader decided and why, as stored."""
    if raw is None:
        return
    yield from ("", "---- verdict")
    if stored is None:
        yield f"not graded yet: qualeval grade {run}"
        return
    said = "right" if stored.get("right") is True else "wrong"
    yield f"{said}: {stored.get('reason')}"
    first = ("rule", "extracted", "gold", "order", "stratum", "partial", "cut_off")
    yield _pairs({name: stored.get(name) for name in first})
    if isinstance(stored.get("details"), dict):
        yield _pairs(stored["details"])  # type: ignore[arg-type]
    differing = [name for name, value in _raw_fields(raw).items() if stored.get(name) != value]
    if differing:
        yield f"BUT {', '.join(differing)} of {part}.jsonl is not as in {part}.gen.jsonl"


def _raw_fields(raw: RawReply) -> Json:
    return raw.model_dump(mode="json")


def _pairs(values: Mapping[str, object]) -> str:
    """`name value` pairs on one line; a count that no server told is "not reported", never 0."""
    return ", ".join(f"{name} {_value(name, value)}" for name, value in values.items())


def _value(name: str, value: object) -> str:
    if value is None and name in NOT_REPORTED:
        return "not reported"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


NOT_REPORTED = frozenset(
    ("prompt_tokens", "completion_tokens", "reasoning_tokens", "cached_tokens")
    + ("seconds", "time_to_first_token")
)


def visible(text: str) -> str:
    """A text that cannot steer a terminal: control characters stand there as their escapes."""
    return "".join(map(_visible, text))


def _visible(character: str) -> str:
    steers = unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp")
    if character == "\t" or not (steers or character in BIDI_CONTROLS):
        return character
    return character.encode("unicode_escape", "backslashreplace").decode()
