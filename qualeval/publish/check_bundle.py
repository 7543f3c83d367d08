"""`qualeval verify BUNDLE`: a bundle checked by whoever has nothing else.

    manifest.json -> every file is there, is the one that is meant, and there is no other
    answers       -> the summary of each part is counted again from the verdicts
    answers, list -> what was not redacted is graded again, where the list is on this machine

How many answers could not be graded again, and why, is said; it is no difference.
"""

import json
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path

from qualeval.code_workers import CodeWorkers, verdict_of, workers_to_check
from qualeval.errors import ListError, RunFolderError
from qualeval.findings import Findings, lines_of, number_of
from qualeval.publish.manifest import MANIFEST, REPORT
from qualeval.publish.publishing import is_bundle
from qualeval.publish.schema import PublishedAnswer
from qualeval.publish.sources import file_sha256
from qualeval.recheck import label_of, list_not_here, object_in, started_parts
from qualeval.records import Answer, Item, Json, Summary, Verdict, sha256_of
from qualeval.reopen import contract_of, reopen
from qualeval.runfolder import read_lines
from qualeval.summarize import summarize, summarize_run
from qualeval.tasks import TASKS

VERDICT = ("extracted", "rule", "right", "partial", "cut_off", "reason", "details")


@dataclass(slots=True)
class _Check:
    """One bundle under check."""

    bundle: Path
    found: Findings = field(default_factory=Findings)
    graded: int = 0
    not_graded: Counter[str] = field(default_factory=Counter)


def verify_bundle(bundle: Path) -> tuple[list[str], int]:
    """The differences of a bundle, a line each, what could not be graded again, and the exit code:
    0 when nothing differs, 1 when something does. Raises RunFolderError when it is no bundle.
    """
    if not is_bundle(bundle):
        raise RunFolderError(f"{bundle}: is no bundle: it holds no {MANIFEST} of one")
    check = _Check(bundle)
    found = check.found
    _check_files(check)
    summaries = {}
    names = started_parts(bundle) if any(bundle.glob("*.contract.json")) else ()
    for name in names:
        if not (bundle / f"{name}.jsonl").exists():
            found.notes.append(f"part '{name}': its answers are held back, nothing to count")
            continue
        found.parts += 1
        try:
            summaries[name] = _check_part(check, name)
        except RunFolderError as error:
            found.fault(str(error).replace(f"{bundle}/", ""), "", "")
    _check_run_summary(check, summaries)
    return _told(check)


def bundle_summary(bundle: Path, part: str) -> Summary:
    """The summary of a part counted from the verdicts in a bundle. Raises RunFolderError."""
    contract, _ = contract_of(bundle, part)
    label = _stored(bundle, part).get("label")
    answers = (record.answer() for record in _records(bundle, part))
    return summarize(TASKS[part], str(label or label_of(bundle)), contract, answers)


def _told(check: _Check) -> tuple[list[str], int]:
    found = check.found
    lines = lines_of(found.differences) + [f"note: {note}" for note in found.notes]
    for why, count in check.not_graded.items():
        lines.append(f"not graded again: {number_of(count, 'answer')}: {why}")
    counted = (
        f"{number_of(found.parts, 'part')}, {number_of(found.answers, 'answer')} counted, "
        f"{check.graded:,} graded again"
    )
    if left := check.not_graded.total():
        counted += f", {left:,} could not be"
    if found.differences:
        differ = "differs" if len(found.differences) == 1 else "differ"
        return [*lines, f"{counted}: {len(found.differences):,} {differ}"], 1
    return [*lines, f"{counted}: all equal"], 0


def _check_files(check: _Check) -> None:
    """Files against the manifest, in both directions."""
    listed = object_in(check.bundle / MANIFEST).get("files")
    if not isinstance(listed, dict):
        check.found.fault(MANIFEST, "", "files", "is no object")
        return
    there = {path.name for path in check.bundle.iterdir()} - {MANIFEST, REPORT}
    for name in sorted(there - set(listed)):
        check.found.fault(name, "", "is not in the manifest")
    for name, entry in listed.items():
        if not isinstance(entry, dict) or name not in there:
            check.found.fault(name, "", "is missing")
            continue
        path = check.bundle / name
        here: Json = {"sha256": file_sha256(path), "bytes": path.stat().st_size}
        stored: Json = {field: entry.get(field) for field in here}
        check.found.same(name, "manifest", stored, here)


