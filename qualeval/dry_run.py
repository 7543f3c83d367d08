"""What a run would send, written down without sending it."""

from pathlib import Path

from qualeval import contract as contracts
from qualeval.card import Card
from qualeval.code_workers import sandbox_for
from qualeval.job import RunOptions, run_path
from qualeval.made_list import Making
from qualeval.plan import chosen_parts, plan_part
from qualeval.records import to_json
from qualeval.runfolder import RunFolder


def dry_run(card: Card, folder: Path, options: RunOptions) -> dict[Path, int]:
    """Write `dry-run/<part>.requests.jsonl` and contracts below the job's folder.

    Returns the number of requests in each file. Nothing is sent, and nothing outside the folder
    `dry-run` is touched. A fresh salt, where one is sent, is named in the contract.
    """
    names = chosen_parts(options.parts)
    making = Making(kept_in=run_path(card, options, names))
    sandbox = sandbox_for(names, unsafe=options.unsafe_no_sandbox)
    held_by = sandbox.name if sandbox else None
    plans = [
        plan_part(card, name, folder, options.lists, options.limit, making, held_by)
        for name in names
    ]
    written = {}
    with RunFolder(run_path(card, options, names) / "dry-run") as files:
        for plan in plans:
            contract = contracts.new_contract(contracts.conditions_of(plan, card.sampling_source))
            files.write(f"{plan.name}.contract.json", contract.model_dump_json(indent=2))
            with files.replace(f"{plan.name}.requests.jsonl") as line:
                for request in plan.requests():
                    key = {"id": request.id, "repeat": request.repeat}
                    line(to_json({**key, "request_sha256": request.sha256, "body": request.body}))
            written[files.file(f"{plan.name}.requests.jsonl")] = len(plan.items) * plan.repeats
    return written
