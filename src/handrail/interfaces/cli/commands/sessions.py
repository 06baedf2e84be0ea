"""`handrail sessions`, `fork`, `export` and `import`: list, manage, copy and move sessions."""

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import asdict

from handrail.interfaces.cli.completion import complete_file, complete_session
from handrail.interfaces.cli.options import ask_app, run_with_app, user_path, workspace_option
from handrail.interfaces.cli.render.styles import Line, columns, fit, format_age, format_usd, line
from handrail.interfaces.cli.terminal import print_json, print_lines, print_text, terminal_width, use_colour
from handrail.protocol.commands import Delete, ListCommand, Rename, Restore, SetStatus

if TYPE_CHECKING:
    from handrail.app.app import App
    from handrail.app.history.sessions import SessionInfo, SessionState

TITLE_COLUMNS = 20
"""With less room for the title, the labels go to the next line."""
COPY_LABELS = {"fork": "fork of", "import": "imported"}


def session_lines(infos: "list[SessionInfo]", now: float, width: int) -> list[Line]:
    if not infos:
        return []
    head = f"{'session':<{len(infos[0].id)}}  {'last used':>12}  {'':>9}  {'cost':>7}  title"
    rows = [line(("dim", fit(head, width)))]
    for info in infos:
        state = "running " if info.running else "waiting " if info.waiting else ""
        state = "deleted " if info.deleted else state
        state += f"{info.status.replace('_', ' ')} " if info.status != "open" else ""
        state += f"{COPY_LABELS[info.copied]} " if info.copied else ""
        turns = f"{info.turns:>3} turn{'s' if info.turns != 1 else ' '}"
        facts = f"{format_age(now - info.touched):>12}  {turns}  {format_usd(info.cost_usd):>7}  "
        indent = len(info.id) + 2 + columns(facts)
        labels = fit("  ".join(f"#{label}" for label in info.labels), max(10, width - indent))
        room = width - indent - len(state)
        beside = bool(labels) and room - columns(labels) - 2 >= TITLE_COLUMNS
        title = fit(info.title or "(no message yet)", max(10, room - (columns(labels) + 2) * beside))
        start = (("accent", f"{info.id}  "), ("dim", facts), ("bold", state), title)
        rows.append(line(*start, ("accent", f"  {labels}")) if beside else line(*start))
        if labels and not beside:
            rows.append(line(("accent", f"{' ' * indent}{labels}")))
    return rows


@click.group(invoke_without_command=True)
@click.option("--label", metavar="LABEL", default="", help="Only those with this label.")
@click.option("--status", metavar="STATUS", default="", help="Only open, in-progress, done or archived ones.")
@click.option("--archived", is_flag=True, help="Only archived ones, which the list leaves out otherwise.")
@click.option("--all", "with_deleted", is_flag=True, help="Archived and deleted ones too.")
@click.option("--json", "as_json", is_flag=True, help="One session a line, as JSON.")
@workspace_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    label: str,
    status: str,
    *,
    archived: bool,
    with_deleted: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """List the sessions of this folder, the last used first."""
    ctx.obj = given
    if ctx.invoked_subcommand:
        return

    def show(app: "App") -> None:
        from handrail.app.history.sessions import set_status

        wanted = set_status("archived" if archived else status).status if archived or status else None
        infos = app.sessions(status=wanted, label=label.removeprefix("#"), deleted=with_deleted)
        if as_json:
            for info in infos:
                print_json(asdict(info))
            return
        rows = session_lines(infos, time.time(), terminal_width(sys.stdout))
        print_lines(rows, colour=use_colour(sys.stdout, app.settings.display))
        if not infos:
            known = bool(app.sessions(deleted=True))
            others = "No session matches. `handrail sessions --all` lists all of them."
            none = "No session in this folder yet. `handrail` starts one."
            print_text(others if known else none, file=sys.stderr)

    ask_app(given, show)


