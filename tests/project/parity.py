"""Which interface offers what, from the registries of commands.

`python -m tests.project.parity` writes docs/parity.md.
"""

import re
from importlib import import_module
from importlib.util import find_spec
from typing import NamedTuple

from handrail.interfaces.cli.command_list import COMMANDS as SHELL
from handrail.interfaces.cli.conversation.slash import COMMANDS as SLASH
from handrail.interfaces.http.api.table import ENDPOINTS
from tests.project.source import ROOT

PAGE = ROOT / "docs" / "parity.md"
SCRIPT = ROOT / "src/handrail/interfaces/web/static/slash.js"
COLUMNS = ("shell", "conversation", "http", "page", "acp", "mcp")
HEADINGS = ("Shell", "Conversation", "HTTP", "Page", "Editor (ACP)", "MCP server")


class Row(NamedTuple):
    """What a person can do. An empty column needs a reason."""

    what: str
    shell: tuple[str, ...] = ()
    slash: tuple[str, ...] = ()
    http: tuple[str, ...] = ()
    """Endpoints that begin so: `GET /tasks`, or `/tasks` for all methods."""
    page: str = ""
    """Where in the page, if no slash command of the page does it."""
    acp: str = ""
    """What the protocol has for it, if no slash command does it."""
    mcp: tuple[str, ...] = ()
    why_not: dict[str, str] = {}  # noqa: RUF012 - never changed
    """{column: why it does not offer this}"""


NO_TURNS = "other agents have conversations of their own; they get Handrail's powers, not its model"
SET_UP = "set-up is the user's, before other agents are let in"
EDITOR_PLACE = "the page shows it beside the editor; an editor has no place for it"
IN_SHELL = "the shell has its own"
PROCESS = "starts a process or sets up a shell"
ONE_SHOT = "one command has no conversation that it could be said in"

