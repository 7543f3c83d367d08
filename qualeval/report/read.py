"""A run folder or a published bundle -> what a report shows of it. Reads, and decides nothing."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel, ValidationError

from qualeval.card import Reference, Setup
from qualeval.contract import Conditions
from qualeval.errors import ListError, RunFolderError
from qualeval.grading import graded
from qualeval.plan import PartPlan
from qualeval.publish import is_bundle
from qualeval.publish.schema import PublishedAnswer
from qualeval.recheck import list_not_here, started_parts, whole_lines
from qualeval.records import (
    INFRA_ERROR,
    Answer,
    Contract,
    FailedRequest,
    Item,
    RawReply,
    RunSummary,
    Session,
    Summary,
    key_of,
)
from qualeval.reopen import contract_of, reopen
from qualeval.runfolder import RawReplies, read_failures, read_lines, read_summary
from qualeval.summary_formats import run_summary
from qualeval.tasks import TASKS
from qualeval.tasks.base import LeakPolicy


class ServerOfCard(BaseModel):
    """Where the card says that a version is found which the server does not tell."""

    engine_version_file: str | None = None


class CardFacts(BaseModel):
    """What a report takes from the card: the operator's words and other people's figures."""

    server: ServerOfCard = ServerOfCard()
    references: tuple[Reference, ...] = ()
    notes: str | None = None


class Told(NamedTuple):
    """An answer, and where a bundle holds its text back, by which rule."""

    answer: Answer
    withheld: str | None = None


@dataclass(frozen=True, slots=True)
class PartRead:
    """One part: contract and numbers. `leak_policy` says what of its questions may leave."""

    name: str
    contract: Contract
    conditions: Conditions
    summary: Summary
    leak_policy: LeakPolicy

    @property
    def own_list(self) -> bool:
        """Whether its questions are a list of the operator's own."""
        return self.conditions.list.kind == "file"

    @property
    def last(self) -> Session | None:
        """The session that worked on the part last."""
        return self.contract.sessions[-1] if self.contract.sessions else None


@dataclass(frozen=True, slots=True)
class RunRead:
    """A run: `parts` in the order of the table; `setup` as the last session recorded it."""

    folder: Path
    bundle: bool
    summary: RunSummary
    parts: Mapping[str, PartRead]
    card: CardFacts
    setup: Setup

    @property
    def sessions(self) -> list[Session]:
        """All sessions of all parts, in the order of their start."""
        every = (session for part in self.parts.values() for session in part.contract.sessions)
        return sorted(every, key=lambda session: session.started)


def read_run(folder: Path) -> RunRead:
    """The run at `folder`. Raises RunFolderError, or ListError when numbers must be counted anew
    and its questions are not at hand.
    """
    names = started_parts(folder)
    summary = run_summary(folder)
    parts = {}
    for name in names:
        contract, conditions = contract_of(folder, name)
        policy = TASKS[name].source.leak_policy if conditions.list.kind != "sample" else "open"
        parts[name] = PartRead(name, contract, conditions, summary.parts[name], policy)
    sessions = [session for part in parts.values() for session in part.contract.sessions]
    latest = max(sessions, key=lambda session: session.started, default=None)
    return RunRead(
        folder=folder,
        bundle=is_bundle(folder),
        summary=summary,
        parts=parts,
        card=_card(folder / "card.json"),
        setup=_setup(latest),
    )


def _card(path: Path) -> CardFacts:
    """What the card says; nothing where it cannot be read, as in a bundle that holds it back."""
    try:
        return CardFacts.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return CardFacts()


def _setup(session: Session | None) -> Setup:
    try:
        return Setup.model_validate((session.setup if session else None) or {})
    except ValidationError:
        return Setup()


def answers_of(run: RunRead, name: str) -> Iterator[Told]:
    """The answers of a part in list order, as stored.

    Where a run was killed before its answers were written they are graded in memory, unless that
    would run programs. Raises RunFolderError, ListError.
    """
    path = run.folder / f"{name}.jsonl"
    if run.bundle:
        for _, record in read_lines(path, PublishedAnswer):
            yield Told(record.answer(), record.withheld)
        return
    if not _must_be_graded(run.folder, name):
        for _, answer in read_lines(path, Answer):
            yield Told(answer)
        return
    task = TASKS[name]
    if task.runs_code:
        raise RunFolderError(
            f"{run.folder}: the answers of part '{name}' are not graded yet, and grading them runs "
            f"programs; do that first: qualeval grade {run.folder}"
        )
    task.prepare()
    plan = reopen(run.folder, name)
    replies = RawReplies(run.folder / f"{name}.gen.jsonl")
    for outcome in graded(plan, replies):
        if isinstance(outcome, Answer):
            yield Told(outcome)


def _must_be_graded(folder: Path, name: str) -> bool:
    """Whether there are replies that the stored summary and answers do not count."""
    raw = folder / f"{name}.gen.jsonl"
    if not raw.exists():
        return False
    stored = read_summary(folder, name)
    if stored is None or stored.replies != whole_lines(raw):
        return True
    return stored.answered != whole_lines(folder / f"{name}.jsonl")


NOT_RUN = "the program could not be run; the log says why, `qualeval grade` tries again"


def failures_of(run: RunRead, name: str, answered: set[tuple[str, int]]) -> list[FailedRequest]:
    """The requests of a part that have no answer: given up and not answered since, or answered
    with a program whose verdict could not be had.
    """
    failures = read_failures(run.folder / f"{name}.errors.jsonl")
    found = [failed for key, failed in failures.items() if key not in answered]
    if INFRA_ERROR in run.summary.parts[name].error_kinds:
        known = answered | {key_of(failed.id, failed.repeat) for failed in found}
        for _, raw in read_lines(run.folder / f"{name}.gen.jsonl", RawReply):
            if key_of(raw.id, raw.repeat) not in known:
                found.append(FailedRequest.unjudged(raw, INFRA_ERROR, NOT_RUN))
    return found


WHY_NOT: Mapping[LeakPolicy, str] = {
    "gated": "the benchmark is gated, and its authors ask that no question appears in plain text "
    "online",
    "no_prompt": "the statements come from contest sites, and nobody here may pass them on",
}


class Prompts:
    """The prompts of a part, made again one by one; `why_not` where they cannot be shown."""

    def __init__(self, run: RunRead, name: str, *, with_prompts: bool) -> None:
        self._plan: PartPlan | None = None
        self._items: dict[str, Item] = {}
        self.why_not = ""
        part = run.parts[name]
        if run.bundle:
            self.why_not = "A published copy holds no prompts."
        elif why := list_not_here(name, part.conditions):
            self.why_not = f"The prompt cannot be shown: {why}."
        else:
            try:
                self._plan = reopen(run.folder, name)
            except ListError as error:
                self.why_not = f"The prompt cannot be shown: {error}"
            else:
                self._items = self._plan.list.by_id
        if part.leak_policy != "open" and not with_prompts:
            self.why_not = (
                f"The prompt is not in this file: {WHY_NOT[part.leak_policy]}. "
                f"`qualeval show {run.folder} {name} ID` shows it on this machine."
            )

    def stratum(self, id: str) -> str:
        """The stratum of an item, which an answer would tell; empty where it is not known."""
        item = self._items.get(id)
        return (item.stratum or "") if item else ""

    def of(self, id: str) -> str | None:
        """What was asked for an item, the messages one after another."""
        item = self._items.get(id)
        if item is None or self._plan is None or self.why_not:
            return None
        return "\n\n".join(str(one["content"]) for one in self._plan.task.messages(item))
