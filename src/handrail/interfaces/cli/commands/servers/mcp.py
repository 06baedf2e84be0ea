"""`handrail mcp`: Handrail's powers for other agents, on stdin and stdout or over HTTP."""

import os
import sys
from typing import TYPE_CHECKING, Any, get_args

import click

from handrail.interfaces.cli.options import opened_app, options_for, workspace_option
from handrail.interfaces.cli.terminal import print_text
from handrail.protocol.errors import UsageProblem
from handrail.protocol.values import Mode

if TYPE_CHECKING:
    from handrail.interfaces.mcp.server import McpServer


@click.command()
@click.option(
    "--http", is_flag=True, help="Serve streamable HTTP on the loopback, instead of stdin and stdout."
)
@click.option(
    "--port", type=click.IntRange(0, 65535), help="With --http; default: 8642, or the next that is free."
)
@click.option(
    "--token",
    metavar="TEXT",
    envvar="HANDRAIL_TOKEN",
    help="With --http: the token that requests need, instead of your stored one; also from HANDRAIL_TOKEN.",
)
@click.option("--mode", type=click.Choice(get_args(Mode)), help="What may be done without asking.")
@workspace_option
def command(http: bool, port: int | None, token: str | None, **given: Any) -> None:
    """Offer intents, hash-checked edits, verification and blame to another agent, over MCP.

    What needs your approval is asked through that agent's program, if it can ask; else it is refused.
    docs/mcp-server.md has the lines to set it up.
    """
    import anyio

    if not http and (token or port is not None):
        raise UsageProblem("--port and --token are for --http.")

    async def run() -> None:
        from handrail.app.environment import use_login_path

        if problem := await use_login_path():
            print_text(f"handrail: {problem}", file=sys.stderr)
        async with opened_app(options_for(given)) as app:
            from handrail.interfaces.mcp.server import McpServer

            server = McpServer(app)
            if http:
                await serve(server, port, token)
            else:
                await server.run_stdio()

    anyio.run(run)


async def serve(server: "McpServer", port: int | None, token: str | None) -> None:
    from handrail.config.places import find_places
    from handrail.interfaces.http.access import Access, check_token, stored_token
    from handrail.interfaces.http.server import listen
    from handrail.interfaces.mcp.http import PATH, serve_http

    host = "127.0.0.1"
    token = check_token(token) if token is not None else stored_token(find_places(os.environ))
    listening = listen(host, port)
    bound = listening.getsockname()[1]

    def announce() -> None:
        print_text(f"Handrail's MCP server is at http://{host}:{bound}{PATH}")
        print_text(f"Requests need the header  Authorization: Bearer {token}")

    await serve_http(server, listening, Access(token, host, bound), announce)
