"""What is known of a call before it is decided: its arguments, where they lead, its command, the facts."""

import hashlib
import json
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, Protocol

from anyio import to_thread

from handrail.policy.decide import decide
from handrail.policy.decision import ALLOW, Allow, Ask, Deny
from handrail.policy.facts import Action, CommandFacts, Facts, PathFacts
from handrail.protocol.errors import ToolRefused
from handrail.protocol.record import Record
from handrail.protocol.values import Entry, Mode, ToolCall, Value
from handrail.sessions.handle import Session
from handrail.tools.addresses import is_written
from handrail.tools.base import Tool, Work
from handrail.tools.intent_facts import active_intent
from handrail.tools.path_facts import path_facts
from handrail.tools.reading_arguments import read_arguments
from handrail.tools.recording import refused
from handrail.tools.said import user_texts
from handrail.tools.secrets import NO_SECRETS, Secrets
from handrail.workspace.files import Workspace
from handrail.workspace.intents.intent_file import IntentFile
from handrail.workspace.places import Place


class Wanted(Record):
    """A call that could be read."""

    tool: Tool[Any]
    arguments: Value
    work: Work
    command: CommandFacts | None = None
    confined: bool = False
    changed_by: str = ""
    """The hook that changed the model's arguments, if one did."""

    @property
    def summary(self) -> str:
        return self.tool.summary(self.arguments, self.work)

    @property
    def key(self) -> str:
        """What an `always` is remembered by: a hash of all of it, so that nothing else has the same."""
        subject = [self.tool.name, self.tool.subject(self.arguments, self.work)]
        return hashlib.sha256(json.dumps(subject, sort_keys=True).encode()).hexdigest()

    @property
    def preview(self) -> str:
        return self.tool.preview(self.arguments, self.work)


class Tools(Protocol):
    """The tools that calls may name."""

    def find(self, name: str) -> Tool[Any] | None: ...

    def names(self, mode: Mode) -> list[str]: ...


class Gathering:
    """Reads the calls of a session and gathers what decisions about them depend on."""

    def __init__(
        self,
        session: Session,
        workspace: Workspace,
        toolbox: Tools,
        *,
        allow: Sequence[Entry] = (),
        deny: Sequence[str] = (),
        without_sandbox: bool = False,
        answerable: bool = True,
        shown_characters: int = 16_000,
        secrets: Secrets = NO_SECRETS,
        intents: IntentFile | None = None,
    ) -> None:
        self._session = session
        self._workspace = workspace
        self._toolbox = toolbox
        self._allowed = tuple(allow)
        self._denied = tuple(deny)
        self._without_sandbox = without_sandbox
        self._answerable = answerable
        self._shown_characters = shown_characters
        self._secrets = secrets
        self._intents = intents or IntentFile(workspace)

    def allow(self, entry: str) -> None:
        """Let commands of the entry through from now on."""
        self._allowed += (entry,)

    def read(self, call: ToolCall, turn_id: str) -> Wanted:
        tool = self._toolbox.find(call.name)
        if tool is None:
            names = ", ".join(self._toolbox.names(self._session.state.mode))
            message = f"There is no tool {call.name[:80]}. There are: {names}."
            raise refused(call.name, "unknown_tool", message)
        work = Work(
            self._session,
            self._workspace,
            turn_id,
            call.id,
            ExitStack(),
            shown_characters=self._shown_characters,
            secrets=self._secrets,
            answerable=self._answerable,
        )
        return self.resolved(Wanted(tool, read_arguments(call, tool.arguments), work))

    def resolved(self, wanted: Wanted) -> Wanted:
        """The call with the place that its path leads to now, looked up once for all that follows."""
        about = wanted.tool.about(wanted.arguments)
        place = self._workspace.resolve(about.path) if about.path is not None else None
        others = tuple(self._workspace.resolve(path) for path in about.others)
        return wanted.changed(work=wanted.work.changed(place=place, others=others))

    async def with_command(self, wanted: Wanted) -> Wanted:
        """The call with what is known of its command, if it has one."""
        command = wanted.tool.about(wanted.arguments).command
        if command is None:
            return wanted
        from handrail.policy.commands.judge import lists_of
        from handrail.tools.command_facts import command_facts

        lists = lists_of(self._allowed, self._denied)
        known = await to_thread.run_sync(command_facts, command, lists, self._workspace)
        confined = self._without_sandbox or await wanted.tool.confined()
        return wanted.changed(command=known, confined=confined)

    def facts(self, wanted: Wanted) -> Facts:
        tool, about = wanted.tool, wanted.tool.about(wanted.arguments)
        intent = active_intent(self._intents, self._session.state.intent)
        return Facts(
            tool=tool.name,
            action=tool.action,
            mode=self._session.state.mode,
            reads_only=bool(self._session.state.run and self._session.state.run.reads_only),
            path=_path_facts(wanted.work, place, tool.action) if (place := wanted.work.place) else None,
            command=wanted.command,
            intent=intent.facts,
            scope=intent.scope,
            confined=wanted.confined,
            network=about.network,
            url_from_user=about.url is not None and is_written(about.url, user_texts(self._session)),
            always=wanted.key in self._session.state.always,
            answerable=self._answerable,
        )


def _path_facts(work: Work, place: Place, action: Action) -> PathFacts:
    return path_facts(work.workspace.root, place, to_change=action == "write")


def decided(facts: Facts, work: Work) -> Allow | Ask:
    """What holds for every path of a call; raises ToolRefused where one of them is denied."""
    others = (facts.changed(path=_path_facts(work, place, facts.action)) for place in work.others)
    said = [decide(facts), *map(decide, others)]
    for decision in said:
        if isinstance(decision, Deny):
            raise ToolRefused(decision.error)
    return next((decision for decision in said if isinstance(decision, Ask)), ALLOW)


def file_of(facts: Facts) -> str:
    return facts.path.path if facts.path else ""
