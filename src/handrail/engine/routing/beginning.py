"""What is known of a message's way before any model is asked."""

from typing import NamedTuple

from handrail.engine.menu import whole_number
from handrail.engine.pipeline.definition import Catalogue, Pipeline
from handrail.engine.routing.gates import SURE, Thresholds, by_rules, by_selection
from handrail.engine.routing.rules import sign_of
from handrail.models.base import Capabilities
from handrail.protocol.commands import SendMessage
from handrail.protocol.errors import UsageProblem
from handrail.protocol.events import Routed
from handrail.protocol.routing import Option, RouterDecision, Where
from handrail.protocol.structured import CONTINUE
from handrail.sessions.state import State

AUTO, WORK, ANSWER, TASKS = "auto", "agent", "chat", "tasks"
NO_TASKS = (
    "This is about a list of your own tasks, and Handrail does not keep one yet. "
    "If it is about the files here, `/route agent` sends your messages to work on them."
)


class Way(NamedTuple):
    """Where a message goes; no route: a model is to be asked."""

    route: str
    routed: Routed | None = None
    """To be recorded, where it was not the user who said it."""
    told: str = ""
    """What the model has to know to understand the message."""
    noted: str = ""
    """What the user has to know of how it was understood."""


class Ways(NamedTuple):
    """How messages find their way, as the settings say."""

    usual: str
    """The route of a message where nobody chose one."""
    answerable: bool
    """Whether somebody can be asked."""
    continues: bool
    """Whether an answer in steps goes on by itself."""
    thresholds: Thresholds

    def of(self, command: SendMessage, state: State, turn_id: str) -> Way:
        """The way of a message: the user's word first, then what they picked, then their words.

        Where nobody can be asked, what the words leave open is work: a task was given.
        """
        routes = state.routes
        wished = command.route or routes.chosen or self.usual
        if wished != AUTO:
            return Way(wished)
        if command.check:
            return Way(WORK)
        if command.selection is not None:
            picked = by_selection(command.selection)
            return Way(TASKS, _routed(turn_id, command.text, "answer", "it was picked", picked))
        if routes.asked and (option := option_of(routes.asked, command.text)):
            return _answered(routes.asked, option, turn_id)
        sign = sign_of(command.text)
        sign = sign._replace(sure=sign.sure or (sign.leans and state.turns > 0))
        if decision := by_rules(sign):
            return Way(decision.decision, _routed(turn_id, command.text, "rules", sign.why, decision))
        if self.answerable:
            return Way("")
        decision = RouterDecision(decision="agent", confidence=0.0)
        return Way(WORK, _routed(turn_id, command.text, "rules", "nobody can be asked", decision))


def check_route(route: str, catalogue: Catalogue) -> None:
    """Raises UsageProblem for a route that nobody knows."""
    if route not in ("", AUTO, TASKS):
        catalogue.find(route)


def pipeline_of(way: Way, catalogue: Catalogue, capabilities: Capabilities) -> Pipeline:
    """The pipeline of a way; raises UsageProblem where there is none.

    Work that Handrail sends to a model without tools of its own is done by one answer with changes; who
    chooses the tool loop gets it, with calls that are written down.
    """
    if way.route == TASKS and TASKS not in catalogue.pipelines:
        raise UsageProblem(NO_TASKS)
    toolless = not (capabilities.native_tools or capabilities.one_action)
    return catalogue.find(ANSWER if toolless and way.routed and way.route == WORK else way.route)


def only_asks(route: str, message: str, *, decided: bool, small: bool) -> bool:
    """Whether a message on its way may change nothing; `decided`: it was Handrail that sent it there.

    Whoever chooses the way of answers and clearly wants work gets it there, but not from a small model.
    """
    works = message == CONTINUE or sign_of(message).wish == "work"
    return route == ANSWER and (decided or small or not works)


def option_of(asked: Routed, message: str) -> Option | None:
    """The option that a message picks: by its number, its id or its words; nothing else counts."""
    options = asked.decision.options
    number = whole_number(message)
    if number:
        return options[number - 1] if number <= len(options) else None
    said = message.strip().rstrip(".!").casefold()
    return next((each for each in options if said in (each.id.casefold(), each.title.casefold())), None)


def _answered(asked: Routed, option: Option, turn_id: str) -> Way:
    """The way that was picked, or the task list with what was picked of it."""
    told = (
        f"[Handrail asked about the message before this one: {asked.decision.question} "
        f"The user chose: {option.title}. Go on with that message.]"
    )
    if option.id in (WORK, ANSWER, TASKS):
        decision = RouterDecision.model_validate({"decision": option.id, "confidence": SURE})
    else:
        decision = by_selection(Where(ids=(option.id,)))
    return Way(
        decision.decision,
        _routed(turn_id, asked.message, "answer", f"you chose: {option.title}", decision),
        told,
    )


def _routed(turn_id: str, message: str, by: str, why: str, decision: RouterDecision) -> Routed:
    return Routed.model_validate(
        {
            "turn_id": turn_id,
            "message": message,
            "route": decision.decision,
            "by": by,
            "why": why,
            "decision": decision,
        }
    )
