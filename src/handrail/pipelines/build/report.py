"""What a build came to, and figures about all builds: read from the log."""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from msgspec import convert
from msgspec.structs import replace

from handrail.changes.forms.document import Change, CreateChange, DeleteChange, Document, RewriteChange
from handrail.pipelines.build.states import (
    APPLY,
    ASSEMBLE,
    BASELINE,
    BRIEF,
    ENDS,
    PLAN,
    REVIEW,
    VERIFY,
    State,
    history_of,
)
from handrail.protocol.errors import UsageProblem
from handrail.protocol.events import (
    Event,
    GateFailed,
    RunFailed,
    RunPaused,
    RunRepaired,
    RunStarted,
    StageCompleted,
)
from handrail.protocol.ids import session_stream
from handrail.protocol.values import Value
from handrail.sessions.past_runs import PastRun, past_runs, runs_of_session
from handrail.storage.event_log import Log
from handrail.tools.reports.issue import CheckResult
from handrail.verification.proposed import ProposedFile

NAME = "build"
STATUSES: dict[State, int] = {"complete": 0, "unverified": 5, "escalated": 6, "paused": 3, "cancelled": 130}
"""Exit statuses; every other state is a failure."""


class StateChange(Value):
    before: str
    step: str
    after: str
    why: str = ""


class Round(Value):
    """One answer with code, and what came of it."""

    strategy: str
    """What the model was shown: the plan, or a kind of issues."""
    problems: tuple[str, ...] = ()
    """Why it did not pass a gate; empty: it did."""
    rolled_back: bool = False
    """It was worse than one before."""


class BuildResult(Value):
    """How a build ended, for people and programs."""

    state: State
    task: str
    session_id: str
    run_id: str
    detail: str = ""
    """Why it is not complete, or what it waits for."""
    objective: str = ""
    audited_by: str = ""
    variant: str = ""
    """How a small model built it; empty: the usual way."""
    files: tuple[str, ...] = ()
    """Files that were changed in the workspace; those of a proposal are in `proposed`."""
    proposed: tuple[ProposedFile, ...] = ()
    """Not applied: unverified, or the best that did not pass; without the tick of a checklist."""
    accepted_in: str = ""
    """The session of the change set with the proposal, if the user has accepted it now."""
    rounds: tuple[Round, ...] = ()
    """What was tried, in order."""
    checks: tuple[CheckResult, ...] = ()
    notes: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    """Commands of the plan that ran in the copy."""
    packages: tuple[str, ...] = ()
    """What of them was repeated in the workspace, by folder; `undo` does not take it back."""
    in_workspace: str = ""
    """Why the files were tried in the workspace itself; empty: in a copy."""
    candidates: int = 1
    """Independent answers that were verified."""
    corrections: int = 0
    replans: int = 0
    tokens: int = 0
    cost_usd: float | None = None
    seconds: float = 0.0
    history: tuple[StateChange, ...] = ()

    @property
    def exit_status(self) -> int:
        return STATUSES.get(self.state, 1)

    @property
    def undo(self) -> str:
        """The command that takes the files back."""
        return f"handrail undo --session {self.accepted_in or self.session_id}" if self.files else ""

    @property
    def accept(self) -> str:
        """The command that applies the proposal, if there is one."""
        return f"handrail build --accept {self.session_id}" if self.proposed and not self.files else ""


def build_result(log: Log, session_id: str, run_id: str = "") -> BuildResult:
    """The result of a build of the session, by default of the last one; raises UsageProblem without one."""
    runs = [run for run in runs_of_session(log, session_stream(session_id)) if run.pipeline == NAME]
    found = [run for run in runs if run.run_id == run_id or not run_id]
    if not found:
        raise UsageProblem(f'Session {session_id} has no build. `handrail build "TASK"` starts one.')
    return result_of(log, found[-1])


