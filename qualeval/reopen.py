"""A run folder that is there already -> the plans of its parts, without card path or server."""

from pathlib import Path

from pydantic import ValidationError

from qualeval.contract import Conditions
from qualeval.errors import ListError, RunFolderError
from qualeval.lists import load_list
from qualeval.plan import PartPlan
from qualeval.records import Contract
from qualeval.runfolder import read_contract
from qualeval.tasks import TASKS


def parts_of(folder: Path) -> tuple[str, ...]:
    """Names of the parts that have a contract, in the order of the table."""
    return tuple(name for name in TASKS if (folder / f"{name}.contract.json").exists())


def stored_conditions(contract: Contract, where: str) -> Conditions:
    """The conditions of a contract from disk; `where` opens the message of a RunFolderError."""
    try:
        return Conditions.model_validate(contract.conditions)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        field = ".".join(map(str, ("conditions", *fault["loc"])))
        raise RunFolderError(f"{where}: field '{field}': {fault['msg']}") from None


def reopen(folder: Path, part: str) -> PartPlan:
    """The plan that a part of a run was asked by, made of its contract alone.

    Its list is the package's, the cache's, or the copy kept in the run. Raises RunFolderError when
    the part was never started, ListError when the list is not at hand or is not the one asked.
    """
    path = folder / f"{part}.contract.json"
    contract = read_contract(path)
    if contract is None:
        raise RunFolderError(f"{folder}: part '{part}' has no contract; it was never started")
    conditions = stored_conditions(contract, str(path))
    task = TASKS[part]
    kept = conditions.list.kind == "file" or task.maker is not None
    choice = f"{part}.items.jsonl" if kept else conditions.list.kind
    questions = load_list(task, choice, folder)
    if questions.sha256 != conditions.list.sha256:
        raise ListError(
            f"{folder}: part '{part}' was asked on list '{conditions.list.id}' with sha256 "
            f"{conditions.list.sha256[:12]}..., but the one at hand has {questions.sha256[:12]}..."
        )
    return PartPlan(
        task=task,
        list=questions,
        items=questions.items,
        model=conditions.model,
        dialect=conditions.dialect,
        max_tokens=conditions.max_tokens,
        seed=conditions.seed,
        sampling=conditions.sampling,
        thinking_object=conditions.thinking_object,
        repeats=conditions.repeats,
        limits=conditions.limits,
        sandbox=conditions.sandbox,
    )
