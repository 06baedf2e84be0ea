"""Running the user's own check: a command that says whether the work is done."""

from contextlib import ExitStack

from handrail.protocol.events import CheckFinished, CheckStarted
from handrail.protocol.ids import new_id
from handrail.sessions.handle import Session
from handrail.tools.base import Work
from handrail.tools.running import Run, RunArguments
from handrail.tools.secrets import NO_SECRETS, Secrets
from handrail.workspace.files import Workspace

CHECK_SECONDS = 300.0


class Checker:
    """Runs a check as a command is run, confined where possible; nobody is asked, the user named it."""

    def __init__(
        self, session: Session, workspace: Workspace, run: Run, secrets: Secrets = NO_SECRETS
    ) -> None:
        self._session = session
        self._workspace = workspace
        self._run = run
        self._secrets = secrets

    async def check(self, command: str, turn_id: str, attempt: int) -> CheckFinished:
        """What came of it, as the log has it."""
        check_id = new_id("v")
        self._session.append(
            CheckStarted(turn_id=turn_id, check_id=check_id, command=command, attempt=attempt)
        )
        arguments = RunArguments(command=command, timeout=CHECK_SECONDS)
        work = Work(self._session, self._workspace, turn_id, check_id, ExitStack(), secrets=self._secrets)
        outcome = await self._run.run(arguments, work)
        finished = CheckFinished(
            turn_id=turn_id,
            check_id=check_id,
            passed=outcome.status == "ok",
            summary=self._secrets.hide(outcome.summary),
            content=self._secrets.hide(outcome.content),
        )
        self._session.append(finished, settle=[check_id])
        return finished
