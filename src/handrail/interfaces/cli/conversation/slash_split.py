"""`/split`: plan subtasks, show what they would take, and run them beside the conversation."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import anyio
import click
from msgspec.structs import replace

from handrail.interfaces.cli.conversation.questions import Choice
from handrail.interfaces.cli.render.split_lines import plan_lines, progress_lines, report_lines
from handrail.interfaces.cli.render.styles import Line
from handrail.protocol.errors import UsageProblem

if TYPE_CHECKING:
    from handrail.app.splits.plans import SplitOptions
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


WAYS = "y starts it, n leaves it, e edits it; g graph, s sequential, a all-at-once is another strategy"
KEYS = {"g": "graph", "s": "sequential", "a": "all_at_once"}


async def split(talk: "Conversation", argument: str) -> None:
    """Plan the task, show the plan, let the user edit it, and start it when they say so."""
    from handrail.app.splits.plans import plan_task

    options, task = split_argument(argument)
    if not task:
        raise UsageProblem(
            "Say what to split: /split add docstrings to every module. Options stand before it, as `handrail"
            " split --help` has them: /split --files src/*.py --granularity fine add docstrings"
        )
    if talk.beside:
        raise UsageProblem("Something runs beside the conversation already. Ctrl-C stops it.")
    await offer(talk, await plan_task(talk.app, task, options))


def split_argument(argument: str) -> "tuple[SplitOptions, str]":
    """The options before the task, which are those of `handrail split`, and the task."""
    from handrail.app.splits.plans import SplitOptions
    from handrail.interfaces.cli.commands.splits.split import plan_options, split_options

    @click.command(add_help_option=False, context_settings={"allow_interspersed_args": False})
    @plan_options
    @click.argument("words", nargs=-1, type=click.UNPROCESSED)
    def parsed(words: tuple[str, ...], **given: Any) -> "tuple[SplitOptions, int]":
        return split_options(given), len(words)

    if not argument.startswith("--"):
        return SplitOptions(), argument
    given = argument.split()
    try:
        with parsed.make_context("/split", [*given]) as context:
            options, left = parsed.invoke(context)
    except click.ClickException as problem:
        raise UsageProblem(
            f"{problem.format_message()} `handrail split --help` names the options."
        ) from problem
    # Taken from the text as it was typed: a task may have several lines.
    return options, argument.split(maxsplit=len(given) - left)[-1] if left else ""


async def offer(talk: "Conversation", split_id: str) -> None:
    """Show the plan with what each strategy would take, and ask what to do with it."""
    from handrail.app.splits.plans import change_plan, known_plan
    from handrail.app.splits.report import estimate_plan
    from handrail.app.splits.run import read_split
    from handrail.interfaces.cli.commands.splits.split import edited_plan

    plan = known_plan(talk.app, split_id)
    estimates = await estimate_plan(talk.app, plan)
    talk.say(plan_lines(read_split(talk.app, split_id), estimates, talk.width))
    talk.tell("split", WAYS)

    async def answered(key: str) -> None:
        if key == "y":
            talk.run_beside(RunningSplit(split_id))
        elif key == "n":
            talk.tell(
                "split", f"not started; `handrail splits start {split_id}` starts it, or an edited plan."
            )
        else:
            try:
                changed = (
                    await talk.suspended(lambda: edited_plan(plan))
                    if key == "e"
                    else replace(plan, strategy=KEYS[key])
                )
                await change_plan(talk.app, split_id, changed)
            except UsageProblem as problem:
                talk.tell("problem", str(problem))
            await offer(talk, split_id)

    talk.choose(Choice("Start it? [y/n/e/g/s/a] > ", "ynegsa", answered))
