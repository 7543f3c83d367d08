"""Grade replies that were made elsewhere: a file of replies, a file of items, one verdict a line.

The same rules as in a run: reasoning is taken out first, a cut-off answer is wrong. Nothing is
written unless every line could be read.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from qualeval.code_workers import CodeWorkers, sandbox_for, verdict_of
from qualeval.errors import ListError, ReplyFileError, RequestError
from qualeval.list_rows import rows_of_user_file
from qualeval.lists import items_of_file, official_list
from qualeval.records import INFRA_ERROR, Completion, CutBy, Item, ItemId, Json, Verdict
from qualeval.reply import cut_by, read_message
from qualeval.tasks import TASKS
from qualeval.tasks.base import Row, Task
from qualeval.tasks.lcb import PROGRAM_TASK

NO_LIMIT = 1 << 62
"""A reply file does not say how many tokens were allowed; only its finish_reason tells a cut."""


@dataclass(frozen=True, slots=True)
class GradedReply:
    """One line of the output. `verdict` is None where the sandbox gave none; `sandbox` is what
    programs were run in.
    """

    id: ItemId
    verdict: Verdict | None
    sandbox: str | None = None

    def fields(self, task: Task) -> Json:
        """The fields that the task's output has, in their order."""
        known: Json = {"verdict": INFRA_ERROR, "sandbox": self.sandbox}
        if self.verdict is not None:
            known |= {**(self.verdict.details or {}), **self.verdict.model_dump(mode="python")}
        return {"id": self.id} | {name: known.get(name) for name in task.verdict_fields}


def grade_file(
    part: str, replies: Path, items: Path | None, *, unsafe_no_sandbox: bool = False
) -> list[GradedReply]:
    """Verdicts on all replies, in their order; items without a reply are left out.

    Raises ReplyFileError or ListError naming file and line, NoSandboxError where programs have to
    be run and nothing can hold them.
    """
    task = TASKS[part]
    known = items_of_file(task, items) if items else official_list(task).items
    by_id = {str(item.id): item for item in known}
    read = list(_completions(task, by_id, replies))
    sandbox = sandbox_for([part], unsafe=unsafe_no_sandbox)
    if sandbox is None:
        return [GradedReply(item.id, task.grade(item, said)) for task, item, said in read]
    with CodeWorkers(sandbox, lambda message: None) as workers:
        workers.use_all_cores()
        begun = [(item.id, workers.begin(task, item, said, 0)) for task, item, said in read]
        return [GradedReply(id, verdict_of(future), sandbox.name) for id, future in begun]


def _completions(
    task: Task, items: dict[str, Item], replies: Path
) -> Iterator[tuple[Task, Item, Completion]]:
    """The task that grades each reply, its item, and the reply."""
    seen: set[str] = set()
    try:
        for number, row in rows_of_user_file(replies):
            where = f"{replies}:{number}"
            id = row.get("id")
            if not isinstance(id, int | str) or isinstance(id, bool):
                raise ReplyFileError(f"{where}: field 'id' must be a text or a whole number")
            if str(id) not in items:
                raise ReplyFileError(f"{where}: id {id!r} is in no item of the list")
            if str(id) in seen:
                raise ReplyFileError(f"{where}: id {id!r} occurs twice")
            seen.add(str(id))
            if task.runs_code and "text" not in row and "code" in row:
                yield PROGRAM_TASK, items[str(id)], _program(row, where)
            else:
                yield task, items[str(id)], completion_of(row, where)
    except ListError as error:
        raise ReplyFileError(str(error)) from None


def _program(row: Row, where: str) -> Completion:
    """The completion that a line {"id", "code", "finish_reason"?} stands for: nothing is looked for
    in a program, and nothing taken out of it.
    """
    code, finish_reason = row["code"], row.get("finish_reason") or "stop"
    for name, value in (("code", code), ("finish_reason", finish_reason)):
        if not isinstance(value, str):
            raise ReplyFileError(f"{where}: field '{name}' must be a text")
    cut = _cut_by(finish_reason, where, unclosed=False)
    return Completion(text=code, finish_reason=finish_reason, cut_by=cut)


def completion_of(row: Row, where: str) -> Completion:
    """The completion that a line {"id", "text", "finish_reason"?, "reasoning"?} stands for.

    A missing or null finish_reason means `stop`. Raises ReplyFileError.
    """
    texts = {}
    for name in ("text", "finish_reason", "reasoning"):
        texts[name] = row.get(name)
        if texts[name] is not None and not isinstance(texts[name], str):
            raise ReplyFileError(f"{where}: field '{name}' must be a text or null")
    if "text" not in row:
        raise ReplyFileError(f"{where}: field 'text' is missing (null stands for no answer)")
    message = read_message({"content": texts["text"], "reasoning": texts["reasoning"]})
    finish_reason = texts["finish_reason"] or "stop"
    return Completion(
        text=message.text,
        reasoning=message.reasoning,
        reasoning_source=message.reasoning_source,
        finish_reason=finish_reason,
        cut_by=_cut_by(finish_reason, where, unclosed=message.unclosed),
    )


def _cut_by(finish_reason: str, where: str, *, unclosed: bool) -> CutBy | None:
    try:
        return cut_by(finish_reason, None, NO_LIMIT, unclosed)
    except RequestError as error:
        raise ReplyFileError(
            f"{where}: {error}: such a reply is a failed request, not an answer; leave it out"
        ) from None


def output_lines(task: Task, graded: list[GradedReply]) -> str:
    """The output file: one JSON object a line, pure ASCII."""
    return "".join(json.dumps(reply.fields(task)) + "\n" for reply in graded)
