"""What the shell completes beyond commands and options: sessions, routes, intents, agents, skills, files."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from handrail.app.completion import Name

Find = "Callable[[Path, Mapping[str, str]], list[Name]]"
Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def _folder(ctx: click.Context) -> Path:
    """The workspace that the line names with -C so far, else this folder."""
    given: str | None = None
    at: click.Context | None = ctx
    while at is not None and not given:
        given, at = at.params.get("workspace"), at.parent
    return Path(os.path.realpath(os.path.expanduser(given or ".")))


def _from_app(name: str) -> Complete:
    def complete(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from handrail.app import completion

        find: Callable[[Path, Mapping[str, str]], list[Name]] = getattr(completion, name)
        return items(find(_folder(ctx), os.environ), incomplete)

    return complete


def items(names: "list[Name]", incomplete: str) -> list[CompletionItem]:
    # A title is somebody else's text: the shells read a line for each.
    return [
        CompletionItem(each.text, help="".join(c if c.isprintable() else " " for c in each.help)[:60] or None)
        for each in names
        if each.text.startswith(incomplete)
    ]


complete_session = _from_app("session_names")
complete_route = _from_app("route_names")
complete_intent = _from_app("intent_names")
complete_agent = _from_app("agent_names")


def complete_file(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(incomplete, type="file")]


def complete_folder(
    _ctx: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    return [CompletionItem(incomplete, type="dir")]
