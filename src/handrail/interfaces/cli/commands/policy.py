"""`handrail policy`: what the rules say, without anything being done."""

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from handrail.interfaces.cli.options import file_named, folder, workspace_option
from handrail.protocol.errors import UsageProblem
from handrail.protocol.values import Mode

if TYPE_CHECKING:
    from handrail.tools.explaining import Explained

GIVE_ONE = "Give --command, or --jsonl with many commands."


@click.group()
def command() -> None:
    """Ask the rules."""


@command.command()
@click.option("--command", "text", metavar="COMMAND", help="A command as a model would give it.")
@click.option(
    "--jsonl", metavar="FILE", help='Many commands, a JSON string or {"cmd": ...} a line; - is the input.'
)
@click.option("--mode", type=click.Choice(get_args(Mode)), default="auto", show_default=True)
@click.option("--allow", metavar="COMMAND", multiple=True, help="An entry as in commands.allow; repeatable.")
@workspace_option
@click.pass_context
def explain(ctx: click.Context, /, **given: Any) -> None:
    """The verdict about a command, the rule that decided, and what would change it."""
    workspace = folder(given["workspace"] or ctx.find_root().params.get("workspace") or ".")
    explain_one = explainer(workspace, given["mode"], given["allow"])
    if given["jsonl"]:
        for each in commands_in(given["jsonl"]):
            print(json.dumps({"command": each} | as_json(explain_one(each))))
    elif given["text"] is not None:
        show(explain_one(given["text"]))
    else:
        raise UsageProblem(GIVE_ONE)


def explainer(workspace: Path, mode: Mode, allow: tuple[str, ...]) -> Callable[[str], "Explained"]:
    """A function that explains one command with the settings in force here."""
    import anyio

    from handrail.config.layers import load_settings
    from handrail.config.places import find_places
    from handrail.policy.commands.judge import lists_of
    from handrail.tools.explaining import explain_command
    from handrail.tools.sandbox.sandbox import Sandbox
    from handrail.workspace.files import Workspace

    places = find_places(os.environ)
    commands = load_settings(places, workspace, environ=os.environ).settings.commands
    lists = lists_of((*commands.allow, *allow), commands.deny)
    confined = commands.without_sandbox or anyio.run(Sandbox(places.data).protection).files
    here = Workspace(workspace, state_folders=(places.data, places.settings.parent))
    return lambda text: explain_command(text, lists, here, mode, confined=confined)


def commands_in(name: str) -> Iterator[str]:
    """The commands of a file or of the input, one a line."""
    try:
        lines = sys.stdin.read() if name == "-" else file_named(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageProblem(f"{name} cannot be read: {error}.") from error
    # Not `splitlines`: a line of JSON may hold characters that end lines elsewhere.
    for number, line in enumerate(lines.split("\n"), start=1):
        if line.strip():
            yield command_of(line, f"{name}:{number}")


def command_of(line: str, place: str) -> str:
    try:
        given = json.loads(line)
    except ValueError as error:
        raise UsageProblem(f'{place} is not JSON. Write a string or {{"cmd": ...}} on each line.') from error
    found = given.get("cmd", given.get("command")) if isinstance(given, dict) else given
    if not isinstance(found, str):
        raise UsageProblem(f'{place} has no command. Write a string or {{"cmd": ...}} on each line.')
    return found


def as_json(explained: "Explained") -> dict[str, str]:
    return {name: str(getattr(explained, name)) for name in explained.__match_args__}


def show(explained: "Explained") -> None:
    """One fact a line, those that are empty left out."""
    for name, value in as_json(explained).items():
        if value:
            print(f"{LABELS[name]:<9}{value}")


LABELS = {"verdict": "verdict", "rule": "decided", "reason": "because", "way": "change", "runs": "runs"}
