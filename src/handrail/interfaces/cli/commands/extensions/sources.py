"""`handrail sources`: list, add, test, sign in at and remove sources, which are MCP servers."""

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import asdict

from handrail.interfaces.cli.options import ask_app, run_with_app, workspace_option
from handrail.interfaces.cli.render.styles import one_line
from handrail.interfaces.cli.terminal import (
    NOBODY_TO_ASK,
    can_ask,
    confirm,
    print_json,
    print_text,
    read_secret,
)
from handrail.protocol.errors import UsageProblem

if TYPE_CHECKING:
    from handrail.app.app import App
    from handrail.app.extensions.sources import SourceRow, SourceTrial

STATUS_PROBLEMS = 1
NO_SOURCE = "There is no source yet. `handrail sources add NAME` writes one; ready are: {names}."


@click.group(invoke_without_command=True)
@workspace_option
@click.pass_context
def command(ctx: click.Context, /, **given: Any) -> None:
    """Sources: MCP servers whose tools the model can use. docs/sources.md says how to define them.

    Each call of a tool is decided and asked about like a command.
    """
    ctx.obj = given
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_sources, as_json=False)


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="One source a line, as JSON.")
@click.pass_obj
def list_sources(given: dict[str, Any], as_json: bool) -> None:
    """List the sources, and whether each can be used."""
    from handrail.app.extensions.sources import ready_names, source_rows

    rows = ask_app(given, source_rows)
    if not rows and not as_json:
        print_text(NO_SOURCE.format(names=", ".join(ready_names())), file=sys.stderr)
    for row in rows:
        if as_json:
            print_json(asdict(row))
        else:
            for text in source_lines(row):
                print_text(text)


@command.command(context_settings={"ignore_unknown_options": True})
@click.argument("name")
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
@click.option("--description", default="", help="One line for the model: what it is for.")
@click.option("--network", is_flag=True, help="Its program may use the network.")
@click.option("--writes", multiple=True, help="Where its program may write: `workspace`, or a folder.")
@click.pass_obj
def add(given: dict[str, Any], /, name: str, words: tuple[str, ...], **options: Any) -> None:
    """Add a source of yours: a ready definition by its NAME, a URL, or a command after `--`.

    \b
    handrail sources add github
    handrail sources add notes https://example.com/mcp
    handrail sources add db --network -- npx -y some-mcp-server
    """
    from handrail.app.extensions.sources import add_source, definition_text, missing_variables

    def add_it(app: "App") -> None:
        text = definition_text(words, **options) if words else ""
        file = add_source(app, name, text)
        source = app.sources.folders.named(name)
        print_text(f"Wrote {source.path}.")
        if missing := missing_variables(app, source):
            print_text(f"It needs {', '.join(missing)}: `handrail sources auth {name}` stores it.")
        elif file.url:
            print_text(f"If it asks for a sign-in: `handrail sources auth {name}`.")
        print_text(f"`handrail sources test {name}` tries it.")

    ask_app(given, add_it)


@command.command()
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="One source a line, as JSON.")
@click.pass_obj
def test(given: dict[str, Any], name: str | None, as_json: bool) -> int:
    """Start or reach a source, or all that are on, and list its tools; no tool is called.

    Exits with 0 where all work, with 1 otherwise.
    """
    from handrail.app.extensions.sources import source_rows, try_source

    async def test_them(app: "App") -> int:
        names = [name] if name else [row.name for row in source_rows(app) if row.state == "on"]
        wrong = 0
        for each in names:
            found = await try_source(app, each)
            wrong += not found.ok
            if as_json:
                print_json(asdict(found))
            else:
                for text in trial_lines(found):
                    print_text(text)
        if not names:
            print_text("There is no source to test that is on.", file=sys.stderr)
        return STATUS_PROBLEMS if wrong else 0

    return run_with_app(given, test_them)


@command.command()
@click.argument("name")
@click.argument("variable", required=False)
@click.pass_obj
def auth(given: dict[str, Any], name: str, variable: str | None) -> int:
    """Store what a source needs: its secrets, which are asked for, or a sign-in in the browser.

    A secret is never an argument: it is typed without being shown, or read from stdin.
    """
    from handrail.app.extensions.sources import keep_secret, sign_in

    async def authenticate(app: "App") -> int:
        file = app.sources.folders.named(name).file
        wanted = [variable] if variable else file.required
        for each in wanted:
            keep_secret(app, name, each, read_secret(f"{each} (not shown)"))
            print_text(f"{each} of {name} is stored, {app.model_pool.credentials.where()}.")
        if wanted:
            return 0
        if not file.url:
            raise UsageProblem(f"{name} needs nothing: its definition has no `${{NAME}}`.")

        async def show(address: str) -> None:
            print_text("Open this page in a browser on this machine, and sign in:")
            print_text(f"  {address}")

        found = await sign_in(app, name, show)
        for text in trial_lines(found):
            print_text(text)
        return 0 if found.ok else STATUS_PROBLEMS

    return run_with_app(given, authenticate)


@command.command()
@click.argument("name")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.pass_obj
def remove(given: dict[str, Any], name: str, yes: bool) -> int:
    """Remove a source of yours, with its stored secrets."""
    from handrail.app.extensions.sources import remove_source

    def remove_it(app: "App") -> int:
        app.sources.folders.named(name)
        if not yes:
            if not can_ask(sys.stderr):
                text = "Nothing was removed: nobody can be asked here. Say --yes."
                print_text(f"handrail: {text}", file=sys.stderr)
                return NOBODY_TO_ASK
            if not confirm(f"Remove {name} and its secrets?", default=False, err=True):
                return 0
        remove_source(app, name)
        print_text(f"Removed {name}.")
        return 0

    return ask_app(given, remove_it)


def source_lines(row: "SourceRow") -> Iterator[str]:
    """What a person reads about a source."""
    yield f"{one_line(row.name):20} {row.state:10} {one_line(row.description or row.problem)}".rstrip()
    if row.address:
        yield f"    {one_line(row.address)}"
    rights = [*(["network"] if row.network else []), *(f"writes {one_line(each)}" for each in row.writes)]
    if row.kind == "stdio":
        yield f"    in the sandbox; {', '.join(rights) or 'no network, writes nothing'}"
    if row.missing:
        yield f"    needs {', '.join(row.missing)}: `handrail sources auth {row.name}` stores it"
    if row.state in ("untrusted", "changed"):
        yield "    It cannot be used before you trust it with `handrail trust`."
    if row.problem and row.description:
        yield f"    {one_line(row.problem)}"


def trial_lines(found: "SourceTrial") -> Iterator[str]:
    """What a person reads about a test."""
    if not found.ok:
        yield f"{one_line(found.name)}: {one_line(found.problem)}"
        return
    server = f"{one_line(found.server)}, " if found.server else ""
    yield f"{one_line(found.name)}: works ({server}MCP {found.protocol}, {found.seconds:.1f} s)"
    if found.changes:
        yield f"    not what you approved: {one_line(found.changes)}"
    for tool in found.tools:
        marks = ", ".join(
            [*(["says it only reads"] if tool.reads_only else []), *([] if tool.allowed else ["denied"])]
        )
        yield f"    {one_line(tool.name)}{f' ({marks})' if marks else ''}: {one_line(tool.description)}"
