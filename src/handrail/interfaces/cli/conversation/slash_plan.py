"""The slash commands /plan and /auto."""

from typing import TYPE_CHECKING

from handrail.interfaces.cli.conversation.slash_changes import require_idle_session
from handrail.interfaces.cli.render.events import text_lines
from handrail.protocol import commands
from handrail.protocol.errors import UsageProblem
from handrail.protocol.plan import plan_as_text, plan_from_text
from handrail.protocol.values import FOLLOW_INPUT, FOLLOW_ROUTE, PLAN_ROUTE

if TYPE_CHECKING:
    from handrail.app.history.sessions import PlanState
    from handrail.interfaces.cli.conversation.conversation import Conversation

NO_PLAN = "There is no plan in this session. `/plan TASK` makes one."
WAYS = "/plan approve follows it, /plan edit changes it; or write what should be different"
EDIT_LINE = "/plan edit"


async def plan(talk: "Conversation", argument: str) -> None:
    verb, rest = (*argument.split(maxsplit=1), "", "")[:2]
    match verb.lower(), bool(rest):
        case "", _:
            show_plan(talk)
        case "edit", False:
            require_idle_session(talk)
            talk.compose(f"{EDIT_LINE}\n{plan_as_text(planned(talk).plan)}")
        case "edit", True:
            require_idle_session(talk)
            await talk.send(commands.SetPlan(plan=plan_from_text(rest)))
        case "approve", False:
            require_idle_session(talk)
            if planned(talk).approved:
                raise UsageProblem("This plan is already approved. `/plan follow` goes on with it.")
            await talk.send(commands.ApprovePlan(plan_id=planned(talk).plan_id))
            await follow(talk)
        case "follow", False:
            require_idle_session(talk)
            if not planned(talk).approved:
                raise UsageProblem("The plan is not approved. `/plan approve` approves and follows it.")
            await follow(talk)
        case _:
            state = talk.app.state(talk.session_id) if talk.session_id else None
            if (state.mode if state else talk.app.settings.mode) != "plan":
                await talk.send(commands.SetMode(mode="plan"))
            await talk.send(commands.SendMessage(text=argument, route=PLAN_ROUTE))


async def follow(talk: "Conversation") -> None:
    await talk.send(commands.SendMessage(text=FOLLOW_INPUT, route=FOLLOW_ROUTE))


def planned(talk: "Conversation") -> "PlanState":
    found = talk.app.state(talk.session_id).plan if talk.session_id else None
    if found is None:
        raise UsageProblem(NO_PLAN)
    return found


def show_plan(talk: "Conversation") -> None:
    found, todos = planned(talk), talk.app.state(talk.session_id).todos
    talk.say(text_lines(plan_as_text(found.plan), talk.width))
    if not found.approved:
        talk.tell("plan", f"not approved: {WAYS}")
        return
    left = found.open_steps(todos)
    done = f"{len(found.plan.steps) - len(left)} of {len(found.plan.steps)} steps are done"
    talk.tell(
        "plan", f"approved, {done}" + (f"; /plan follow goes on with step {left[0].number}" if left else "")
    )


async def auto(talk: "Conversation", argument: str) -> None:
    if argument in ("on", "off"):
        await talk.send(commands.SetAutoContinue(on=argument == "on"))
        return
    if argument:
        raise UsageProblem("Say /auto on or /auto off.")
    chosen = talk.app.state(talk.session_id).routes.auto_continue if talk.session_id else None
    now = talk.app.settings.auto_continue if chosen is None else chosen
    how = "" if chosen is not None else ", from the settings; a plan continues by itself anyway"
    talk.tell("auto", f"{'on' if now else 'off'}{how}. On: requests of several steps continue by themselves.")
