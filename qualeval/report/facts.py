"""What stands around the numbers: conditions with their sources, setup, server, files. Pure but
for looking which files are there.
"""

import json
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from pydantic import BaseModel, JsonValue

from qualeval.card import Setup
from qualeval.contract import ListCondition
from qualeval.records import Json, Session, Summary
from qualeval.report.read import PartRead, RunRead
from qualeval.table import tenths, thousands
from qualeval.tasks import TASKS

UNKNOWN = "unknown"
NOT_STATED = "source not stated"


class Fact(NamedTuple):
    """A setting, its value as text, and where the value comes from."""

    name: str
    value: str
    source: str = ""


class File(NamedTuple):
    """A file beside the page: its name, its address from there, and what it holds."""

    name: str
    address: str
    what: str


FILES = (
    ("{part}.jsonl", "answers with verdicts"),
    ("{part}.gen.jsonl", "raw replies"),
    ("{part}.errors.jsonl", "requests given up"),
    ("{part}.contract.json", "contract"),
    ("{part}.summary.json", "summary"),
    ("{part}.items.jsonl", "its list"),
    ("{part}.log", "log"),
)

RUN_FILES = (
    ("summary.json", "all summaries"),
    ("summary.md", "the table as Markdown"),
    ("card.json", "the card"),
    ("run.log", "the log"),
    ("manifest.json", "what the published copy holds"),
)


def files_of(folder: Path, page_folder: Path, part: str | None = None) -> list[File]:
    """The files of a part, or of the whole run, that are there."""
    wanted = FILES if part else RUN_FILES
    found = []
    for pattern, what in wanted:
        path = folder / pattern.format(part=part)
        if path.exists():
            there = os.path.relpath(path.resolve(), page_folder.resolve())
            found.append(File(path.name, quote(there.encode("utf-8", "surrogateescape")), what))
    return found


def _text(value: JsonValue) -> str:
    if value is None:
        return UNKNOWN
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return ", ".join(f"{name} {_compact(inner)}" for name, inner in value.items()) or "none"
    return _compact(value)


def _compact(value: JsonValue) -> str:
    """A number as short as it was meant: 0.800000011920929 is what a 32-bit 0.8 reads as."""
    if isinstance(value, float):
        return f"{value:.6g}"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


_COUNTED = re.compile(r"\b\d{4,}(?= (?:of|items|answers|prompts|tokens)\b)|(?<=\d of )\d{4,}\b")


def marked(text: str) -> str:
    """A text with the thousands of what it counts marked: 12,000 items. Years and names stay."""
    return _COUNTED.sub(lambda found: f"{int(found[0]):,}", text)


def conditions_of(part: PartRead) -> list[Fact]:
    """Every condition of a part that could move its number, with its source."""
    return [*_asked(part), *_sent(part), *_graded(part)]


def _kind_of(asked: ListCondition, part: PartRead) -> str:
    """Whose a list is, and what proves it."""
    if asked.kind == "file":
        return "a list of the operator's own"
    if asked.kind == "sample":
        return "sample list of the package"
    if part.conditions.token_counts is not None:
        return "made for this model"
    if asked.release is not None:
        return "locked on the machine that ran it"
    return "pinned in the package"


def _asked(part: PartRead) -> Iterator[Fact]:
    conditions = part.conditions
    items = f"{conditions.list.items:,} items"
    yield Fact("list", f"{conditions.list.id}, {items}", _kind_of(conditions.list, part))
    yield Fact("list sha256", conditions.list.sha256)
    if conditions.list.release:
        yield Fact("release", conditions.list.release, "the source")
    if conditions.list.dates:
        yield Fact("dates of its items", " to ".join(conditions.list.dates), "the source")
    yield Fact("prompt sha256", conditions.prompt.sha256, "the method")
    if conditions.tokenizer_sha256 or conditions.token_counts:
        counted = conditions.token_counts or UNKNOWN
        yield Fact("tokens counted by", counted, f"sha256 {conditions.tokenizer_sha256 or UNKNOWN}")
    asked = "once" if conditions.repeats == 1 else f"{conditions.repeats} times"
    yield Fact("each question asked", asked, "card")


