"""The contract of a part: every condition that could move its number, and who ran it when.

Conditions must be equal for rows to share a file; sessions never refuse anything.
"""

from collections.abc import Iterator
from typing import Literal

from pydantic import JsonValue, ValidationError

from qualeval import __version__
from qualeval.card import Card, Dialect
from qualeval.errors import ContractError, RunFolderError
from qualeval.plan import PartPlan
from qualeval.records import (
    SUITE,
    Contract,
    Json,
    Record,
    Session,
    ThinkingMode,
    now,
    sha256_of,
    sha256_text,
)

PROMPT_CACHE = {
    "vllm": "off: a fresh cache_salt in every request",
    "sglang": "off: a fresh cache_salt in every request",
    "llama.cpp": "off: cache_prompt false in every request",
    "openai": "prompt cache not controlled",
}


class ListCondition(Record):
    """Which questions, in which order."""

    id: str
    kind: Literal["official", "sample", "file"]
    sha256: str
    items: int
    rows: dict[str, int] = {}
    """Items of each row of the table, where a part has several."""
    release: str | None = None
    dates: tuple[str, str] | None = None
    """Published files and first and last date of a list of the newest items."""


class PromptCondition(Record):
    """How they are put."""

    template: str
    sha256: str


class Conditions(Record):
    """All that could move the number. Two runs with equal conditions are comparable."""

    suite: str
    part: str
    list: ListCondition
    prompt: PromptCondition
    request: Json
    sampling: Json
    sampling_source: str | None
    seed: int
    repeats: int
    max_tokens: int
    limits: tuple[str, ...]
    thinking: ThinkingMode
    thinking_object: Json | None
    prompt_cache: str
    model: str
    dialect: Dialect
    grader: str
    grader_notes: tuple[str, ...] = ()
    tokenizer_sha256: str | None = None
    token_counts: str | None = None
    sandbox: str | None = None


def conditions_of(plan: PartPlan, sampling_source: str | None) -> Conditions:
    """The conditions under which `plan` asks, with sampling from where the card says."""
    request = plan.fixed_fields() | {"seed": f"{plan.seed} + repeat"}
    if plan.salted:
        request["cache_salt"] = "fresh for every request"
    return Conditions(
        suite=SUITE,
        part=plan.name,
        list=ListCondition(
            id=plan.list.id,
            kind=plan.list.kind,
            sha256=plan.list.sha256,
            items=len(plan.list.items),
            rows=_rows_of(plan),
            release=plan.list.release,
            dates=plan.list.dates,
        ),
        prompt=PromptCondition(template=plan.task.template, sha256=sha256_text(plan.task.template)),
        request=request,
        sampling=plan.sampling,
        sampling_source=sampling_source,
        seed=plan.seed,
        repeats=plan.repeats,
        max_tokens=plan.max_tokens,
        limits=plan.limits,
        thinking=plan.thinking,
        thinking_object=plan.thinking_object,
        prompt_cache=PROMPT_CACHE[plan.dialect],
        model=plan.model,
        dialect=plan.dialect,
        grader=plan.task.grader,
        grader_notes=plan.task.grader_notes,
        tokenizer_sha256=plan.list.tokenizer_sha256,
        token_counts=plan.list.token_counts,
        sandbox=plan.sandbox,
    )


def conditions_in(contract: Contract, where: str) -> Conditions:
    """The conditions of a contract from disk; `where` opens the message of a RunFolderError."""
    try:
        return Conditions.model_validate(contract.conditions)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        field = ".".join(map(str, ("conditions", *fault["loc"])))
        raise RunFolderError(
            f"{where}: field '{field}': {fault['msg']}; "
            f"it is no contract of this version of qualeval ({__version__})"
        ) from None


def _rows_of(plan: PartPlan) -> dict[str, int]:
    rows: dict[str, int] = {}
    for item in plan.list.items:
        row = plan.task.row_of(item.id)
        if row is not None:
            rows[row] = rows.get(row, 0) + 1
    return rows


def new_contract(conditions: Conditions) -> Contract:
    """A contract that no session has worked on yet."""
    fields = conditions.model_dump(mode="json")
    return Contract(conditions=fields, conditions_sha256=sha256_of(fields))


def same_conditions(there: Contract, here: Contract, where: str) -> None:
    """Raise ContractError listing every field that differs: rows of two settings share no file."""
    faults = list(differences(there.conditions, here.conditions))
    if faults:
        only_sandbox = all(fault.startswith("sandbox: ") for fault in faults)
        raise ContractError(
            f"{where}: this run was started under other conditions:\n"
            + "\n".join(f"  {fault}" for fault in faults)
            + "\nuse another job name (--job NAME), or undo the change"
            + "; or judge its programs in this sandbox: qualeval grade RUN" * only_sandbox
        )


def differences(there: JsonValue, here: JsonValue, path: str = "") -> Iterator[str]:
    """One line `field: there X, here Y` for each value that differs."""
    if isinstance(there, dict) and isinstance(here, dict):
        for name in [*there, *(n for n in here if n not in there)]:
            inner = f"{path}.{name}" if path else name
            if name in there and name in here:
                yield from differences(there[name], here[name], inner)
            else:
                sides = [_short(side[name]) if name in side else "none" for side in (there, here)]
                yield f"{inner}: there {sides[0]}, here {sides[1]}"
    elif there != here or isinstance(there, bool) != isinstance(here, bool):
        yield f"{path}: there {_short(there)}, here {_short(here)}"


def _short(value: JsonValue) -> str:
    text = repr(value)
    return text if len(text) <= 120 else text[:117] + "..."


def new_session(
    card: Card,
    *,
    command: str,
    items: int,
    slots: int,
    slots_source: str | None,
    schedule: str,
    alone: bool,
    server: Json,
) -> Session:
    """A session that starts now."""
    endpoints = tuple(place.base_url for place in card.server.places())
    return Session(
        command=command,
        started=now(),
        qualeval=__version__,
        card_sha256=card.sha256,
        items=items,
        slots=slots,
        slots_source=slots_source,
        schedule=schedule,
        alone=alone,
        endpoints=endpoints if not card.server.embedded else ("embedded",),
        server=server,
        setup=card.setup.model_dump(mode="json") if card.setup else None,
    )


def with_session(contract: Contract, session: Session) -> Contract:
    """The contract with one more session."""
    return contract.model_copy(update={"sessions": (*contract.sessions, session)})


def with_last_session(contract: Contract, session: Session) -> Contract:
    """The contract with its last session replaced, as when it ends."""
    return contract.model_copy(update={"sessions": (*contract.sessions[:-1], session)})
