"""`handrail policy explain`: what would be said to a call, by which rule, and what would change that."""

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from handrail.interfaces.cli.options import file_named, folder, workspace_option
from handrail.interfaces.cli.styles import clean
from handrail.protocol.errors import UsageProblem
from handrail.protocol.values import Mode

if TYPE_CHECKING:
    from handrail.policy.explaining import Explained

OPERATIONS = ("read", "list", "write", "delete", "move")
Explain = Callable[[dict[str, Any]], "Explained"]


@click.group()
def command() -> None:
    """What the rules say."""


@command.command()
@click.option("--path", "path", metavar="P", help="A file that a call is about.")
@click.option("--op", type=click.Choice(OPERATIONS), default="write", help="What is done to it.")
@click.option(
    "--jsonl", metavar="FILE", help='One {"path", "op"} a line, `-` for stdin; answers as JSON lines.'
)
@click.option("--mode", type=click.Choice(get_args(Mode)), help="As if in this mode.")
@workspace_option
def explain(path: str | None, op: str, jsonl: str | None, mode: Mode | None, workspace: str | None) -> int:
    """Say what would happen, which rule decides, and what would change it. Nothing is done."""
    explaining = explainer(folder(workspace or "."), mode)
    if jsonl is not None:
        for case in cases(jsonl):
            print(json.dumps({**case, **explaining(case).model_dump()}, ensure_ascii=False))
        return 0
    if path is None:
        raise click.UsageError("Give --path, or --jsonl for many.")
    show(explaining({"path": path, "op": op}))
    return 0


def explainer(workspace: Path, mode: Mode | None) -> Explain:
    """What explains a case in a folder, with the settings that hold there."""
    from handrail.config.layers import load_settings
    from handrail.config.places import find_places
    from handrail.tools.explaining import Explainer

    places = find_places(os.environ)
    settings = load_settings(places, workspace, environ=os.environ).settings
    state = (places.data, places.settings.parent)
    return Explainer(workspace, state, mode or settings.mode).explain


def show(explained: "Explained") -> None:
    """For a person."""
    print(f"{explained.verdict:<8} {clean(explained.reason)}")
    print(f"{'rule':<8} {clean(explained.rule)}")
    print(f"{'change':<8} {clean(explained.way)}")


def cases(name: str) -> Iterator[dict[str, Any]]:
    """What a file asks about, line by line."""
    try:
        lines = sys.stdin.readlines() if name == "-" else file_named(name).read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageProblem(f"{name} cannot be read: {error}.") from error
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            case = json.loads(line)
        except ValueError as error:
            raise UsageProblem(f"{name}:{number}: not JSON ({error}).") from error
        if not isinstance(case, dict) or not isinstance(case.get("path"), str):
            raise UsageProblem(f'{name}:{number}: a line is {{"path": "src/a.py", "op": "write"}}.')
        yield case