ROWS = (
    Row(
        "Talk: send a message, answer questions",
        ("run", "resume"),
        http=(
            "POST /sessions/{session}/messages",
            "POST /sessions/{session}/commands",
            "POST /sessions/{session}/questions",
            "POST /images",
            "GET /sessions/{session}/events",
            "GET /sessions/{session}/log",
        ),
        page="the composer",
        acp="`session/prompt`",
        why_not={"mcp": NO_TURNS, "conversation": "typed as text"},
    ),
    Row(
        "Stop a turn",
        (),
        ("subagents",),
        ("POST /sessions/{session}/cancel",),
        "the stop button",
        "`session/cancel`",
        why_not={"mcp": NO_TURNS, "shell": "Ctrl-C"},
    ),
    Row(
        "Answer an approval",
        (),
        (),
        ("POST /sessions/{session}/approvals",),
        "the card of the question",
        "`session/request_permission`",
        why_not={
            "mcp": "the other agent's user is asked, by elicitation",
            "conversation": "one key",
            "shell": "headless runs never ask",
        },
    ),
    Row(
        "Continue or repeat an answer",
        (),
        ("continue", "retry", "next", "run", "auto"),
        why_not={
            "shell": ONE_SHOT,
            "mcp": NO_TURNS,
            "http": "commands `send_message`, `run_command`, `run_all`, `set_auto_continue`",
        },
    ),
    Row(
        "Mode, route, model of a session",
        (),
        ("mode", "route", "model"),
        ("/models",),
        acp="`session/set_mode`",
        why_not={"shell": "options --mode, --route and --model of each command", "mcp": SET_UP},
    ),
    Row(
        "Plan a task, then follow the plan",
        (),
        ("plan",),
        ("/sessions/{session}/plan",),
        "",
        why_not={"shell": "`handrail --mode plan`", "mcp": NO_TURNS},
    ),
    Row(
        "Todos",
        (),
        ("todos",),
        ("/sessions/{session}/todos",),
        "",
        why_not={"shell": ONE_SHOT, "mcp": NO_TURNS},
    ),
    Row(
        "Compact the conversation",
        (),
        ("compact",),
        why_not={"shell": ONE_SHOT, "mcp": NO_TURNS, "http": "command `compact`"},
    ),
    Row(
        "Commands and sub-agents in the background",
        (),
        ("background",),
        ("GET /sessions/{session}/background",),
        "",
        why_not={"shell": ONE_SHOT, "mcp": NO_TURNS},
    ),
    Row(
        "Sessions: list, open, name, label, status, fork, delete",
        ("sessions", "resume", "fork"),
        ("sessions", "resume", "fork", "rename", "label", "status", "archive", "clear"),
        (
            "/sessions$",
            "/sessions/{session}$",
            "POST /sessions/{session}/restore",
            "POST /sessions/{session}/fork",
        ),
        "the list of sessions",
        "`session/list`, `load`, `resume`, `fork`, `close`",
        why_not={"mcp": NO_TURNS},
    ),
    Row(
        "Export and import a session",
        ("export", "import"),
        ("export",),
        ("GET /sessions/{session}/export", "POST /sessions/import"),
        "",
        why_not={"mcp": NO_TURNS},
    ),
    Row(
        "Find in a conversation",
        (),
        ("find",),
        ("GET /sessions/{session}/search",),
        "",
        why_not={
            "shell": "`handrail audit` prints all of it",
            "conversation": "the terminal's own search",
            "acp": "the editor's own search",
            "mcp": NO_TURNS,
        },
    ),
    Row(
        "Changes: list, diff",
        ("changes", "diff"),
        ("changes", "diff"),
        ("GET /sessions/{session}/changes", "GET /sessions/{session}/diff"),
        "",
        why_not={"mcp": "each edit answers with its own diff"},
    ),
    Row(
        "Undo, rewind, redo",
        ("undo", "rewind", "redo"),
        ("undo", "rewind", "redo"),
        ("/sessions/{session}/rewind",),
        "",
        why_not={"mcp": "undoing is the user's decision"},
    ),
    Row(
        "Commit",
        (),
        ("commit",),
        why_not={"shell": "git commit", "mcp": "the other agent has git", "http": "command `commit_changes`"},
    ),
    Row(
        "Edit files: hash-verified, all or none",
        ("edit",),
        (),
        (),
        "change cards",
        "tool calls",
        ("read", "edit_files"),
        {
            "conversation": "the model edits; `handrail edit` takes a file",
            "http": "the MCP server takes edits from programs",
        },
    ),
    Row("Verify: the project's checks", ("verify",), ("verify",), ("/checks",), "", "", ("verify",)),
    Row(
        "Builds and checklists",
        ("build", "do", "status"),
        ("build", "accept"),
        ("GET /sessions/{session}/pipeline",),
        "",
        why_not={"mcp": NO_TURNS},
    ),
    Row(
        "Split a request into subtasks",
        ("split", "splits"),
        ("split",),
        ("/splits",),
        "Splits",
        why_not={
            "acp": EDITOR_PLACE,
            "mcp": NO_TURNS,
        },
    ),
    Row(
        "Intents: list, select, edit, check",
        ("intents",),
        ("intent",),
        ("/intents", "/intent-check"),
        "",
        "",
        ("list_intents", "select_active_intent", "check_intents"),
    ),
    Row(
        "Trace: who wrote a line",
        ("trace",),
        (),
        ("/trace",),
        "Intents, and the blame of a file",
        "",
        ("trace_blame",),
        {"conversation": IN_SHELL, "acp": EDITOR_PLACE},
    ),
    Row(
        "Agents in folders, and their runs",
        ("agents",),
        ("agents", "init"),
        ("/agents", "/runs"),
        "",
        why_not={"mcp": NO_TURNS},
    ),
    Row(
        *("Skills and own commands", ("skills",), ("skills",), ("/own-commands",), "Skills"),
        why_not={"mcp": NO_TURNS},
    ),
    Row(
        "Task list",
        ("tasks",),
        ("tasks",),
        ("/tasks", "/assistant", "/llm"),
        "Tasks",
        why_not={"mcp": "the list is the user's own"},
    ),
    Row(
        "Audit and costs",
        ("audit", "stats"),
        ("cost",),
        ("/sessions/{session}/requests", "/requests", "/stats"),
        "Audit, Charts",
        why_not={"mcp": NO_TURNS},
    ),
    Row(
        "Settings",
        ("config",),
        (),
        ("/settings",),
        "Settings",
        why_not={"conversation": IN_SHELL, "acp": EDITOR_PLACE, "mcp": SET_UP},
    ),
    Row(
        "Choose and fetch models, keys",
        ("model", "credentials"),
        ("model",),
        ("/models", "/credentials"),
        "Settings",
        why_not={"mcp": SET_UP},
    ),
    Row(
        "Trust a folder",
        ("trust",),
        (),
        ("/trust",),
        "Settings",
        why_not={"conversation": IN_SHELL, "acp": EDITOR_PLACE, "mcp": SET_UP},
    ),
    Row(
        "What the rules say",
        ("policy",),
        why_not={
            "conversation": IN_SHELL,
            "http": "a question says which rule asks",
            "page": "a question says which rule asks",
            "acp": "a question says which rule asks",
            "mcp": "a refusal says which rule refuses",
        },
    ),
    Row(
        "Doctor, storage, workspaces, files, completion of mentions",
        ("doctor", "storage"),
        (),
        ("/doctor", "/storage", "/workspace", "/workspaces", "/files", "/file", "/mentions"),
        "Settings, the viewer",
        why_not={"conversation": IN_SHELL, "acp": EDITOR_PLACE, "mcp": SET_UP},
    ),
    Row(
        "Start servers, shell completion",
        ("serve", "worker", "completion", "acp", "mcp"),
        why_not=dict.fromkeys(("conversation", "http", "page", "acp", "mcp"), PROCESS),
    ),
    Row(
        "Sources: MCP servers that the model can use",
        ("sources",),
        ("sources",),
        ("/sources",),
        "Sources",
        why_not={"mcp": "other agents have their own"},
    ),
    Row(
        "Knowledge base",
        ("kb",),
        page="Knowledge",
        why_not={
            "conversation": "the model searches it; the shell keeps it",
            "http": "the model searches it; the shell keeps it",
            "acp": "the model searches it; the shell keeps it",
            "mcp": NO_TURNS,
        },
    ),
    Row(
        "Help, leave",
        (),
        ("help", "quit"),
        why_not={
            "shell": "`handrail --help`",
            "http": "`/openapi.json`",
            "mcp": "the tools describe themselves",
        },
    ),
)


