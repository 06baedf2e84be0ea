"""Routes a message by named agent, the user's choice, an answered question or rules; starts its run."""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from handrail.context.strategy import strategy_for
from handrail.engine.pipeline import IN_CONVERSATION, Catalogue, MessageFacts, Pipeline
from handrail.engine.router.build_words import asks_for_build
from handrail.engine.router.confidence import (
    ANSWER_ROUTE,
    TASKS_ROUTE,
    WORK_ROUTE,
    Thresholds,
    clarified,
    decide_by_rules,
    decide_by_selection,
    routed_event,
    with_scope,
)
from handrail.engine.router.word_rules import match_rules, match_task_rules
from handrail.engine.run_record import kept_before, stage_started
from handrail.models.model import Capabilities
from handrail.protocol.commands import SendMessage
from handrail.protocol.errors import ConfigProblem, PathProblem, UsageProblem
from handrail.protocol.events import Event, Routed, RunStarted, UserMessage
from handrail.protocol.ids import new_id
from handrail.protocol.values import (
    AUTO_ROUTE,
    CONTINUE_INPUT,
    FOLLOW_ROUTE,
    PLAN_ROUTE,
    ChecklistItem,
    Mode,
    RouterDecision,
)
from handrail.sessions.session_state import SessionState
from handrail.storage.event_log import Log
from handrail.workspace.files import Workspace

SCHEMA_NEEDS_ANSWER = (
    "{pipeline} gives its result in a form of its own, which cannot follow your schema. "
    "Send the message without `--output-schema`, or to `agent` or `chat`."
)
CHECK_NEEDS_WORK = (
    "A check needs work on files, and {pipeline} has no stage that does any. "
    "Send the message without `--check`, or to `agent`."
)
CHECK_AND_PLAN = (
    "`--check` goes with work on files, and making a plan changes no file. "
    "Each step of the plan can name its own check."
)
NO_PLAN = "There is no approved plan with open steps. `/plan TASK` makes one, `/plan approve` approves it."
BUILD_ROUTE = "build"
BY_WORDS = "taken as a verified build, as it says; `/route agent` keeps messages in the conversation"
AGENT_MENTION = re.compile(r"\s*@([a-z][a-z0-9-]*)(?=[\s,:]|\Z)[,:]?")
"""`@name` at the start of a message names an agent, unless there is a file of that name."""


class Route(NamedTuple):
    name: str  # empty: a model decides
    routed: Routed | None = None  # records the decision, where the user did not choose the route
    told: str = ""  # what the model needs to know to understand the message
    meant: str = ""  # the request, where the message only answers a question about it
    note: str = ""  # for the user: how the message was understood

    def in_mode(self, mode: Mode) -> "Route":
        """The same route; in mode `plan`, work is planned first."""
        return self._replace(name=PLAN_ROUTE) if mode == "plan" and self.name == WORK_ROUTE else self


