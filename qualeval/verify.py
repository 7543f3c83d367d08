"""`qualeval verify RUN`: every number and hash of a run made again from its raw files.

    list + contract -> requests      their sha256 must stand in the raw replies
    raw replies + grader -> answers  must be the lines of <part>.jsonl
    answers + contract -> summary    must be <part>.summary.json, summary.json, summary.md

Nothing is written and nothing is fetched. What is stored is taken as it stands in the file: a
number written as text, a name given twice, an unknown field are differences too. No text of a
question or a reply is ever shown, only its length and hash.
"""

import json
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import suppress
from itertools import chain, zip_longest
from pathlib import Path

from pydantic import ValidationError

from qualeval import __version__
from qualeval.code_workers import CodeWorkers, verdict_of, workers_to_check
from qualeval.contract import Conditions
from qualeval.errors import ListError, RequestError, RunFolderError
from qualeval.findings import (
    NOTHING,
    SHOWN_CHARACTERS,
    TEXTS,
    Findings,
    equal,
    excerpts,
    leaves,
    lines_of,
    number_of,
)
from qualeval.lists import pin_of
from qualeval.plan import PartPlan
from qualeval.recheck import (
    AnswerLines,
    Key,
    conditions_now,
    is_torn,
    label_of,
    list_not_here,
    object_in,
    started_parts,
    tells_its_limit,
)
from qualeval.records import (
    Answer,
    CutBy,
    FailedRequest,
    Item,
    Json,
    RawReply,
    RunSummary,
    Summary,
    Verdict,
    key_of,
    sha256_of,
)
from qualeval.reopen import contract_of, reopen
from qualeval.reply import cut_by
from qualeval.runfolder import RawReplies, read_lines, still_open
from qualeval.summarize import summarize, summarize_run
from qualeval.table import markdown_table
from qualeval.tasks import TASKS


def verify_command(run: Path) -> tuple[list[str], int]:
    """The differences of a run, a line each, then what they come to; and the exit code.

    0: everything was checked and is equal. 1: something differs, or could not be checked because
    the questions or the grader are not at hand; that is named. Raises RunFolderError (exit 2) when
    the folder is no run.
    """
    found = verify(run)
    lines = lines_of(found.differences)
    lines += [f"not checked: {what}" for what in found.unchecked]
    lines += [f"note: {what}" for what in found.notes]
    counted = (
        f"{number_of(found.parts, 'part')}, {number_of(found.answers, 'answer')}, "
        f"{number_of(found.numbers, 'number')} recomputed"
    )
    if found.differences:
        differ = "differs" if len(found.differences) == 1 else "differ"
        first = f"{len(found.differences):,} {differ}, first {found.differences[0]}"
        return [*lines, f"{counted}: {first}"], 1
    if found.unchecked:
        return [*lines, f"{counted}: no difference in what could be checked"], 1
    return [*lines, f"{counted}: all equal"], 0


def verify(run: Path) -> Findings:
    """Compare everything that a run stores with what its raw files give. Raises RunFolderError."""
    names, found = started_parts(run), Findings()
    summaries = {}
    with workers_to_check(names, found.unchecked) as workers:
        for name in names:
            found.parts += 1
            try:
                summary = _Part(run, name, found, workers).verify()
            except RunFolderError as error:
                found.fault(_in_run(run, error), "", "")
                continue
            if summary is not None:
                summaries[name] = summary
    _check_strays(run, names, found)
    _check_run(run, summaries, found)
    return found


def _in_run(run: Path, error: Exception) -> str:
    """The message of an error, its path below the run."""
    return str(error).replace(f"{run}/", "")


def _check_strays(run: Path, names: tuple[str, ...], found: Findings) -> None:
    """Files of parts that have no contract, and parts that only another version knows."""
    for contract in sorted(run.glob("*.contract.json")):
        name = contract.name.removesuffix(".contract.json")
        if name not in TASKS:
            found.unchecked.append(f"part '{name}' is not in this version of qualeval")
    for name in TASKS:
        if name in names:
            continue
        contract = run / f"{name}.contract.json"
        for kind in ("gen.jsonl", "jsonl", "summary.json"):
            if (run / f"{name}.{kind}").exists() and not contract.exists():
                found.fault(f"{name}.{kind}", "", f"is there without {contract.name}")


