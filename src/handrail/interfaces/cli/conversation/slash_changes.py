"""The slash commands for changes: /changes, /diff, /undo, /redo and /rewind."""

import re
import time
from typing import TYPE_CHECKING

from handrail.app.history.changes import net_changes, preview_rewind, undo_of
from handrail.interfaces.cli.conversation.questions import Choice
from handrail.interfaces.cli.render import change_list
from handrail.interfaces.cli.render.rewind_preview import confirm_question, preview_diffs, preview_lines
from handrail.interfaces.cli.render.tool_calls import cap_lines, note
from handrail.protocol.commands import Redo, Rewind
from handrail.protocol.errors import UsageProblem

if TYPE_CHECKING:
    from handrail.app.history.changes import RewindPreview
    from handrail.interfaces.cli.conversation.conversation import Conversation

MAX_LISTED = 15
TURN_ARGUMENT = re.compile(r"turn\s+(\d{1,6})")
MAX_LINES = 400


async def changes(talk: "Conversation", argument: str) -> None:
    session_id = require_session_id(talk)
    found, state = talk.app.history.changes(session_id), talk.app.state(session_id)
    if not argument:
        rows = change_list.change_lines(found, state.todos, time.time(), talk.width, MAX_LISTED)
        talk.say(rows or note("changes", "no file was changed in this session", talk.width))
        if len(found) > MAX_LISTED:
            talk.tell("", f"{len(found) - MAX_LISTED} older ones: `handrail changes` lists all")
        return
    shown = talk.app.history.show(session_id, argument.removeprefix("show").strip())
    head = change_list.change_header(shown, found, state.todos, time.time(), talk.width)
    talk.say(cap_lines([*head, *change_list.file_diff_lines(shown.files, talk.width)], MAX_LINES))


async def diff(talk: "Conversation", argument: str) -> None:
    files = net_changes(talk.app, require_session_id(talk), argument)
    rows = cap_lines(change_list.net_diff_lines(files, talk.width), MAX_LINES)
    talk.say(rows or note("diff", "nothing that this session changed is still in place", talk.width))


async def undo(talk: "Conversation", argument: str) -> None:
    session_id = require_idle_session(talk)
    await apply_or_ask(talk, preview_rewind(talk.app, session_id, undo_of(talk.app, session_id, argument)))


async def redo(talk: "Conversation", _argument: str) -> None:
    await apply_or_ask(talk, preview_rewind(talk.app, require_idle_session(talk), Redo()))


async def rewind(talk: "Conversation", argument: str) -> None:
    session_id = require_idle_session(talk)
    if not argument:
        raise UsageProblem("Say /rewind N, to before change N (/changes lists them), or /rewind turn N.")
    history = talk.app.history
    if turn := TURN_ARGUMENT.fullmatch(argument):
        command = history.before_turn(session_id, int(turn[1]))
    else:
        command = Rewind(to=history.find(session_id, argument).id, conversation=True)
    ask_first(talk, preview_rewind(talk.app, session_id, command))


async def apply_or_ask(talk: "Conversation", found: "RewindPreview") -> None:
    nothing_to_undo = not found.files and not isinstance(found.command, Redo)
    if nothing_to_undo or found.of_kind("merge", "conflict", "lost"):
        ask_first(talk, found)
    else:
        await talk.send(found.command)


def ask_first(talk: "Conversation", found: "RewindPreview") -> None:
    talk.say(preview_lines(found, talk.width))
    if not found.ways:
        talk.tell("kept", "there is nothing that could be undone")
        return
    question, keys = confirm_question(found, found.command)

    async def answered(key: str) -> None:
        if key == "d":
            talk.say(cap_lines(preview_diffs(found, talk.width), MAX_LINES))
            talk.choose(choice)
        elif key == "n":
            talk.tell("kept", "nothing was changed")
        else:
            await talk.send(found.confirmed(found.command, key))

    choice = Choice(f"{question} [{'/'.join(keys)}, d shows the diffs] > ", f"{keys}d", answered)
    talk.choose(choice)


def require_session_id(talk: "Conversation") -> str:
    if not talk.session_id:
        raise UsageProblem("There is no session yet. Your first message starts one.")
    return talk.session_id


def require_idle_session(talk: "Conversation") -> str:
    session_id = require_session_id(talk)
    if talk.app.state(session_id).turn:
        raise UsageProblem("A turn is running. Let it end, or stop it with Ctrl-C; then try again.")
    return session_id