class Router(NamedTuple):
    default: str  # the route of a message where nobody chose one
    answerable: bool  # whether a user is there to answer questions
    continues: bool  # whether an answer in steps continues by itself
    thresholds: Thresholds
    workspace: Workspace
    catalogue: Catalogue

    def route(self, command: SendMessage, state: SessionState, turn_id: str) -> Route:
        """The route of a message: the agent it names, the user's choice, a selection, or the rules' decision.

        Raises where it names an agent that is invalid or not trusted.
        """
        agent = self._named_agent(command)
        if agent.name:
            return agent
        return self._decide(command, state, turn_id).in_mode(state.mode)._replace(note=agent.note)

    def named_route(self, command: SendMessage) -> str:
        """The route that the message itself names, even if it cannot be used; empty: none."""
        if command.route and command.route != AUTO_ROUTE:
            return command.route
        found = None if command.suggested else AGENT_MENTION.match(command.text)
        name = found[1] if found else ""
        return name if name and not self._is_file(name) and self._is_agent(name) else ""

    def start(
        self,
        route: Route,
        turn_id: str,
        message: SendMessage | UserMessage,
        state: SessionState,
        *,
        log: Log,
        capabilities: Capabilities,
        by_schema: bool = False,
    ) -> list[Event]:
        """The events that start the run; none where a model has to decide the route first.

        `by_schema`: the last answer has to fit a schema of the user's.
        """
        if not route.name:
            return []
        named = AGENT_MENTION.match(message.text)
        asked = message.text[named.end() :].strip() if named and named[1] == route.name else message.text
        text = route.meant or asked
        if message.proposes and route.name == WORK_ROUTE:
            route = route._replace(name=ANSWER_ROUTE)
        # A user who chooses `chat` and clearly asks for work gets it, unless the model answers directly.
        works = text == CONTINUE_INPUT or match_rules(text).wish == "work"
        directly = strategy_for(capabilities).answers_directly
        reads_only = route.name == ANSWER_ROUTE and (
            route.routed is not None or directly or not works or by_schema or message.proposes
        )
        # Work for a model without native tools is done by one answer with changes, unless the user chose the
        # tool loop; then calls are written as text.
        by_answer = route.routed and route.name == WORK_ROUTE and not (capabilities.native_tools or by_schema)
        pipeline = self.catalogue.find(ANSWER_ROUTE if by_answer else route.name)
        if pipeline.name == PLAN_ROUTE:
            reads_only = state.mode not in ("plan", "explore")  # those modes also let commands read
        if pipeline.name == FOLLOW_ROUTE and not (state.plan and state.plan.open_steps(state.todos)):
            raise UsageProblem(NO_PLAN)
        if isinstance(message, SendMessage) and message.check:
            if pipeline.name in (PLAN_ROUTE, FOLLOW_ROUTE):
                raise UsageProblem(CHECK_AND_PLAN)
            if not pipeline.works:
                raise UsageProblem(CHECK_NEEDS_WORK.format(pipeline=pipeline.name))
        facts = MessageFacts(
            text,
            directly=directly,
            native_tools=capabilities.native_tools,
            reads_only=reads_only,
            proposes=message.proposes,
        )
        skips = self.catalogue.skipped(pipeline, facts)
        if by_schema and (pipeline.sha256 or pipeline.last(skips).kind not in IN_CONVERSATION):
            raise UsageProblem(SCHEMA_NEEDS_ANSWER.format(pipeline=pipeline.name))
        run = run_events(
            pipeline,
            turn_id,
            text,
            reads_only=reads_only,
            skips=skips,
            continues=self.continues_in(state, pipeline),
            kept=kept_before(log, pipeline),
            item=message.item if isinstance(message, SendMessage) else None,
        )
        return [route.routed, *run] if route.routed else run

    def continues_in(self, state: SessionState, pipeline: Pipeline) -> bool:
        """Whether the steps of a run continue by themselves: as the user said in the session, or set."""
        if state.routes.auto_continue is not None:
            return state.routes.auto_continue
        return self.continues or bool(pipeline.again and pipeline.again.always)

    def _named_agent(self, command: SendMessage) -> Route:
        """The agent that the first word of the message names; raises where it is invalid or not trusted."""
        found = AGENT_MENTION.match(command.text)
        if command.route not in ("", AUTO_ROUTE) or command.suggested or found is None:
            return Route("")
        name = found[1]
        if not self._is_file(name):
            return Route(name if self.catalogue.folders(name) else "")
        if not self._is_agent(name):
            return Route("")
        return Route("", note=f"{name}: taken as the file, not the agent; `/route {name}` runs the agent")

    def _decide(self, command: SendMessage, state: SessionState, turn_id: str) -> Route:
        chosen = command.route or state.routes.chosen or self.default
        if chosen != AUTO_ROUTE:
            return Route(chosen)
        if command.check:
            return Route(WORK_ROUTE)
        if command.selection is not None:
            picked = decide_by_selection(command.selection)
            return Route(TASKS_ROUTE, routed_event(turn_id, command.text, "answer", "it was picked", picked))
        asked = state.routes.question_for(command.seen)
        if asked and (answered := _route_of_answer(asked, command.text, turn_id)):
            return answered
        if state.mode not in ("plan", "explore") and not command.proposes and asks_for_build(command.text):
            return Route(BUILD_ROUTE, note=BY_WORDS)
        found = (match_task_rules if command.proposes else match_rules)(command.text)
        waits = state.mode == "plan" and state.plan and not state.plan.approved
        if waits and found.wish not in ("ask", "greet"):
            return Route(WORK_ROUTE)  # it says what should be different in the plan
        found = found._replace(sure=found.sure or (found.leans and state.turns > 0))
        if decision := decide_by_rules(found):
            decision = with_scope(decision, state.routes.confirmed, command.text)
            return Route(decision.decision, routed_event(turn_id, command.text, "rules", found.why, decision))
        if self.answerable:
            return Route("")
        # Nobody can be asked. Handrail was given a task, so an unclear message means work.
        decision = RouterDecision(decision="agent", confidence=0.0)
        return Route(
            WORK_ROUTE, routed_event(turn_id, command.text, "rules", "nobody can be asked", decision)
        )

    def _is_file(self, name: str) -> bool:
        try:
            return self.workspace.exists(name)
        except PathProblem:
            return False

    def _is_agent(self, name: str) -> bool:
        """Whether there is such an agent, even an invalid or untrusted one."""
        try:
            return self.catalogue.folders(name) is not None
        except (ConfigProblem, UsageProblem):
            return True