def _sent(part: PartRead) -> Iterator[Fact]:
    conditions, task = part.conditions, TASKS[part.name]
    own = conditions.max_tokens == task.max_tokens
    source = "the method" if own else f"card (the method has {task.max_tokens:,})"
    yield Fact("model", conditions.model, "card, and listed by the server")
    yield Fact("max_tokens", f"{conditions.max_tokens:,}", source)
    sampling = _text(conditions.sampling) if conditions.sampling else "no field sent"
    yield Fact("sampling", sampling, conditions.sampling_source or NOT_STATED)
    session = part.last
    if session is not None:
        yield _not_sent(session.server.get("server_defaults"), conditions.sampling)
    yield Fact("seed", f"{conditions.seed}, plus the number of the repeat", "card")
    yield Fact("thinking", conditions.thinking, "the method")
    switch = conditions.thinking_object
    said = _text(switch) if switch else "nothing was sent"
    yield Fact("thinking switch", said, f"card: thinking.{conditions.thinking}")
    yield Fact("prompt cache", conditions.prompt_cache, f"dialect {conditions.dialect}")
    yield Fact("cached tokens", part.summary.cache_check.state, "the replies")
    if session is not None:
        yield from _of_session(session)


def _not_sent(defaults: JsonValue, sent: Json) -> Fact:
    """What the server takes for sampling fields that were not sent: not sent is not neutral."""
    if not isinstance(defaults, dict):
        return Fact("sampling fields not sent", UNKNOWN, "this server tells no defaults")
    rest = {name: value for name, value in defaults.items() if name not in sent}
    return Fact("sampling fields not sent", _text(rest), "the server's defaults, told by it")


def _of_session(session: Session) -> Iterator[Fact]:
    yield Fact("slots", _slots(session), session.slots_source or NOT_STATED)
    sizes = dict.fromkeys(server.get("context_tokens") for server in session.servers)
    if any(isinstance(size, int) for size in sizes):
        told = (f"{size:,} tokens" if isinstance(size, int) else UNKNOWN for size in sizes)
        source = session.server.get("context_source")
        yield Fact("context of a slot", ", ".join(told), _text(source))
    beside = "alone" if session.alone else "beside other parts"
    yield Fact("schedule", f"{session.schedule}, {beside}", "command")
    yield Fact("qualeval", session.qualeval)


def _slots(session: Session) -> str:
    """All slots, and where there are several endpoints those of each, as far as they told."""
    endpoints = len(session.endpoints)
    if endpoints < 2:
        return str(session.slots)
    own = [server.get("slots") for server in session.servers]
    split = f" ({' + '.join(map(str, own))})" if all(isinstance(one, int) for one in own) else ""
    return f"{session.slots} over {endpoints} endpoints{split}"


def _graded(part: PartRead) -> Iterator[Fact]:
    conditions = part.conditions
    yield Fact("grader", conditions.grader, conditions.suite)
    yield from (Fact("grader note", note) for note in conditions.grader_notes)
    if conditions.sandbox:
        yield Fact("sandbox", conditions.sandbox, "this machine")
    yield Fact("conditions sha256", part.contract.conditions_sha256)


def measures_of(row: Summary) -> list[Fact]:
    """Medians and times of a row of the table."""
    found = []
    if row.median_completion_tokens is not None:
        found.append(Fact("median tokens of an answer", thousands(row.median_completion_tokens)))
    if row.median_seconds is not None:
        load = "" if row.alone else " (mixed load)"
        found.append(Fact("median seconds", f"{tenths(row.median_seconds)}{load}"))
    if row.in_flight is not None:
        mean, most = row.in_flight.mean, row.in_flight.most
        found.append(Fact("requests in flight", f"mean {mean:.1f}, most {most}"))
    if row.wall_time is not None:
        found.append(Fact("wall time", _duration(row.wall_time)))
    if row.started:
        found.append(Fact("started", moment(row.started)))
    if row.finished:
        found.append(Fact("last answer", moment(row.finished)))
    return found


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02} min"
    return f"{minutes} min {rest:02} s" if minutes else f"{seconds:.1f} s"


def moment(when: str, *, seconds: bool = False) -> str:
    """A moment as `2026-11-30 10:00 UTC`."""
    end = 19 if seconds else 16
    return f"{when[:10]} {when[11:end]} UTC" if len(when) > end else when


def setup_of(setup: Setup) -> list[Fact]:
    """The setup block: every field of it, unknown where the card says nothing."""
    facts = [Fact("hardware", setup.hardware or UNKNOWN)]
    for name in ("model", "engine", "recipe"):
        told = getattr(setup, name)
        fields = type(told).model_fields if told else ()
        if not fields:
            facts.append(Fact(name, UNKNOWN))
        for field in fields:
            facts.append(Fact(f"{name} {_words(field)}", getattr(told, field) or UNKNOWN))
    facts.append(Fact("speculative decoding", setup.speculative or UNKNOWN))
    facts.append(Fact("credits", ", ".join(setup.credits) or UNKNOWN))
    return facts