@command.command()
@click.argument("session", shell_complete=complete_session)
@click.argument("title", nargs=-1, required=True)
@click.pass_obj
def rename(given: dict[str, Any], /, session: str, title: tuple[str, ...]) -> None:
    """Give a session another title."""
    name = " ".join(" ".join(title).split())
    send_and_confirm(given, session, lambda _: Rename(title=name), f"is now called {name}")


@command.command()
@click.argument("session", shell_complete=complete_session)
@click.pass_obj
def delete(given: dict[str, Any], /, session: str) -> None:
    """Hide a session from lists; `restore` brings it back."""
    send_and_confirm(
        given, session, lambda _: Delete(), "is deleted; `handrail sessions restore {id}` brings it back"
    )


@command.command()
@click.argument("session", shell_complete=complete_session)
@click.pass_obj
def restore(given: dict[str, Any], /, session: str) -> None:
    """Bring a deleted session back."""
    send_and_confirm(given, session, lambda _: Restore(), "is back")


@command.command()
@click.argument("session", shell_complete=complete_session)
@click.argument("status", nargs=-1, required=True)
@click.pass_obj
def status(given: dict[str, Any], /, session: str, status: tuple[str, ...]) -> None:
    """Set a session's status: open, in progress, done or archived. A new message reopens it."""
    from handrail.app.history.sessions import set_status

    change = set_status(" ".join(status))
    send_and_confirm(given, session, lambda _: change, f"is {change.status.replace('_', ' ')}")


@command.command()
@click.argument("session", shell_complete=complete_session)
@click.pass_obj
def archive(given: dict[str, Any], /, session: str) -> None:
    """Leave a session out of lists; `sessions --archived` lists it, a new message brings it back."""
    send_and_confirm(given, session, lambda _: SetStatus("archived"), "is archived")


@command.command()
@click.argument("session", shell_complete=complete_session)
@click.argument("labels", nargs=-1, required=True)
@click.option("--remove", is_flag=True, help="Remove these labels.")
@click.pass_obj
def label(given: dict[str, Any], /, session: str, labels: tuple[str, ...], remove: bool) -> None:
    """Add labels to a session, or remove them."""
    from handrail.app.history.sessions import change_labels

    def change(state: "SessionState") -> ListCommand:
        return change_labels(state, remove=labels) if remove else change_labels(state, add=labels)

    send_and_confirm(given, session, change, f"{'no longer has' if remove else 'has'} {', '.join(labels)}")


def send_and_confirm(
    given: dict[str, Any], session: str, change: "Callable[[SessionState], ListCommand]", done: str
) -> None:
    async def run(app: "App") -> None:
        from handrail.app.history.sessions import send_and_wait

        session_id = app.find_session(session)
        await send_and_wait(app, session_id, change(app.state(session_id)))
        print_text(f"{session_id} {done.replace('{id}', session_id)}.")

    run_with_app(given, run)


@click.command()
@click.argument("session", shell_complete=complete_session)
@click.option("--turn", type=click.IntRange(min=1), help="As it was after this turn.")
@workspace_option
def fork_command(session: str, turn: int | None, **given: Any) -> None:
    """Make a new session that starts as a copy of another, and print its id."""
    print_text(ask_app(given, lambda app: app.fork(app.find_session(session), turn)))


@click.command()
@click.argument("session", shell_complete=complete_session)
@click.argument("file", shell_complete=complete_file)
@workspace_option
def export_command(session: str, file: str, **given: Any) -> None:
    """Write a session, with everything that belongs to it, to FILE."""

    def export(app: "App") -> str:
        session_id = app.find_session(session)
        app.export(session_id, user_path(file))
        return session_id

    print_text(f"{ask_app(given, export)} is in {file}; `handrail import` reads it.", file=sys.stderr)


@click.command()
@click.argument("file", shell_complete=complete_file)
@workspace_option
def import_command(file: str, **given: Any) -> None:
    """Read a session that was exported, and print its new id."""
    print_text(ask_app(given, lambda app: app.import_session(user_path(file))))