def acp_commands() -> tuple[set[str], dict[str, str]] | None:
    """The slash commands of editors, and why others are not offered; None without the interface."""
    name = "handrail.interfaces.acp.slash_commands"
    if find_spec("handrail.interfaces.acp") is None:
        return None
    module = import_module(name)
    return set(module.COMMANDS), dict(module.NOT_OFFERED)


def mcp_tools() -> set[str] | None:
    if find_spec("handrail.interfaces.mcp") is None:
        return None
    tools = import_module("handrail.interfaces.mcp.tools")
    return {tool.name for tool in tools.TOOLS}


def page_commands() -> set[str]:
    text = SCRIPT.read_text("utf-8")
    return set(re.findall(r"^  (\w+)(?:: \{|,|\()", text[text.index("export const SLASH") :], re.MULTILINE))


def endpoints_of(row: Row) -> list[str]:
    names = [f"{each.method} {each.path}" for each in ENDPOINTS]
    return [name for name in names if any(_begins(name, start) for start in row.http)]


def _begins(name: str, start: str) -> bool:
    method, _, path = name.partition(" ")
    wanted, _, prefix = start.rpartition(" ")
    if wanted not in ("", method):
        return False
    return path == prefix[:-1] if prefix.endswith("$") else path == prefix or path.startswith(f"{prefix}/")


def exists(row: Row) -> bool:
    """Whether any interface has it yet."""
    return bool(cells(row)["shell"] or cells(row)["conversation"] or endpoints_of(row))


def cells(row: Row) -> dict[str, str]:
    """What each column offers; empty where it offers nothing."""
    shell = [f"`{name}`" for name in row.shell if name in SHELL]
    slash = [f"`/{name}`" for name in row.slash if name in SLASH]
    page = [f"`/{name}`" for name in row.slash if name in page_commands()]
    acp = acp_commands()
    editor = [f"`/{name}`" for name in row.slash if acp and name in acp[0]]
    tools = mcp_tools()
    server = [f"`{name}`" for name in row.mcp if tools and name in tools]
    found = endpoints_of(row)
    http = f"{len(found)} operation{'s' * (len(found) > 1)}" if found else ""
    commands = [part for part in (row.page, ", ".join(page)) if part]
    in_editor = [part for part in (row.acp, ", ".join(editor)) if part] if acp else []
    return dict(
        zip(
            COLUMNS,
            (
                ", ".join(shell),
                ", ".join(slash),
                http,
                "; ".join(commands),
                "; ".join(in_editor),
                ", ".join(server),
            ),
            strict=True,
        )
    )


def shown_columns() -> list[str]:
    """The columns whose interface exists."""
    there = {"acp": acp_commands() is not None, "mcp": mcp_tools() is not None}
    return [name for name in COLUMNS if there.get(name, True)]


def reason(row: Row, column: str) -> str:
    """Why a column offers nothing; empty if nobody says."""
    if column in row.why_not:
        return row.why_not[column]
    acp = acp_commands()
    if column == "acp" and acp:
        return next((acp[1][name] for name in row.slash if name in acp[1]), "")
    return ""


def document() -> str:
    columns = shown_columns()
    headings = [HEADINGS[COLUMNS.index(name)] for name in columns]
    lines = [
        "# Parity",
        "",
        "What can be done, and which interface offers it. In parentheses is why one does not. HTTP",
        "operations are described in `/openapi.json`; every command of the protocol can also be posted to",
        "`/sessions/{session}/commands`. This page is made from the code: `python -m tests.project.parity`.",
        "",
        f"| | {' | '.join(headings)} |",
        f"| --- |{' --- |' * len(columns)}",
    ]
    for row in ROWS:
        if exists(row):
            found = cells(row)
            texts = [found[name] or f"({reason(row, name)})" for name in columns]
            lines.append(f"| {row.what} | {' | '.join(texts)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(document(), "utf-8")
