"""What is known of a message's way before any model is asked."""

from typing import NamedTuple

from handrail.engine.menu import whole_number
from handrail.engine.pipeline.definition import Catalogue, Pipeline
from handrail.engine.routing.gates import SURE, Thresholds, by_rules, by_selection
from handrail.engine.routing.mentioned import mentioned_agent, named_agent
from handrail.engine.routing.rules import sign_of
from handrail.models.base import Capabilities
from handrail.protocol.commands import SendMessage
from handrail.protocol.errors import UsageProblem
from handrail.protocol.events import Routed
from handrail.protocol.routing import AUTO, Option, RouterDecision, Where
from handrail.protocol.structured import CONTINUE
from handrail.sessions.state import State
from handrail.workspace.files import Workspace

FEW_WORDS = 12
WORK, ANSWER, TASKS = "agent", "chat", "tasks"
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
    meant: str = ""
    """What is to be answered, where the message does not say that itself."""
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
    workspace: Workspace
    catalogue: Catalogue

    def of(self, command: SendMessage, state: State, turn_id: str) -> Way:
        """The way of a message: whom it is for, the user's word, what they picked, or what their words say.

        Raises where it is for an agent that is wrong or not trusted.
        """
        agent = mentioned_agent(command, self.workspace, self.catalogue)
        if agent.route:
            return Way(agent.route)
        return self._unmentioned(command, state, turn_id)._replace(noted=agent.note)

    def named(self, command: SendMessage) -> str:
        """The route that the message itself names, whether or not it can be taken; empty: none."""
        chosen = command.route if command.route != AUTO else ""
        return chosen or named_agent(command, self.workspace, self.catalogue)

    def _unmentioned(self, command: SendMessage, state: State, turn_id: str) -> Way:
        """Where nobody can be asked, what the words leave open is work: a task was given."""
        routes = state.routes
        wished = command.route or routes.chosen or self.usual
        if wished != AUTO:
            return Way(wished)
        if command.check:
            return Way(WORK)
        if command.selection is not None:
            picked = by_selection(command.selection)
            return Way(TASKS, _routed(turn_id, command.text, "answer", "it was picked", picked))
        asked = routes.question_for(command.seen)
        if asked and (answered := _answered(asked, command.text, turn_id)):
            return answered
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
    names = ((each, (each.id.casefold(), each.title.casefold())) for each in options)
    return next((each for each, known in names if said and said in known), None)


def _answered(asked: Routed, message: str, turn_id: str) -> Way | None:
    """The way of an answer to the question: an option of it, or a few words of the user's own."""
    option = option_of(asked, message)
    said = option.title if option else message.strip()
    if option is None and (sign_of(message).sure or not said or len(said.split()) > FEW_WORDS):
        return None
    wish = "" if option else sign_of(message).wish
    decision = _decided(asked, option, wish or sign_of(asked.message).wish)
    return Way(
        decision.decision,
        _routed(turn_id, asked.message, "answer", f"you said: {said}", decision),
        told=f"[Handrail asked about the message before this one: {asked.decision.question} "
        f"The user chose: {said}. Go on with that message.]",
        meant=f"{asked.message}\n\n({asked.decision.question} {said})",
    )


def _decided(asked: Routed, option: Option | None, wish: str) -> RouterDecision:
    """An option can be a way itself; what else is said goes where the words lean."""
    if option and option.id in (WORK, ANSWER, TASKS):
        way = option.id
    elif option and (asked.decision.where or wish == "tasks"):
        return by_selection(Where(ids=(option.id,)))
    else:
        way = WORK if wish == "work" else ANSWER
    return RouterDecision.model_validate({"decision": way, "confidence": SURE})


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
