"""Slash commands of the conversation."""

import re
import time
from collections.abc import Awaitable, Callable
from difflib import get_close_matches
from typing import TYPE_CHECKING, NamedTuple, get_args

from handrail.interfaces.cli import slash_background, slash_changes, slash_intent, slash_next, slash_route
from handrail.interfaces.cli.figures import tokens, usd
from handrail.interfaces.cli.opening import named
from handrail.interfaces.cli.options import file_named
from handrail.interfaces.cli.rendering import todos
from handrail.interfaces.cli.session_list import session_lines
from handrail.interfaces.cli.slash_run import run_suggested
from handrail.interfaces.cli.styles import ACCENT, DIM, line, wrap
from handrail.interfaces.cli.tool_lines import note
from handrail.protocol.commands import (
    CommitChanges,
    Compact,
    CompleteTodo,
    Rename,
    SendMessage,
    SetMode,
    SetModel,
    UndoCompaction,
)
from handrail.protocol.errors import UsageProblem
from handrail.protocol.values import Mode

if TYPE_CHECKING:
    from handrail.interfaces.cli.conversation import Conversation

SLASH = re.compile(r"^\s*/([A-Za-z][A-Za-z-]*)(?:\s+(.*))?\s*$", re.DOTALL)
CONTINUE = "Go on from where you stopped."
KEYS = (
    "Esc, Ctrl-C: stop the turn   Alt-Enter: new line   Ctrl-D: leave   "
    "@path: attach a file   @agent, as the first word: run that agent"
)
RETRY = "Your last answer was cut off or did not work. Answer again from the start; change less at a time."


class Called(NamedTuple):
    name: str
    argument: str


class Slash(NamedTuple):
    """A command: what it takes, what it does, and how."""

    takes: str
    help: str
    run: Callable[["Conversation", str], Awaitable[None]]


def parse(text: str) -> Called | None:
    """The command that the text calls; None for a message (a path such as `/usr/bin` is one)."""
    found = SLASH.match(text)
    return Called(found[1].lower(), (found[2] or "").strip()) if found else None


async def call(talk: "Conversation", called: Called) -> None:
    """Do it; an unknown one names the nearest."""
    command = COMMANDS.get(called.name)
    if command is None:
        near = get_close_matches(called.name, COMMANDS, n=1, cutoff=0.5)
        advice = f"Did you mean /{near[0]}?" if near else "/help lists them."
        raise UsageProblem(f"There is no command /{called.name}. {advice}")
    await command.run(talk, called.argument)


def meanings() -> dict[str, str]:
    """{name: what it does}, for completion."""
    return {name: command.help for name, command in COMMANDS.items()}


async def mode(talk: "Conversation", argument: str) -> None:
    known = get_args(Mode)
    if not argument:
        current = talk.app.state(talk.session_id).mode if talk.session_id else talk.app.settings.mode
        talk.tell("mode", f"{current}; one of {', '.join(known)}")
    elif argument in known:
        await talk.send(SetMode.model_validate({"mode": argument}))
    else:
        raise UsageProblem(f"There is no mode {argument}. It is one of {', '.join(known)}.")


async def model(talk: "Conversation", argument: str) -> None:
    if argument:
        await talk.send(SetModel(model=argument))
    else:
        chosen = await talk.app.chosen_model(talk.session_id)
        talk.tell("model", f"{chosen.reference} ({chosen.why}); /model connection/name changes it")


async def show_todos(talk: "Conversation", argument: str) -> None:
    items = tuple(talk.app.state(talk.session_id).todos) if talk.session_id else ()
    if not argument:
        talk.say(todos(items, talk.width))
        for todo in items:
            if not todo.done:
                talk.tell("", f"/todos done {todo.id}: {todo.text}")
        return
    verb, _, todo_id = argument.partition(" ")
    if verb != "done" or todo_id.strip() not in {todo.id for todo in items}:
        known = ", ".join(todo.id for todo in items if not todo.done) or "none"
        raise UsageProblem(f"Say /todos done ID. Open ones: {known}.")
    await talk.send(CompleteTodo(todo_id=todo_id.strip()))


async def go_on(talk: "Conversation", argument: str) -> None:
    need_session(talk)
    await talk.send(SendMessage(text=argument or CONTINUE, route=_as_before(talk)))


async def retry(talk: "Conversation", argument: str) -> None:
    need_session(talk)
    await talk.send(SendMessage(text=argument or RETRY, route=_as_before(talk)))


async def compact(talk: "Conversation", argument: str) -> None:
    need_session(talk)
    state = talk.app.state(talk.session_id)
    if argument not in ("", "undo", "show"):
        raise UsageProblem("Say /compact, /compact show, or /compact undo.")
    if argument and not state.cut.compaction_id:
        raise UsageProblem("Nothing is compacted in this session.")
    if argument == "show":
        for text in state.cut.summary.splitlines():
            talk.tell("", text)
        return
    if not argument and state.turns == 0:
        raise UsageProblem("There is nothing to compact yet.")
    if not argument and state.turn:
        talk.tell("compact", "when this turn has ended.")
    await talk.send(UndoCompaction() if argument else Compact())


