"""Runs over a checklist: each open item is one verified build; a stopped run goes on from the log."""

import hashlib
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from handrail.app.builds.build import BUILD_ROUTE, BuildResult, follow_build
from handrail.pipelines.build.report import STATUSES, build_result
from handrail.pipelines.build.states import ENDS, State
from handrail.protocol.commands import SendMessage, SetMode
from handrail.protocol.errors import PathProblem, UsageProblem
from handrail.protocol.events import (
    ChecklistEnded,
    ChecklistPaused,
    ChecklistStarted,
    Delta,
    ItemStarted,
    Recorded,
)
from handrail.protocol.ids import new_id
from handrail.protocol.values import ChecklistItem, Value
from handrail.sessions.checklist_runs import ChecklistRunState, checklist_runs, unfinished_run
from handrail.sessions.session import Session
from handrail.sessions.workspace_events import append_to_workspace
from handrail.verification.documents.checklist import (
    ChecklistProblem,
    Item,
    PhaseProgress,
    buildable,
    progress,
    read_checklist,
)

if TYPE_CHECKING:
    from handrail.app.app import App

__all__ = ["Item", "PhaseProgress"]

Ending = Literal["done", "not_complete", "max", "stopped", "nobody_to_ask"]
"""How a call ended; after the last three, the next call resumes the run."""
Reply = Literal["yes", "no", "stop"]
WORST_FIRST: tuple[State, ...] = ("failed", "escalated", "paused", "unverified")


class Dialogue(Protocol):
    """Whoever follows a run over a checklist, and answers its questions."""

    stopping: bool
    """The user wants it to stop after the current item."""

    def resumes(self, attempted: int) -> None: ...

    def wants(self, item: Item, left: int) -> Reply | None:
        """Whether to build the item; None: nobody can be asked."""

    def goes_on(self, attempted: int, left: int) -> bool:
        """Whether to go on at the limit of items."""

    async def waited(self, seconds: float) -> bool:
        """Wait between two items; False: the run stops."""

    def building(self, item: ChecklistItem, session_id: str) -> AbstractAsyncContextManager[None]:
        """Entered for as long as a build runs."""

    def saw(self, item: Recorded | Delta) -> None: ...

    def built(self, result: "ItemResult") -> None: ...


class DoOptions(NamedTuple):
    item: int = 0
    """Only this one, or what is open below it; 0: all."""
    auto: bool = False
    most: int = 5
    """Items after which the user is asked."""
    pause: float = 0.0
    """Seconds between two items."""
    keep_going: bool = False


class ItemResult(Value):
    number: int
    text: str
    phase: str
    state: State
    detail: str
    files: tuple[str, ...]
    proposed: tuple[str, ...]
    """Files that were not applied; `handrail build --accept SESSION` shows and applies them."""
    corrections: int
    tokens: int
    cost_usd: float | None
    seconds: float
    session_id: str


class ChecklistReport(Value):
    """What a run over a checklist came to, also what was done before it was resumed."""

    path: str
    ended: Ending
    items: tuple[ItemResult, ...]
    phases: tuple[PhaseProgress, ...]
    open: int
    """Items that are not ticked, skipped or in progress."""
    attempted: int
    complete: int
    unverified: int
    failed: int
    escalated: int
    paused: int
    tokens: int
    cost_usd: float | None
    """None if a price is not known."""
    seconds: float

    @property
    def exit_status(self) -> int:
        """0 if every item that was attempted is complete, else by the worst one."""
        if self.ended == "stopped":
            return STATUSES["cancelled"]
        found = {state for state in WORST_FIRST if getattr(self, state)}
        found |= {"paused"} if self.ended == "nobody_to_ask" else set()
        worst = next((state for state in WORST_FIRST if state in found), None)
        return STATUSES.get(worst, 1) if worst else 0


async def run_checklist(app: "App", path: str, options: DoOptions, talk: Dialogue) -> ChecklistReport:
    """Build the open items of a checklist one by one; raises UsageProblem where it cannot be run."""
    place = checklist_path(app, path)
    with _lock(app, place):
        run = _ChecklistRun(app, place, options, talk)
        ended = await run.until_end()
        return run.report(ended)


def checklist_path(app: "App", path: str) -> str:
    """The checklist as a path from the root; raises UsageProblem where it cannot be read or ticked."""
    try:
        place = app.workspace.resolve(path)
        if not place.inside or place.secret or place.in_state:
            raise UsageProblem(f"{path} is not a file of this workspace. A checklist has to be in it.")
        read_items(app, place.path)
    except PathProblem as problem:
        raise UsageProblem(f"The checklist cannot be read: {problem}") from problem
    return place.path


