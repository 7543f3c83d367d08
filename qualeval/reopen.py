"""A run folder that is there already -> the plans of its parts, without card path or server."""

from pathlib import Path

from qualeval.contract import Conditions, conditions_in
from qualeval.errors import ListError, RunFolderError
from qualeval.lists import load_list
from qualeval.plan import PartPlan
from qualeval.records import Contract
from qualeval.runfolder import read_contract
from qualeval.tasks import TASKS


def parts_of(folder: Path) -> tuple[str, ...]:
    """Names of the parts that have a contract, in the order of the table."""
    return tuple(name for name in TASKS if (folder / f"{name}.contract.json").exists())


def contract_of(run: Path, part: str) -> tuple[Contract, Conditions]:
    """The contract of a part that was started. Raises RunFolderError."""
    path = run / f"{part}.contract.json"
    contract = read_contract(path)
    if contract is None:
        raise RunFolderError(f"{run}: part '{part}' has no contract; it was never started")
    return contract, conditions_in(contract, str(path))


def reopen(folder: Path, part: str) -> PartPlan:
    """The plan that a part of a run was asked by, made of its contract alone.

    Its list is the package's, the cache's, or the copy kept in the run. Raises RunFolderError when
    the part was never started, ListError when the list is not at hand or is not the one asked.
    """
    _, conditions = contract_of(folder, part)
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