class _Part:
    """One part under check."""

    def __init__(self, run: Path, name: str, found: Findings, workers: CodeWorkers | None) -> None:
        self.run, self.name, self.found, self.workers = run, name, found, workers
        self.task = TASKS[name]
        self.gen, self.file = f"{name}.gen.jsonl", f"{name}.jsonl"
        self.contract, self.conditions = contract_of(run, name)
        self.plan: PartPlan | None = None
        self.items: Mapping[str, Item] = {}
        self.same_prompts = self.same_grader = False
        self.answers = AnswerLines(run / self.file)

    def verify(self) -> Summary | None:
        """Check everything; the summary that the part should have, where one can be made."""
        self._check_contract()
        self._open_list()
        known = self._known_keys()
        self._check_raw(known)
        self._check_failures(known)
        self._check_answer_lines(known)
        replies = RawReplies(self.run / self.gen)
        keys = known or self.answers.in_order()
        given_up = still_open(self.run, self.name, replies)
        try:
            answers = self._recomputed(replies, keys)
            outcomes = chain[Answer | FailedRequest](answers, given_up)
            summary = summarize(self.task, self._label(), self.contract, outcomes)
        except (KeyError, TypeError, ValueError):
            if self.same_grader and self.plan is not None:
                raise
            # Verdicts could not be made again, and the stored ones are not of this task's form.
            self.found.fault(self.file, "", "details lack what this part's figures are made of")
            return None
        self._check_summary(summary)
        return summary

    # What was asked

    def _check_contract(self) -> None:
        file = f"{self.name}.contract.json"
        stored, recomputed = self.contract.conditions_sha256, sha256_of(self.contract.conditions)
        self.found.same(file, "", {"conditions_sha256": stored}, {"conditions_sha256": recomputed})
        if not tells_its_limit(self.name, self.conditions):
            text = f"{list(self.conditions.limits)} with max_tokens {self.conditions.max_tokens}"
            self.found.fault(file, "", "conditions.limits", f"stored {text}, which does not fit")
        for session in self.contract.sessions[-1:]:
            if session.qualeval != __version__:
                self.found.notes.append(
                    f"{self.name} was run by qualeval {session.qualeval}, this is {__version__}"
                )

    def _open_list(self) -> None:
        """Find the questions; say what cannot be checked without them."""
        here = self.conditions.list
        if why := list_not_here(self.name, self.conditions):
            self.found.unchecked.append(f"requests, verdicts, keys. {why}")
            return
        try:
            self.plan = reopen(self.run, self.name)
        except ListError as error:
            self.found.fault(f"{self.name}: list '{here.id}'", "", _in_run(self.run, error))
            self.found.unchecked.append(
                f"part '{self.name}': requests, verdicts, keys: its list is not the one asked"
            )
            return
        self.items = self.plan.list.by_id
        self.task.prepare()
        self._compare_conditions(conditions_now(self.conditions, self.plan))

    def _compare_conditions(self, now: Conditions) -> None:
        """Compare the conditions with those of this program; another version's are its own."""
        there, stored = self.conditions, self.conditions.model_dump(mode="json")
        recomputed = now.model_dump(mode="json")
        self.same_grader = there.grader == now.grader
        self.same_prompts = True
        if there.suite != now.suite or not self.same_grader:
            ran, is_now = f"{there.suite}, {there.grader}", f"{now.suite}, {now.grader}"
            self.found.unchecked.append(
                f"part '{self.name}' is of {ran}, this program of {is_now}: what that changed"
            )
            self.same_prompts = there.prompt.sha256 == now.prompt.sha256
            for name in ("suite", "grader", "grader_notes", "prompt"):
                stored.pop(name)
                recomputed.pop(name)
        self.found.same(f"{self.name}.contract.json", "conditions", stored, recomputed)

    def _known_keys(self) -> list[Key] | None:
        """All keys of the list in its order; None when the list is not known by any way."""
        ids: list[str] | None = list(self.items) or None
        listed = TASKS[self.name].maker is None and self.conditions.list.kind == "official"
        if ids is None and listed:
            with suppress(ListError):  # a list that is locked on this machine, and is not here
                pin = pin_of(self.name)
                if pin.sha256 == self.conditions.list.sha256:
                    ids = [str(row.id) for row in pin.rows]
        if ids is None:
            return None
        return [key_of(id, repeat) for repeat in range(self.conditions.repeats) for id in ids]

    # What came back

    def _check_raw(self, known: list[Key] | None) -> None:
        self._check_torn(self.gen)
        wanted, seen = set(known or ()), set[Key]()
        for number, (_, raw) in enumerate(read_lines(self.run / self.gen, RawReply), start=1):
            where, key = f"line {number}, id {raw.id}", key_of(raw.id, raw.repeat)
            if key in seen:
                self.found.fault(self.gen, where, "is there twice")
            elif known is not None and key not in wanted:
                self.found.fault(self.gen, where, "is not in the list of this part")
            else:
                self._check_reply(raw, where)
            seen.add(key)

    def _check_reply(self, raw: RawReply, where: str) -> None:
        """The request of a raw line, and whether its end follows from what the server said."""
        item = self.items.get(str(raw.id))
        if self.plan is not None and item is not None and self.same_prompts:
            sent = self.plan.request(item, raw.repeat).sha256
            if raw.request_sha256 != sent:
                stored, recomputed = raw.request_sha256[:12], sent[:12]
                self.found.values(self.gen, where, "request_sha256", stored, recomputed)
        try:
            cut = true_end(raw, self.conditions.max_tokens)
        except RequestError as error:
            self.found.fault(self.gen, where, "finish_reason", str(error)[:80])
            return
        if raw.cut_by != cut:
            self.found.values(self.gen, where, "cut_by", raw.cut_by, cut)

    def _check_torn(self, file: str) -> None:
        if is_torn(self.run / file):
            self.found.fault(file, "", "ends inside a line, which counts for nothing")

    def _check_failures(self, known: list[Key] | None) -> None:
        file = f"{self.name}.errors.jsonl"
        self._check_torn(file)
        wanted, lines = set(known or ()), read_lines(self.run / file, FailedRequest)
        for number, (_, failed) in enumerate(lines, start=1):
            if known is not None and key_of(failed.id, failed.repeat) not in wanted:
                where = f"line {number}, id {failed.id}"
                self.found.fault(file, where, "is not in the list of this part")

    def _check_answer_lines(self, known: list[Key] | None) -> None:
        """Lines of the answer file that should not be there, and their order."""
        self._check_torn(self.file)
        if not (self.run / self.file).exists():
            self.found.fault(self.file, "", f"is missing; qualeval grade {self.run} makes it")
        for line in self.answers.broken:
            self.found.fault(self.file, "", line)
        for line in self.answers.doubled:
            self.found.fault(self.file, line, "is there twice")
        replies, stored = RawReplies(self.run / self.gen), self.answers.in_order()
        for key in stored:
            if key not in replies:
                self.found.fault(self.file, _place(key), f"has no raw line in {self.gen}")
        places = {key: place for place, key in enumerate(known or stored)}
        order = [places[key] for key in stored if key in places]
        if order != sorted(order):
            self.found.fault(self.file, "", "lines are not in the order of the list")

    def _recomputed(self, replies: RawReplies, keys: list[Key]) -> Iterator[Answer]:
        """Every answer made again from its raw line; each is compared with the stored one."""
        if self.workers is not None and self.task.runs_code and self.same_grader:
            for raw in replies.get(iter(keys)):  # all at once, several at a time
                if str(raw.id) in self.items:
                    self._begin(self.workers, raw)
        for raw in replies.get(iter(keys)):
            key = key_of(raw.id, raw.repeat)
            stored = self.answers.get(key)
            if stored is None and (self.run / self.file).exists():
                self.found.fault(self.file, _place(key), f"is missing; {self.gen} has it")
            answer = self._answer(raw, stored)
            if answer is None:
                continue
            self.found.answers += 1
            if stored is not None:
                self._compare(key, stored, answer)
            yield answer

    def _answer(self, raw: RawReply, stored: Json | None) -> Answer | None:
        """The answer that a raw line gives; with the stored verdict where none can be made."""
        item = self.items.get(str(raw.id))
        with suppress(RequestError):  # an end that is none was named with its raw line
            raw = raw.model_copy(update={"cut_by": true_end(raw, self.conditions.max_tokens)})
        if item is not None and self.same_grader:
            verdict = self._verdict(item, raw)
            if verdict is not None:
                return Answer.of_verdict(raw, item, verdict)
        try:
            return None if stored is None else Answer.model_validate(stored | dict(raw))
        except ValidationError as error:
            fault = error.errors(include_url=False)[0]
            what = ".".join(map(str, fault["loc"]))[:SHOWN_CHARACTERS]
            self.found.fault(self.file, _place(key_of(raw.id, raw.repeat)), what, fault["msg"])
            return None

    def _verdict(self, item: Item, raw: RawReply) -> Verdict | None:
        """The verdict on a raw line; None where its program cannot be run here."""
        if not self.task.runs_code:
            return self.task.grade(item, raw.completion())
        if self.workers is None:
            return None
        verdict = verdict_of(self._begin(self.workers, raw))
        if verdict is None:
            self.found.unchecked.append(f"part '{self.name}': id {raw.id}: the sandbox failed")
        return verdict

    def _begin(self, workers: CodeWorkers, raw: RawReply) -> Future[Verdict]:
        item = self.items[str(raw.id)]
        return workers.begin(self.task, item, raw.completion(), raw.repeat)

    def _compare(self, key: Key, stored: Json, answer: Answer) -> None:
        stored = self.task.lasting(stored)
        recomputed = self.task.lasting(answer.model_dump(mode="json"))
        for name in dict.fromkeys((*recomputed, *stored)):
            pair = stored.get(name, NOTHING), recomputed.get(name, NOTHING)
            # Names of what is in a text that is never shown might tell of it.
            inside = [(name, *pair)] if name in TEXTS else leaves(*pair, name)
            for path, there, here in inside:
                if not equal(there, here):
                    what, gated = path[:SHOWN_CHARACTERS], self.task.source.gated
                    self.found.values(self.file, _place(key), what, there, here, gated=gated)

    # What it comes to

    def _label(self) -> str:
        """The label that the summary should have. The card's; but a part that an earlier card
        asked for keeps that card's label, which then stands nowhere else.
        """
        label = label_of(self.run)
        try:
            card = json.loads((self.run / "card.json").read_bytes())
            stored = json.loads((self.run / f"{self.name}.summary.json").read_bytes())["label"]
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            return label
        asked_by = {session.card_sha256 for session in self.contract.sessions[-1:]}
        older = sha256_of(card) not in asked_by
        return stored if older and isinstance(stored, str) else label

    def _check_summary(self, summary: Summary) -> None:
        file = f"{self.name}.summary.json"
        if (self.run / file).exists():
            recomputed = summary.model_dump(mode="json")
            self.found.same(file, "", object_in(self.run / file), recomputed)
        else:
            self.found.fault(file, "", f"is missing; qualeval grade {self.run} makes it")


