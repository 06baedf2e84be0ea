"""Slash commands about changes: what was done, and taking it back."""

import re
import time
from typing import TYPE_CHECKING

from handrail.interfaces.cli.change_list import (
    change_lines,
    net_lines,
    numbers_of,
    shown_files,
    shown_head,
)
from handrail.interfaces.cli.choices import Choice
from handrail.interfaces.cli.going_back import (
    Look,
    as_shown,
    diffs_of,
    last_applied,
    look,
    preview,
    question_of,
)
from handrail.interfaces.cli.tool_lines import capped, note
from handrail.protocol.commands import Redo, Rewind
from handrail.protocol.errors import UsageProblem

if TYPE_CHECKING:
    from handrail.interfaces.cli.conversation import Conversation

LISTED = 15
TURN = re.compile(r"turn\s+(\d{1,6})")
SHOWN_LINES = 400


async def changes(talk: "Conversation", argument: str) -> None:
    session_id = session_of(talk)
    found, state = talk.app.history.changes(session_id), talk.app.state(session_id)
    if not argument:
        rows = change_lines(found, state.todos, time.time(), talk.width, LISTED)
        talk.say(rows or note("changes", "no file was changed in this session", talk.width))
        if len(found) > LISTED:
            talk.tell("", f"{len(found) - LISTED} older ones: `handrail changes` lists all")
        return
    shown = talk.app.history.show(session_id, argument.removeprefix("show").strip())
    head = shown_head(shown, numbers_of(found), state.todos, time.time(), talk.width)
    talk.say(capped([*head, *shown_files(shown.files, talk.width)], SHOWN_LINES))


async def diff(talk: "Conversation", argument: str) -> None:
    session_id = session_of(talk)
    changed = talk.app.history.changes(session_id)
    files = talk.app.history.net(session_id, argument or "1") if changed or argument else []
    rows = capped(net_lines(files, talk.width), SHOWN_LINES)
    talk.say(rows or note("diff", "nothing that this session changed is in place", talk.width))


async def undo(talk: "Conversation", argument: str) -> None:
    session_id = resting(talk)
    history = talk.app.history
    change = history.find(session_id, argument) if argument else last_applied(history.changes(session_id))
    await at_once(talk, look(talk.app, session_id, Rewind(to=change.id, only=True)))


async def redo(talk: "Conversation", _argument: str) -> None:
    await at_once(talk, look(talk.app, resting(talk), Redo()))


async def rewind(talk: "Conversation", argument: str) -> None:
    session_id = resting(talk)
    history, turn = talk.app.history, TURN.fullmatch(argument)
    if not argument:
        raise UsageProblem("Say /rewind N, to before change N (/changes lists them), or /rewind turn N.")
    if turn:
        wish = history.before_turn(session_id, int(turn[1]))
    else:
        wish = Rewind(to=history.find(session_id, argument).id, conversation=True)
    ask(talk, look(talk.app, session_id, wish))


async def at_once(talk: "Conversation", found: Look) -> None:
    """Do it where no file needs the user's word, else ask."""
    if isinstance(found.command, Redo) and not found.files:
        await talk.send(found.command)
    elif found.of_kind("merge", "conflict", "lost") or not found.files:
        ask(talk, found)
    else:
        await talk.send(found.command)


def ask(talk: "Conversation", found: Look) -> None:
    """Show what would be done, and ask whether to."""
    talk.say(preview(found, talk.width))
    if not found.ways:
        talk.tell("kept", "there is nothing that could go back")
        return
    question, keys = question_of(found, found.command)

    async def answered(key: str) -> None:
        if key == "d":
            talk.say(capped(diffs_of(found, talk.width), SHOWN_LINES))
            talk.choose(choice)
        elif key == "n":
            talk.tell("kept", "nothing was changed")
        else:
            await talk.send(as_shown(found, found.command, key))

    choice = Choice(f"{question} [{'/'.join(keys)}, d shows the diffs] > ", f"{keys}d", answered)
    talk.choose(choice)


def session_of(talk: "Conversation") -> str:
    if not talk.session_id:
        raise UsageProblem("There is no session yet: it begins with your first message.")
    return talk.session_id


def resting(talk: "Conversation") -> str:
    """The session, in which no turn may be running."""
    session_id = session_of(talk)
    if talk.app.state(session_id).turn:
        raise UsageProblem("A turn is running: let it end, or stop it with Ctrl-C, then say it again.")
    return session_id
