"""`handrail edit --proposal FILE`: changes that anybody wrote down, through the same checks as a model's."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from handrail.interfaces.cli.opening import opened
from handrail.interfaces.cli.options import file_named, intent_option, options_for, workspace_option
from handrail.interfaces.cli.styles import clean
from handrail.interfaces.cli.terminal import is_terminal
from handrail.protocol.errors import ToolRefused, UsageProblem

if TYPE_CHECKING:
    from handrail.app import App
    from handrail.changes.document import Document
    from handrail.protocol.events import ApprovalAsked, HookSpoke

LARGEST = 10_000_000
NOBODY_ASKED = 3


@click.command()
@click.option("--proposal", metavar="FILE", required=True, help="A JSON document; `-` reads it from stdin.")
@click.option("--dry-run", is_flag=True, help="Only show what would change.")
@intent_option
@workspace_option
def command(proposal: str, dry_run: bool, **given: Any) -> int:
    """Apply the changes in FILE, all of them or none. docs/proposals.md says how they are written.

    The diff goes to stdout. A file that exists is changed only if `base_hash` names the version it has.
    """
    import anyio

    from handrail.changes.document import read_document

    document = read_document(content(proposal))
    given["intent"] = intent_of(document, given["intent"])

    async def run() -> int:
        async with opened(options_for(given)) as app:
            if given["intent"]:
                app.intents.check_selectable(given["intent"])
            if dry_run:
                print(clean(app.proposals.preview(document)))
                print("Nothing was written.", file=sys.stderr)
                return 0
            return await applied(app, document, f"edit {Path(proposal).name}")

    return anyio.run(run)


def intent_of(document: "Document", named: str | None) -> str:
    """The intent that the document names, or the user; they may not name two."""
    if named and document.intent_id and named != document.intent_id:
        raise UsageProblem(f"The proposal is for intent {document.intent_id!r}, not for {named!r}.")
    return named or document.intent_id


async def applied(app: "App", document: "Document", title: str) -> int:
    """The exit status, after telling what came of it."""
    asks = is_terminal(sys.stdin) and is_terminal(sys.stderr)
    finished = await app.proposals.apply(document, title=title, word=word if asks else None, heard=heard)
    if finished.error:
        if finished.error.reason != "nobody_to_ask":
            raise ToolRefused(finished.error)
        print(f"handrail: {clean(finished.error.message)}", file=sys.stderr)
        return NOBODY_ASKED
    if finished.status != "ok":
        raise UsageProblem(finished.content)
    print(clean(finished.shown))
    print(f"{finished.summary}; change set {finished.content}", file=sys.stderr)
    return 0


def heard(spoke: "HookSpoke") -> None:
    """Tell what a hook of the user's said."""
    from handrail.interfaces.cli.hook_lines import hook_lines
    from handrail.interfaces.cli.styles import ansi
    from handrail.interfaces.cli.terminal import width_of

    for row in hook_lines(spoke, width_of(sys.stderr)):
        print(ansi(row, colour=False), file=sys.stderr)


def word(asked: "ApprovalAsked") -> bool:
    """What the user says to it."""
    print(clean(asked.preview), file=sys.stderr)
    return click.confirm(f"{clean(asked.why)}. Apply it?", default=False, err=True)


def content(name: str) -> bytes:
    """The bytes of the document."""
    try:
        if name == "-":
            data = sys.stdin.buffer.read(LARGEST + 1) if sys.stdin else b""
        else:
            with file_named(name).open("rb") as file:
                data = file.read(LARGEST + 1)
    except OSError as error:
        raise UsageProblem(f"{name} cannot be read: {error.strerror or error}.") from error
    if len(data) > LARGEST:
        raise UsageProblem(f"{name} has more than {LARGEST:,} bytes. Split it into several proposals.")
    return data
