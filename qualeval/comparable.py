"""May these runs be compared, and what else is different about them? Pure: values in, values out.

List, prompt, grader, limits, sampling, seed, repeats, thinking and suite must be the same, or the
numbers answer different questions. All else may differ (that is why one compares), and is named.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pydantic import JsonValue

from qualeval.errors import ContractError, OptionError, did_you_mean
from qualeval.records import PART_NAMES, Count, ItemId, Json, Record, Session

MUST_BE_SAME = (
    ("suite", "list", "prompt", "grader", "max_tokens", "sampling", "seed", "repeats")
    + ("thinking", "thinking_object", "parts")
)  # fmt: skip
"""First words of the fields that two runs must share; `parts` are the parts that they have."""

ALSO_CALLED = {"max_tokens": "limits", "thinking_object": "thinking"}
"""A second word by which `--allow` takes a field."""

MAY_BE_UNKNOWN = ("list.sha256", "prompt", "grader")
"""What a summary alone does not tell, unless the hash of its conditions is the other's."""


class Outcome(NamedTuple):
    """How one answer was judged. `cause` is `right`, or why it is wrong."""

    right: bool
    cut_off: bool
    cause: str


class Question(NamedTuple):
    """One item and the outcomes of its answers, one a repeat."""

    id: ItemId
    outcomes: tuple[Outcome, ...]


@dataclass(frozen=True, slots=True)
class PartOfRun:
    """One part as one run measured it.

    `incomplete` says why there is no score, where there is none. `questions` by id as text, in list
    order; None where only the counts are known. `sessions` is None where there is no contract; the
    conditions are then those that a summary tells.
    """

    name: str
    title: str
    subtitle: str
    sample_list: bool
    incomplete: str | None
    n: int
    right: int
    cut_off: int
    repeats: int
    beside: Mapping[str, Count]
    conditions: Json
    conditions_sha256: str
    sessions: tuple[Session, ...] | None
    questions: Mapping[str, Question] | None


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """One run as it is compared; `margin_points` is its card's own gate, set before it ran."""

    name: str
    label: str
    model: str
    parts: Mapping[str, PartOfRun]
    margin_points: float | None = None


class Difference(Record):
    """A field that differs: its value in each run, in the order given, None where not given.

    `parts` are the parts in which it does.
    """

    field: str
    values: tuple[JsonValue, ...]
    parts: tuple[str, ...]


@dataclass(slots=True)
class Comparability:
    """The parts to compare, what was allowed to differ, what else does, what nobody knows."""

    parts: tuple[str, ...]
    allowed: list[Difference] = field(default_factory=list)
    same_except: list[Difference] = field(default_factory=list)
    not_known: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


def check_comparable(runs: Sequence[ComparedRun], allow: Iterable[str]) -> Comparability:
    """What of `runs` can be compared.

    Raises ContractError naming every field that must be the same and is not, with all values, and
    OptionError for a word of `allow` that is no such field.
    """
    allow = tuple(allow)
    _check_words(allow)
    names = _parts(runs)
    shared = [name for name in names if all(name in run.parts for run in runs)]
    found = Comparability(tuple(shared))
    must: list[Difference] = []
    if len(names) != len(shared):
        own = tuple(", ".join(name for name in names if name in run.parts) for run in runs)
        must.append(Difference(field="parts", values=own, parts=()))
    for name in shared:
        parts = [run.parts[name] for run in runs]
        for path, values in _differing(parts):
            target = must if _must_be_same(path, parts) else found.same_except
            _note(target, path, values, name)
        if len({part.conditions_sha256 for part in parts}) > 1:
            found.not_known += [f for f in _unknown(parts) if f not in found.not_known]
    refused = [fault for fault in must if not _is_allowed(fault.field, allow)]
    if refused:
        raise ContractError(_refusal(runs, refused))
    if not shared:
        raise ContractError("there is nothing to compare: no part is in all of these runs")
    found.allowed = must
    found.left_out = [name for name in names if name not in shared]
    return found


def _parts(runs: Sequence[ComparedRun]) -> list[str]:
    """All parts of the runs, in the order of the table; those it does not have come last."""
    names = list(dict.fromkeys(name for run in runs for name in run.parts))
    order = {name: place for place, name in enumerate(PART_NAMES)}
    return sorted(names, key=lambda name: order.get(name.partition("/")[0], len(order)))


def _check_words(allow: Iterable[str]) -> None:
    known = list(dict.fromkeys([*MUST_BE_SAME, *ALSO_CALLED.values()]))
    for word in allow:
        if word.partition(".")[0] not in known:
            raise OptionError(
                f"--allow: '{word}' is no field that must be the same{did_you_mean(word, known)}; "
                f"there are: {', '.join(known)}"
            )


def _is_allowed(path: str, allow: Iterable[str]) -> bool:
    """Whether a word is this field, one that holds it, or its second name."""
    first = path.partition(".")[0]
    return any(
        path == word or path.startswith(word + ".") or ALSO_CALLED.get(first) == word
        for word in allow
    )


