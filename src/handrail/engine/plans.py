"""The user's commands about the plan as events, and what a turn may offer as next steps."""

from typing import Literal, NamedTuple

from handrail.protocol import commands
from handrail.protocol.events import Event, ModeSet, PlanApproved, PlanChanged, TodosChanged
from handrail.protocol.ids import new_id
from handrail.protocol.values import CONTINUE_INPUT, FOLLOW_ROUTE, FinishReason, NextStep
from handrail.sessions.session_state import SessionState
from handrail.sessions.turn_state import TurnState
from handrail.tools.todos_and_questions import add_todo

MAX_OFFERED = 3
APPROVE = NextStep("Approve it, and follow it step by step in mode edit", "/plan approve")
EDIT = NextStep("Edit it", "/plan edit")
FOLLOW = NextStep("Go on with the plan", "/plan follow")
CONTINUE = NextStep("Continue with the open todos", CONTINUE_INPUT)
TEST = NextStep("Run the tests", "Run the project's own tests, and say what fails.")
DIFF = NextStep("Show the diff", "/diff")
COMMIT = NextStep("Commit", "/commit")


def plan_events(state: SessionState, command: commands.SetPlan | commands.ApprovePlan) -> list[Event]:
    """The events that the command becomes; none where it approves a plan that is not the present one."""
    if isinstance(command, commands.SetPlan):
        return [PlanChanged(plan_id=new_id("p"), plan=command.plan, by="user")]
    plan = state.plan
    if plan is None or plan.plan_id != command.plan_id or plan.approved:
        return []
    todos = {todo.id: todo for todo in state.todos}
    # The user edited a plan that was being followed: a step that is still in it keeps its state.
    before = {(todo.text, todo.command): todo.id for todo in state.todos if todo.id in plan.todos}
    ids = []
    for step in plan.plan.steps:
        known = before.pop((step.description, step.check), None)
        ids.append(known or add_todo(todos, step.description, step.check))
    approved = PlanApproved(plan_id=plan.plan_id, todos=tuple(ids))
    # Nobody is to go on with a step that the user has removed.
    removed = {*plan.todos, *plan.replaced} - {*ids}
    kept = tuple(todo for todo in todos.values() if todo.done or todo.id not in removed)
    mode: list[Event] = [ModeSet(mode="edit")] if state.mode == "plan" else []
    return [approved, TodosChanged(todos=kept), *mode]


class OfferedSteps(NamedTuple):
    steps: tuple[NextStep, ...] = ()
    by: Literal["", "model", "handrail"] = ""


NOTHING_OFFERED = OfferedSteps()


def offered_steps(state: SessionState, turn: TurnState, reason: FinishReason, *, git: bool) -> OfferedSteps:
    """The next steps of a turn that has answered: the model's, else some that follow from what was done.

    `git`: there is something to commit to.
    """
    plan, run = state.plan, state.run
    goes_on = FOLLOW if plan and plan.open_steps(state.todos) else CONTINUE
    if reason != "answered":
        return NOTHING_OFFERED
    if plan and plan.turn == state.turns and not plan.approved:
        return OfferedSteps((APPROVE, EDIT), "handrail")
    if run and run.pipeline == FOLLOW_ROUTE and goes_on == FOLLOW:
        return OfferedSteps((FOLLOW, DIFF), "handrail")
    if run and run.spoke:
        return NOTHING_OFFERED  # a structured answer has its own
    if turn.offered:
        return OfferedSteps(turn.offered[:MAX_OFFERED], "model")
    if not turn.made:
        return NOTHING_OFFERED
    left = any(not (todo.done or todo.command) for todo in state.todos)
    steps = [
        *([goes_on] if left else []),
        *([] if turn.ran else [TEST]),
        DIFF,
        *([COMMIT] if git and state.uncommitted else []),
    ]
    return OfferedSteps(tuple(steps[:MAX_OFFERED]), "handrail")