def _check_run(run: Path, summaries: Mapping[str, Summary], found: Findings) -> None:
    """Compare `summary.json` and `summary.md` with what the parts come to.

    The parts as they were made again: a stored one that was changed would speak against a file that
    is right. It stands in only for a part that could not be made again.
    """
    parts = {}
    for name in TASKS:
        part = summaries.get(name) or _stored_summary(run, name)
        if part is not None:
            parts[name] = part
    whole = summarize_run(label_of(run), parts)
    if not (run / "card.json").exists():
        found.fault("card.json", "", "is missing; the label stands nowhere else")
    for file in ("summary.json", "summary.md"):
        if not (run / file).exists():
            found.fault(file, "", f"is missing; qualeval grade {run} makes it")
            continue
        try:
            if file == "summary.json":
                found.same(file, "", object_in(run / file), whole.model_dump(mode="json"))
            else:
                _check_markdown(run / file, whole, found)
        except RunFolderError as error:
            found.fault(_in_run(run, error), "", "")


def _stored_summary(run: Path, name: str) -> Summary | None:
    try:
        return Summary.model_validate_json((run / f"{name}.summary.json").read_bytes())
    except (OSError, ValidationError):
        return None


def _check_markdown(path: Path, whole: RunSummary, found: Findings) -> None:
    try:
        stored = path.read_bytes().decode("utf-8").split("\n")
    except (OSError, UnicodeDecodeError):
        raise RunFolderError(f"{path}: cannot be read as text") from None
    recomputed = markdown_table(whole).split("\n")
    for number, pair in enumerate(zip_longest(stored, recomputed), start=1):
        if pair[0] != pair[1]:
            there, here = excerpts(*pair)
            found.values(path.name, f"line {number}", "", there, here)


def true_end(raw: RawReply, max_tokens: int) -> CutBy | None:
    """What `cut_by` of a raw reply must be. Raises RequestError when it is no answer at all.

    Whether a thinking tag was left open is not stored. It can have been only where nothing but
    thinking was found between tags; there the reply's own word is taken.
    """
    only_thinking = raw.text == "" and "tags" in raw.reasoning_source
    unclosed = only_thinking and raw.cut_by == "unclosed_thinking"
    return cut_by(raw.finish_reason, raw.usage.completion_tokens, max_tokens, unclosed)


def _place(key: Key) -> str:
    return f"id {key[0]}" + (f" repeat {key[1]}" if key[1] else "")