def _must_be_same(path: str, parts: Sequence[PartOfRun]) -> bool:
    """Whether a field that differs forbids the comparison. A list is its hash, whatever its name,
    unless a summary tells the name alone.
    """
    if path in ("list.id", "list.kind", "list.release", "list.dates"):
        hashes = {_at(part.conditions, "list.sha256") for part in parts}
        return len(hashes) > 1 or None in hashes
    return path.partition(".")[0] in MUST_BE_SAME


def _unknown(parts: Sequence[PartOfRun]) -> Iterator[str]:
    for path in MAY_BE_UNKNOWN:
        if any(_at(part.conditions, path) is None for part in parts):
            yield path


def _at(value: JsonValue, path: str) -> JsonValue:
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _refusal(runs: Sequence[ComparedRun], refused: Sequence[Difference]) -> str:
    lines = [f"{', '.join(run.name for run in runs)} cannot be compared: they differ in"]
    for fault in refused:
        where = f" ({', '.join(fault.parts)})" if fault.parts else ""
        values = (
            f"{run.name} {shown(value)}" for run, value in zip(runs, fault.values, strict=True)
        )
        lines.append(f"  {fault.field}{where}: {'; '.join(values)}")
    firsts = dict.fromkeys(fault.field.partition(".")[0] for fault in refused)
    words = " ".join(f"--allow {ALSO_CALLED.get(first, first)}" for first in firsts)
    return "\n".join([*lines, f"if that is what you want to compare: {words}"])


def shown(value: JsonValue, most: int = 300) -> str:
    """A value of a difference as a short text; JSON where it is more than a text."""
    if value is None:
        return "not given"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 3] + "..."


# Facts of one part, by dotted name


def _facts(part: PartOfRun) -> dict[str, JsonValue]:
    """Conditions and sessions as dotted names. A summary without contract has no sessions."""
    conditions = {name: value for name, value in part.conditions.items() if name != "request"}
    facts = dict(_leaves(conditions))
    if part.sessions is None:
        return facts
    return facts | dict(_leaves(_request(part.conditions))) | _session_facts(part.sessions)


def _request(conditions: Json) -> Json:
    """Fields as sent, less those that stand in the conditions under a name of their own."""
    told = {"model", "max_tokens", "seed"}
    for name in ("sampling", "thinking_object"):
        value = conditions.get(name)
        told |= set(value) if isinstance(value, dict) else set()
    request = conditions.get("request")
    sent = request if isinstance(request, dict) else {}
    return {"request": {name: value for name, value in sent.items() if name not in told}}


def _session_facts(sessions: Sequence[Session]) -> dict[str, JsonValue]:
    """Who measured, on what. Where sessions of a part differ, all their values.

    Not here: the command, times and sums of a session, which are no conditions; the card's hash,
    since what it holds is here; and addresses of servers, which are nobody's business.
    """
    values: dict[str, list[JsonValue]] = {}
    for session in sessions:
        for path, value in _leaves(_of_session(session)):
            seen = values.setdefault(path, [])
            if value not in seen:
                seen.append(value)
    return {path: seen[0] if len(seen) == 1 else seen for path, seen in values.items()}


def _of_session(session: Session) -> Json:
    return {
        "qualeval": session.qualeval,
        "slots": session.slots,
        "slots_source": session.slots_source,
        "schedule": session.schedule,
        "alone": session.alone,
        "endpoints": len(session.endpoints),
        "server": _without_addresses(session.server),
        "setup": session.setup,
    }


def _without_addresses(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return {n: _without_addresses(inner) for n, inner in value.items() if n != "endpoint"}
    return [_without_addresses(inner) for inner in value] if isinstance(value, list) else value


def _leaves(value: JsonValue, path: str = "") -> Iterator[tuple[str, JsonValue]]:
    """Every value with its dotted name; null or an empty list is the same as not there."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _leaves(inner, f"{path}.{name}" if path else name)
    elif value is not None and value != []:
        yield path, value


def _differing(parts: Sequence[PartOfRun]) -> Iterator[tuple[str, tuple[JsonValue, ...]]]:
    """Names whose values are not all the same, where every run could tell."""
    facts = [_facts(part) for part in parts]
    for path in dict.fromkeys(path for told in facts for path in told):
        values = tuple(told.get(path) for told in facts)
        differs = any(not _same(value, values[0]) for value in values[1:])
        if differs and all(_could_tell(part, path) for part in parts):
            yield path, values


def _could_tell(part: PartOfRun, path: str) -> bool:
    """Whether a value that is not there was not given; a summary alone never knew many."""
    first = path.partition(".")[0]
    known = path == "list.id" if first == "list" else first in part.conditions
    return part.sessions is not None or known


def _same(one: JsonValue, other: JsonValue) -> bool:
    """Equality in which 1 is 1.0, and true is not 1."""
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def _note(
    differences: list[Difference], path: str, values: tuple[JsonValue, ...], part: str
) -> None:
    """Add a difference, or the part to one that is there with the same values."""
    for place, known in enumerate(differences):
        if known.field == path and all(map(_same, known.values, values)):
            differences[place] = known.model_copy(update={"parts": (*known.parts, part)})
            return
    differences.append(Difference(field=path, values=values, parts=(part,)))
