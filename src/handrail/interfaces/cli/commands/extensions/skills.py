"""`handrail skills`: list, show, check and create skills in folders."""

import os
import sys
from typing import TYPE_CHECKING, Any

import click

from handrail.config.skills import FOLDER, SKILL_FILE, WORKSPACE_FOLDERS, FoundSkill, SkillFolders, starter
from handrail.interfaces.cli.options import run_with_app, workspace_option, workspace_path
from handrail.interfaces.cli.render.styles import one_line
from handrail.interfaces.cli.terminal import print_json, print_text
from handrail.protocol.errors import ConfigProblem, UsageProblem

if TYPE_CHECKING:
    from handrail.app.app import App

STATUS_PROBLEMS = 1
NO_SKILL = "There is no skill yet. `handrail skills new NAME` writes a starter."


@click.group(invoke_without_command=True)
@workspace_option
@click.pass_context
def command(ctx: click.Context, /, **given: Any) -> None:
    """Skills in folders: yours, and those of this workspace. docs/skills.md says how to write them.

    The model is told the name and one line of each, and reads the rest when it uses one.
    """
    ctx.obj = given
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_skills, as_json=False)


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="One skill a line, as JSON.")
@click.pass_obj
def list_skills(given: dict[str, Any], as_json: bool) -> None:
    """List the skills, and whether each can be used."""
    skills = skills_of(given)
    found = skills.all()
    if not found and not as_json:
        print_text(NO_SKILL, file=sys.stderr)
    for each in found:
        if as_json:  # in ASCII: control characters are escaped
            state, description = skill_state(skills, each)
            row = {"skill": each.name, "folder": str(each.folder), "where": each.where}
            print_json(row | {"state": state, "description": description})
        else:
            print_text(skill_row(skills, each))


@command.command()
@click.argument("name")
@click.pass_obj
def show(given: dict[str, Any], name: str) -> None:
    """Show a skill: its instructions and its files."""
    for text in skill_details(skills_of(given), name):
        print_text(text)


@command.command()
@click.argument("name", required=False)
@click.pass_obj
def validate(given: dict[str, Any], name: str | None) -> int:
    """Check a skill, or all of them; each problem is shown with file and line.

    Exits with 0 where nothing is wrong, with 1 otherwise. Unknown keys are only warnings.
    """
    skills = skills_of(given)
    found = [skills.named(name)] if name else skills.all()
    wrong = 0
    for each in found:
        try:
            skill = skills.load(each)
        except ConfigProblem as problem:
            wrong += 1
            print_text(one_line(str(problem)))
        else:
            for text in skill.warnings or [f"{each.name}: nothing wrong."]:
                print_text(f"warning: {one_line(text)}" if skill.warnings else text)
    if not found:
        print_text("There is no skill to check. `handrail skills new NAME` writes one.", file=sys.stderr)
    return STATUS_PROBLEMS if wrong else 0


@command.command()
@click.argument("name")
@click.option("--here", is_flag=True, help="In this workspace, for everybody who works on it.")
@click.pass_obj
def new(given: dict[str, Any], name: str, here: bool) -> int:
    """Write the start of a skill."""
    text = starter(name)
    folder = skills_of(given).folder("workspace" if here else "yours") / name
    if os.path.lexists(folder):
        raise UsageProblem(f"{folder} exists already. Choose another name, or edit what is there.")
    if here:
        return _write_here(given, name, text)
    from handrail.config.places import make_private

    make_private(folder)
    with (folder / SKILL_FILE).open("x", encoding="utf-8") as opened:
        opened.write(text)
    print_text(f"Wrote {folder / SKILL_FILE}.")
    return 0


def _write_here(given: dict[str, Any], name: str, text: str) -> int:
    """Write it as a recorded change, which `handrail undo` can undo."""
    from handrail.app.extensions.agents import file_document
    from handrail.interfaces.cli.commands.edit import apply_document

    document = file_document({f"{WORKSPACE_FOLDERS[0]}/{name}/{SKILL_FILE}": text})

    async def run(app: "App") -> int:
        return await apply_document(app, document, f"{FOLDER} new {name}")

    status = run_with_app(given, run)
    if status == 0:
        print_text("Write its instructions, then trust it with `handrail trust`.", file=sys.stderr)
    return status


def skill_state(skills: SkillFolders, found: FoundSkill) -> tuple[str, str]:
    """Whether a skill can be used, and what it is for or what is wrong with it."""
    if skills.used()[found.name].folder != found.folder:
        return "hidden", f"{skills.used()[found.name].folder} is used instead"
    try:
        skill = skills.load(found)
    except ConfigProblem as problem:
        return "wrong", str(problem)
    trust = skills.trust(skill)
    return "yours" if trust == "own" else trust, skill.description


def skill_row(skills: SkillFolders, found: FoundSkill) -> str:
    state, description = skill_state(skills, found)
    return f"{one_line(found.name):24} {state:10} {one_line(description)}"


def skill_details(skills: SkillFolders, name: str) -> list[str]:
    skill = skills.load(skills.named(name))
    state, description = skill_state(skills, skill.found)
    files = [f"  {one_line(file)}" for file in skills.names(skill)]
    rows = [f"{skill.name}: {one_line(description)}", f"{state}, {one_line(str(skill.found.folder))}"]
    if state in ("untrusted", "changed"):
        rows.append("It cannot be used before you trust it with `handrail trust`.")
    return [*rows, *files, *(f"  | {text}".rstrip() for text in skill.body.split("\n"))]


def skills_of(given: dict[str, Any]) -> SkillFolders:
    from handrail.config.places import find_places

    return SkillFolders(find_places(os.environ), workspace_path(given))
