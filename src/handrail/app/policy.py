"""What the rules say about a command or a path, with the settings in force in a workspace."""

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

import anyio

from handrail.config.layers import load_settings
from handrail.config.places import find_places
from handrail.policy.commands.judge import command_lists
from handrail.policy.decide import Explanation
from handrail.protocol.values import Mode
from handrail.tools.gate.command_facts import CommandExplanation, explain_command, explain_path
from handrail.tools.gate.facts import NO_INTENT, active_intent
from handrail.tools.sandbox.full_sandbox import sandbox_facts
from handrail.tools.sandbox.sandbox import Sandbox
from handrail.workspace.files import Workspace
from handrail.workspace.intents_file import IntentFile

Verdict = CommandExplanation | Explanation


class PolicyQuery(NamedTuple):
    text: str
    op: str = ""
    """read, list, write, delete or move, for a path; empty: `text` is a command."""
    scope: tuple[str, ...] | None = None


class Rules:
    """Explains commands and paths; nothing is run."""

    def __init__(
        self,
        workspace: Path,
        mode: Mode,
        allow: tuple[str, ...] = (),
        intent_id: str = "",
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        """`allow` adds to the allowed commands of the settings."""
        places = find_places(environ)
        commands = load_settings(places, workspace, environ=environ).settings.commands
        self._mode = mode
        self._lists = command_lists((*commands.allow, *allow), commands.deny)
        self._protection = anyio.run(Sandbox(places.data).protection)
        self._confined = commands.without_sandbox or self._protection.confines
        self._workspace = Workspace(workspace, state_folders=(places.data, places.settings.parent))
        file = IntentFile(self._workspace)
        self._intent = active_intent(file, intent_id) if intent_id else NO_INTENT
        self.assumes_intent = not intent_id and file.now() is not None
        """Intents are in use here and none was named: the answers are for one that owns everything."""

    def explain(self, query: PolicyQuery) -> Verdict:
        if query.op:
            return explain_path(
                query.text, query.op, self._workspace, self._mode, query.scope, intent=self._intent
            )
        return explain_command(
            query.text,
            self._lists,
            self._workspace,
            self._mode,
            confined=self._confined,
            intent=self._intent,
            sandbox=partial(sandbox_facts, self._protection, self._workspace),
        )
