"""The commands of the shell by name, and the help that lists them; importing this costs next to nothing."""

from typing import NamedTuple

from handrail import __version__


class Entry(NamedTuple):
    """A command: the module that has it, how it is called, what it does."""

    module: str
    usage: str
    help: str


COMMANDS = {
    "run": Entry("run", 'run "TASK"', "do one task and leave; never waits for an answer"),
    "sessions": Entry("sessions", "sessions", "list sessions; rename, delete, restore one"),
    "resume": Entry("resume", "resume [ID]", "go on with a session, by default the last"),
    "fork": Entry("fork", "fork ID", "a new session that begins as a copy of another"),
    "export": Entry("export", "export ID FILE", "write a session to one file"),
    "import": Entry("import_file", "import FILE", "bring in a session that was exported"),
    "changes": Entry("changes", "changes [show N]", "what was changed, and each change with its diff"),
    "diff": Entry("diff", "diff [N]", "what the session's changes amount to now"),
    "undo": Entry("undo", "undo [N]", "take back the last change, or change N alone"),
    "rewind": Entry("rewind", "rewind N", "go back to before change N; shows and asks first"),
    "redo": Entry("redo", "redo", "undo the last rewind or undo"),
    "edit": Entry("edit", "edit --proposal F", "apply changes written down in a file, all or none"),
    "model": Entry("model", "model [NAME]", "show which model answers and why; set or fetch one"),
    "config": Entry("config", "config", "show settings and where they were set, or set one"),
    "storage": Entry("storage", "storage [prune]", "what is kept and the room it takes"),
    "stats": Entry("stats", "stats router", "where messages went, and what came of it"),
    "trust": Entry("trust", "trust", "look at settings that came with it; let them count"),
    "policy": Entry("policy", "policy explain", "what the rules say to a command or a path, and why"),
    "intents": Entry("intents", "intents", "what changes belong to: init, new, edit, check ..."),
    "trace": Entry("trace", "trace blame FILE", "who wrote a line; verify and report what was done"),
    "agents": Entry("agents", "agents", "agents in folders: list, show, validate, new, runs"),
    "doctor": Entry("doctor", "doctor", "check the set-up; each line says what to do"),
}

EXIT_STATUSES = {
    0: "complete",
    1: "failed",
    2: "usage",
    3: "denied because nobody could be asked",
    4: "budget",
    5: "unverified",
    130: "cancelled",
}

VERSION = f"handrail {__version__}\n"


def help_text() -> str:
    """What `handrail --help` prints."""
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
  --mode MODE             explore, plan, ask, edit or auto: what needs no asking
  --route ROUTE           where messages go: auto, agent, chat, or an agent
  --allow COMMAND         a command that needs no asking in mode auto, by its
                          first words

`handrail COMMAND --help` tells more of a command.

Exit status:
{statuses}
"""
