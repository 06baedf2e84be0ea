"""A turn with a check: fresh answers, each from the same files, until one passes."""

import re
from collections import Counter
from collections.abc import Awaitable, Callable

from handrail.context.briefing import Attempt, Briefing
from handrail.engine.ending import Ending
from handrail.protocol.errors import PathProblem
from handrail.protocol.events import AttemptStarted, CheckFinished
from handrail.sessions.handle import Session
from handrail.sessions.turn_state import TurnState
from handrail.tools.checking import Checker
from handrail.workspace.files import Workspace

FIRST, STEP, WARMEST = 0.3, 0.15, 1.0
NAMED = 5
NUMBER = re.compile(r"\d+(?:\.\d+)?")
ENDED_EARLY = ("budget", "failed", "unverified")
"""How an answer ends that is not checked; unverified is what a hook of the user's does not let pass."""


class Attempts:
    """Tries answers against the turn's check."""

    def __init__(
        self,
        session: Session,
        workspace: Workspace,
        checker: Checker,
        brief: Callable[[Attempt], Briefing],
        task: str,
    ) -> None:
        """`brief` says what an attempt begins with; `task` is what the user asked for."""
        self._session = session
        self._workspace = workspace
        self._checker = checker
        self._brief = brief
        self._task = task
        self._left: dict[str, str] = {}
        self._put_back: dict[str, None] = {}
        """What changed while commands ran: by them, as far as one can know."""

    async def until_passed(self, answer: Callable[[], Awaitable[Ending]]) -> Ending:
        """Answered when the check passed; otherwise the files are as they were, and the ending says so."""
        before = await self._check(attempt=0)
        self._take_back()  # what the check itself writes would be there for the first answer alone
        failed: CheckFinished | None = None
        failures: Counter[str] = Counter()
        ending = Ending("failed", "")
        for number in range(1, self._turn.attempts + 1):
            self._begin(number, before, failed)
            ending = await answer()
            if ending.reason in ENDED_EARLY:
                break
            failed = await self._check(attempt=number)
            if failed.passed:
                told = f"{self._put_back_told(after='.')}{self._lesson_offered(failures)}"
                return Ending("answered", f"The check passes: {self._turn.check}{told}")
            failures[NUMBER.sub("0", failed.content)] += 1
            self._take_back()
        self._take_back()
        return self._unverified(ending)

    def _lesson_offered(self, failures: Counter[str]) -> str:
        """What was wrong twice in the same way may be so again, in a later session."""
        if not self._session.state.intent or max(failures.values(), default=0) < 2:
            return ""
        return ". The same failure came twice before: ask for `record_lesson` to keep what helped."

    def _begin(self, number: int, before: CheckFinished, failed: CheckFinished | None) -> None:
        briefing = self._brief(Attempt(number, self._task, self._turn.check, before, failed))
        self._session.append(
            AttemptStarted(
                turn_id=self._turn.turn_id,
                number=number,
                temperature=temperature(number),
                keep=self._turn.message_seq,
                text=briefing.text,
                files=briefing.files,
                rewrite=briefing.rewrite,
            )
        )

    async def _check(self, attempt: int) -> CheckFinished:
        return await self._checker.check(self._turn.check, self._turn.turn_id, attempt)

    def _take_back(self) -> None:
        """Put the files back, those that commands changed too; what has to stay as it is is remembered."""
        from handrail.changes.apply import apply
        from handrail.changes.rollback import back, plan_back

        while True:
            plan = plan_back(self._session.log, self._workspace, self._turn.made)
            left = {conflict.path: conflict.kind for conflict in plan.conflicts}
            change_set = back(plan, leave=left, turn_id=self._turn.turn_id)
            if change_set is None:
                self._left |= left
                return
            try:
                apply(self._session, self._workspace, change_set, emptied=plan.emptied)
            except PathProblem as problem:
                if problem.reason != "stale_file":
                    raise
                continue  # changed in this very moment: it is somebody else's now
            ran = [change for change in self._turn.made if change.by == "command"]
            by_commands = {file.path for change in ran for file in change.files}
            self._put_back |= dict.fromkeys(
                file.path for file in plan.files if file.path in by_commands and file.path not in left
            )  # and once more: what a file stood in the way of has its folder again

    def _unverified(self, ending: Ending) -> Ending:
        tried = f"The check `{self._turn.check}` did not pass in {self._turn.attempt} of"
        tried += f" {self._turn.attempts} attempts."
        lost = [path for path, kind in self._left.items() if kind == "lost"]
        theirs = [path for path in self._left if path not in lost]
        files = "" if self._left else "The files are as they were."
        if theirs:
            files += f"Changed by somebody else meanwhile and left as they are: {', '.join(theirs)}."
        if lost:
            files += " " * bool(files) + f"Changed by a command and not kept before it: {', '.join(lost)}."
        files += self._put_back_told()
        if ending.reason in ENDED_EARLY:
            return Ending(ending.reason, f"{ending.detail} {files}")
        return Ending("unverified", f"{tried} {files}")

    def _put_back_told(self, after: str = "") -> str:
        """Whoever saved a file in that time has to know where it is."""
        if not self._put_back:
            return ""
        names = ", ".join(list(self._put_back)[:NAMED])
        more = f" and {len(self._put_back) - NAMED} more" if len(self._put_back) > NAMED else ""
        return (
            f"{after} Put back, since it changed while a command ran: {names}{more}."
            " If that was you, `handrail changes` has what you wrote."
        )

    @property
    def _turn(self) -> TurnState:
        return self._session.turn


def temperature(number: int) -> float:
    """Cold at first, then warmer, so that fresh answers are other answers."""
    return 0.0 if number == 1 else round(min(WARMEST, FIRST + STEP * (number - 1)), 2)
