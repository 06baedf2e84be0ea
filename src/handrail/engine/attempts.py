"""A turn with a check: fresh answers, each from the same files, until one passes."""

import re
from collections import Counter
from contextlib import ExitStack

from handrail.context.strategy import Attempt
from handrail.engine.context import TurnContext
from handrail.engine.turn_end import Ending
from handrail.engine.user_input import turn_words
from handrail.protocol.errors import PathProblem
from handrail.protocol.events import AttemptStarted, CheckFinished
from handrail.sessions.turn_state import TurnState

FIRST, STEP, WARMEST = 0.3, 0.15, 1.0
MAX_NAMED = 5
NUMBER = re.compile(r"\d+(?:\.\d+)?")
ENDED_EARLY = ("budget", "failed", "unverified")  # endings of answers that are not checked


class Attempts:
    """The attempts of one turn: each starts with the original files, and the check decides."""

    def __init__(self, context: TurnContext) -> None:
        self._context = context
        self._session = context.session
        self._workspace = context.workspace
        self._task = turn_words(context.session)
        self._before: CheckFinished | None = None
        self._failed: CheckFinished | None = None
        self._failures: Counter[str] = Counter()
        self._left: dict[str, str] = {}
        self._restored: dict[str, None] = {}  # files that changed while commands ran, probably by them

    async def check_before(self) -> None:
        """Run the check before the first attempt, which is shown its output."""
        self._before = await self._check(attempt=0)
        await self._undo()  # else the first attempt alone would have the files that the check writes

    def begin(self, number: int) -> None:
        """Start an attempt: the model sees the task, the check and the last failure."""
        if self._before is None:
            raise AssertionError("the check runs before the first attempt")
        attempt = Attempt(number, self._task, self._turn.check, self._before, self._failed)
        context = self._context
        briefing = context.strategy.brief_attempt(self._workspace, context.prompt, attempt)
        self._session.append(
            AttemptStarted(
                turn_id=self._turn.turn_id,
                number=number,
                temperature=temperature(number),
                keep=self._turn.message_seq,
                text=briefing.text,
                files=briefing.files,
            )
        )

    async def passes(self) -> bool:
        """Whether the check passes now; if not, the files are restored."""
        checked = await self._check(attempt=self._turn.attempt)
        if checked.passed:
            return True
        self._failed = checked
        self._failures[NUMBER.sub("0", checked.content)] += 1
        await self._undo()
        return False

    def success(self) -> Ending:
        lesson = ""
        if max(self._failures.values(), default=0) >= 2:
            lesson = ". The same failure came twice before: ask for `record_lesson` to keep what helped."
        restored = self._restored_note(after=".")
        return Ending("answered", f"The check passes: {self._turn.check}{restored}{lesson}")

    async def failure(self, ending: Ending) -> Ending:
        """The end where no attempt passed, after restoring the files; `ending` is that of the last answer."""
        await self._undo()
        lost = [path for path, kind in self._left.items() if kind == "lost"]
        theirs = [path for path in self._left if path not in lost]
        notes = [] if self._left else ["The files are as they were."]
        if theirs:
            notes.append(f"Changed by somebody else meanwhile and left as they are: {', '.join(theirs)}.")
        if lost:
            notes.append(f"Changed by a command, without a stored copy: {', '.join(lost)}.")
        files = f"{' '.join(notes)}{self._restored_note()}"
        if ending.reason in ENDED_EARLY:
            return Ending(ending.reason, f"{ending.detail} {files}")
        tried = f"{self._turn.attempt} of {self._turn.attempts} attempts"
        return Ending("unverified", f"The check `{self._turn.check}` did not pass in {tried}. {files}")

    async def _check(self, attempt: int) -> CheckFinished:
        return await self._context.checker.check(self._turn.check, self._turn.turn_id, attempt)

    async def _undo(self) -> None:
        """Restore the files, also those that commands changed; remember those that cannot be restored."""
        from handrail.changes.apply import apply_when_free
        from handrail.changes.undo import plan_undo, undo_change_set

        while True:
            plan = plan_undo(self._session.log, self._workspace, self._turn.made)
            left = {conflict.path: conflict.kind for conflict in plan.conflicts}
            change_set = undo_change_set(plan, leave=left, turn_id=self._turn.turn_id)
            if change_set is None:
                self._left |= left
                return
            try:
                with ExitStack() as held:
                    applied = await apply_when_free(
                        held, self._session, self._workspace, change_set, emptied=plan.emptied
                    )
                    self._session.append(applied)
            except PathProblem as problem:
                if problem.reason != "stale_file":
                    raise
                continue  # somebody else has just changed it
            ran = [change for change in self._turn.made if change.by == "command"]
            by_commands = {file.path for change in ran for file in change.files}
            self._restored |= dict.fromkeys(
                file.path for file in plan.files if file.path in by_commands and file.path not in left
            )  # and once more: a file may have blocked a folder

    def _restored_note(self, after: str = "") -> str:
        """For users who saved a file meanwhile: where their text is."""
        if not self._restored:
            return ""
        names = ", ".join(list(self._restored)[:MAX_NAMED])
        more = f" and {len(self._restored) - MAX_NAMED} more" if len(self._restored) > MAX_NAMED else ""
        return (
            f"{after} Restored, because it changed while a command ran: {names}{more}."
            " If you changed it, `handrail changes` has your version."
        )

    @property
    def _turn(self) -> TurnState:
        return self._session.turn


def temperature(number: int) -> float:
    """Zero for the first attempt, then rising, so that answers differ."""
    return 0.0 if number == 1 else round(min(WARMEST, FIRST + STEP * (number - 1)), 2)
