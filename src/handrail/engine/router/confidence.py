"""Gates: how sure a routing decision must be, the question where it is not, and how decisions turned out.

a selection that answers a clarify      -> tasks, the filter seeded from it
rules that are sure                     -> as they say
no answer of the model, or unreadable   -> tasks for task requests, chat otherwise; no gate applies
clarify                                 -> clarify
confidence below `clarify_below`        -> clarify
a question that names nothing           -> chat, however sure the model is
up to `act_above`, naming nothing       -> chat
else                                    -> as decided
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from msgspec import convert
from msgspec.structs import replace

from handrail.engine.router.word_rules import RuleMatch, match_rules, menu_number, refers_back
from handrail.protocol.events import (
    ChangeApplied,
    ChangePrepared,
    Recorded,
    Routed,
    RouteSet,
    StageCompleted,
    UserMessage,
)
from handrail.protocol.values import RouteOption, RouterDecision, TaskFilter
from handrail.sessions.session import Session
from handrail.sessions.session_list import list_sessions
from handrail.storage.event_log import Log

WORK_ROUTE, ANSWER_ROUTE, TASKS_ROUTE = "agent", "chat", "tasks"
SURE = 1.0
MAX_ANSWER_WORDS = 12
CLARIFY_QUESTION = "Do you want an answer, or something done?"
OPTIONS = (
    RouteOption(id="chat", title="an answer; nothing is changed"),
    RouteOption(id="agent", title="do it in the files"),
)


class Thresholds(NamedTuple):
    clarify_below: float = 0.45
    act_above: float = 0.70


def decide_by_rules(match: RuleMatch) -> RouterDecision | None:
    """The decision of the rules; None where they are not sure."""
    if not match.sure:
        return None
    decisions = {"greet": "chat", "ask": "chat", "work": "agent", "tasks": "tasks"}
    return convert({"decision": decisions[match.wish], "confidence": SURE}, RouterDecision)


def with_scope(decision: RouterDecision, confirmed: TaskFilter | None, message: str) -> RouterDecision:
    """The decision, about the tasks that the user has just picked where a short message refers to them."""
    refers = len(message.split()) <= MAX_ANSWER_WORDS and refers_back(message)
    return replace(decision, where=confirmed) if refers and decision.decision == "tasks" else decision


def decide_without_model(match: RuleMatch) -> RouterDecision:
    """The decision where the model gave none that can be read."""
    return RouterDecision(decision="tasks" if match.wish == "tasks" else "chat", confidence=0.0)


def apply_gates(decision: RouterDecision, *, question: bool, thresholds: Thresholds) -> RouterDecision:
    """The model's decision, limited by its confidence; `question`: the message is a question."""
    if decision.decision == "clarify" or decision.confidence < thresholds.clarify_below:
        return _clarify(decision)
    if decision.strong or decision.decision == "chat":
        return decision
    to_chat = question or decision.confidence <= thresholds.act_above
    return replace(decision, decision="chat") if to_chat else decision


def routed_event(turn_id: str, message: str, by: str, why: str, decision: RouterDecision) -> Routed:
    """The event that records a decision; no route: the user is asked."""
    route = "" if decision.decision == "clarify" else decision.decision
    event = {
        "turn_id": turn_id,
        "message": message,
        "route": route,
        "by": by,
        "why": why,
        "decision": decision,
    }
    return convert(event, Routed)


# The question where a route is unclear, and the answer to it


class Clarified(NamedTuple):
    """The decision by the user's answer to a clarify question, and the answer in words."""

    decision: RouterDecision
    chosen: str


def _clarify(decision: RouterDecision) -> RouterDecision:
    """The decision to ask the user: the model's question with readable options, or the default question."""
    if not decision.question:
        return replace(decision, decision="clarify", question=CLARIFY_QUESTION, options=OPTIONS)
    titles = {option.id: option for option in OPTIONS}
    options = tuple(titles.get(option.id, option) for option in decision.options)
    return replace(decision, decision="clarify", options=options)


def decide_by_selection(where: TaskFilter) -> RouterDecision:
    return RouterDecision(decision="tasks", confidence=SURE, where=where)


