"""One run: plan -> contract -> pool -> raw replies -> grade -> answers -> summary.

`run` decides nothing about a benchmark, a number or a request; it brings the modules that do into
their order, and makes sure that what was answered stays on disk whatever ends the run.
"""

import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Protocol

import anyio

from qualeval import contract as contracts
from qualeval.card import Card, Endpoint
from qualeval.card_server import CardServer
from qualeval.client import ModelClient, ssl_for
from qualeval.code_workers import CodeWorkers, sandbox_for
from qualeval.errors import (
    DiskError,
    InputError,
    QualevalError,
    RunFolderError,
    ServerGoneError,
)
from qualeval.grading import begun, finish_part, write_run_summary
from qualeval.job import RunOptions, run_path
from qualeval.list_rows import rows_of_user_file
from qualeval.made_list import Making
from qualeval.plan import PartPlan, chosen_parts, groups, plan_part
from qualeval.pool import InFlightMeter, run_pool
from qualeval.preflight import Place, look_at, refuse_what_does_not_fit, slots_warnings
from qualeval.records import (
    Completion,
    Contract,
    FailedRequest,
    InFlight,
    Item,
    RawReply,
    Request,
    RunSummary,
    Summary,
    Verdict,
    key_of,
    now,
    to_json,
)
from qualeval.retry import Asker, Gate, GivenUp
from qualeval.runfolder import RawReplies, RunFolder, read_contract, read_summary
from qualeval.summarize import summarize_run
from qualeval.tasks import TASKS

ALIKE = 5
"""When this many first requests of a part are all given up in the same way, the part stops."""


class Watcher(Protocol):
    """Who is told how the run goes; `say` for events, the rest for the progress line."""

    def say(self, message: str) -> None:
        """An event worth a line."""

    def part_starts(self, name: str, done: int, total: int) -> None:
        """A part begins, with so many answers already on disk."""

    def answered(self, name: str, verdict: Verdict | None) -> None:
        """A request ended: with a verdict, or given up (None)."""

    def in_flight(self, change: int) -> None:
        """A request was sent (1) or came back (-1)."""


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """Where the run is and what it found; `stopped` says what ended it early, if anything did."""

    folder: Path
    summary: RunSummary
    stopped: str | None
    interrupted: bool

    @property
    def complete(self) -> bool:
        """True when every part asked for has all its answers."""
        return self.stopped is None and all(p.status == "ok" for p in self.summary.parts.values())


@dataclass(slots=True)
class PartRun:
    """One part while it runs."""

    plan: PartPlan
    contract: Contract
    items: dict[str, Item]
    missing: list[tuple[str, int]]
    meter: InFlightMeter
    started: float | None = None
    last_outcome: float | None = None
    stopped: str | None = None
    first_kinds: list[str] = field(default_factory=list)
    finished_any: bool = False

    def requests(self) -> Iterator[Request]:
        """The requests that have no answer on disk yet, made one at a time."""
        for id, repeat in self.missing:
            yield self.plan.request(self.items[id], repeat)

    def ended_alike(self, kind: str | None) -> bool:
        """Note how a request ended; True when the first ones were all given up in one way."""
        if kind is None:
            self.finished_any = True
        if self.finished_any:
            return False
        self.first_kinds.append(kind or "")
        enough = len(self.first_kinds) == min(ALIKE, len(self.missing))
        return enough and len(set(self.first_kinds)) == 1


@dataclass(slots=True)
class Work:
    """A request on its way through the pool."""

    request: Request
    part: PartRun
    attempts: int = 0


