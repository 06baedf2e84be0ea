"""`/verify` runs the project's checks beside the conversation; `/build` keeps what they accept.

`/accept` applies what they did not.
"""

from typing import TYPE_CHECKING

import anyio

from handrail.interfaces.cli.check_progress import CheckProgress
from handrail.interfaces.cli.conversation.questions import Choice
from handrail.interfaces.cli.conversation.slash_changes import MAX_LINES, require_idle_session
from handrail.interfaces.cli.render.check_lines import verdict_lines
from handrail.interfaces.cli.render.diffs import render_diff
from handrail.interfaces.cli.render.styles import Line
from handrail.interfaces.cli.render.tool_calls import cap_lines
from handrail.protocol import commands
from handrail.protocol.errors import UsageProblem

if TYPE_CHECKING:
    from handrail.app.builds.verify import VerifyOptions
    from handrail.interfaces.cli.conversation.conversation import Conversation

CHANGED = "changed"


class RunningChecks:
    """Checks that run while the user can type; Ctrl-C stops them."""

    def __init__(self, options: "VerifyOptions") -> None:
        self._options = options
        self._scope = anyio.CancelScope()
        self._progress = CheckProgress()

    def rows(self, width: int) -> list[Line]:
        return self._progress.rows(width)

    def stop(self) -> None:
        self._scope.cancel()

    async def run(self, talk: "Conversation") -> None:
        with self._scope:
            verdict = await talk.app.checks.verify(self._options, self._progress)
            talk.say([*self._progress.rows(talk.width), *verdict_lines(verdict, talk.width)])
        if self._scope.cancelled_caught:
            talk.tell("verify", "stopped; nothing is known about the files.")


async def verify(talk: "Conversation", argument: str) -> None:
    from handrail.app.builds.verify import VerifyOptions

    if talk.beside:
        raise UsageProblem("Checks or a split are running already. Ctrl-C stops them.")
    words = argument.split()
    only = tuple(word for word in words if word != CHANGED)
    options = VerifyOptions(changed=CHANGED in words, only=only, session_id=talk.session_id)
    talk.run_beside(RunningChecks(options))


async def build(talk: "Conversation", argument: str) -> None:
    if not argument:
        raise UsageProblem("Say what to build: /build add retries to the http client")
    await talk.send(commands.SendMessage(text=argument, route="build"))


async def accept(talk: "Conversation", argument: str) -> None:
    """Show the proposal of a build that is not complete, and apply it if the user says so."""
    from handrail.app.builds.build import accept_proposal, find_proposal

    if talk.session_id or not argument:
        require_idle_session(talk)
    session_id = talk.app.find_session(argument) if argument else talk.session_id
    proposal = find_proposal(talk.app, session_id)
    result = proposal.result
    names = ", ".join(file.path for file in result.proposed)
    talk.tell("proposal", f"{names}: the build is {result.state}. {result.detail}")
    talk.say(cap_lines(render_diff(proposal.diff), MAX_LINES))

    async def answered(key: str) -> None:
        if key == "y":
            accepted = await accept_proposal(talk.app, proposal)
            talk.tell("applied", f"{names}; undo: {accepted.undo}")
        else:
            talk.tell("kept", "nothing was changed")

    talk.choose(Choice("Apply these files? [y/n] > ", "yn", answered))
