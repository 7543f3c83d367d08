"""Raw replies -> answers -> summary of a part, from the files of a run alone; no server."""

from collections.abc import Iterator, Mapping
from concurrent.futures import CancelledError, Future

from qualeval.code_workers import CodeWorkers
from qualeval.errors import RunFolderError, SandboxError
from qualeval.plan import PartPlan
from qualeval.records import (
    INFRA_ERROR,
    NOT_JUDGED,
    Answer,
    FailedRequest,
    RawReply,
    RunSummary,
    Summary,
    Verdict,
    to_json,
)
from qualeval.runfolder import RawReplies, RunFolder, read_contract, still_open
from qualeval.summarize import summarize, summarize_run
from qualeval.table import markdown_table


def graded(
    plan: PartPlan, replies: RawReplies, workers: CodeWorkers | None = None
) -> Iterator[Answer | FailedRequest]:
    """Each reply to an item of the list with its verdict, in list order.

    Programs are run by the workers, all begun at once. A FailedRequest stands for an answer whose
    verdict could not be had, or was not waited for.
    """
    items = plan.list.by_id
    if not plan.task.runs_code:
        for reply in replies.get(plan.keys()):
            item = items[str(reply.id)]
            yield Answer.of_verdict(reply, item, plan.task.grade(item, reply.completion()))
        return
    if not replies:
        return
    assert workers is not None, f"part '{plan.name}' runs programs"
    for reply, future in begun(plan, replies, workers):
        try:
            yield Answer.of_verdict(reply, items[str(reply.id)], future.result())
        except SandboxError as error:
            yield FailedRequest.unjudged(reply, INFRA_ERROR, str(error)[:200])
        except CancelledError:
            why = "the run ended before its program was judged"
            yield FailedRequest.unjudged(reply, NOT_JUDGED, why)


def begun(
    plan: PartPlan, replies: RawReplies, workers: CodeWorkers, *, tell: bool = False
) -> list[tuple[RawReply, Future[Verdict]]]:
    """Each reply with its verdict to come, in list order; what was begun before is not again. With
    `tell` those verdicts come up in `workers.told`.
    """
    items = plan.list.by_id
    return [
        (
            reply,
            workers.begin(
                plan.task, items[str(reply.id)], reply.completion(), reply.repeat, tell=tell
            ),
        )
        for reply in replies.get(plan.keys())
    ]


def finish_part(
    files: RunFolder, plan: PartPlan, label: str, workers: CodeWorkers | None = None
) -> Summary:
    """Grade all replies on disk, write `<part>.jsonl` in list order and `<part>.summary.json`.

    An answer whose program could not be run has no line, and leaves the part incomplete.
    """
    contract = read_contract(files.file(f"{plan.name}.contract.json"))
    if contract is None:
        raise RunFolderError(f"{files.path}: part '{plan.name}' has no contract; run it first")
    replies = RawReplies(files.file(f"{plan.name}.gen.jsonl"))
    given_up = still_open(files.path, plan.name, replies)
    with files.replace(f"{plan.name}.jsonl") as line:

        def outcomes() -> Iterator[Answer | FailedRequest]:
            for outcome in graded(plan, replies, workers):
                if isinstance(outcome, Answer):
                    line(to_json(outcome))
                else:
                    files.log(f"no verdict on id {outcome.id}: {outcome.message}", plan.name)
                yield outcome
            yield from given_up

        summary = summarize(plan.task, label, contract, outcomes())
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