def _words(field: str) -> str:
    return field.replace("_", " ").replace("kv dtype", "KV cache type")


def deviations_of(setup: Setup) -> list[list[str]]:
    """What differs from the recipe: what, the recipe's value, the one here, source."""
    return [
        [one.what, one.recipe_says or UNKNOWN, one.here or UNKNOWN, one.source or NOT_STATED]
        for one in setup.deviations
    ]


def deviation_words(setup: Setup) -> str | None:
    """The line at the top of a page; None where no recipe was named."""
    count = len(setup.deviations)
    if not count:
        return None
    return f"run with {count} deviation{'s' * (count > 1)} from the recipe"


def server_of(run: RunRead) -> list[Fact]:
    """Who answered, as far as it said. Addresses stay in the contracts."""
    sessions = run.sessions
    if not sessions:
        return []
    last = sessions[-1]
    servers, endpoints = last.servers, len(last.endpoints)
    several = len(servers) > 1
    versions = [_text(server.get("engine_version")) for server in servers]
    facts = [
        Fact("server", _of_each(versions), _version_source(run, versions)),
        Fact("models they list" if several else "models it lists", _of_each(_models(servers))),
        Fact("servers started" if several else "server started", _started(sessions)),
    ]
    if endpoints > 1:
        facts += [Fact("endpoints", str(endpoints)), Fact("slots", _slots(last))]
    return facts


def _version_source(run: RunRead, versions: Sequence[str]) -> str:
    """Who told the versions; nothing where nobody did."""
    if all(version == UNKNOWN for version in versions):
        return ""
    said = "told by the server" + "s" * (len(versions) > 1)
    return f"{said} or the card's version file" if run.card.server.engine_version_file else said


def _of_each(told: Sequence[str]) -> str:
    """One text for all servers, or that of each in the order of the card's endpoints."""
    return told[0] if len(set(told)) == 1 else " and ".join(told)


def _models(servers: Sequence[Json]) -> list[str]:
    lists = (server.get("models") for server in servers)
    return [", ".join(map(str, one)) if isinstance(one, list) else UNKNOWN for one in lists]


def _started(sessions: Sequence[Session]) -> str:
    """When the servers started; over sessions, each start once."""
    told = dict.fromkeys(_starts(session) for session in sessions)
    return ", ".join(told)


def _starts(session: Session) -> str:
    starts = (server.get("process_started") for server in session.servers)
    return _of_each([moment(one) if isinstance(one, str) else UNKNOWN for one in starts])


def when(run: RunRead) -> str:
    """From the start of the first part to the last answer."""
    parts = run.summary.parts.values()
    starts = sorted(part.started for part in parts if part.started)
    ends = sorted(part.finished for part in parts if part.finished)
    if not starts:
        return UNKNOWN
    first, last = moment(starts[0]), moment((ends or starts)[-1])
    if first == last:
        return first
    same_day = first[:10] == last[:10]
    return f"{first.removesuffix(' UTC')} to {last[11:] if same_day else last}"


def commands_of(part: PartRead) -> list[tuple[str, str]]:
    """Each command that worked on a part, as typed, with when it started."""
    found: dict[str, list[str]] = {}
    for session in part.contract.sessions:
        found.setdefault(session.command, []).append(moment(session.started))
    return [(command, ", ".join(starts)) for command, starts in found.items()]


_OPTION = re.compile(r"((?<!\S)--?\w[\w.-]{0,40})")


def command_pieces(command: str) -> list[tuple[str, bool]]:
    """A command in pieces, each with whether it is the name of an option. A line must not end
    between the dashes of one and its name.
    """
    pieces = _OPTION.split(command)
    return [(piece, place % 2 == 1) for place, piece in enumerate(pieces) if piece]


def references_of(references: Sequence[BaseModel]) -> list[list[str]]:
    """Other people's figures, as they published them."""
    rows = []
    for one in references:
        told = one.model_dump()
        figure = f"{told['value']:g} {told['unit'] or ''}".strip()
        more = [told[name] or UNKNOWN for name in ("date", "method", "source")]
        rows.append([told["label"], figure, *more])
    return rows