def result_of(log: Log, run: PastRun) -> BuildResult:
    events = [one.event for one in run.events]
    history = history_of(events)
    outputs = _outputs(log, run, (BASELINE, PLAN, REVIEW, ASSEMBLE, VERIFY, APPLY))
    verified = outputs.get(VERIFY, {})
    candidates = max([1, *(each.get("candidate", 0) for each in verified.get("rounds", []))])
    repairs = [event for event in events if isinstance(event, RunRepaired)]
    details = [event.detail for event in events if isinstance(event, RunFailed)]
    details += [event.text for event in events if isinstance(event, RunPaused) and history.state == "paused"]
    proposed = verified.get("verified", []) if history.state == "unverified" else []
    if history.state in ("escalated", "failed") and APPLY not in outputs:
        proposed = (verified.get("best") or {}).get("files", [])
    item = next((event.item for event in events if isinstance(event, RunStarted)), None)
    proposed = [file for file in proposed if item is None or file["path"] != item.path]
    return BuildResult(
        state=history.state,
        task=run.question,
        session_id=run.session_id,
        run_id=run.run_id,
        detail=details[-1] if details else "",
        objective=outputs.get(PLAN, {}).get("objective", ""),
        audited_by=outputs.get(REVIEW, {}).get("by", ""),
        variant=outputs.get(PLAN, {}).get("variant", ""),
        files=tuple(outputs.get(APPLY, {}).get("paths", [])),
        proposed=convert(proposed, tuple[ProposedFile, ...]),
        rounds=tuple(_rounds(log, events)),
        checks=convert(verified.get("checks", []), tuple[CheckResult, ...]),
        notes=tuple(verified.get("notes", [])),
        commands=tuple(each["command"] for each in outputs.get(ASSEMBLE, {}).get("commands", [])),
        packages=tuple(outputs.get(APPLY, {}).get("packages", [])),
        in_workspace=outputs.get(BASELINE, {}).get("in_workspace", ""),
        candidates=candidates,
        corrections=sum(event.last == VERIFY for event in repairs) - candidates + 1,
        replans=sum(event.last != VERIFY for event in repairs),
        tokens=run.tokens,
        cost_usd=run.usd,
        seconds=round(run.ended - run.began, 3),
        history=tuple(
            StateChange(each.before, each.step, each.after, each.why) for each in history.transitions
        ),
    )


def _rounds(log: Log, events: Sequence[Event]) -> list[Round]:
    found: list[Round] = []
    for event in events:
        match event:
            case StageCompleted() if event.stage == BRIEF:
                found.append(Round(strategy=_output(log, event).get("strategy", "")))
            case GateFailed(issues=issues) if found:
                found[-1] = replace(found[-1], problems=issues)
            case StageCompleted() if event.stage == VERIFY:
                rounds = _output(log, event).get("rounds", [])
                found[-1] = replace(found[-1], rolled_back=bool(rounds) and rounds[-1]["rolled_back"])
    return found


def _outputs(log: Log, run: PastRun, stages: Sequence[str]) -> dict[str, Any]:
    """The last outputs of these stages, as far as they are still stored."""
    events = (one.event for one in run.events)
    return {
        event.stage: _output(log, event)
        for event in events
        if isinstance(event, StageCompleted) and event.stage in stages
    }


def _output(log: Log, event: StageCompleted) -> dict[str, Any]:
    data = log.blob(event.blob) if event.output is None else None
    found: dict[str, Any] = json.loads(data) if data else event.output or {}
    return found


def proposal_of(result: BuildResult) -> Document | None:
    """The files of a build that is not complete as a proposal that the user can apply; None without any."""
    changes: list[Change] = []
    for file in result.proposed:
        if file.text is None:
            changes.append(DeleteChange(file.path, file.base))
        elif file.base:
            changes.append(RewriteChange(file.path, file.text, file.base))
        else:
            changes.append(CreateChange(file.path, file.text))
    return Document(tuple(changes), summary=f"{result.state} build: {result.objective}") if changes else None


class BuildCounts(NamedTuple):
    """Figures about builds that have ended."""

    builds: int
    complete: int
    unverified: int
    failed: int
    escalated: int
    cancelled: int
    at_first: int
    """Complete without a correction or a second candidate."""
    needed_user: int
    """Escalated, or it asked the user about its plan or a command."""
    issues: int
    """Different issues and demands that the first round of each build left."""
    corrected: int
    """Those of them that the files kept at the end do not have."""
    tokens: int
    cost_usd: float | None


def build_counts(log: Log) -> BuildCounts:
    states: dict[State, int] = dict.fromkeys(ENDS, 0)
    at_first = needed_user = issues = corrected = tokens = 0
    usd: float | None = 0.0
    for run in past_runs(log, NAME):
        result = result_of(log, run)
        if result.state not in ENDS:
            continue
        states[result.state] += 1
        at_first += result.state == "complete" and not result.corrections and result.candidates == 1
        rounds = _outputs(log, run, (VERIFY,)).get(VERIFY, {}).get("rounds", [])
        if rounds:
            kept = [each for each in rounds if not each["rolled_back"]][-1]
            issues += len(rounds[0]["signature"])
            corrected += len({*rounds[0]["signature"]} - {*kept["signature"]})
        needed_user += result.state == "escalated" or _asked(log, run)
        tokens += result.tokens
        usd = None if usd is None or result.cost_usd is None else usd + result.cost_usd
    return BuildCounts(
        builds=sum(states.values()),
        complete=states["complete"],
        unverified=states["unverified"],
        failed=states["failed"],
        escalated=states["escalated"],
        cancelled=states["cancelled"],
        at_first=at_first,
        needed_user=needed_user,
        issues=issues,
        corrected=corrected,
        tokens=tokens,
        cost_usd=usd,
    )


def _asked(log: Log, run: PastRun) -> bool:
    """Whether the run waited for the user: at a pause, or with a question about a command."""
    first, last = run.events[0].seq, run.events[-1].seq
    return any(
        row.type in ("run_paused", "approval_asked") and row.seq <= last
        for row in log.read(session_stream(run.session_id), first)
    )
