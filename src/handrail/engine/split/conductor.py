"""Runs the subtasks of a plan: what can start starts, within limits and budgets; every fact is in the log.

A killed run goes on from the log: a subtask that has a result is not repeated, and an answer that came is not
asked for again.
"""

import hashlib
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple

import anyio
from msgspec import DecodeError
from msgspec.json import Decoder

from handrail.engine.durable.jobs import GivenExport, GivenFile, Job, JobResult, JobRunner
from handrail.engine.host.takeover import take_over
from handrail.engine.host.wakeup import Wakeup
from handrail.engine.requests.model_requests import Cost, FitToBudget, SideCall
from handrail.engine.split.graph import before, needs_of, ordered, with_dependents
from handrail.engine.split.ledger import Ledger
from handrail.engine.split.merging import merge_results
from handrail.engine.split.subtask_work import read_exchange, refuse_marks
from handrail.protocol.errors import UsageProblem
from handrail.protocol.events import (
    Answered,
    ConflictSettled,
    Event,
    RequestFailed,
    RequestStarted,
    SideAnswered,
    SideAsked,
    SplitEnded,
    SplitPaused,
    SplitResumed,
    SplitStalled,
    SubagentEvent,
    SubtaskDone,
    SubtaskFailed,
    SubtasksCancelled,
    SubtasksReset,
    SubtaskStarted,
)
from handrail.protocol.ids import new_id
from handrail.protocol.subtask import SplitCommand, SplitPlan, Subtask, SubtaskFile
from handrail.sessions.session import Session
from handrail.sessions.split_state import SplitState, split_state, subtask_key
from handrail.sessions.subagent_session import inner_event
from handrail.tools.secrets import NO_SECRETS, Secrets
from handrail.workspace.files import Workspace, decode, encode

COMMAND = Decoder(SplitCommand)
BUSY_PATIENCE = 600.0
"""Seconds that a subtask waits for a busy provider, all waits together."""
LEAST_WAIT = 0.5
"""Seconds, also where it says that it may be asked at once: else it would be asked without an end."""


def control_stream(session_id: str) -> str:
    """The inbox of commands for a split request; a session's own inbox is for conversations."""
    return f"split:{session_id}"


class SplitSession(NamedTuple):
    """A session with the state of its split request, which follows what is appended."""

    session: Session
    state: SplitState


def open_split(session: Session) -> SplitSession:
    state = split_state(session.read_after(0, session.seq)) if session.seq else SplitState()
    session.followers.append(state.apply)
    return SplitSession(session, state)


def take_over_split(split: SplitSession, workspace: Workspace) -> None:
    """Close what a killed process left open: a change set, and requests without an answer."""
    session, state = split
    take_over(session, workspace)
    received = session.log.received(session.stream)
    for request_id, request in list(state.requests.items()):
        data = received.get(request_id, b"")
        raw = request.raw or (hashlib.sha256(data).hexdigest() if data else "")
        ended = SideAnswered(request_id=request_id, problem="Handrail ended first.", raw=raw)
        session.append(ended, blobs=[data] if data else [], settle=[request_id])


def plan_of(state: SplitState) -> SplitPlan:
    if state.plan is None:
        raise UsageProblem("There is no plan here yet. `handrail split` makes one.")
    return state.plan


