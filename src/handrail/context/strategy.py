"""How a model is worked with. Whatever differs between capable and small models is asked of its strategy."""

import platform
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Literal, NamedTuple

from handrail.context.agents_md import project_notes
from handrail.context.message_context import known_files_table, status_block
from handrail.context.prompt import Prompt, intent_prompt, system_prompt
from handrail.models.model import Capabilities, Model, Request, ToolSpec
from handrail.protocol.events import CheckFinished
from handrail.protocol.values import NEXT_STEPS_TOOL, FileSeen
from handrail.sessions.files_seen import SeenFile
from handrail.sessions.session import Session
from handrail.sessions.session_state import SessionState
from handrail.sessions.turn_state import TurnState
from handrail.workspace.files import Workspace
from handrail.workspace.intents_file import IntentList


def strategy_for(capabilities: Capabilities) -> "Strategy":
    """The strategy for a model: the only place that decides which models are small."""
    if not capabilities.one_action:
        return CAPABLE
    from handrail.context.small.strategy import SMALL

    return SMALL


class PromptFacts(NamedTuple):
    """What a session's prompt is built from."""

    workspace: Workspace
    tools: Sequence[ToolSpec]
    notes_chars: int
    skills: Sequence[tuple[str, str]] = ()
    """Name and description of each skill that can be used."""
    sources: Sequence[tuple[str, str]] = ()
    """The same of sources."""
    sources_chars: int = 1_500
    intents: IntentList | None = None
    active: str = ""
    """Id of the session's intent."""
    message: str = ""
    """The message that began the turn; empty where no turn runs."""
    greets: bool = False
    seen: Mapping[str, SeenFile] = {}
    """Files that the model has been shown, the latest last."""
    checked: bool = False
    """The turn has a check that its answer must pass."""


class Attempt(NamedTuple):
    number: int
    """From 1."""
    task: str
    command: str
    before: CheckFinished
    """The result of the check before the first attempt."""
    failed: CheckFinished | None = None
    """The result of the check after the previous attempt."""


class Briefing(NamedTuple):
    """What an attempt tells the model."""

    text: str
    files: tuple[FileSeen, ...] = ()


class Strategy:
    """The strategy for capable models: they are offered tools, and decide themselves what to do next."""

    answers_directly = False
    """In chat, nothing is looked up or planned before the answer, and nothing can be changed."""
    side_work = True
    """Optional calls are worth their time: notes for a compaction, a look at a command that succeeded."""
    shows_map = True
    reads_stored_answers = True
    """An answer that was received before a crash can be read from its bytes."""
    searches = False
    """With a check, an answer is found by a search (`engine/search`) and not in conversations."""
    warms_up = False
    """The model reads its prompt before the user's first message, because that takes many seconds."""

    def adapt(self, model: Model) -> Model:
        """The model, as requests should reach it."""
        return model

    def build_prompt(self, facts: PromptFacts) -> Prompt:
        """The system prompt and the tools of a turn."""
        root = facts.workspace.root
        notes = project_notes(root, facts.notes_chars)
        system = system_prompt(str(root), platform.system(), notes)
        prompt = Prompt(system, tuple(facts.tools), self.intents_prompt(facts.intents, facts.active))
        return prompt.with_skills(facts.skills).with_sources(facts.sources, facts.sources_chars)

    def intents_prompt(self, intents: IntentList | None, active: str) -> str:
        """What the system prompt says about the workspace's intents; empty where there are none."""
        return intent_prompt(intents, active) if intents else ""

    def prompt_for_request(self, prompt: Prompt, _session: Session) -> Prompt:
        """The turn's prompt, as the next request needs it."""
        return prompt

    def turn_is_done(self, turn: TurnState) -> bool:
        """Whether the turn ends after its tool calls, without another answer: next steps come last."""
        offers = bool(turn.calls) and all(each.call.name == NEXT_STEPS_TOOL for each in turn.calls.values())
        return offers and turn.said and turn.refusal is None

    def brief_attempt(self, _workspace: Workspace, _prompt: Prompt, attempt: Attempt) -> Briefing:
        """What an attempt begins with: the check's output before it, and after the previous attempt."""
        verdict = "passes" if attempt.before.passed else "fails"
        text = f"The check `{attempt.command}` {verdict} now:\n{attempt.before.content}"
        if attempt.failed:
            undone = "An earlier answer was tried and undone; with it the check gave:"
            text += f"\n\n{undone}\n{attempt.failed.content}"
        return Briefing(f"[{text}]")

    def side_request(self, _kind: Literal["route", "batch"], full: Request, _short: str) -> Request:
        """A question beside the conversation: `full`, or only `short` with a short prompt."""
        return full

    def whole_file_request(self, request: Request, _path: str) -> Request | None:
        """The request for the whole text of one file, where that is better than an answer in JSON."""
        return None

    def files_to_attach(self, _message: str, _seen: Collection[str], _workspace: Workspace) -> Sequence[str]:
        """Files that a message comes with although it does not mention them."""
        return ()

    def known_files(
        self, state: SessionState, shown: Sequence[FileSeen], gone: Sequence[str], stale: Collection[str]
    ) -> str:
        """The tables of known files and recent changes that go with a message."""
        return known_files_table(state, shown, gone, stale)

    def status(self, state: SessionState, workspace: Workspace) -> str:
        """What changes from turn to turn and goes with a message: date, mode, todos, recent changes."""
        done = []
        if state.intent:
            from handrail.tools.intent_tools import recent_trace

            done = [f"{each.op} {each.file}" for each in recent_trace(workspace, state.intent)]
        return status_block(state, time.time(), dated=True, done=done)


CAPABLE = Strategy()
