"""`handrail trust`: show what comes with a workspace and would do something, and trust it."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from handrail.interfaces.cli.options import workspace_option, workspace_path
from handrail.interfaces.cli.render.styles import one_line
from handrail.interfaces.cli.terminal import NOBODY_TO_ASK, can_ask, confirm, print_text

if TYPE_CHECKING:
    from handrail.app.extensions.agents import Agents, UntrustedAgent
    from handrail.config.layers import LoadedSettings
    from handrail.config.places import Places
    from handrail.config.skills import Skill, Trust
    from handrail.config.sources import Source
    from handrail.config.user_commands import UserCommand

STATUS_WRONG = 1


@click.command()
@click.option("--revoke", "revoking", is_flag=True, help="Stop trusting anything here.")
@workspace_option
def command(revoking: bool, **given: Any) -> int:
    """Show what the settings of this workspace would change, and trust them if you agree.

    Until then they can only narrow what is allowed, and agents, skills, sources and slash commands that came
    with the workspace cannot be used.
    You trust the files as they are now: when one of them changes, you are asked again.
    """
    from handrail.app.extensions.agents import Agents
    from handrail.config.layers import load_settings
    from handrail.config.places import find_places
    from handrail.config.skills import SkillFolders
    from handrail.config.sources import SourceFolders
    from handrail.config.trust import revoke
    from handrail.config.user_commands import UserCommands
    from handrail.interfaces.cli.conversation.slash import COMMANDS

    workspace, places = workspace_path(given), find_places(os.environ)
    if revoking:
        revoked = revoke(places, workspace)
        print_text("Nothing here is trusted any more." if revoked else "Nothing was trusted here.")
        return 0
    loaded, agents = load_settings(places, workspace, environ=os.environ), Agents(workspace)
    untrusted, wrong = agents.untrusted()
    own_commands = UserCommands(places, workspace, COMMANDS).untrusted()
    skills, broken = SkillFolders(places, workspace).untrusted()
    sources, unreadable = SourceFolders(places, workspace).untrusted()
    for name, problem in unreadable.items():
        print_text(f"The source {one_line(name)} cannot be trusted: {one_line(str(problem))}")
    for name, problem in broken.items():
        print_text(f"The skill {one_line(name)} cannot be trusted: {one_line(str(problem))}")
    for slug, problem in wrong.items():
        text = f"The agent {one_line(slug)} cannot be trusted, because its file is wrong:\n{problem}"
        print_text("\n".join(map(one_line, text.splitlines())))
    wrong_files = bool(wrong or broken or unreadable)
    if not (untrusted or own_commands or skills or sources) and (
        loaded.trust == "trusted" or not loaded.ignored
    ):
        if loaded.trust == "trusted":
            print_text("The settings of this workspace are trusted. `handrail trust --revoke` ends that.")
        else:
            print_text(f"Nothing {'else' if wrong_files else 'in this workspace'} needs to be trusted.")
        return STATUS_WRONG if wrong_files else 0
    if loaded.ignored and loaded.trust == "changed":
        print_text("This has changed since you trusted it.")
    for each in loaded.ignored:
        print_text(f"{one_line(each.file)}: {one_line(each.key)} = {one_line(each.value)}")
        print_text(f"    {one_line(each.why)}")
    for program in loaded.workspace_files[1:] if loaded.ignored else ():
        print_text(f"{one_line(program.name)}: would be run as it is now; look at it first")
    show_agents(untrusted, agents)
    show_commands(own_commands)
    show_skills(skills)
    show_sources(sources)
    return ask_user(
        loaded, untrusted, own_commands, skills, sources=sources, workspace=workspace, places=places
    )


def show_agents(untrusted: "list[UntrustedAgent]", agents: "Agents") -> None:
    if not untrusted:
        return
    from handrail.interfaces.cli.render.agent_lines import agent_details

    for agent, trust in untrusted:
        for text in agent_details(agent, trust, agents):
            print_text(text)
    shows = "`handrail agents show NAME --prompts` shows all of it"
    print_text(f"An agent chooses prompts, models and steps. {shows}.")


def show_commands(untrusted: "list[UserCommand]") -> None:
    """Each command with its whole text: what is shown is what would be sent."""
    for command in untrusted:
        changed = ", changed since you trusted it" if command.trust == "changed" else ""
        usage = one_line(f"/{command.name} {command.arguments}")
        print_text(f"{usage}: {one_line(command.description)}")
        print_text(f"    a slash command that sends this as your message{changed}:")
        for text in command.body.split("\n"):
            print_text(f"  | {text}".rstrip())


def show_skills(untrusted: "list[tuple[Skill, Trust]]") -> None:
    """Each skill with its instructions: what is shown is what the model would read."""
    for skill, trust in untrusted:
        changed = ", changed since you trusted it" if trust == "changed" else ""
        print_text(f"The skill {skill.name}: {one_line(skill.description)}")
        print_text(f"    instructions that the model would follow{changed}:")
        for text in skill.body.split("\n"):
            print_text(f"  | {text}".rstrip())
        for file in sorted(skill.files):
            print_text(
                f"    {one_line(file)}: {len(skill.files[file]):,} bytes, {skill.sha256_of(file)[:12]}"
            )


def show_sources(untrusted: "list[tuple[Source, Trust]]") -> None:
    """Each source with what it starts or reaches, and what that may do."""
    from handrail.app.extensions.sources import source_rights

    for source, trust in untrusted:
        changed = ", changed since you trusted it" if trust == "changed" else ""
        print_text(f"The source {one_line(source.name)}, from {one_line(str(source.path))}{changed}:")
        for line in source_rights(source):
            print_text(f"    {one_line(line)}")


def ask_user(
    loaded: "LoadedSettings",
    untrusted: "list[UntrustedAgent]",
    own_commands: "list[UserCommand]",
    skills: "list[tuple[Skill, Trust]]",
    *,
    sources: "list[tuple[Source, Trust]]",
    workspace: Path,
    places: "Places",
) -> int:
    """Ask, trust what was shown if the user says yes, and return the exit status."""
    from handrail.config.trust import trust, trust_agents, trust_commands, trust_skills, trust_sources

    if not can_ask(sys.stderr):
        text = "Nothing was trusted: nobody can be asked here. Run it in a terminal."
        print_text(f"handrail: {text}", file=sys.stderr)
        return NOBODY_TO_ASK
    if not confirm("Trust this, as it is now?", default=False, err=True):
        print_text("Nothing was trusted.")
        return 0
    # What was shown, not what may be there by now.
    if loaded.ignored:
        trust(places, workspace, loaded.workspace_files)
    if untrusted:
        trust_agents(places, workspace, {agent.slug: agent.pipeline.sha256 for agent, _ in untrusted})
    if own_commands:
        trust_commands(places, workspace, {each.name: each.sha256 for each in own_commands})
    if skills:
        trust_skills(places, workspace, {skill.name: skill.sha256 for skill, _ in skills})
    if sources:
        trust_sources(places, workspace, {source.name: source.sha256 for source, _ in sources})
    print_text("Trusted. When it changes, you are asked again before it counts.")
    return 0
