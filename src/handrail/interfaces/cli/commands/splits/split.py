"""`handrail split TASK`: a plan of subtasks, shown with its estimates, edited and started by the user."""

import sys
from typing import TYPE_CHECKING, Any

import click

from handrail.interfaces.cli import terminal
from handrail.interfaces.cli.commands.edit import read_proposal
from handrail.interfaces.cli.commands.run import read_stdin
from handrail.interfaces.cli.commands.splits.running import run_shown
from handrail.interfaces.cli.options import all_of, message_text, opened_app, options_for, turn_options
from handrail.interfaces.cli.render.split_lines import plan_lines
from handrail.interfaces.cli.terminal import print_json, print_text
from handrail.protocol.errors import UsageProblem
from handrail.protocol.subtask import SplitCommand, SplitLimits, Strategy
from handrail.protocol.values import to_dict

if TYPE_CHECKING:
    from handrail.app.app import App, Options
    from handrail.app.splits.plans import SplitOptions
    from handrail.protocol.subtask import SplitPlan

STRATEGIES: dict[str, Strategy] = {"graph": "graph", "sequential": "sequential", "all-at-once": "all_at_once"}
limit_options = all_of(
    click.option(
        "--strategy",
        type=click.Choice(list(STRATEGIES)),
        help="What runs when; default: graph.",
    ),
    click.option("--tries", type=click.IntRange(1, 10), help="Tries of a subtask; default 2."),
    click.option("--max-tokens", "tokens", type=click.IntRange(min=1), help="Pause at so many tokens."),
    click.option("--subtask-usd", type=click.FloatRange(min=0), help="End a subtask at this cost."),
    click.option("--subtask-tokens", type=click.IntRange(min=1), help="End a subtask at so many tokens."),
    click.option("--workers", is_flag=True, help="Let workers ask the models (docs/scaling.md)."),
)
plan_options = all_of(
    click.option(
        "--files", metavar="PATTERN", multiple=True, help="Do it for each file that matches; repeatable."
    ),
    click.option("--granularity", type=click.Choice(["fine", "medium", "coarse"]), help="Default: by rules."),
    click.option("--parallel", type=click.IntRange(1, 256), help="At once at most; default 4."),
    click.option("--max-usd", "usd", type=click.FloatRange(min=0), help="Pause at this cost."),
    limit_options,
)
edit_option = click.option("--edit", "edits", is_flag=True, help="Edit the plan in $EDITOR before it starts.")
LIMITS = ("parallel", "tries", "usd", "tokens", "subtask_usd", "subtask_tokens")


def split_options(given: dict[str, Any]) -> "SplitOptions":
    """What the options of a plan say; takes them out of `given`."""
    from msgspec import convert

    from handrail.app.splits.plans import SplitOptions

    limits = {name: value for name in LIMITS if (value := given.pop(name)) is not None}
    strategy, workers = given.pop("strategy"), given.pop("workers")
    return SplitOptions(
        given.pop("files", ()),
        given.pop("granularity", None),
        STRATEGIES[strategy or "graph"],
        convert(limits, SplitLimits),
        "workers" if workers else None,
    )


@click.command()
@click.argument("task", nargs=-1)
@click.option("--plan", "plan_file", metavar="FILE", help="Use the plan in this file; `-` reads stdin.")
@plan_options
@edit_option
@click.option("--start", "starts", is_flag=True, help="Start without asking.")
@click.option("--json", "as_json", is_flag=True, help="The plan, or what it came to, as JSON on stdout.")
@turn_options
def command(
    task: tuple[str, ...],
    plan_file: str | None,
    *,
    edits: bool,
    starts: bool,
    as_json: bool,
    **given: Any,
) -> int:
    """Split TASK into subtasks that run in parallel; the merged result is verified and applied as one.

    The plan is shown with what each strategy would take, and starts when you say so. With --files, the task
    is done for each file that a pattern matches. docs/subtasks.md explains the rest.
    """
    import anyio

    options = split_options(given)
    words = message_text(read_stdin() if task == ("-",) else " ".join(task)) if task or not plan_file else ""
    if words and plan_file:
        raise UsageProblem("Give a task or --plan, not both: the plan names its task.")

    async def run(opened: "Options") -> int:
        from msgspec.structs import replace

        from handrail.app.splits.plans import keep_plan, plan_task, read_plan

        async with opened_app(opened) as app:
            if plan_file:
                plan = read_plan(read_proposal(plan_file))
                session_id = keep_plan(app, replace(plan, run_on=options.run_on or plan.run_on))
            else:
                await app.chosen_model()
                session_id = await plan_task(app, words, options)
            return await offer(app, session_id, edits=edits, starts=starts, as_json=as_json)

    return anyio.run(run, options_for(given))


async def offer(app: "App", session_id: str, *, edits: bool, starts: bool, as_json: bool) -> int:
    """Show the plan, let the user edit it, and run it when they say so."""
    from msgspec.structs import replace

    from handrail.app.splits.plans import change_plan

    while True:
        if edits:
            await change_plan(app, session_id, edited_plan(plan_in(app, session_id)))
        if starts:
            return await run_shown(app, session_id, SplitCommand("start"), as_json=as_json)
        await show_plan(app, session_id, as_json=as_json)
        if as_json or not terminal.can_ask(sys.stderr):
            print_text(f"handrail: planned. `handrail splits start {session_id}` starts it.", file=sys.stderr)
            return 0
        ways = ["start", "edit", "leave", *STRATEGIES]
        reply = terminal.choose(f"{', '.join(ways[:3])} it, or {', '.join(ways[3:])}?", ways, default="leave")
        if reply == "leave":
            print_text(f"`handrail splits start {session_id}` starts it later.", file=sys.stderr)
            return 0
        if strategy := STRATEGIES.get(reply):
            await change_plan(app, session_id, replace(plan_in(app, session_id), strategy=strategy))
        starts, edits = reply == "start", reply == "edit"


async def show_plan(app: "App", session_id: str, *, as_json: bool) -> None:
    from handrail.app.splits.report import estimate_plan
    from handrail.app.splits.run import read_split

    plan = plan_in(app, session_id)
    estimates = await estimate_plan(app, plan)
    if as_json:
        print_json(
            {"session_id": session_id, "plan": to_dict(plan), "estimates": list(map(to_dict, estimates))},
            indent=2,
        )
        return
    rows = plan_lines(read_split(app, session_id), estimates, terminal.terminal_width(sys.stdout))
    terminal.print_lines(rows, colour=terminal.use_colour(sys.stdout, app.settings.display))


def plan_in(app: "App", session_id: str) -> "SplitPlan":
    from handrail.app.splits.plans import known_plan

    return known_plan(app, session_id)


def edited_plan(plan: "SplitPlan") -> "SplitPlan":
    """The plan as the user left it in their editor."""
    import json

    from handrail.app.splits.plans import read_plan

    try:
        text = click.edit(json.dumps(to_dict(plan), indent=2, ensure_ascii=False), extension=".json")
    except click.ClickException as problem:
        raise UsageProblem(f"{problem.format_message()}. Set EDITOR to one that works here.") from problem
    return plan if text is None else read_plan(text.encode())