def run(card: Card, folder: Path, options: RunOptions, watcher: Watcher) -> RunOutcome:
    """Run the chosen parts of a card (whose relative paths start at `folder`) to their end.

    Answers already in the job's folder are not asked again. Raises QualevalError before the first
    request when card, list, option, folder or conditions do not allow a run; after that, what ends
    the run early stands in the outcome.
    """
    names = chosen_parts(options.parts)
    path = run_path(card, options, names)
    judged = {name: part for name in names if (part := _judged(path, name)) is not None}
    open_parts = [name for name in names if name not in judged]
    sandbox = sandbox_for(open_parts, unsafe=options.unsafe_no_sandbox)
    held_by = sandbox.name if sandbox else None
    # Lists first: one that is not at hand must not leave a folder behind, nor cost server time.
    plans = {}
    for name in names:
        if TASKS[name].maker is None:
            ran_in = judged[name].sandbox if name in judged else held_by
            plans[name] = plan_part(
                card, name, folder, options.lists, options.limit, sandbox=ran_in
            )
    server = CardServer(card, folder, path / "server.log")
    with ExitStack() as stack:
        files = stack.enter_context(RunFolder(path))
        stack.enter_context(server)
        workers = stack.enter_context(CodeWorkers(sandbox, files.log)) if sandbox else None
        making = Making(path, server.counting)
        for name in names:
            for line in files.repair(name):
                files.log(line, name)
                watcher.say(line)
            if name not in plans:
                plans[name] = plan_part(card, name, folder, options.lists, options.limit, making)
        ordered = [plans[name] for name in names]
        return RunSession(card, server, ordered, files, options, watcher, workers, judged).run()


def _judged(run: Path, part: str) -> Summary | None:
    """The summary of a part whose programs have all been run: they are not run again, and nothing
    has to hold them. None for all other parts.
    """
    if not TASKS[part].runs_code:
        return None
    with suppress(RunFolderError):
        summary = read_summary(run, part)
        replies = RawReplies(run / f"{part}.gen.jsonl")
        if summary is not None and summary.status == "ok" and summary.answered == len(replies):
            return summary
    return None


