"""`/split`: plan subtasks, show what they would take, and run them beside the conversation."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import anyio

from handrail.interfaces.cli.conversation.questions import Choice
from handrail.interfaces.cli.render.split_lines import plan_lines, progress_lines, report_lines
from handrail.interfaces.cli.render.styles import Line
from handrail.protocol.errors import UsageProblem

if TYPE_CHECKING:
    from handrail.app.splits.report import SplitReport
    from handrail.interfaces.cli.conversation.conversation import Conversation

MAX_ROWS = 12


class RunningSplit:
    """A split that runs while the user can type; Ctrl-C stops it, and it can be resumed."""

    def __init__(self, split_id: str) -> None:
        self._split_id = split_id
        self._scope = anyio.CancelScope()
        self._report: Callable[[], SplitReport] | None = None

    def rows(self, width: int) -> list[Line]:
        return progress_lines(self._report(), width, MAX_ROWS) if self._report else []

    def stop(self) -> None:
        self._scope.cancel()

    def _watch(self, report: "Callable[[], SplitReport]") -> None:
        self._report = report

    async def run(self, talk: "Conversation") -> None:
        from handrail.app.splits.run import run_split

        with self._scope:
            report = await run_split(talk.app, self._split_id, watch=self._watch)
            talk.say(report_lines(report, talk.width))
        if self._scope.cancelled_caught:
            talk.tell("split", f"stopped; `handrail splits resume {self._split_id}` goes on.")


async def split(talk: "Conversation", argument: str) -> None:
    """Plan the task, show the plan, and start it when the user says so."""
    from handrail.app.splits.plans import SplitOptions, known_plan, plan_task
    from handrail.app.splits.report import estimate_plan
    from handrail.app.splits.run import read_split

    if not argument:
        raise UsageProblem("Say what to split: /split add docstrings to every module")
    if talk.beside:
        raise UsageProblem("Something runs beside the conversation already. Ctrl-C stops it.")
    split_id = await plan_task(talk.app, argument, SplitOptions())
    estimates = await estimate_plan(talk.app, known_plan(talk.app, split_id))
    talk.say(plan_lines(read_split(talk.app, split_id), estimates, talk.width))

    async def answered(key: str) -> None:
        if key == "y":
            talk.run_beside(RunningSplit(split_id))
        else:
            talk.tell(
                "split", f"not started; `handrail splits start {split_id}` starts it, or an edited plan."
            )

    talk.choose(Choice("Start it? [y/n] > ", "yn", answered))
