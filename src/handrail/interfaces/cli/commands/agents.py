"""`handrail agents`: agents that are defined in folders, and what their runs came to."""

import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from handrail.interfaces.cli.options import folder, options_for, workspace_option
from handrail.interfaces.cli.styles import clean, flat
from handrail.protocol.errors import ConfigProblem, UsageProblem

if TYPE_CHECKING:
    from handrail.interfaces.cli.agent_models import AgentModels
    from handrail.pipelines.agent_folder import Found
    from handrail.pipelines.load import AgentFolders
    from handrail.sessions.past_runs import PastRun

PROBLEMS = 1
MOST_RUNS = 30


@click.group(invoke_without_command=True)
@workspace_option
@click.pass_context
def command(ctx: click.Context, /, **given: Any) -> None:
    """Agents in folders: yours, and those of this workspace. docs/agents.md says how they are written.

    `@NAME TASK` in a message runs one, and so do `--route NAME` and `/route NAME`.
    """
    ctx.obj = given
    if ctx.invoked_subcommand is None:
        show_list(given, as_lines=False)


@command.command("list")
@click.option("--json", "json_lines", is_flag=True, help="One agent a line, as JSON.")
@click.pass_obj
def list_them(given: dict[str, Any], json_lines: bool) -> None:
    """List the agents, and whether each can be used."""
    show_list(given, as_lines=json_lines)


def show_list(given: dict[str, Any], *, as_lines: bool) -> None:
    folders = folders_of(given)
    found = list(folders.all())
    if not found and not as_lines:
        print("There is no agent yet. `handrail agents new NAME` writes one to begin with.", file=sys.stderr)
    for each in found:
        row = row_of(folders, each)
        if as_lines:
            print(json.dumps(row))  # in ASCII: what could change a terminal is escaped
        else:
            print(f"{flat(row['agent']):<20} {row['state']:<12} {flat(row['description'])}")


def row_of(folders: "AgentFolders", found: "Found") -> dict[str, str]:
    """An agent as a row: what it is for, or what is wrong with it."""
    row = {"agent": found.slug, "folder": str(found.folder), "where": found.where}
    used = folders.find(found.slug)
    if used and used.folder != found.folder:
        return {**row, "state": "hidden", "description": f"your own agent {found.slug} goes before it"}
    try:
        agent = folders.load(found)
    except ConfigProblem as problem:
        return {**row, "state": "wrong", "description": str(problem).splitlines()[0]}
    trust = folders.trust(agent)
    if trust in ("own", "trusted") and (problems := folders.unreachable(agent)):
        return {**row, "state": "no model", "description": problems[0]}
    return {**row, "state": "yours" if trust == "own" else trust, "description": agent.said.description}


@command.command()
@click.argument("name")
@click.option("--prompts", is_flag=True, help="Also what each prompt says.")
@click.pass_obj
def show(given: dict[str, Any], name: str, prompts: bool) -> None:
    """Show what an agent does: its stages, gates, pauses, budgets and files."""
    from handrail.interfaces.cli.agent_lines import shown

    folders = folders_of(given)
    agent = folders.load(one(folders, name))
    trust = folders.trust(agent)
    for text in shown(agent, trust, models_of(given)):
        print(text)
    if trust in ("untrusted", "changed"):
        print("`handrail trust` lets it be used.")
    for file, data in sorted(agent.files.files.items()) if prompts else ():
        print(f"\n--- {file}")
        for line in data.decode().split("\n"):
            print(f"  | {clean(line)}".rstrip())


@command.command()
@click.argument("name", required=False)
@click.pass_obj
def validate(given: dict[str, Any], name: str | None) -> int:
    """Check an agent, or all of them; each problem is told by file and line.

    Ends with 0 where nothing is wrong, with 1 otherwise. A model that cannot be asked is a warning: that is a
    matter of your settings.
    """
    folders = folders_of(given)
    found = [one(folders, name)] if name else list(folders.all())
    wrong = 0
    for each in found:
        try:
            agent = folders.load(each)
        except ConfigProblem as problem:
            wrong += 1
            print(clean(str(problem)))
        else:
            warnings = [f"warning: {text}" for text in folders.unreachable(agent)]
            for text in warnings or [f"{each.slug}: nothing wrong."]:
                print(clean(text))
    if not found:
        print("There is no agent to check. `handrail agents new NAME` writes one.", file=sys.stderr)
    return PROBLEMS if wrong else 0


