"""`handrail policy`: what the rules say, without anything being done."""

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

import click

from handrail.interfaces.cli.options import file_named, folder, workspace_option
from handrail.interfaces.cli.styles import clean
from handrail.protocol.errors import UsageProblem
from handrail.protocol.values import Mode

if TYPE_CHECKING:
    from handrail.policy.explaining import ExplainedPath
    from handrail.tools.explaining import Explained

GIVE_ONE = "Give --command, --path, or --jsonl with many."
OPERATIONS = ("read", "list", "write", "delete", "move")
FORM = 'Write a string, {"cmd": ...} or {"path": ..., "op": ...} on each line.'


class Asked(NamedTuple):
    """What the rules are asked about."""

    text: str
    op: str = ""
    """What is done to the path; empty: `text` is a command."""
    scope: tuple[str, ...] | None = None

    @property
    def name(self) -> str:
        return "path" if self.op else "command"


Explain = Callable[[Asked], "Explained | ExplainedPath"]


@click.group()
def command() -> None:
    """Ask the rules."""


@command.command()
@click.option("--command", "text", metavar="COMMAND", help="A command as a model would give it.")
@click.option("--path", metavar="P", help="A file that a call would be about.")
@click.option("--op", type=click.Choice(OPERATIONS), default="write", help="What would be done to it.")
@click.option(
    "--jsonl",
    metavar="FILE",
    help='Many: a JSON string, {"cmd": ...} or {"path": ...} a line; - is stdin.',
)
@click.option("--mode", type=click.Choice(get_args(Mode)), default="auto", show_default=True)
@click.option("--allow", metavar="COMMAND", multiple=True, help="An entry as in commands.allow; repeatable.")
@click.option("--intent", metavar="ID", default="", help="As if this intent of the workspace were active.")
@workspace_option
@click.pass_context
def explain(ctx: click.Context, /, **given: Any) -> None:
    """The verdict about a command or a path, the rule that decided, and what would change it."""
    workspace = folder(given["workspace"] or ctx.find_root().params.get("workspace") or ".")
    explain_one = explainer(workspace, given["mode"], given["allow"], given["intent"])
    if given["jsonl"]:
        for each in asked_in(given["jsonl"]):
            print(json.dumps({each.name: each.text} | as_json(explain_one(each))))
    elif given["text"] is not None:
        show(explain_one(Asked(given["text"])))
    elif given["path"] is not None:
        show(explain_one(Asked(given["path"], given["op"])))
    else:
        raise UsageProblem(GIVE_ONE)


def explainer(workspace: Path, mode: Mode, allow: tuple[str, ...], intent_id: str = "") -> Explain:
    """A function that explains one command or path with the settings in force here."""
    import anyio

    from handrail.config.layers import load_settings
    from handrail.config.places import find_places
    from handrail.policy.commands.judge import lists_of
    from handrail.tools.explaining import explain_command
    from handrail.tools.explaining_paths import explain_path
    from handrail.tools.intent_facts import NO_INTENT, active_intent
    from handrail.tools.sandbox.sandbox import Sandbox
    from handrail.workspace.files import Workspace
    from handrail.workspace.intents.intent_file import IntentFile

    places = find_places(os.environ)
    commands = load_settings(places, workspace, environ=os.environ).settings.commands
    lists = lists_of((*commands.allow, *allow), commands.deny)
    confined = commands.without_sandbox or anyio.run(Sandbox(places.data).protection).files
    here = Workspace(workspace, state_folders=(places.data, places.settings.parent))

    file = IntentFile(here)
    intent = active_intent(file, intent_id) if intent_id else NO_INTENT
    if not intent_id and file.now() is not None:
        print("As if an intent were active that owns everything; --intent ID names one.", file=sys.stderr)

    def explain_one(asked: Asked) -> "Explained | ExplainedPath":
        if asked.op:
            return explain_path(asked.text, asked.op, here, mode, asked.scope, intent=intent)
        return explain_command(asked.text, lists, here, mode, confined=confined, intent=intent)

    return explain_one


def asked_in(name: str) -> Iterator[Asked]:
    """What a file or the input asks about, one a line."""
    try:
        lines = sys.stdin.read() if name == "-" else file_named(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageProblem(f"{name} cannot be read: {error}.") from error
    # Not `splitlines`: a line of JSON may hold characters that end lines elsewhere.
    for number, line in enumerate(lines.split("\n"), start=1):
        if line.strip():
            yield asked_by(line, f"{name}:{number}")


def asked_by(line: str, place: str) -> Asked:
    """What one line asks about."""
    try:
        given = json.loads(line)
    except ValueError as error:
        raise UsageProblem(f"{place} is not JSON. {FORM}") from error
    if isinstance(given, dict) and isinstance(given.get("path"), str):
        op, scope = given.get("op", "write"), given.get("owned_scope")
        if op not in OPERATIONS:
            raise UsageProblem(f"{place}: op is one of {', '.join(OPERATIONS)}.")
        return Asked(given["path"], op, None if scope is None else tuple(map(str, scope)))
    found = given.get("cmd", given.get("command")) if isinstance(given, dict) else given
    if not isinstance(found, str):
        raise UsageProblem(f"{place} has no command and no path. {FORM}")
    return Asked(found)


def as_json(explained: "Explained | ExplainedPath") -> dict[str, str]:
    return {name: str(getattr(explained, name)) for name in explained.__match_args__}


def show(explained: "Explained | ExplainedPath") -> None:
    """One fact a line, those that are empty left out."""
    for name, value in as_json(explained).items():
        if value:
            print(f"{LABELS[name]:<9}{clean(value)}")


LABELS = {"verdict": "verdict", "rule": "decided", "reason": "because", "way": "change", "runs": "runs"}
