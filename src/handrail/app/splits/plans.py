"""Plans of splits: by a model, by code over files, from a checklist or a file; each kept in a session."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import anyio
from anyio.to_thread import run_sync
from msgspec.structs import replace

from handrail.app.builds.checklists import checklist_path, read_items, task_of
from handrail.config.open_file import open_file
from handrail.context.strategy import strategy_for
from handrail.engine.host.turn_factory import price
from handrail.engine.requests.model_requests import SIDE_CALL_CUT, SideCall
from handrail.engine.split.conductor import SplitSession, open_split, plan_of
from handrail.engine.split.graph import check_plan
from handrail.engine.split.planner import ask_for_plan, for_items, granularity_for, map_over
from handrail.protocol.errors import PathProblem, UsageProblem
from handrail.protocol.events import SplitPlanned, SplitStarted
from handrail.protocol.globs import covers
from handrail.protocol.ids import session_stream
from handrail.protocol.json_input import read_json
from handrail.protocol.subtask import Granularity, PlanSource, RunOn, SplitLimits, SplitPlan, Strategy
from handrail.protocol.values import ChecklistItem
from handrail.sessions.session import Session
from handrail.verification.documents.checklist import buildable
from handrail.workspace.files import MAX_FILE_BYTES
from handrail.workspace.stat_index import snapshot

if TYPE_CHECKING:
    from handrail.app.app import App

BYTES_PER_TOKEN = 3.5
HOLD_TRIES, HOLD_SECONDS = 10, 0.02
MAX_TITLE, ANSWERS_LOOKED_AT = 70, 200
CUT_AT_LENGTH = ('"end":"length"', f'"problem":"{SIDE_CALL_CUT["length"]}"')
PATHS = re.compile(r"@?([\w./-]+\.\w{1,8})")


class SplitOptions(NamedTuple):
    files: tuple[str, ...] = ()
    """Patterns: the task is done for each file that they match, without asking a model for a plan."""
    granularity: Granularity | None = None
    """None: by rules."""
    strategy: Strategy = "graph"
    limits: SplitLimits = SplitLimits()
    run_on: RunOn | None = None


async def plan_task(app: "App", task: str, options: SplitOptions) -> str:
    """The session with a plan for the task, which waits for the user to start it."""
    sizes = await run_sync(file_sizes, app, options.files)
    if options.files and not sizes:
        raise UsageProblem(
            f"No text file here matches {', '.join(options.files)}. Patterns are relative to the root."
        )
    split = _new_split(app, task, options.run_on)
    try:
        model = (await app.model_pool.models(split.session))[0]
        small = strategy_for(model.capabilities).searches
        granularity = options.granularity or granularity_for(
            sizes if options.files else None, truncated=_was_cut(app), small=small
        )
        source: PlanSource = "map" if options.files else "model"
        if options.files:
            subtasks = map_over(task, sizes, granularity)
        else:
            side = SideCall(split.session, model, "main", price)
            subtasks = await ask_for_plan(side, task, sizes, granularity)
        whole = "" if options.files else task
        plan = SplitPlan(
            whole or task, subtasks, options.strategy, granularity, options.limits, run_on=options.run_on
        )
        split.session.append(SplitPlanned(plan, source))
    finally:
        split.session.release()
    return split.session.id


def plan_checklist(app: "App", path: str, options: SplitOptions, most: int | None = None) -> str:
    """The same for the first open items of a checklist, each a subtask; it names the files that it is about.

    `most`: None for all of them.
    """
    place = checklist_path(app, path)
    items = read_items(app, place)
    texts = {each.number: each.text for each in items}
    sizes = file_sizes(app, ())
    wanted, files, tasks = [], dict[int, tuple[str, ...]](), dict[int, str]()
    for each in buildable(items)[:most]:
        named = ChecklistItem(
            place, each.number, each.text, phase=each.phase, part_of=texts.get(each.parent, "")
        )
        wanted.append((each, named))
        tasks[each.number] = task_of(each)
        files[each.number] = tuple(dict.fromkeys(PATHS.findall(tasks[each.number])))
        if not files[each.number]:
            raise UsageProblem(
                f"Item {each.number} of {path} names no file, so it cannot be a subtask: {each.text}. Name"
                " the files that it is about in its text, or build it with `handrail do` without --parallel."
            )
    if not wanted:
        raise UsageProblem(f"{path} has no open item.")
    found = []
    for one in for_items(wanted, tasks, files):
        there = tuple(name for name in one.files if name in sizes)
        found.append(replace(one, files=there, writes=one.files))
    plan = SplitPlan(
        f"The open items of {path}",
        tuple(found),
        options.strategy,
        "fine",
        options.limits,
        {one.id: named for one, (_, named) in zip(found, wanted, strict=True)},
        options.run_on,
    )
    return keep_plan(app, plan, "checklist")


def read_plan(data: bytes) -> SplitPlan:
    """The plan in a file; raises UsageProblem that says what is wrong with it, and where."""
    return read_json(data, SplitPlan, "plan", "file")


def keep_plan(app: "App", plan: SplitPlan, source: PlanSource = "file") -> str:
    """A session with this plan, which waits for the user to start it."""
    plan = _checked(plan)
    split = _new_split(app, plan.task, plan.run_on)
    split.session.append(SplitPlanned(plan, source))
    split.session.release()
    return split.session.id


async def change_plan(app: "App", session_id: str, plan: SplitPlan) -> None:
    """Put an edited plan in place of one that was not started."""
    plan = _checked(plan)
    split = await held_split(app, session_id)
    try:
        if split.state.started:
            raise UsageProblem(
                "This split has been started, so its plan stays. Cancel subtasks, or start a new one."
            )
        if plan != split.state.plan:
            split.session.append(SplitPlanned(plan, "file"))
    finally:
        split.session.release()


def _checked(plan: SplitPlan) -> SplitPlan:
    """The plan without items of subtasks that were taken out; raises UsageProblem where it cannot be run."""
    check_plan(plan)
    known = {each.id for each in plan.subtasks}
    return replace(plan, items={name: item for name, item in plan.items.items() if name in known})


async def held_split(app: "App", session_id: str) -> SplitSession:
    """The split of the session, held by this process; raises UsageProblem where another one has it."""
    known_split(app, session_id)
    app.detach(session_id)
    session = Session(app.log, session_id).load()
    if not await try_hold(session):
        raise UsageProblem(
            f"Another Handrail works on {session_id}. Wait for it, or stop it with `handrail splits pause"
            f" {session_id}`."
        )
    return open_split(session)


async def try_hold(session: Session) -> bool:
    """Whether this process holds the session now. Who only looks whether it is held has it for a moment."""
    for _ in range(HOLD_TRIES):
        if session.try_hold():
            return True
        await anyio.sleep(HOLD_SECONDS)
    return False


def known_split(app: "App", session_id: str) -> SplitSession:
    """The split of the session, as of now; raises UsageProblem where it has none."""
    if not app.log.head(session_stream(session_id)):
        raise UsageProblem(f"There is no split {session_id!r}. `handrail splits` lists them.")
    split = open_split(Session(app.log, session_id).load())
    if split.state.plan is None:
        raise UsageProblem(
            f"The session {session_id} has no plan of subtasks. `handrail splits` lists those that do."
        )
    return split


def known_plan(app: "App", session_id: str) -> SplitPlan:
    return plan_of(known_split(app, session_id).state)


def start_plan(app: "App", split: SplitSession) -> None:
    """Store the contents of all files of the plan; from here on, subtasks work with these."""
    plan = plan_of(split.state)
    base: dict[str, str] = {}
    blobs: list[bytes] = []
    named = dict.fromkeys(path for each in plan.subtasks for path in (*each.files, *each.writes))
    trees = [path for each in plan.subtasks if each.needs == "tree" for path in each.writes]
    inside = [path for path in file_sizes(app, ()) if any(_is_below(path, each) for each in trees)]
    for path in (*named, *(path for path in inside if path not in named)):
        place = app.workspace.resolve(path)
        if not place.inside or place.secret or place.in_state or place.in_git:
            raise PathProblem(
                f"{path} is outside the workspace, or may hold secrets: no subtask can have it. Take it"
                " out of the plan.",
                "protected_path",
                path,
            )
        if not path.endswith("/") and app.workspace.exists(place):
            file = app.workspace.read(place)
            base[path] = file.sha256
            blobs.append(file.data)
    split.session.append(SplitStarted(base), blobs=blobs)


def _is_below(path: str, folder: str) -> bool:
    return folder.endswith("/") and path.startswith(folder)


def file_sizes(app: "App", patterns: Sequence[str]) -> dict[str, int]:
    """Tokens of the text files that match, by path; of all where there is no pattern."""
    index = snapshot(app.workspace.root)
    return {
        path: max(1, round(found.size / BYTES_PER_TOKEN))
        for path, found in sorted(index.files.items())
        if found.size <= MAX_FILE_BYTES
        and (found.size or not patterns)  # in an empty file there is nothing to do
        and (not patterns or any(covers(each, path) for each in patterns))
        and _is_text(app, path)
    }


def _is_text(app: "App", path: str) -> bool:
    try:
        place = app.workspace.resolve(path)
        if place.secret or place.in_state:
            return False
        with open_file(place.absolute, follow=False) as file:
            return b"\0" not in file.read(1024)
    except (PathProblem, OSError):
        return False


def _was_cut(app: "App") -> bool:
    """Whether one of the last answers here, also of subtasks, was cut off at its length limit."""
    answers = [data for _, data in app.log.of_types(("answered", "side_answered"))]
    return any(each in data for data in answers[-ANSWERS_LOOKED_AT:] for each in CUT_AT_LENGTH)


def queue_place(app: "App") -> tuple[str, str]:
    """The URL of the queue's database, and the workspace's name in it; raises UsageProblem without one."""
    from handrail.engine.durable.queue import check_installed

    check_installed()
    if not app.settings.database.url:
        raise UsageProblem(
            "Workers get their jobs from a PostgreSQL database, and none is set. Set it with `handrail config"
            " set database.url postgresql://USER@HOST/DATABASE`, or run the subtasks here, without --workers."
        )
    return app.settings.database.url, app.settings.database.name_of(app.workspace.root)


def _new_split(app: "App", task: str, run_on: RunOn | None) -> SplitSession:
    """A session for the plan; raises UsageProblem, before a model is paid for it, where it could not run."""
    if run_on == "workers":
        queue_place(app)
    title = f"split: {' '.join(task.split())}"
    return open_split(app.proposals.open_session(title[:MAX_TITLE]))
