"""`handrail agents`: list, show, check and create agents in folders; list their runs."""

import json
import sys
import time
from typing import TYPE_CHECKING, Any

import click

from handrail.interfaces.cli.completion import complete_agent
from handrail.interfaces.cli.options import ask_app, run_with_app, workspace_option, workspace_path
from handrail.interfaces.cli.terminal import print_json, print_text
from handrail.protocol.errors import ConfigProblem
from handrail.protocol.values import to_dict

if TYPE_CHECKING:
    from handrail.app.app import App
    from handrail.app.extensions.agents import Agents, NewAgent

STATUS_PROBLEMS = 1
MAX_RUNS = 30


@click.group(invoke_without_command=True)
@workspace_option
@click.pass_context
def command(ctx: click.Context, /, **given: Any) -> None:
    """Agents in folders: yours, and those of this workspace. docs/agents.md says how to write them.

    `@NAME TASK` in a message runs one, and so do `--route NAME` and `/route NAME`.
    """
    ctx.obj = given
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_agents, as_json=False)


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="One agent a line, as JSON.")
@click.pass_obj
def list_agents(given: dict[str, Any], as_json: bool) -> None:
    """List the agents, and whether each can be used."""
    from handrail.interfaces.cli.render.agent_lines import list_row

    agents = agents_of(given)
    listed = [agents.listed(found) for found in agents.all()]
    for each in listed:
        (slug, folder, where), state, description = each
        row = {"agent": slug, "folder": str(folder), "where": where}
        if as_json:  # in ASCII: control characters are escaped
            print_json(row | {"state": state, "description": description})
        else:
            print_text(list_row(each))


@command.command()
@click.argument("name", shell_complete=complete_agent)
@click.option("--prompts", is_flag=True, help="Also the text of each prompt.")
@click.pass_obj
def show(given: dict[str, Any], name: str, prompts: bool) -> None:
    """Show what an agent does: its stages, gates, pauses, budgets and files."""
    from handrail.interfaces.cli.render.agent_lines import agent_details

    agents = agents_of(given)
    agent = agents.load(agents.named(name))
    trust = agents.trust(agent)
    for text in agent_details(agent, trust, agents):
        print_text(text)
    if trust in ("untrusted", "changed"):
        print_text("It cannot be used before you trust it with `handrail trust`.")
    for file, data in sorted(agent.files.files.items()) if prompts else ():
        print_text(f"\n--- {file}")
        for line in data.decode().split("\n"):
            print_text(f"  | {line}".rstrip())


@command.command()
@click.argument("name", required=False, shell_complete=complete_agent)
@click.pass_obj
def validate(given: dict[str, Any], name: str | None) -> int:
    """Check an agent, or all of them; each problem is shown with file and line.

    Exits with 0 where nothing is wrong, with 1 otherwise. A model that cannot be asked is only a warning:
    that depends on your settings.
    """
    agents = agents_of(given)
    found = [agents.named(name)] if name else list(agents.all())
    wrong = 0
    for each in found:
        try:
            agent = agents.load(each)
        except ConfigProblem as problem:
            wrong += 1
            print_text(str(problem))
        else:
            warnings = [f"warning: {text}" for text in agents.unreachable(agent)]
            for text in warnings or [f"{each.slug}: nothing wrong."]:
                print_text(text)
    return STATUS_PROBLEMS if wrong else 0


@command.command()
@click.argument("name", shell_complete=complete_agent)
@click.option("--here", is_flag=True, help="In this workspace, for everybody who works on it.")
@click.pass_obj
def new(given: dict[str, Any], name: str, here: bool) -> int:
    """Write a starter agent that works, with a comment on every part."""
    starter = agents_of(given).new(name, in_workspace=here)
    if here:
        return write_workspace_files(given, starter)
    from handrail.config.places import make_private

    for file, text in starter.files.items():
        path = starter.folder / file
        make_private(path.parent)
        with path.open("x", encoding="utf-8") as opened:
            opened.write(text)
    print_text(f"Wrote {starter.folder}. Try it: handrail --route {name}")
    return 0


def write_workspace_files(given: dict[str, Any], starter: "NewAgent") -> int:
    """Write them as a recorded change, which `handrail undo` can undo."""
    from handrail.app.extensions.agents import workspace_agent_document
    from handrail.interfaces.cli.commands.edit import apply_document

    name = starter.folder.name

    async def run(app: "App") -> int:
        return await apply_document(app, workspace_agent_document(starter), f"agents new {name}")

    status = run_with_app(given, run)
    if status == 0:
        text = f"Look at it, trust it with `handrail trust`, then try it: handrail --route {name}"
        print_text(text, file=sys.stderr)
    return status


@command.command()
@click.argument("name", metavar="[NAME|RUN]", required=False, default="", shell_complete=complete_agent)
@click.option("--json", "as_json", is_flag=True, help="One run a line, as JSON.")
@click.pass_obj
def runs(given: dict[str, Any], name: str, as_json: bool) -> None:
    """List the runs of agents in this workspace, or show one: stages, pauses, cost and result."""
    from handrail.app.extensions.agents import RUN_PREFIX, find_runs
    from handrail.interfaces.cli.render.agent_lines import run_details, run_rows

    found = ask_app(given, lambda app: find_runs(app, name))
    if as_json:
        lines = []
        for run in found:
            events = [to_dict(one.event) | {"at": one.at} for one in run.events]
            lines.append(json.dumps(run._asdict() | {"stages": run.stages, "events": events}))
    elif name.startswith(RUN_PREFIX):
        lines = list(run_details(found[0]))
    else:
        lines = [text for run in found[:MAX_RUNS] for text in run_rows(run, time.time())]
        if not found:
            print_text(f"There is no run{f' of {name}' if name else ''} yet.", file=sys.stderr)
    for text in lines:
        print_text(text)


def agents_of(given: dict[str, Any]) -> "Agents":
    from handrail.app.extensions.agents import Agents

    return Agents(workspace_path(given))
