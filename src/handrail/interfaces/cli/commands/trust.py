"""`handrail trust`: what this folder would change, and the user's word on it."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from handrail.interfaces.cli.options import folder, workspace_option
from handrail.interfaces.cli.styles import flat
from handrail.interfaces.cli.terminal import is_terminal
from handrail.protocol.errors import ConfigProblem

if TYPE_CHECKING:
    from handrail.config.layers import LoadedSettings
    from handrail.config.places import Places
    from handrail.pipelines.agent_definition import Agent
    from handrail.pipelines.load import Trust

NOBODY_ASKED = 3
WRONG = 1


@click.command()
@click.option("--revoke", "revoking", is_flag=True, help="Trust nothing here any more.")
@workspace_option
def command(revoking: bool, **given: Any) -> int:
    """Show what the settings of this workspace would change, and let them count if you say so.

    Until then they can only narrow what is allowed, and agents that came with the workspace cannot be used.
    The word holds for the files as they are now: when one of them changes, it is asked again.
    """
    from handrail.config.layers import load_settings
    from handrail.config.places import find_places
    from handrail.config.trust import revoke

    inherited = click.get_current_context().find_root().params.get("workspace")
    workspace, places = folder(given["workspace"] or inherited or "."), find_places(os.environ)
    if revoking:
        print(
            "Nothing here is trusted any more." if revoke(places, workspace) else "Nothing was trusted here."
        )
        return 0
    loaded = load_settings(places, workspace, environ=os.environ)
    agents, wrong = untrusted_agents(places, workspace)
    for text in wrong:
        print("\n".join(map(flat, text.splitlines())))
    if loaded.trust == "trusted" and not agents:
        print("The settings of this workspace are trusted. `handrail trust --revoke` ends that.")
        return WRONG if wrong else 0
    if not loaded.ignored and not agents:
        print(
            "Nothing else needs to be trusted." if wrong else "Nothing in this workspace needs to be trusted."
        )
        return WRONG if wrong else 0
    if loaded.ignored:
        show(loaded)
    show_agents(agents, places, workspace)
    return ask(loaded, agents, workspace)


class Untrusted(NamedTuple):
    """An agent that cannot be used before the user's word."""

    agent: "Agent"
    trust: "Trust"


def untrusted_agents(places: "Places", workspace: Path) -> tuple[list[Untrusted], list[str]]:
    """Those of the workspace, and what is wrong with those that cannot be used at all."""
    from handrail.pipelines.load import AgentFolders

    folders, found, wrong = AgentFolders(places, workspace), list[Untrusted](), list[str]()
    for each in folders.all():
        if each.where == "yours":
            continue
        try:
            agent = folders.load(each)
        except ConfigProblem as problem:
            name = flat(each.slug)
            wrong.append(f"The agent {name} cannot be trusted, because its file is wrong:\n{problem}")
            continue
        found.append(Untrusted(agent, folders.trust(agent)))
    return [each for each in found if each.trust != "trusted"], wrong


def show_agents(agents: list[Untrusted], places: "Places", workspace: Path) -> None:
    """What each would do."""
    if not agents:
        return
    from handrail.interfaces.cli.agent_lines import shown
    from handrail.interfaces.cli.agent_models import AgentModels

    models = AgentModels(places, workspace, os.environ)
    for agent, trust in agents:
        for text in shown(agent, trust, models):
            print(text)
    print(
        "An agent chooses prompts, models and steps. `handrail agents show NAME --prompts` shows every word."
    )


def show(loaded: "LoadedSettings") -> None:
    """What would count, and what that means."""
    if loaded.trust == "changed":
        print("This has changed since you trusted it.")
    for each in loaded.ignored:
        print(f"{flat(each.file)}: {flat(each.key)} = {flat(each.value)}")
        print(f"    {flat(each.why)}")
    for program in loaded.brought[1:]:
        print(f"{flat(program.name)}: would run as it is now; look at it first")


def ask(loaded: "LoadedSettings", agents: list[Untrusted], workspace: Path) -> int:
    """The exit status, after the user's word."""
    from handrail.config.places import find_places
    from handrail.config.trust import trust, trust_agents

    if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        print("handrail: Nobody can be asked here. Run it in a terminal.", file=sys.stderr)
        return NOBODY_ASKED
    if not click.confirm("Trust this, as it is now?", default=False, err=True):
        print("Nothing was trusted.")
        return 0
    # What was shown, not what may be there by now.
    places = find_places(os.environ)
    if loaded.ignored:
        trust(places, workspace, loaded.brought)
    if agents:
        trust_agents(places, workspace, {agent.slug: agent.pipeline.sha256 for agent, _ in agents})
    print("Trusted. When it changes, it counts no more until you have looked at it again.")
    return 0