def _check_part(check: _Check, part: str) -> Summary:
    """Count a part again, and grade again what can be."""
    contract, _ = contract_of(check.bundle, part)
    recomputed = {"conditions_sha256": sha256_of(contract.conditions)}
    stored: Json = {"conditions_sha256": contract.conditions_sha256}
    check.found.same(f"{part}.contract.json", "", stored, dict(recomputed))
    try:
        summary = bundle_summary(check.bundle, part)
    except (KeyError, TypeError, ValueError):
        raise RunFolderError(
            f"{part}.jsonl: its verdicts are not of the form of this part"
        ) from None
    check.found.answers += summary.answered
    if (check.bundle / f"{part}.summary.json").exists():
        there = _stored(check.bundle, part)
        check.found.same(f"{part}.summary.json", "", there, summary.model_dump(mode="json"))
    _grade_again(check, part)
    return summary


def _grade_again(check: _Check, part: str) -> None:
    items, why = _items(check.bundle, part)
    unchecked: list[str] = []
    with workers_to_check([part] if items else [], unchecked) as workers:
        if unchecked:
            items, why = {}, unchecked[0]
        _grade_all_again(check, part, items, why, workers)


def _grade_all_again(
    check: _Check,
    part: str,
    items: dict[str, Item],
    why: str | None,
    workers: CodeWorkers | None,
) -> None:
    if workers is not None:  # all at once, several at a time
        for record in _records(check.bundle, part):
            if record.whole and str(record.id) in items:
                _begin(part, record, items[str(record.id)], workers)
    for record in _records(check.bundle, part):
        item = items.get(str(record.id))
        if record.withheld or not record.whole:
            what = f"withheld ({record.withheld})" if record.withheld else "redacted"
            check.not_graded[f"part '{part}': {what}"] += 1
        elif item is None:
            check.not_graded[why or f"part '{part}': not in its list"] += 1
        else:
            verdict = _verdict(part, record, item, workers)
            if verdict is None:
                check.not_graded[f"part '{part}': the sandbox failed"] += 1
                continue
            check.graded += 1
            _compare(check, part, record, item, verdict)


def _verdict(
    part: str, record: PublishedAnswer, item: Item, workers: CodeWorkers | None
) -> Verdict | None:
    if workers is None:
        return TASKS[part].grade(item, record.answer().completion())
    return verdict_of(_begin(part, record, item, workers))


def _begin(part: str, record: PublishedAnswer, item: Item, workers: CodeWorkers) -> Future[Verdict]:
    completion = record.answer().completion()
    return workers.begin(TASKS[part], item, completion, record.repeat)


def _items(bundle: Path, part: str) -> tuple[dict[str, Item], str | None]:
    """The items of a part by id; or none, and why."""
    _, conditions = contract_of(bundle, part)
    if TASKS[part].maker is not None:
        return {}, f"part '{part}': its list was made for one model and is not in a bundle"
    if conditions.list.kind == "file":
        return {}, f"part '{part}': its own list is not in a bundle"
    if why := list_not_here(part, conditions):
        return {}, why
    if conditions.grader != TASKS[part].grader:
        return {}, f"part '{part}': graded by {conditions.grader}, here is {TASKS[part].grader}"
    try:
        plan = reopen(bundle, part)
    except ListError as error:
        return {}, str(error).replace(f"{bundle}: ", "")
    plan.task.prepare()
    return plan.list.by_id, None


def _compare(
    check: _Check, part: str, record: PublishedAnswer, item: Item, verdict: Verdict
) -> None:
    answer = Answer.of_verdict(record.answer(), item, verdict)
    made = TASKS[part].lasting(answer.model_dump(mode="json"))
    stored = TASKS[part].lasting(record.model_dump(mode="json"))
    redacted = {r.field.partition(".")[0].partition("[")[0] for r in record.redactions}
    for name in VERDICT:
        if name not in redacted:
            check.found.same(
                f"{part}.jsonl",
                f"id {record.id}",
                {name: stored[name]},
                {name: made[name]},
                gated=TASKS[part].source.gated,
            )


def _check_run_summary(check: _Check, summaries: dict[str, Summary]) -> None:
    path = check.bundle / "summary.json"
    if not path.exists():
        return
    stored = object_in(path)
    parts = stored.get("parts")
    if isinstance(parts, dict) and set(parts) == set(summaries):
        whole = summarize_run(str(stored.get("label")), summaries)
        check.found.same("summary.json", "", stored, whole.model_dump(mode="json"))
    else:
        check.found.notes.append("summary.json: has parts that cannot be counted again here")


def _records(bundle: Path, part: str) -> Iterator[PublishedAnswer]:
    for _, record in read_lines(bundle / f"{part}.jsonl", PublishedAnswer):
        yield record


def _stored(bundle: Path, part: str) -> Json:
    """The stored summary of a part; empty when it is not there."""
    try:
        stored: Json = json.loads((bundle / f"{part}.summary.json").read_bytes())
    except (OSError, ValueError):
        return {}
    return stored