def read_items(app: "App", path: str) -> tuple[Item, ...]:
    """The items of a checklist as it is now; raises UsageProblem where there are none."""
    try:
        items = read_checklist(app.workspace.read(path).data)
    except (PathProblem, ChecklistProblem) as problem:
        raise UsageProblem(f"The checklist {path} cannot be read: {problem}") from problem
    if not items:
        raise UsageProblem(f"{path} has no item. An item is a line such as `- [ ] Add a retry`.")
    return items


@contextmanager
def _lock(app: "App", path: str) -> Iterator[None]:
    # In the log and not beside the file: an unfinished run is found in the log, also from another machine.
    held = app.log.database.try_hold(f"checklist-{hashlib.sha256(path.encode()).hexdigest()[:16]}")
    if held is None:
        raise UsageProblem(f"Another Handrail works on {path}. Wait for it, or stop it there.")
    try:
        yield
    finally:
        held.release()


def task_of(item: Item) -> str:
    """The task of a build, in the checklist's own words."""
    accepts = [f"Acceptance: {each}" for each in item.acceptance if each]
    return "\n".join([item.text, *item.description, *accepts])


def _key(item: ChecklistItem) -> tuple[str, str, str]:
    return item.phase, item.part_of, item.text


class _ChecklistRun:
    def __init__(self, app: "App", path: str, options: DoOptions, talk: Dialogue) -> None:
        self._app, self._path, self._options, self._talk = app, path, options, talk
        self._ended: dict[str, ItemResult] = {}
        self._refused = Counter[tuple[str, str, str]]()
        """Items that the user does not want now, by what they say."""
        self._state = unfinished_run(app.log, path) or self._start()
        last = self._state.items[-1:]
        self._unfinished = last[0] if last and self._result(last[0]).state not in (*ENDS, "paused") else None
        # With a number the user asks for the item once more; without, each is attempted once.
        before = len(self._state.items) - bool(self._unfinished)
        self._attempts_from = before if options.item else 0
        if before and not self._state.counted and not self._unfinished and not self._left():
            # It was stopped with nothing left to attempt: who calls again wants another attempt.
            self._record(ChecklistEnded(checklist_id=self._state.checklist_id, why="done"))
            self._state = self._start()

    def _start(self) -> ChecklistRunState:
        started = ChecklistStarted(checklist_id=new_id("do"), path=self._path)
        append_to_workspace(self._app.log, started)
        return checklist_runs(self._app.log, self._path)[-1]

    def _record(self, event: ItemStarted | ChecklistPaused | ChecklistEnded) -> None:
        append_to_workspace(self._app.log, event)
        self._state = checklist_runs(self._app.log, self._path)[-1]

    async def until_end(self) -> Ending:
        if self._options.item:
            self._check_item()
        if self._state.items:
            self._talk.resumes(len(self._state.items))
        ended = await self._items()
        checklist_id = self._state.checklist_id
        if ended in ("done", "not_complete"):
            self._record(ChecklistEnded(checklist_id=checklist_id, why=ended))
        else:
            self._record(ChecklistPaused(checklist_id=checklist_id))
        return ended

    async def _items(self) -> Ending:
        built = False
        if self._unfinished:
            built = True
            if ending := self._judge(await self._finish(self._unfinished)):
                return ending
        while left := self._left():
            (item, named), counted = left[0], self._state.counted
            if counted >= self._options.most:
                if not self._talk.goes_on(counted, len(left)):
                    return "max"
                self._record(ChecklistPaused(checklist_id=self._state.checklist_id))
            if not self._options.auto:
                reply = self._talk.wants(item, len(left))
                if reply is None or reply == "stop":
                    return "stopped" if reply else "nobody_to_ask"
                if reply == "no":
                    self._refused[_key(named)] += 1
                    continue
            if built and self._options.pause and not await self._talk.waited(self._options.pause):
                return "stopped"
            built = True
            if ending := self._judge(await self._build(item, named)):
                return ending
        return "done"

    def _check_item(self) -> None:
        items = read_items(self._app, self._path)
        found = next((each for each in items if each.number == self._options.item), None)
        if found is None:
            raise UsageProblem(f"{self._path} has {len(items)} items, so no number {self._options.item}.")
        if not buildable(items, found.number) and not self._unfinished:
            raise UsageProblem(f"Item {found.number} is {found.state.replace('_', ' ')}: {found.text}")

    def _left(self) -> list[tuple[Item, ChecklistItem]]:
        """Items still to be attempted, from the file as it is now; complete ones are no longer open in it."""
        done, left = Counter(self._refused), []
        for started in self._state.items[self._attempts_from :]:
            done[_key(started.item)] += self._result(started).state not in ("complete", "cancelled")
        items = read_items(self._app, self._path)
        texts = {each.number: each.text for each in items}
        for each in buildable(items, self._options.item):
            above = texts.get(each.parent, "")
            named = ChecklistItem(self._path, each.number, each.text, phase=each.phase, part_of=above)
            if done[_key(named)]:
                done[_key(named)] -= 1
            else:
                left.append((each, named))
        return left

    def _judge(self, result: ItemResult) -> Ending | None:
        """Why the run ends with this result, if it does."""
        self._talk.built(result)
        if result.state == "cancelled":
            return "stopped"
        if result.state != "complete" and not self._options.keep_going:
            return "not_complete"
        return "stopped" if self._talk.stopping else None

    # One item

    async def _build(self, item: Item, named: ChecklistItem) -> ItemResult:
        app, session_id = self._app, self._app.new_session()
        if app.options.mode is None and app.settings.mode == "ask":
            # The command is the user's word for the edits that the checks have accepted.
            await app.send(session_id, SetMode(mode="edit"))
        started = ItemStarted(
            checklist_id=self._state.checklist_id,
            item=named,
            session_id=session_id,
            message_id=new_id("m"),
            task=task_of(item),
        )
        self._record(started)
        return await self._finish(started)

    async def _finish(self, started: ItemStarted) -> ItemResult:
        """Build the item, or finish what a killed process began; nothing is sent or done twice."""
        app, session_id = self._app, started.session_id
        message = SendMessage(
            text=started.task, message_id=started.message_id, route=BUILD_ROUTE, item=started.item
        )
        async with self._talk.building(started.item, session_id):
            session = Session(app.log, session_id).load()
            waits = any(isinstance(each, SendMessage) for _, each in session.waiting())
            was_sent = waits or session.state.turns
            app.attach(session_id, begins=message.message_id)
            if not was_sent:
                await app.send(session_id, message)
            result = await follow_build(app, session_id, message, self._talk.saw)
        app.detach(session_id)
        return _item_result(started, result)

    def _result(self, started: ItemStarted) -> ItemResult:
        """What came of an item, as the log has it now."""
        app, session_id = self._app, started.session_id
        if found := self._ended.get(started.message_id):
            return found
        try:
            result = _item_result(started, build_result(app.log, session_id))
        except UsageProblem:  # its build has not begun, or was refused
            state: State = "failed" if app.state(session_id).turns else "idle"
            result = _item_result(started, BuildResult(state, started.task, session_id, run_id=""))
        if result.state in ENDS:
            self._ended[started.message_id] = result
        return result

    def report(self, ended: Ending) -> ChecklistReport:
        results = {}
        for started in self._state.items:  # an item that was stopped and tried again counts once
            results[_key(started.item), started.item.number] = self._result(started)
        found = tuple(each for each in results.values() if each.state not in ("cancelled", "idle"))
        items = read_items(self._app, self._path)
        states = Counter(each.state for each in found)
        costs = [each.cost_usd for each in map(self._result, self._state.items)]
        known = [each for each in costs if each is not None]
        return ChecklistReport(
            path=self._path,
            ended=ended,
            items=found,
            phases=progress(items),
            open=sum(each.state == "open" for each in items),
            attempted=len(found),
            complete=states["complete"],
            unverified=states["unverified"],
            failed=states["failed"],
            escalated=states["escalated"],
            paused=states["paused"],
            tokens=sum(self._result(each).tokens for each in self._state.items),
            cost_usd=sum(known) if len(known) == len(costs) else None,
            seconds=round(sum(each.seconds for each in found), 3),
        )


def _item_result(started: ItemStarted, result: BuildResult) -> ItemResult:
    item = started.item
    return ItemResult(
        number=item.number,
        text=item.text,
        phase=item.phase,
        state=result.state,
        detail=result.detail,
        files=result.files,
        proposed=tuple(file.path for file in result.proposed),
        corrections=result.corrections,
        tokens=result.tokens,
        cost_usd=result.cost_usd,
        seconds=result.seconds,
        session_id=started.session_id,
    )
