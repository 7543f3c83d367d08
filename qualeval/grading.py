"""Raw replies -> answers -> summary of a part, from the files of a run alone; no server."""

from collections.abc import Iterator, Mapping

from qualeval.errors import RunFolderError
from qualeval.plan import PartPlan
from qualeval.records import Answer, Item, RawReply, RunSummary, Summary, key_of, to_json
from qualeval.runfolder import RawReplies, RunFolder, read_contract, read_failures
from qualeval.summarize import summarize, summarize_run
from qualeval.table import markdown_table
from qualeval.tasks.base import Task


def graded(task: Task, items: Mapping[str, Item], replies: Iterator[RawReply]) -> Iterator[Answer]:
    """Each reply with its verdict."""
    for reply in replies:
        item = items[str(reply.id)]
        yield Answer.of_verdict(reply, item, task.grade(item, reply.completion()))


def finish_part(files: RunFolder, plan: PartPlan, label: str) -> Summary:
    """Grade all replies on disk, write `<part>.jsonl` in list order and `<part>.summary.json`."""
    contract = read_contract(files.file(f"{plan.name}.contract.json"))
    if contract is None:
        raise RunFolderError(f"{files.path}: part '{plan.name}' has no contract; run it first")
    replies = RawReplies(files.file(f"{plan.name}.gen.jsonl"))
    failures = read_failures(files.file(f"{plan.name}.errors.jsonl"))
    items = {str(item.id): item for item in plan.list.items}
    keys = (key_of(id, repeat) for repeat in range(plan.repeats) for id in items)
    with files.replace(f"{plan.name}.jsonl") as line:

        def answers() -> Iterator[Answer]:
            for answer in graded(plan.task, items, replies.get(keys)):
                line(to_json(answer))
                yield answer

        open_failures = {key: f for key, f in failures.items() if key not in replies}
        summary = summarize(plan.task, label, contract, answers(), open_failures)
    files.write(f"{plan.name}.summary.json", summary.model_dump_json(indent=2))
    return summary


def write_run_summary(
    files: RunFolder, label: str, job: Mapping[str, Summary | None]
) -> RunSummary:
    """Write `summary.json` and `summary.md`: these parts, in the order of the table."""
    whole = summarize_run(label, {name: part for name, part in job.items() if part is not None})
    files.write("summary.json", whole.model_dump_json(indent=2))
    files.write("summary.md", markdown_table(whole))
    return whole