def clarified(asked: Routed, message: str) -> Clarified | None:
    """The decision by an answer to the question: an option, or a few words; None where it is no answer."""
    option = _picked_option(asked.decision.options, message)
    chosen = option.title if option else message.strip()
    if option is None and (match_rules(message).sure or not chosen or len(chosen.split()) > MAX_ANSWER_WORDS):
        return None
    wish = "" if option else match_rules(message).wish
    return Clarified(_decision(asked, option, wish or match_rules(asked.message).wish), chosen)


def _picked_option(options: Sequence[RouteOption], message: str) -> RouteOption | None:
    """The option that a message picks by its number, its id or its title."""
    if number := menu_number(message):
        return options[number - 1] if number <= len(options) else None
    words = message.strip().rstrip(".!").casefold()
    named = (each for each in options if words in (each.id.casefold(), each.title.casefold()))
    return next(named, None) if words else None


def _decision(asked: Routed, option: RouteOption | None, wish: str) -> RouterDecision:
    if option and option.id in (WORK_ROUTE, ANSWER_ROUTE, TASKS_ROUTE):
        route = option.id
    elif option and (asked.decision.where or wish == "tasks"):
        return decide_by_selection(TaskFilter(ids=(option.id,)))
    else:
        route = WORK_ROUTE if wish == "work" else ANSWER_ROUTE
    return convert({"decision": route, "confidence": SURE}, RouterDecision)


# How decisions turned out, for setting the thresholds

PAGE_EVENTS = 500
CONFIDENCE_BANDS = (0.0, 0.45, 0.70, 0.85)  # where the bands of confidence begin


class RouteOutcome(NamedTuple):
    """A decision, whether files were changed, and whether the user chose another route next."""

    by: str
    route: str  # empty: the user was asked
    confidence: float
    applied: bool = False
    corrected: bool = False


class OutcomeCount(NamedTuple):
    by: str
    route: str
    band: str
    total: int
    applied: int
    corrected: int


def route_outcomes(log: Log) -> list[RouteOutcome]:
    """Outcomes in all sessions that are not deleted."""
    return [
        outcome
        for info in list_sessions(log)
        for outcome in _outcomes_of_session(_session_events(Session(log, info.id)))
    ]


def _outcomes_of_session(events: Iterable[Recorded]) -> list[RouteOutcome]:
    found: list[RouteOutcome] = []
    changes: set[str] = set()
    fresh = False  # no message has come since the last decision
    for recorded in events:
        match recorded.event:
            case Routed() as event:
                found.append(RouteOutcome(event.by, event.route, event.decision.confidence))
                fresh = True
            case UserMessage(steering=False):
                fresh = False
            case RouteSet() if found and fresh:
                found[-1] = found[-1]._replace(corrected=True)
            case ChangePrepared(by="agent") as event:
                changes.add(event.change_id)
            case StageCompleted(output={"applied": int(count)}) if found and found[-1].route == TASKS_ROUTE:
                found[-1] = found[-1]._replace(applied=count > 0)
            case ChangeApplied() as event if event.change_id in changes and found and fresh:
                found[-1] = found[-1]._replace(applied=True)
    return found


def count_outcomes(outcomes: Iterable[RouteOutcome]) -> list[OutcomeCount]:
    """Counts for each route, the most frequent first."""
    groups: dict[tuple[str, str, str], list[RouteOutcome]] = {}
    for each in outcomes:
        groups.setdefault((each.by, each.route, _confidence_band(each)), []).append(each)
    rows = [
        OutcomeCount(*key, len(group), sum(one.applied for one in group), sum(one.corrected for one in group))
        for key, group in groups.items()
    ]
    return sorted(rows, key=lambda row: (-row.total, row))


def _confidence_band(outcome: RouteOutcome) -> str:
    if outcome.by != "model":
        return ""
    begin = max(each for each in CONFIDENCE_BANDS if each <= outcome.confidence)
    end = next((each for each in CONFIDENCE_BANDS if each > begin), 1.0)
    return f"{begin:.2f}-{end:.2f}"


def _session_events(session: Session) -> Iterable[Recorded]:
    seq = 0
    while page := session.read_after(seq, PAGE_EVENTS):
        seq = page[-1].seq
        yield from page
