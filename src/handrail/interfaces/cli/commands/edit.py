"""`handrail edit`: apply a proposal file through the same checks as a model's edits."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from handrail.interfaces.cli import terminal
from handrail.interfaces.cli.options import intent_option, run_with_app, user_path, workspace_option
from handrail.interfaces.cli.terminal import NOBODY_TO_ASK, can_ask, print_lines, print_text, terminal_width
from handrail.protocol.errors import ToolRefused, UsageProblem

if TYPE_CHECKING:
    from handrail.app.app import App
    from handrail.app.history.changes import Document
    from handrail.protocol.events import ApprovalAsked, HookSpoke

MAX_BYTES = 10_000_000


@click.command()
@click.option("--proposal", metavar="FILE", required=True, help="A JSON document; `-` reads it from stdin.")
@click.option("--dry-run", is_flag=True, help="Only show what would change.")
@intent_option
@workspace_option
def command(proposal: str, dry_run: bool, **given: Any) -> int:
    """Apply the changes in FILE, all of them or none. docs/proposals.md describes the format.

    The diff goes to stdout. A file that exists is changed only if `base_hash` names the version it has.
    """
    from handrail.app.history.changes import read_document

    document, named = read_document(read_proposal(proposal)), given["intent"]
    if named and document.intent_id and named != document.intent_id:
        raise UsageProblem(f"The proposal is for intent {document.intent_id!r}, not for {named!r}.")
    given["intent"] = named or document.intent_id

    async def run(app: "App") -> int:
        if given["intent"]:
            app.intents.check_selectable(given["intent"])
        if dry_run:
            print_text(app.proposals.preview(document))
            print_text("Nothing was written.", file=sys.stderr)
            return 0
        return await apply_document(app, document, f"edit {Path(proposal).name}")

    return run_with_app(given, run)


async def apply_document(app: "App", document: "Document", title: str) -> int:
    """Apply it, print the outcome, and return the exit status."""
    from handrail.interfaces.cli.render.events import hook_lines

    def confirm(asked: "ApprovalAsked") -> bool:
        print_text(asked.preview, file=sys.stderr)
        return terminal.confirm(f"{asked.why}. Apply it?", default=False, err=True)

    def show_hook(spoke: "HookSpoke") -> None:
        print_lines(hook_lines(spoke, terminal_width(sys.stderr)), colour=False, file=sys.stderr)

    asks = confirm if can_ask(sys.stderr) else None
    finished = await app.proposals.apply(document, title=title, word=asks, heard=show_hook)
    if finished.error:
        if finished.error.reason != "nobody_to_ask":
            raise ToolRefused(finished.error)
        print_text(f"handrail: {finished.error.message}", file=sys.stderr)
        return NOBODY_TO_ASK
    if finished.status != "ok":
        raise UsageProblem(finished.content)
    print_text(finished.shown)
    print_text(f"{finished.summary}; change set {finished.content}", file=sys.stderr)
    return 0


def read_proposal(name: str) -> bytes:
    try:
        if name == "-":
            data = sys.stdin.buffer.read(MAX_BYTES + 1) if sys.stdin else b""
        else:
            with user_path(name).open("rb") as file:
                data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise UsageProblem(f"{name} cannot be read: {error.strerror or error}.") from error
    if len(data) > MAX_BYTES:
        raise UsageProblem(f"{name} has more than {MAX_BYTES:,} bytes. Split it into several proposals.")
    return data