class RunSession:
    """One start of the command on a run folder."""

    def __init__(
        self,
        card: Card,
        server: CardServer,
        plans: list[PartPlan],
        files: RunFolder,
        options: RunOptions,
        watcher: Watcher,
        workers: CodeWorkers | None,
        judged: Mapping[str, Summary],
    ) -> None:
        self.card = card
        self.server = server
        self.plans = plans
        self.files = files
        self.options = options
        self.watcher = watcher
        self.workers = workers
        self.judged = judged
        self.stopped: str | None = None
        self.interrupted = False
        self.judging: set[str] = set()

    def say(self, message: str, part: str = "-") -> None:
        """Tell the log and whoever watches."""
        self.files.log(message, part)
        self.watcher.say(message if part == "-" else f"{part}: {message}")

    def run(self) -> RunOutcome:
        """Ask what is missing, then grade and summarize what is there."""
        for plan in self.plans:
            here = contracts.new_contract(contracts.conditions_of(plan, self.card.sampling_source))
            there = read_contract(self.files.file(f"{plan.name}.contract.json"))
            if there is not None:
                where = str(self.files.file(f"{plan.name}.contract.json"))
                contracts.same_conditions(there, here, where)
        missing = {plan.name: self._missing(plan) for plan in self.plans}
        self.files.write("card.json", self.card.model_dump_json(indent=2))
        for plan in self.plans:
            plan.task.prepare()
            if missing[plan.name]:
                self._keep_list(plan)
        if any(missing.values()):
            try:
                anyio.run(self._ask, self.server.reached(), missing)
            except KeyboardInterrupt:
                self.interrupted = True
                self.stopped = "interrupted; run the same command again to go on"
            except InputError:
                raise
            except ServerGoneError as error:
                self.stopped = str(error)
                if not any(map(self._contract_exists, self.plans)):
                    raise
            except QualevalError as error:
                self.stopped = str(error)
        if self.stopped:
            with suppress(DiskError):  # a full disk may be what stopped it
                self.files.log(f"stopped: {self.stopped}")
        return self._outcome()

    def _keep_list(self, plan: PartPlan) -> None:
        """Copy a list of the user's own, or one that was made, into the run, so that it can be
        graded again from here alone.
        """
        path, made = plan.list.path, plan.list.kept_rows
        if path is None and not made:
            return
        with self.files.replace(f"{plan.name}.items.jsonl") as line:
            for row in (row for _, row in rows_of_user_file(path)) if path else made:
                line(to_json(row))

    def _contract_exists(self, plan: PartPlan) -> bool:
        return self.files.file(f"{plan.name}.contract.json").exists()

    def _missing(self, plan: PartPlan) -> list[tuple[str, int]]:
        """Keys of the items asked for (within the limit) that have no reply on disk."""
        there = RawReplies(self.files.file(f"{plan.name}.gen.jsonl"))
        keys = (key_of(item.id, r) for r in range(plan.repeats) for item in plan.items)
        return [key for key in keys if key not in there]

    # Asking

    async def _ask(self, reached: Card, missing: dict[str, list[tuple[str, int]]]) -> None:
        api_key = self.server.api_key()
        async with AsyncExitStack() as stack:

            async def client(endpoint: Endpoint) -> ModelClient:
                return await stack.enter_async_context(
                    ModelClient(
                        endpoint.base_url,
                        api_key=api_key,
                        timeouts=self.card.timeouts,
                        ssl_context=contexts[endpoint.base_url],
                    )
                )

            endpoints = reached.server.places()
            contexts = {e.base_url: ssl_for(e.base_url) for e in endpoints}
            probes = [await client(endpoint) for endpoint in endpoints]
            places = await look_at(reached, probes)
            open_plans = [plan for plan in self.plans if missing[plan.name]]
            notes = await refuse_what_does_not_fit(reached, open_plans, places, probes)
            for note in [*slots_warnings(places), *notes]:
                self.say(note)
            askers: list[Asker[Work]] = []
            for place, probe in zip(places, probes, strict=True):
                gate = self._gate(probe)
                for _ in range(place.slots):
                    askers.append(self._asker(await client(place.endpoint), gate, place.model))
            for group in groups(open_plans, self.options.schedule):
                await self._ask_group(group, missing, places, askers)

    def _gate(self, probe: ModelClient) -> Gate:
        async def look() -> None:
            await probe.ask("GET", "/v1/models")

        return Gate(look, self.card.retries.max_wait, self.say)

    def _asker(self, client: ModelClient, gate: Gate, model: str) -> Asker[Work]:
        async def send(work: Work) -> Completion:
            extra = {"model": model}
            if work.part.plan.salted:
                extra["cache_salt"] = secrets.token_hex(16)
            work.part.meter.enter()
            self.watcher.in_flight(1)
            try:
                return await client.complete(work.request, extra)
            finally:
                work.part.meter.leave()
                self.watcher.in_flight(-1)

        def log(work: Work, message: str) -> None:
            self.files.log(message, work.part.plan.name)

        return Asker(send, gate, self.card.retries, log)

    async def _ask_group(
        self,
        group: Sequence[PartPlan],
        missing: dict[str, list[tuple[str, int]]],
        places: Sequence[Place],
        askers: Sequence[Asker[Work]],
    ) -> None:
        """Run the parts of one group through the pool; their contracts are on disk before."""
        parts = [
            self._open_part(plan, missing[plan.name], places, alone=len(group) == 1)
            for plan in group
        ]

        def work() -> Iterator[Work]:
            for part in parts:
                for request in part.requests():
                    if part.stopped:
                        break
                    part.started = part.started or monotonic()
                    yield Work(request, part)

        try:
            await run_pool(askers, work(), self._done)
        finally:
            for part in parts:
                self._close_part(part)

    def _open_part(
        self,
        plan: PartPlan,
        missing: list[tuple[str, int]],
        places: Sequence[Place],
        *,
        alone: bool,
    ) -> PartRun:
        path = self.files.file(f"{plan.name}.contract.json")
        contract = read_contract(path) or contracts.new_contract(
            contracts.conditions_of(plan, self.card.sampling_source)
        )
        identity = places[0].identity()
        identity["engine_version"] = identity["engine_version"] or self.server.engine_version
        if self.server.process_started:
            identity["process_started"] = self.server.process_started
        if len(places) > 1:
            identity["replicas"] = [place.identity() for place in places[1:]]
        session = contracts.new_session(
            self.card,
            command=self.options.command,
            items=len(plan.items) * plan.repeats,
            slots=sum(place.slots for place in places),
            slots_source=places[0].slots_source,
            schedule=self.options.schedule,
            alone=alone,
            server=identity,
        )
        contract = contracts.with_session(contract, session)
        self.files.write(path.name, contract.model_dump_json(indent=2))
        wanted = len(plan.items) * plan.repeats
        self.files.log(f"session starts: {len(missing)} of {wanted} to ask", plan.name)
        if self.workers is not None and plan.task.runs_code:
            self.judging.add(plan.name)
            self.watcher.part_starts(plan.name, 0, wanted)
            self._judge_what_is_there(plan, self.workers)
        else:
            self.watcher.part_starts(plan.name, wanted - len(missing), wanted)
        return PartRun(plan, contract, plan.list.by_id, missing, InFlightMeter(monotonic))

    def _done(self, work: Work, outcome: Completion | GivenUp) -> None:
        """Put one outcome on disk, then tell how it looks."""
        part, request = work.part, work.request
        part.last_outcome = monotonic()
        if isinstance(outcome, Completion):
            self.files.append(part.plan.name, "gen", RawReply.of(request, outcome))
            self._grade_for_watcher(part, request, outcome)
            part.ended_alike(None)
            return
        failed = FailedRequest(
            id=request.id,
            repeat=request.repeat,
            kind=outcome.error.kind,
            message=str(outcome.error),
            attempts=outcome.attempts,
            ended=now(),
        )
        self.files.append(part.plan.name, "errors", failed)
        self.watcher.answered(part.plan.name, None)
        if part.ended_alike(failed.kind) and not part.stopped:
            part.stopped = f"the first requests all failed alike: {failed.message}"
            self.say(f"stopped: {part.stopped}", part.plan.name)

    def _grade_for_watcher(self, part: PartRun, request: Request, completion: Completion) -> None:
        """Show how an answer looks; a program is judged beside the run, and shown when it is."""
        task, item = part.plan.task, part.items[str(request.id)]
        if self.workers is not None and task.runs_code:
            self.workers.begin(task, item, completion, request.repeat, tell=True)
        else:
            self.watcher.answered(task.name, task.grade(item, completion))
        if self.workers is not None:
            for name, verdict in self.workers.told():
                self.watcher.answered(name, verdict)

    def _close_part(self, part: PartRun) -> None:
        """Write the end of the session into the contract."""
        sessions = part.contract.sessions
        # Parts that share the pool end at different times: each with its own last outcome.
        last = part.last_outcome if part.last_outcome is not None else monotonic()
        wall = last - part.started if part.started is not None else 0.0
        ended = sessions[-1].model_copy(
            update={
                "ended": now(),
                "wall_time": round(wall, 3),
                "in_flight": InFlight(mean=round(part.meter.mean, 3), most=part.meter.most),
            }
        )
        self.files.log("session ends", part.plan.name)
        part.contract = contracts.with_last_session(part.contract, ended)
        self.files.write(f"{part.plan.name}.contract.json", part.contract.model_dump_json(indent=2))

    # Afterwards

    def _earlier(self, name: str) -> Summary | None:
        """The summary of a part that this command did not ask; a damaged one costs only itself."""
        try:
            return read_summary(self.files.path, name)
        except RunFolderError as error:
            self.say(f"left out of summary.json: {error}", name)
            return None

    def _judge_the_rest(self) -> None:
        """Wait for the programs that are still judged; not when somebody wants it to end."""
        if self.workers is None:
            return
        try:
            if not self.interrupted:
                for plan in self.plans:
                    if plan.task.runs_code and plan.name not in self.judging | self.judged.keys():
                        self._judge_what_is_there(plan, self.workers)
                self.workers.use_all_cores()
                for name, verdict in self.workers.told(wait=True):
                    self.watcher.answered(name, verdict)
        except KeyboardInterrupt:
            self.interrupted = True
            self.stopped = "interrupted; run the same command again to go on"
        if self.interrupted:
            self.workers.stop()

    def _judge_what_is_there(self, plan: PartPlan, workers: CodeWorkers) -> None:
        """Begin every program of a part that is on disk already; their verdicts are told as those
        of answers that come.
        """
        replies = RawReplies(self.files.file(f"{plan.name}.gen.jsonl"))
        if replies:
            self.say(f"{len(replies)} programs to judge", plan.name)
            if plan.name not in self.judging:
                self.watcher.part_starts(plan.name, 0, len(plan.items) * plan.repeats)
            self.judging.add(plan.name)
            begun(plan, replies, workers, tell=True)

    def _outcome(self) -> RunOutcome:
        self._judge_the_rest()
        summaries: dict[str, Summary] = {}
        for plan in self.plans:
            if self._contract_exists(plan):
                done = self.judged.get(plan.name)
                summaries[plan.name] = done or finish_part(
                    self.files, plan, self.card.label, self.workers
                )
        job = {name: summaries.get(name) or self._earlier(name) for name in TASKS}
        write_run_summary(self.files, self.card.label, job)
        asked = summarize_run(self.card.label, summaries)
        return RunOutcome(self.files.path, asked, self.stopped, self.interrupted)