def check_route(route: str, catalogue: Catalogue) -> None:
    """Raises UsageProblem for a route that does not exist."""
    if route not in ("", AUTO_ROUTE):
        catalogue.find(route)


def _route_of_answer(asked: Routed, message: str, turn_id: str) -> Route | None:
    """The route of an answer to a clarify question; None where the message is no answer to it."""
    found = clarified(asked, message)
    if found is None:
        return None
    decision, chosen = found
    return Route(
        decision.decision,
        routed_event(turn_id, asked.message, "answer", f"you said: {chosen}", decision),
        told=f"[Handrail asked about the message before this one: {asked.decision.question} "
        f"The user chose: {chosen}. Go on with that message.]",
        meant=f"{asked.message}\n\n({asked.decision.question} {chosen})",
    )


def run_events(
    pipeline: Pipeline,
    turn_id: str,
    question: str,
    *,
    reads_only: bool = False,
    kept: Mapping[str, Any] = MappingProxyType({}),
    skips: tuple[str, ...] = (),
    continues: bool = False,
    item: ChecklistItem | None = None,
) -> list[Event]:
    """The events that start a run, to be committed with its turn; `kept`: values of earlier runs."""
    run_id, conversational = new_id("run"), pipeline.conversational(skips)
    started = RunStarted(
        run_id=run_id,
        turn_id=turn_id,
        pipeline=pipeline.name,
        question="" if conversational else question,
        conversational=conversational,
        reads_only=reads_only,
        skips=skips,
        continues=continues,
        sha256=pipeline.sha256,
        kept=dict(kept),
        item=item,
        mode=pipeline.mode,
        tools=pipeline.tools,
        sources=pipeline.sources,
        budget=_budget_text(pipeline) if pipeline.sha256 else "",
    )
    first = pipeline.first(skips)
    return [started, stage_started(run_id, pipeline, first, first.prompt, skips)]


def _budget_text(pipeline: Pipeline) -> str:
    tokens, usd = pipeline.budget
    parts = [f"{tokens:,} tokens"] if tokens is not None else []
    return " and ".join([*parts, f"${usd:.2f}"] if usd is not None else parts)
