"""The state of the work in a workspace: what was built, what failed, what waits, what is open."""

from typing import TYPE_CHECKING

from handrail.app.builds.checklists import read_items
from handrail.pipelines.build.file_changes import is_applied_here
from handrail.pipelines.build.report import NAME, BuildResult, result_of
from handrail.pipelines.build.states import State
from handrail.protocol.errors import UsageProblem
from handrail.protocol.values import Value
from handrail.sessions.checklist_runs import checklist_runs
from handrail.sessions.past_runs import past_runs
from handrail.verification.documents.checklist import PhaseProgress, buildable, progress

if TYPE_CHECKING:
    from handrail.app.app import App

MAX_BUILDS = 20


class BuildState(Value):
    task: str
    state: State
    detail: str
    files: tuple[str, ...]
    proposed: tuple[str, ...]
    """Files of a proposal that is not in the workspace."""
    session_id: str
    at: float
    """When it began, in seconds since 1970."""


class OpenItem(Value):
    number: int
    text: str
    phase: str
    priority: str


class ChecklistState(Value):
    path: str
    problem: str
    """Why it cannot be read; then it has no items."""
    phases: tuple[PhaseProgress, ...]
    open: tuple[OpenItem, ...]
    stopped: bool
    """A run over it was stopped or killed, and goes on with the next call."""


class WorkStatus(Value):
    builds: tuple[BuildState, ...]
    """The latest first; of each task only its last build."""
    checklists: tuple[ChecklistState, ...]
    """Those that `handrail do` was called with."""


def work_status(app: "App") -> WorkStatus:
    latest: dict[str, BuildState] = {}
    for run in past_runs(app.log, NAME):
        if run.question not in latest and len(latest) < MAX_BUILDS:
            found = result_of(app.log, run)
            latest[run.question] = BuildState(
                task=run.question,
                state=found.state,
                detail=found.detail,
                files=found.files,
                proposed=_open_proposal(app, found),
                session_id=run.session_id,
                at=run.began,
            )
    unfinished = {run.path: not run.ended for run in checklist_runs(app.log)}
    return WorkStatus(
        tuple(latest.values()), tuple(_checklist(app, path, stopped) for path, stopped in unfinished.items())
    )


def _open_proposal(app: "App", result: BuildResult) -> tuple[str, ...]:
    if all(is_applied_here(app.workspace, file) for file in result.proposed):
        return ()  # the user has accepted it
    return tuple(file.path for file in result.proposed)


def _checklist(app: "App", path: str, stopped: bool) -> ChecklistState:
    try:
        items = read_items(app, path)
    except UsageProblem as problem:
        return ChecklistState(path, str(problem), (), (), stopped)
    left = tuple(OpenItem(each.number, each.text, each.phase, each.priority) for each in buildable(items))
    return ChecklistState(path, "", progress(items), left, stopped)