class Conductor:
    """Runs one split request until nothing can go on, it is paused, or it is cancelled."""

    def __init__(
        self,
        split: SplitSession,
        wakeup: Wakeup,
        side: Callable[[Job, FitToBudget], Awaitable[SideCall]],
        runner: "Callable[[Conductor], AbstractAsyncContextManager[JobRunner]]",
        cost: Cost,
        *,
        secrets: Secrets = NO_SECRETS,
    ) -> None:
        self.session, self.state = split
        self.plan = plan_of(self.state)
        self._wakeup = wakeup
        self._open_side = side
        self._runner = runner
        self._secrets = secrets
        self._order = ordered(self.plan)
        self._rank = {name: number for number, name in enumerate(self._order)}
        self._needs = needs_of(self.plan)
        self._by_id = {each.id: each for each in self.plan.subtasks}
        self._running: dict[str, str] = {}
        """{subtask: key of its job}"""
        self.ledger = Ledger(self.state, cost)
        self._width = self.plan.limits.parallel
        self._not_before = 0.0
        self._waited = Counter[str]()

    async def side(self, job: Job) -> SideCall:
        return await self._open_side(job, self.ledger.afford(job.subtask.id))

    async def run(self) -> None:
        async with self._runner(self) as jobs:
            while True:
                seen = self._wakeup.version
                await self._take_commands(jobs)
                self._take_results(jobs)
                if (why := jobs.stalled()) != self.state.stalled:
                    self.session.append(SplitStalled(why))
                if self._goes_on:
                    await self._start(jobs)
                elif why:  # what is open is fetched when the split goes on
                    break
                if not self._running and not (self._goes_on and self._ready()):
                    if self._wakeup.version == seen:
                        break
                    continue  # a command may have come with the last result
                wait = self._not_before - time.monotonic() if self._ready() and self._goes_on else 0.0
                with anyio.move_on_after(wait if wait > 0 else None):
                    await self._wakeup.wait(seen)
            if self.state.ended:
                for key in self._running.values():
                    await jobs.cancel(key)
        if self._goes_on and (failed := self.state.of("failed")):
            first = self.state.subtasks[failed[0]].detail
            detail = f"{len(failed)} failed: {', '.join(failed[:10])}. The first: {first}"
            self.session.append(SplitPaused(why="failed", detail=detail))

    @property
    def _goes_on(self) -> bool:
        return self.state.paused is None and self.state.ended is None

    # What can start

    def _ready(self) -> list[str]:
        """What can start now; first what a killed process had begun: workers may have it, and it may cost."""
        done = {name for name, one in self.state.subtasks.items() if one.status == "done"}
        found = [
            name
            for name in self._order
            if self.state.subtasks[name].status in ("waiting", "running")
            and name not in self._running
            and done.issuperset(self._needs[name])
        ]
        return sorted(found, key=lambda name: self.state.subtasks[name].status != "running")

    async def _start(self, jobs: JobRunner) -> None:
        if self.ledger.reached:
            if self._running:
                return  # what they leave of the budget is known when they have ended
            if alone := [each.why for each in self.ledger.reached if each.alone]:
                self.session.append(SplitPaused(why="budget", detail=alone[-1]))
                return
            self.ledger.reached.clear()
            self._width = 1
        if time.monotonic() < self._not_before:
            return
        room = min(self._width, self.plan.limits.parallel) - len(self._running)
        for name in self._ready()[: max(0, room)]:
            job, blobs = self._job(self._by_id[name])
            found = self.state.subtasks[name]
            if found.status == "waiting":
                self.session.append(SubtaskStarted(name, found.attempt + 1), blobs=blobs)
                job = self._job(self._by_id[name])[0]
            self._running[name] = job.key
            await jobs.submit(job)

    def _job(self, subtask: Subtask) -> tuple[Job, list[bytes]]:
        """The job as it is after the results that it depends on, and the contents that are new."""
        found = self.state.subtasks[subtask.id]
        above = sorted(before(self._needs, subtask.id), key=self._rank.__getitem__)
        results = [done for name in above if (done := self.state.subtasks[name].done)]
        blob, known_files = self.session.log.blob, self.state.base
        touched = dict.fromkeys(file.path for done in results for file in done.files)
        named = (*subtask.files, *subtask.writes) if subtask.needs == "files" else tuple(known_files)
        base = {
            path: blob(known_files[path])
            for path in named
            if path in known_files and _is_given(subtask, path)
        }
        merged = merge_results(
            {path: blob(known_files[path]) for path in touched if path in known_files},
            results,
            blob,
            self.state.settled,
        ).files
        paths = dict.fromkeys((*subtask.files, *base, *_new_files(subtask, merged)))
        contents = {path: merged.get(path, base.get(path)) for path in paths}
        given = tuple(
            GivenFile(path, decode(data).text if data is not None else None, _sha256(data))
            for path, data in contents.items()
        )
        new = [
            data
            for path, data in contents.items()
            if data is not None and known_files.get(path) != _sha256(data)
        ]
        exports = tuple(
            GivenExport(done.subtask_id, done.summary, done.exports)
            for done in results
            if done.exports or done.summary
        )
        key = subtask_key(subtask.id, found.round, max(1, found.attempt))
        return Job(key, subtask, self.plan.task, given, exports, refused=found.detail), new

    # What comes back

    def _take_results(self, jobs: JobRunner) -> None:
        for result in jobs.results():
            name = result.key.partition("/")[0]
            if self._running.get(name) == result.key:
                del self._running[name]
                if self.state.subtasks[name].status == "running":
                    self._record(name, result)
                    continue
            asked, blobs = self._asked_elsewhere(result)
            if asked:  # it came too late, and cost something all the same
                self.session.append(*asked, blobs=blobs)

    def _record(self, name: str, result: JobResult) -> None:
        found, limits = self.state.subtasks[name], self.plan.limits
        job, given = self._job(self._by_id[name])
        asked, blobs = self._asked_elsewhere(result)
        if result.exchanges or result.worker:
            result = read_exchange(job, result)
        result = refuse_marks(job, result, self._secrets)
        busy = result.retry_in is not None and self._waits(name, result.retry_in)
        if busy or (result.over_budget and self.ledger.reached):
            if asked:
                self.session.append(*asked, blobs=blobs)
            return
        if result.problem:
            failed = SubtaskFailed(
                name,
                found.attempt,
                result.problem,
                last=not result.again or found.attempt >= limits.tries,
                worker=result.worker,
            )
            self.session.append(*asked, failed, blobs=blobs)
            return
        self._width = min(limits.parallel, self._width + 1)
        bases = {file.path: file.sha256 for file in job.files}
        files, only_blanks = [], True
        blobs += given
        for file in result.files:
            old = self.session.log.blob(bases[file.path]) if bases.get(file.path) else None
            data = encode(file.text, bom=bool(old and decode(old).bom)) if file.text is not None else None
            blobs += [data] if data is not None else []
            files.append(SubtaskFile(file.path, bases.get(file.path, ""), _sha256(data)))
            only_blanks = only_blanks and old is not None and data is not None and old.split() == data.split()
        nothing = "" if not only_blanks else "changed only blank space" if files else "changed nothing"
        done = SubtaskDone(
            name,
            tuple(files),
            result.exports,
            ": ".join(filter(None, (nothing, result.summary))),
            result.seconds,
            worker=result.worker,
        )
        self.session.append(*asked, done, blobs=blobs)

    def _waits(self, name: str, seconds: float) -> bool:
        """Whether it is tried again once its provider is less busy."""
        seconds = max(LEAST_WAIT, seconds)
        self._waited[name] += 1
        if self._waited[name] * seconds > BUSY_PATIENCE:
            return False
        # The provider's limit counts for all: they wait together, and then fewer run at once.
        self._not_before = time.monotonic() + seconds
        self._width = max(1, self._width // 2)
        return True

    def _asked_elsewhere(self, result: JobResult) -> tuple[list[Event], list[bytes]]:
        """What a worker asked and was answered, as the events and bytes of requests that are made here."""
        events: list[Event] = []
        blobs: list[bytes] = []
        for each in result.exchanges:
            sent = self.session.log.requests.chain((each.request,)) if each.request else None
            asked = SideAsked(
                request_id=new_id("r"),
                purpose="subtask",
                model=each.model,
                role=each.role,
                prompt_bytes=each.prompt_bytes,
                prompt_tokens_estimate=each.prompt_tokens,
                effort=each.effort,
                effort_sent=each.effort_sent,
                body=sent.head if sent else "",
                key=result.key,
            )
            answered = SideAnswered(
                request_id=asked.request_id,
                text=each.text,
                problem=each.problem,
                usage=each.usage,
                cost_usd=each.cost_usd,
                seconds=each.seconds,
                raw=_sha256(each.raw or None),
            )
            events += [asked, answered]
            blobs += [*(sent.blobs if sent else ()), *filter(None, (each.raw,))]
        return events, blobs

    def record_unknown_cost(self, key: str) -> None:
        """Say that a worker had begun a job when it was cancelled."""
        asked = SideAsked(request_id=new_id("r"), purpose="subtask", model="", key=key)
        why = "It was cancelled while a worker had it."
        self.session.append(asked, SideAnswered(request_id=asked.request_id, problem=why, cost_usd=None))

    def record_of_agent(self, key: str, event: Event) -> None:
        """Log what an agent's requests cost as they end: it counts whatever becomes of the agent."""
        match inner_event(event) if isinstance(event, SubagentEvent) else event:
            case RequestStarted() | SideAsked() as asked:
                role = asked.role if isinstance(asked, SideAsked) else "main"
                opened = SideAsked(
                    request_id=asked.request_id,
                    purpose="subtask",
                    model=asked.model,
                    role=role,
                    prompt_bytes=asked.prompt_bytes,
                    prompt_tokens_estimate=asked.prompt_tokens_estimate,
                    most_tokens=asked.most_tokens,
                    most_usd=asked.most_usd,
                    effort=asked.effort,
                    effort_sent=asked.effort_sent,
                    key=key,
                )
                self.session.append(opened)
            case Answered() | RequestFailed() | SideAnswered() as ended:
                self.ledger.spend(key, ended.usage, ended.cost_usd)
                closed = SideAnswered(
                    request_id=ended.request_id,
                    problem=ended.message if isinstance(ended, RequestFailed) else "",
                    usage=ended.usage,
                    cost_usd=ended.cost_usd,
                    seconds=0.0 if isinstance(ended, RequestFailed) else ended.seconds,
                )
                self.session.append(closed)

    # What the user wants

    async def _take_commands(self, jobs: JobRunner) -> None:
        for item in self.session.log.waiting(control_stream(self.session.id)):
            try:
                command = COMMAND.decode(item.data)
            except DecodeError:
                continue  # of a newer Handrail
            events = command_events(self.state, command)
            self.session.append(*events, take=[item.id])
            for name in [name for name in self._running if self.state.subtasks[name].status != "running"]:
                await jobs.cancel(self._running.pop(name))
            self.plan = plan_of(self.state)


def command_events(state: SplitState, command: SplitCommand) -> list[Event]:
    """What a command comes to; nothing where it no longer applies."""
    needs = needs_of(plan_of(state))
    known = [name for name in command.subtask_ids if name in state.subtasks]
    over = state.ended is not None and state.ended.state == "complete"
    match command.action:
        case _ if over:
            return []
        case "pause" if state.started and not state.paused and not state.ended:
            return [SplitPaused(why="user")]
        case "resume" | "accept":
            return [SplitResumed(limits=command.limits)] if state.paused or state.ended else []
        case "cancel" if command.subtask_ids:
            left = [
                name for name in with_dependents(needs, known) if state.subtasks[name].status != "cancelled"
            ]
            return [SubtasksCancelled(tuple(left))] if left else []
        case "cancel" if not state.ended:
            return [SplitEnded(state="cancelled", detail="You cancelled it. Nothing was applied.")]
        case "retry" if known:
            resumed: list[Event] = [SplitResumed()] if state.paused or state.ended else []
            wanted = with_dependents(needs, known)
            return [SubtasksReset(wanted), *resumed]
        case "settle" if any(each.id == command.conflict_id for each in state.conflicts):
            return [ConflictSettled(command.conflict_id, command.by, command.text)]
    return []


async def watch_commands(split: SplitSession, wakeup: Wakeup, stop: Callable[[], None]) -> None:
    """Take commands while the result is verified; `stop` is called once the user wants no more of it."""
    while True:
        seen = wakeup.version
        apply_commands(split)
        if split.state.paused or split.state.ended:
            stop()
        await wakeup.wait(seen)


def apply_commands(split: SplitSession) -> None:
    """Take commands that wait while nothing runs."""
    session, state = split
    for item in session.log.waiting(control_stream(session.id)):
        try:
            command = COMMAND.decode(item.data)
        except DecodeError:
            continue
        session.append(*command_events(state, command), take=[item.id])


def _is_given(subtask: Subtask, path: str) -> bool:
    """Whether the subtask gets the file: all that it may write in a tree, else those that are named."""
    named = path in subtask.files or path in subtask.writes
    return named or (subtask.needs == "tree" and subtask.may_write(path))


def _new_files(subtask: Subtask, merged: dict[str, bytes | None]) -> list[str]:
    """Files that others have made, and that the subtask may change."""
    return [path for path in merged if path not in subtask.files and subtask.may_write(path)]


def _sha256(data: bytes | None) -> str:
    return hashlib.sha256(data).hexdigest() if data is not None else ""
