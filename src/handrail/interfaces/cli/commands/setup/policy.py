"""`handrail policy explain`: what the rules say about a command or path, and why."""

import json
import sys
from typing import TYPE_CHECKING, Any, get_args

import click

from handrail.interfaces.cli.options import user_path, workspace_option, workspace_path
from handrail.interfaces.cli.terminal import print_json, print_text
from handrail.protocol.errors import UsageProblem
from handrail.protocol.values import Mode

if TYPE_CHECKING:
    from handrail.app.policy import PolicyQuery, Verdict

OPERATIONS = ("read", "list", "write", "delete", "move")
LINE_FORMAT = 'Write a string, {"cmd": ...} or {"path": ..., "op": ...} on each line.'
LABELS = {"verdict": "verdict", "rule": "decided", "reason": "because", "way": "change", "runs": "runs"}


@click.group()
def command() -> None:
    """Ask the rules."""


@command.command()
@click.option("--command", "text", metavar="COMMAND", help="A command as a model would write it.")
@click.option("--path", metavar="P", help="A file that a tool call would be about.")
@click.option("--op", type=click.Choice(OPERATIONS), default="write", help="What would be done to it.")
@click.option(
    "--jsonl", metavar="FILE", help='Many: a JSON string, {"cmd": ...} or {"path": ...} a line; - is stdin.'
)
@click.option("--mode", type=click.Choice(get_args(Mode)), default="auto", show_default=True)
@click.option("--allow", metavar="COMMAND", multiple=True, help="An entry as in commands.allow; repeatable.")
@click.option("--intent", metavar="ID", default="", help="As if this intent of the workspace were active.")
@workspace_option
def explain(**given: Any) -> None:
    """The verdict about a command or a path, the rule that decided, and what would change it."""
    from handrail.app.policy import PolicyQuery, Rules

    rules = Rules(workspace_path(given), given["mode"], given["allow"], given["intent"])
    if rules.assumes_intent:
        text = "Assuming an active intent that owns every file; --intent ID asks about a real one."
        print_text(text, file=sys.stderr)
    if given["jsonl"]:
        name = given["jsonl"]
        try:
            lines = sys.stdin.read() if name == "-" else user_path(name).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageProblem(f"{name} cannot be read: {error}.") from error
        # Not `splitlines`: a line of JSON may hold characters that end lines elsewhere.
        for number, line in enumerate(lines.split("\n"), start=1):
            if line.strip():
                query = parse_query(line, f"{name}:{number}")
                asked = {"path" if query.op else "command": query.text}
                print_json(asked | verdict_json(rules.explain(query)))
        return
    if given["text"] is not None:
        query = PolicyQuery(given["text"])
    elif given["path"] is not None:
        query = PolicyQuery(given["path"], given["op"])
    else:
        raise UsageProblem("Give --command, --path, or --jsonl with many.")
    for name, value in verdict_json(rules.explain(query)).items():
        if value:
            print_text(f"{LABELS[name]:<9}{value}")


def parse_query(line: str, place: str) -> "PolicyQuery":
    from handrail.app.policy import PolicyQuery

    try:
        given = json.loads(line)
    except ValueError as error:
        raise UsageProblem(f"{place} is not JSON. {LINE_FORMAT}") from error
    if isinstance(given, dict) and isinstance(given.get("path"), str):
        op, scope = given.get("op", "write"), given.get("owned_scope")
        if op not in OPERATIONS:
            raise UsageProblem(f"{place}: op is one of {', '.join(OPERATIONS)}.")
        return PolicyQuery(given["path"], op, None if scope is None else tuple(map(str, scope)))
    found = given.get("cmd", given.get("command")) if isinstance(given, dict) else given
    if not isinstance(found, str):
        raise UsageProblem(f"{place} has no command and no path. {LINE_FORMAT}")
    return PolicyQuery(found)


def verdict_json(verdict: "Verdict") -> dict[str, str]:
    return {name: str(getattr(verdict, name)) for name in verdict.__struct_fields__}
