"""`qualeval grade RUN`: grade again from the raw replies; no server, no card.

Writes `<part>.jsonl`, `<part>.summary.json`, `summary.json` and `summary.md`; raw replies, errors,
lists and the card stay as they are. The contract is touched in two cases only: where the grader has
another version than the one that graded before, or programs are run in another sandbox. Then the
contract's `grader` (with the suite it belongs to), `sandbox` and the hash of the conditions become
those of the verdicts that now stand in `<part>.jsonl`, and run.log keeps the old name. Any other
condition that this program would set differently is refused: the answers were given under it.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from qualeval.code_workers import CodeWorkers, sandbox_for
from qualeval.contract import differences, new_contract
from qualeval.errors import ContractError, OptionError
from qualeval.grading import finish_part, write_run_summary
from qualeval.plan import chosen_parts
from qualeval.recheck import (
    AnswerLines,
    Key,
    StoredPart,
    conditions_now,
    label_of,
    open_part,
    started_parts,
    tells_its_limit,
)
from qualeval.records import Json, RawReply, count_words, sha256_of
from qualeval.runfolder import RunFolder, read_summary
from qualeval.summarize import summarize_run
from qualeval.table import text_table
from qualeval.tasks import TASKS
from qualeval.tasks.base import Task

NAMED = 5
"""Ids that are named for each kind of change."""

DECIDED = ("right", "cut_off", "rule", "extracted", "partial")
"""What makes a verdict; `reason` and `details` explain it."""


@dataclass(frozen=True, slots=True)
class Graded:
    """A stored answer, reduced to what tells whether and how it changes. Holds no text."""

    verdict: tuple[JsonValue, ...]
    explanation: str
    reply: str

    @classmethod
    def of(cls, task: Task, answer: Json) -> "Graded":
        """What a line of `<part>.jsonl` says; times that were measured are no part of it."""
        lasting = task.lasting(answer)
        return cls(
            verdict=tuple(answer.get(name) for name in DECIDED),
            explanation=sha256_of([lasting.get("reason"), lasting.get("details")]),
            reply=sha256_of({name: answer.get(name) for name in RawReply.model_fields}),
        )

    @property
    def words(self) -> str:
        """`right (bare)`, as it is printed; a rule that nobody wrote is cut short."""
        right, _, rule, _, _ = self.verdict
        said = "right" if right is True else "wrong" if right is False else "no verdict"
        return f"{said} ({str(rule)[:40]})".encode("ascii", "backslashreplace").decode()


def grade_command(
    run: Path, parts: str | None, *, unsafe_no_sandbox: bool = False
) -> tuple[list[str], int]:
    """Grade the parts of a run again: what changed and the table, and the exit code.

    0 when all of them are complete, 1 when one is not. Raises QualevalError (exit 2) before
    anything is written when a part, its list or its conditions do not allow it.
    """
    names = _chosen(run, parts)
    stored = {name: open_part(run, name) for name in names}
    for name, part in stored.items():
        _refuse_other_conditions(run, name, part)
    sandbox = sandbox_for(names, unsafe=unsafe_no_sandbox)
    lines: list[str] = []
    label = label_of(run)
    with ExitStack() as stack:
        files = stack.enter_context(RunFolder(run))
        workers = stack.enter_context(CodeWorkers(sandbox, files.log)) if sandbox else None
        if workers is not None:
            workers.use_all_cores()
        job = {name: None if name in names else read_summary(run, name) for name in TASKS}
        summaries = {}
        for name, part in stored.items():
            part.plan.task.prepare()
            before = dict(_graded(run, name))
            held_by = sandbox.name if sandbox and part.plan.task.runs_code else None
            old = _take_this_grader(files, name, part, held_by)
            summaries[name] = finish_part(files, part.plan, label, workers)
            grader = part.plan.task.grader
            why = f"{grader} in place of {old}" if old else f"that is what {grader} says"
            lines += _changes(name, before, dict(_graded(run, name)), why)
        whole = write_run_summary(files, label, job | summaries)
    asked = summarize_run(label, summaries)
    open_parts = [part for part in asked.parts.values() if part.status != "ok"]
    lines += ["", *text_table(whole if parts is None else asked).splitlines()]
    lines += [f"{part.part} is incomplete: {part.incomplete_because}" for part in open_parts]
    return lines, 1 if open_parts else 0


def _chosen(run: Path, parts: str | None) -> tuple[str, ...]:
    there = started_parts(run)
    names = there if parts is None else chosen_parts(parts)
    for name in names:
        if name not in there:
            raise OptionError(
                f"--parts: part '{name}' was never run in {run}; there are: {', '.join(there)}"
            )
    return names


def _refuse_other_conditions(run: Path, name: str, part: StoredPart) -> None:
    """Raise ContractError unless this program asks as the run did, whatever its grader is."""
    here = conditions_now(part.conditions, part.plan)
    free = {"grader", "grader_notes"}
    if part.conditions.grader != here.grader:
        free.add("suite")  # a new verdict rule raises it
    faults = list(
        differences(
            part.conditions.model_dump(mode="json", exclude=free),
            here.model_dump(mode="json", exclude=free),
        )
    )
    if not tells_its_limit(name, part.conditions):
        faults.append(f"max_tokens: the method's is {part.plan.task.max_tokens}")
    if faults:
        raise ContractError(
            f"{run / name}.contract.json: this program does not ask as this run did, so its "
            "answers cannot be graded as its own; use the version of qualeval that made the run:\n"
            + "\n".join(f"  {fault}" for fault in faults)
        )


def _take_this_grader(
    files: RunFolder, name: str, part: StoredPart, sandbox: str | None
) -> str | None:
    """Put this program's grader into the contract, and what programs are run in now; the name of
    the old grader if it was another.

    The contract comes before the answers: killed in between, the next `grade` makes it true.
    """
    old, here = part.conditions.grader, conditions_now(part.conditions, part.plan)
    here = here.model_copy(update={"sandbox": sandbox})
    if old == here.grader and part.conditions.sandbox == sandbox:
        return None
    renewed = new_contract(here).model_copy(update={"sessions": part.contract.sessions})
    now, before = _in(sandbox), _in(part.conditions.sandbox)
    files.log(
        f"graded again with {here.grader} ({here.suite}){now} in place of {old}{before}", name
    )
    files.write(f"{name}.contract.json", renewed.model_dump_json(indent=2))
    return old if old != here.grader else None


def _in(sandbox: str | None) -> str:
    return f", in {sandbox}" if sandbox else ""


def _graded(run: Path, name: str) -> Iterator[tuple[Key, Graded]]:
    lines = AnswerLines(run / f"{name}.jsonl")
    for key in lines.in_order():
        answer = lines.get(key)
        if answer is not None:
            yield key, Graded.of(TASKS[name], answer)


def _changes(
    name: str, before: Mapping[Key, Graded], after: Mapping[Key, Graded], why: str
) -> list[str]:
    """How many verdicts changed, from what to what and why."""
    moved: dict[str, list[str]] = {}
    for key, new in after.items():
        old = before.get(key)
        if old is not None and old.verdict != new.verdict:
            cause = why if old.reply == new.reply else "the stored answer was not its raw reply"
            moved.setdefault(f"{old.words} -> {new.words}: {cause}", []).append(key[0])
    known = [key for key in after if key in before]
    total = sum(map(len, moved.values()))
    lines = [f"{name}: {total or 'none'} of {len(known)} verdicts changed"]
    kinds = count_words([kind for kind, ids in moved.items() for _ in ids])
    for kind, count in kinds.items():
        more = f" and {count - NAMED} more" if count > NAMED else ""
        lines.append(f"  {count} x {kind}; id {', '.join(moved[kind][:NAMED])}{more}")
    kept = [key for key in known if before[key].verdict == after[key].verdict]
    others = (
        (
            sum(before[key].reply != after[key].reply for key in kept),
            "answer was not its raw reply and is again",
            "answers were not their raw replies and are again",
        ),
        (
            sum(before[key].explanation != after[key].explanation for key in kept),
            "reason is worded anew",
            "reasons are worded anew",
        ),
        (
            len(after.keys() - before.keys()),
            "answer had no verdict before",
            "answers had no verdict before",
        ),
        (
            len(before.keys() - after.keys()),
            "verdict had no raw reply and is gone",
            "verdicts had no raw reply and are gone",
        ),
    )
    return lines + [f"  {n} {one if n == 1 else many}" for n, one, many in others if n]