async def commit(talk: "Conversation", argument: str) -> None:
    need_session(talk)
    if talk.app.state(talk.session_id).turn:
        talk.tell("commit", "when this turn has ended.")
    await talk.send(CommitChanges(message=argument))


async def fork(talk: "Conversation", argument: str) -> None:
    need_session(talk)
    if argument and not argument.isdigit():
        raise UsageProblem("Say /fork, or /fork N for the session as it was after turn N.")
    forked = talk.app.fork(talk.session_id, int(argument) if argument else None)
    await talk.open(forked)
    talk.tell("forked", f"this is now session {forked}; the other stays as it is.")


async def sessions(talk: "Conversation", _argument: str) -> None:
    infos = talk.app.sessions()[:15]
    talk.say(session_lines(infos, time.time(), talk.width) or note("sessions", "none yet", talk.width))


async def resume(talk: "Conversation", argument: str) -> None:
    await talk.open(named(talk.app, argument))


async def rename(talk: "Conversation", argument: str) -> None:
    need_session(talk)
    if not argument:
        raise UsageProblem("Say /rename and the new title.")
    await talk.send(Rename(title=" ".join(argument.split())))


async def cost(talk: "Conversation", _argument: str) -> None:
    need_session(talk)
    state = talk.app.state(talk.session_id)
    price = usd(state.cost_usd) + ("" if state.cost_known else " and what is not known")
    talk.tell("cost", f"{price}, {tokens(state.usage)}, in {state.turns} turn{'s' * (state.turns != 1)}")


async def export(talk: "Conversation", argument: str) -> None:
    need_session(talk)
    if not argument:
        raise UsageProblem("Say /export and the file to write.")
    talk.app.export(talk.session_id, file_named(argument))
    talk.tell("exported", f"to {argument}; `handrail import` reads it")


async def show_help(talk: "Conversation", _argument: str) -> None:
    usages = {name: f"/{name} {command.takes}".rstrip() for name, command in COMMANDS.items()}
    column = max(map(len, usages.values()))
    for name, command in COMMANDS.items():
        usage = f"  {usages[name]:<{column}}  "
        talk.say(wrap(line((ACCENT, usage), command.help), talk.width, " " * len(usage)))
    talk.say(wrap(line((DIM, f"  {KEYS}")), talk.width, "  "))


async def clear(talk: "Conversation", _argument: str) -> None:
    left = talk.session_id
    talk.close()
    talk.tell(
        "new", f"session begins with your next message; /resume {left} goes back" if left else "session"
    )


async def leave(talk: "Conversation", _argument: str) -> None:
    talk.leave()


def _as_before(talk: "Conversation") -> str:
    """The route of the last message: what goes on goes on there."""
    return talk.app.state(talk.session_id).routes.last


def need_session(talk: "Conversation") -> None:
    if not talk.session_id:
        raise UsageProblem("There is no session yet: it begins with your first message.")


COMMANDS = {
    "help": Slash("", "this list", show_help),
    "mode": Slash("[MODE]", "what may be done without asking", mode),
    "model": Slash("[NAME]", "which model answers", model),
    "route": Slash("[ROUTE]", "where messages go: auto, agent, chat, or an agent's name", slash_route.route),
    "changes": Slash("[N]", "what was changed in this session, or change N in full", slash_changes.changes),
    "diff": Slash("[N]", "what the changes, or those from N on, amount to now", slash_changes.diff),
    "undo": Slash("[N]", "take back the last change, or change N alone", slash_changes.undo),
    "rewind": Slash("N|turn N", "go back to before it: files, conversation or both", slash_changes.rewind),
    "redo": Slash("", "undo the last /undo or /rewind", slash_changes.redo),
    "intent": Slash(
        "[ID|none]", "the intent that changes belong to, where intents are in use", slash_intent.intent
    ),
    "run": Slash("[N|N-M|all]", "the commands of the last answer; run one, some or all", run_suggested),
    "next": Slash("[N]", "say the first next step of the last answer, or number N", slash_next.say_next),
    "todos": Slash("[done ID]", "the plan of this session", show_todos),
    "continue": Slash("", "let the model go on after a stop", go_on),
    "retry": Slash("", "let the model answer again, from the beginning", retry),
    "compact": Slash("[show|undo]", "summarise older turns for the model", compact),
    "commit": Slash("[MESSAGE]", "commit to git what this session changed, and nothing else", commit),
    "background": Slash(
        "[[stop] ID]", "commands in the background: list, read or stop them", slash_background.background
    ),
    "fork": Slash("[TURN]", "go on in a copy of this session", fork),
    "sessions": Slash("", "the sessions of this folder", sessions),
    "resume": Slash("[ID]", "go to another session", resume),
    "rename": Slash("TITLE", "name this session", rename),
    "cost": Slash("", "what this session has cost", cost),
    "export": Slash("FILE", "write this session to one file", export),
    "clear": Slash("", "begin a new session", clear),
    "quit": Slash("", "leave", leave),
}