@command.command()
@click.argument("name")
@click.option("--here", is_flag=True, help="In this workspace, for all who work on it, instead of for you.")
@click.pass_obj
def new(given: dict[str, Any], name: str, here: bool) -> int:
    """Write an agent to begin with: one that works, with a word on every part."""
    from handrail.pipelines.agent_folder import FOLDER, slug_problem
    from handrail.pipelines.starter import starter

    if problem := slug_problem(name):
        raise UsageProblem(f"{problem}.")
    folders = folders_of(given)
    there = folders.folder("workspace" if here else "yours") / name
    if os.path.lexists(there):
        raise UsageProblem(f"{there} is there already. Choose another name, or change what is there.")
    files = starter(name)
    if here:
        return into_workspace(given, {f"{FOLDER}/{name}/{file}": text for file, text in files.items()}, name)
    write_own(there, files)
    print(f"Wrote {there}. Try it: handrail --route {name}")
    return 0


def write_own(there: Path, files: dict[str, str]) -> None:
    """Files of the user's own folder."""
    from handrail.config.places import make_private

    for file, text in files.items():
        make_private((there / file).parent)
        with open(there / file, "x", encoding="utf-8") as opened:
            opened.write(text)


def into_workspace(given: dict[str, Any], files: dict[str, str], name: str) -> int:
    """Files of the workspace are a change like any other: recorded, and taken back by `handrail undo`."""
    import anyio

    from handrail.changes.document import CreateChange, Document
    from handrail.interfaces.cli.commands.edit import applied
    from handrail.interfaces.cli.opening import opened

    changes = tuple(CreateChange(form="create", path=path, text=text) for path, text in files.items())

    async def run() -> int:
        async with opened(options_for(given)) as app:
            return await applied(app, Document(changes=changes), f"agents new {name}")

    status = anyio.run(run)
    if status == 0:
        print(f"Look at it, and `handrail trust` lets it be used: handrail --route {name}", file=sys.stderr)
    return status


@command.command()
@click.argument("name", metavar="[NAME|RUN]", required=False, default="")
@click.option("--json", "json_lines", is_flag=True, help="One run a line, as JSON.")
@click.pass_obj
def runs(given: dict[str, Any], name: str, json_lines: bool) -> None:
    """List the runs of agents in this workspace, or show one: stages, pauses, cost and result."""
    import anyio

    from handrail.interfaces.cli.agent_lines import run_rows, run_shown
    from handrail.interfaces.cli.opening import opened
    from handrail.sessions.past_runs import past_runs

    async def read() -> "list[PastRun]":
        async with opened(options_for(given)) as app:
            return past_runs(app.log, "" if name.startswith("run_") else name)

    found = anyio.run(read)
    if name.startswith("run_"):
        named = [run for run in found if run.run_id.startswith(name)]
        if len(named) != 1:
            many = "means several runs" if named else "is no run here"
            raise UsageProblem(f"{name} {many}; `handrail agents runs` lists them.")
        lines = [json.dumps(as_json(named[0]))] if json_lines else list(run_shown(named[0]))
    elif json_lines:
        lines = [json.dumps(as_json(run)) for run in found]
    else:
        lines = [text for run in found[:MOST_RUNS] for text in run_rows(run, time.time())]
        if not found:
            print(f"There is no run{f' of {name}' if name else ''} yet.", file=sys.stderr)
    for text in lines:
        print(clean(text))


def as_json(run: "PastRun") -> dict[str, Any]:
    told = run._asdict() | {"stages": run.stages}
    return told | {"events": [one.event.model_dump(mode="json") | {"at": one.at} for one in run.events]}


def folders_of(given: dict[str, Any]) -> "AgentFolders":
    """The agents of the user and of the workspace."""
    from handrail.config.places import find_places
    from handrail.pipelines.load import AgentFolders

    return AgentFolders(find_places(os.environ), workspace_of(given), models_of(given).why_not)


def models_of(given: dict[str, Any]) -> "AgentModels":
    from handrail.config.places import find_places
    from handrail.interfaces.cli.agent_models import AgentModels

    return AgentModels(find_places(os.environ), workspace_of(given), os.environ)


def workspace_of(given: dict[str, Any]) -> Path:
    inherited = click.get_current_context().find_root().params.get("workspace")
    return folder(given.get("workspace") or inherited or ".")


def one(folders: "AgentFolders", name: str) -> "Found":
    if found := folders.find(name):
        return found
    known = ", ".join(sorted({each.slug for each in folders.all()})) or "none yet"
    raise UsageProblem(f"There is no agent {name!r}; there are: {known}.")
