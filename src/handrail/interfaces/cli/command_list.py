"""Shell commands by name, and the text of `handrail --help`; cheap to import."""

from typing import NamedTuple

from handrail import __version__


class Entry(NamedTuple):
    module: str
    usage: str
    help: str


COMMANDS = {
    "run": Entry("run", 'run "TASK"', "do one task and exit; never asks"),
    "build": Entry("build", 'build "TASK"', "do it in a copy; kept only if the checks agree"),
    "do": Entry("do", "do FILE", "build the open items of a checklist, one by one"),
    "split": Entry("splits.split", 'split "TASK"', "in parallel subtasks, merged and verified as one"),
    "splits": Entry(
        "splits.splits", "splits [show ID]", "split requests: start, pause, resume, retry one ..."
    ),
    "status": Entry("status", "status", "what was built, what failed, what is open"),
    "sessions": Entry("sessions", "sessions", "list sessions; rename, label, archive, delete one"),
    "resume": Entry("conversation", "resume [ID]", "continue a session; default: the last"),
    "fork": Entry("sessions", "fork ID", "a new session that starts as a copy"),
    "export": Entry("sessions", "export ID FILE", "write a session to one file"),
    "import": Entry("sessions", "import FILE", "read a session that was exported"),
    "audit": Entry("audit", "audit [ID]", "requests to models: sent, answered, understood"),
    "changes": Entry("changes", "changes [show N]", "what was changed, and each change with its diff"),
    "diff": Entry("changes", "diff [N]", "what the session's changes add up to"),
    "undo": Entry("rewind", "undo [N]", "undo the last change, or only change N"),
    "rewind": Entry("rewind", "rewind N", "go back to before change N; shows and asks first"),
    "redo": Entry("rewind", "redo", "undo the last rewind or undo"),
    "edit": Entry("edit", "edit --proposal F", "apply the changes in a file, all or none"),
    "verify": Entry("verify", "verify", "run the project's own checks; what is broken?"),
    "model": Entry("setup.model", "model [NAME]", "show which model answers and why; set or fetch one"),
    "credentials": Entry("setup.credentials", "credentials", "stored keys and secrets: list, set, remove"),
    "config": Entry("setup.config", "config", "show settings and where they were set, or set one"),
    "storage": Entry("setup.storage", "storage [prune]", "what is stored and how much space it takes"),
    "stats": Entry("stats", "stats router", "how messages were routed; `stats build`: builds"),
    "trust": Entry("setup.trust", "trust", "review and trust what came with a folder"),
    "policy": Entry("setup.policy", "policy explain", "what the rules say about a command or path"),
    "intents": Entry("intents", "intents", "what changes belong to: init, new, edit ..."),
    "tasks": Entry("tasks", "tasks [week]", "your own task list: add, edit, done, undo ..."),
    "trace": Entry("trace", "trace blame FILE", "who wrote a line; verify, report"),
    "agents": Entry("extensions.agents", "agents", "agents in folders: list, show, validate, new, runs"),
    "skills": Entry("extensions.skills", "skills", "skills in folders: list, show, validate, new"),
    "mcp": Entry("servers.mcp", "mcp [--http]", "an MCP server: your rules for other agents"),
    "sources": Entry("extensions.sources", "sources", "MCP servers: list, add, test, auth, remove"),
    "kb": Entry("extensions.kb", "kb add PATH", "documents to search and quote: search, show ..."),
    "serve": Entry("servers.serve", "serve [FOLDER...]", "the web page and the HTTP API"),
    "worker": Entry("servers.worker", "worker", "ask models for subtasks of other machines"),
    "acp": Entry("servers.acp", "acp", "serve an editor; editors start this by themselves"),
    "completion": Entry("completion", "completion SHELL", "completion for bash, zsh and fish"),
    "doctor": Entry("setup.doctor", "doctor", "check the setup; each line says what to do"),
}

EXIT_STATUSES = {
    0: "complete",
    1: "failed",
    2: "usage",
    3: "denied because nobody could be asked",
    4: "budget",
    5: "unverified",
    6: "a build needs your decision",
    130: "cancelled",
}

VERSION = f"handrail {__version__}\n"


def help_text() -> str:
    rows = [
        ("", "open the conversation in this folder"),
        ('"TASK"', "open it and start with a question or task"),
    ]
    rows += [(entry.usage, entry.help) for entry in COMMANDS.values()]
    commands = "\n".join(f"  handrail {usage:<17} {help_line}".rstrip() for usage, help_line in rows)
    statuses = "\n".join(f"  {status:<5} {meaning}" for status, meaning in EXIT_STATUSES.items())
    return f"""\
Handrail {__version__}: AI development you can hold on to.

{commands}

Options of the conversation:
  -C, --workspace DIR     the folder to work on, instead of this one
  --model NAME            the model to use, as connection/name
  --mode MODE             explore, plan, ask, edit, auto or sandbox: what needs
                          no approval
  --route ROUTE           where messages go: auto, agent, chat, or an agent
  --allow COMMAND         a command to run without asking in mode auto, by its
                          first words

`handrail COMMAND --help` explains a command.

Exit status:
{statuses}
"""
