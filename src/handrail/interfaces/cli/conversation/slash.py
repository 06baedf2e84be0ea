"""The slash commands."""

import re
import time
from collections.abc import Awaitable, Callable
from difflib import get_close_matches
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from msgspec import convert

from handrail.app.history.sessions import background_output, chosen_route
from handrail.interfaces.cli.conversation import (
    slash_changes,
    slash_plan,
    slash_project,
    slash_sessions,
    slash_split,
    slash_verify,
)
from handrail.interfaces.cli.conversation.slash_changes import require_idle_session, require_session_id
from handrail.interfaces.cli.options import user_path
from handrail.interfaces.cli.render.events import command_list_lines, todo_lines
from handrail.interfaces.cli.render.styles import (
    count_of,
    format_clock,
    format_usage,
    format_usd,
    line,
    one_line,
    wrap,
)
from handrail.interfaces.cli.render.tool_calls import body_lines, note
from handrail.protocol import commands
from handrail.protocol.errors import UsageProblem
from handrail.protocol.values import CONTINUE_INPUT, Mode

if TYPE_CHECKING:
    from handrail.interfaces.cli.conversation.conversation import Conversation

OUTPUT_CHARS = 5_000
NO_INTENT = "none"
ROUTES_HELP = "auto decides, agent works on files, chat answers, and the name of an agent runs that agent"
RUN_ARGUMENT = re.compile(r"(?P<which>all|\d{1,3}(?:-\d{1,3})?)(?P<network>\s+network)?")
RUN_USAGE = "Say /run 2, /run 2-4 or /run all; add `network` to let them use the network."
SLASH_PATTERN = re.compile(r"^\s*/([A-Za-z][A-Za-z0-9-]*)(?:\s+(.*))?\s*$", re.DOTALL)
"""A command and its argument; a path such as `/usr/bin` is a message."""
CONTINUE_MESSAGE = "Go on from where you stopped."
RETRY_MESSAGE = "Answer again, from the start."
"""Sent only where the last request cannot be repeated as it was."""
KEYS_HELP = (
    "Esc, Ctrl-C: stop the turn   Alt-Enter: new line   Ctrl-D: leave   "
    "@path: attach a file   @agent, as the first word: run that agent"
)


class SlashCommand(NamedTuple):
    takes: str
    help: str
    run: Callable[["Conversation", str], Awaitable[None]]


async def run_slash(talk: "Conversation", name: str, argument: str) -> None:
    """Run the command, Handrail's or the user's; UsageProblem names the nearest where there is none."""
    if name not in COMMANDS and (own := talk.own_commands.find(name)):
        await talk.send(commands.SendMessage(text=own.message(argument)))
        return
    if name not in COMMANDS:
        known = [*COMMANDS, *(each.name for each in talk.own_commands.all()[0])]
        near = get_close_matches(name, known, n=1, cutoff=0.5)
        advice = f"Did you mean /{near[0]}?" if near else "/help lists them."
        raise UsageProblem(f"There is no command /{name}. {advice}")
    await COMMANDS[name].run(talk, argument)


async def background(talk: "Conversation", argument: str) -> None:
    words = argument.split()
    running = talk.app.state(talk.session_id).background.running if talk.session_id else {}
    if not words:
        for each in running.values():
            talk.tell(each.id, f"{format_clock(time.time() - each.since)}  {each.command}")
        if running:
            talk.tell("", "/background ID shows the output of one, /background stop ID stops it")
        else:
            talk.tell("background", "no command is running in the background")
        return
    if len(words) > 2 or (len(words) == 2 and words[0] != "stop") or words == ["stop"]:
        raise UsageProblem("Say /background, /background ID, or /background stop ID.")
    if words[-1] not in running:
        known = f"There are: {', '.join(running)}." if running else "There are none."
        raise UsageProblem(f"No command {words[-1]} is running in the background. {known}")
    if len(words) == 2:
        await talk.send(commands.StopBackground(background_id=words[-1]))
        return
    output = background_output(talk.app, talk.session_id, words[-1], OUTPUT_CHARS)
    rows = body_lines(output, talk.width)
    talk.say(rows or note(words[-1], "it has written nothing yet", talk.width))


async def subagents(talk: "Conversation", argument: str) -> None:
    """List the sub-agents of the turn, or stop one."""
    running = talk.app.state(talk.session_id).running_subagents if talk.session_id else {}
    word, _, name = argument.partition(" ")
    if not argument:
        for key, each in running.items():
            talk.tell(key, f"{'  ' * (each.depth - 1)}{each.task}")
        talk.tell("subagents", "/subagents stop ID stops one" if running else "none are running")
    elif word != "stop" or name not in running:
        known = f"There are: {', '.join(running)}." if running else "There are none."
        raise UsageProblem(f"Say /subagents, or /subagents stop ID. {known}")
    else:
        await talk.send(commands.CancelSubagent(subagent_id=name))


async def intent(talk: "Conversation", argument: str) -> None:
    active = talk.app.state(talk.session_id).intent if talk.session_id else ""
    if argument:
        if argument == NO_INTENT and not active:
            raise UsageProblem("No intent is active.")
        await talk.send(commands.SelectIntent(intent_id="" if argument == NO_INTENT else argument))
        return
    if not active and not talk.app.intents.bound:
        talk.tell("intent", "intents are not in use here; `handrail intents init` turns them on")
        return
    from handrail.interfaces.cli.commands.intents import intent_list_lines

    talk.tell("intent", f"{active or 'none is active'}; /intent ID selects one")
    for text in intent_list_lines(talk.app.intents.now()):
        talk.tell("", text)


async def send_next_step(talk: "Conversation", argument: str) -> None:
    steps = talk.next_steps
    if not steps:
        raise UsageProblem("The last turn suggests no next step.")
    number = int(argument) if argument.isdecimal() and len(argument) <= 3 else 0
    if argument and not 0 < number <= len(steps):
        raise UsageProblem(f"Say /next, or /next and a number from 1 to {len(steps)}.")
    step = steps[number - 1] if number else steps[0]
    if talk.steps_by == "handrail" and (command := SLASH_PATTERN.match(step.input)):
        await run_slash(talk, command[1], command[2] or "")  # never what a model wrote
        return
    # Continuing uses the same route again; any other step is routed by its text.
    route = talk.app.state(talk.session_id).routes.last if step.input == CONTINUE_INPUT else ""
    await talk.send(commands.SendMessage(text=step.input, route=route, suggested=True))


async def route(talk: "Conversation", argument: str) -> None:
    if not argument:
        talk.tell("route", f"{chosen_route(talk.app, talk.session_id)}; {ROUTES_HELP}")
        return
    await talk.send(commands.SetRoute(route=argument.strip()))


async def run_suggested(talk: "Conversation", argument: str) -> None:
    suggested = talk.suggested
    if not suggested:
        raise UsageProblem("The last answer suggests no command.")
    if not argument:
        talk.say(command_list_lines(suggested, talk.width))
        return
    asked = RUN_ARGUMENT.fullmatch(argument.strip().lower())
    if asked is None:
        raise UsageProblem(RUN_USAGE)
    require_idle_session(talk)
    picked, network = suggested, bool(asked["network"])
    if asked["which"] != "all":
        first, _, last = asked["which"].partition("-")
        start, end = int(first), int(last or first)
        if not 0 < start <= end <= len(suggested):
            raise UsageProblem(f"There are commands 1 to {len(suggested)}. {RUN_USAGE}")
        picked = suggested[start - 1 : end]
    if len(picked) == 1:
        await talk.send(commands.RunCommand(command=picked[0], network=network))
    else:
        await talk.send(commands.RunAll(commands=picked, network=network))


async def mode(talk: "Conversation", argument: str) -> None:
    known = get_args(Mode)
    if not argument:
        current = talk.app.state(talk.session_id).mode if talk.session_id else talk.app.settings.mode
        talk.tell("mode", f"{current}; one of {', '.join(known)}")
    elif argument in known:
        command = convert({"mode": argument}, commands.SetMode)
        notice = await talk.app.check_mode(talk.session_id, command.mode)
        await talk.send(command)
        if notice:
            talk.tell("mode", notice)
    else:
        raise UsageProblem(f"There is no mode {argument}. Modes: {', '.join(known)}.")


async def model(talk: "Conversation", argument: str) -> None:
    if argument:
        await talk.send(commands.SetModel(model=argument))
    else:
        chosen = await talk.app.chosen_model(talk.session_id)
        talk.tell("model", f"{chosen.reference} ({chosen.why}); /model connection/name changes it")


async def show_todos(talk: "Conversation", argument: str) -> None:
    items = tuple(talk.app.state(talk.session_id).todos) if talk.session_id else ()
    if not argument:
        talk.say(todo_lines(items, talk.width))
        for todo in items:
            if not todo.done:
                talk.tell("", f"/todos done {todo.id}: {todo.text}")
        return
    verb, _, todo_id = argument.partition(" ")
    if verb != "done" or todo_id.strip() not in {todo.id for todo in items}:
        known = ", ".join(todo.id for todo in items if not todo.done) or "none"
        raise UsageProblem(f"Say /todos done ID. Open ones: {known}.")
    await talk.send(commands.CompleteTodo(todo_id=todo_id.strip()))


async def continue_turn(talk: "Conversation", argument: str) -> None:
    await send_on_last_route(talk, argument or CONTINUE_MESSAGE, "continue")


async def retry(talk: "Conversation", argument: str) -> None:
    await send_on_last_route(talk, argument or RETRY_MESSAGE, "" if argument else "retry")


async def send_on_last_route(
    talk: "Conversation", text: str, resume: Literal["", "retry", "continue"]
) -> None:
    last = talk.app.state(require_session_id(talk)).routes.last
    await talk.send(commands.SendMessage(text=text, route=last, resume=resume))


async def compact(talk: "Conversation", argument: str) -> None:
    state = talk.app.state(require_session_id(talk))
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
        talk.tell("compact", "after this turn.")
    await talk.send(commands.UndoCompaction() if argument else commands.Compact())


async def commit(talk: "Conversation", argument: str) -> None:
    if talk.app.state(require_session_id(talk)).turn:
        talk.tell("commit", "after this turn.")
    await talk.send(commands.CommitChanges(message=argument))


async def fork(talk: "Conversation", argument: str) -> None:
    session_id = require_session_id(talk)
    if argument and not argument.isdigit():
        raise UsageProblem("Say /fork, or /fork N for the session as it was after turn N.")
    forked = talk.app.fork(session_id, int(argument) if argument else None)
    await talk.open(forked)
    talk.tell("forked", f"this is now session {forked}; the original is unchanged.")


async def resume(talk: "Conversation", argument: str) -> None:
    await talk.open(talk.app.find_session(argument))


async def rename(talk: "Conversation", argument: str) -> None:
    require_session_id(talk)
    if not argument:
        raise UsageProblem("Say /rename and the new title.")
    await talk.send(commands.Rename(title=" ".join(argument.split())))


async def cost(talk: "Conversation", _argument: str) -> None:
    state = talk.app.state(require_session_id(talk))
    price = format_usd(state.cost_usd) + ("" if state.cost_known else " plus requests of unknown cost")
    talk.tell("cost", f"{price}, {format_usage(state.usage)}, in {count_of(state.turns, 'turn')}")


async def export(talk: "Conversation", argument: str) -> None:
    session_id = require_session_id(talk)
    if not argument:
        raise UsageProblem("Say /export and the file to write.")
    talk.app.export(session_id, user_path(argument))
    talk.tell("exported", f"to {argument}; `handrail import` reads it")


async def show_help(talk: "Conversation", _argument: str) -> None:
    usages = {name: f"/{name} {command.takes}".rstrip() for name, command in COMMANDS.items()}
    column = max(map(len, usages.values()))
    for name, command in COMMANDS.items():
        usage = f"  {usages[name]:<{column}}  "
        talk.say(wrap(line(("accent", usage), command.help), talk.width, " " * len(usage)))
    show_own_commands(talk, column)
    talk.say(wrap(line(("dim", f"  {KEYS_HELP}")), talk.width, "  "))


def show_own_commands(talk: "Conversation", column: int) -> None:
    """The user's commands and those of the workspace, and the files that cannot be used."""
    own, wrong = talk.own_commands.all()
    for each in own:
        usage = f"  {f'/{each.name} {one_line(each.arguments)}'.rstrip():<{column}}  "
        meaning = each.description if each.usable else "not trusted: `handrail trust` shows it"
        talk.say(wrap(line(("accent", usage), one_line(meaning)), talk.width, " " * len(usage)))
    for name, problem in wrong:
        talk.say(note(f"/{one_line(name)}", one_line(problem), talk.width, "bad"))


async def clear(talk: "Conversation", _argument: str) -> None:
    left = talk.session_id
    talk.close()
    back = f"; /resume {left} goes back" if left else ""
    talk.tell("new", f"session: it starts with your next message{back}")


async def quit_conversation(talk: "Conversation", _argument: str) -> None:
    talk.leave()


COMMANDS = {
    "help": SlashCommand("", "this list", show_help),
    "mode": SlashCommand("[MODE]", "what may be done without asking", mode),
    "model": SlashCommand("[NAME]", "which model answers", model),
    "route": SlashCommand("[ROUTE]", "where messages go: auto, agent, chat, or an agent's name", route),
    "plan": SlashCommand("[TASK|VERB]", "make or show a plan; or edit, approve, follow it", slash_plan.plan),
    "auto": SlashCommand("[on|off]", "whether a request in steps continues by itself", slash_plan.auto),
    "changes": SlashCommand("[N]", "what this session changed, or change N in full", slash_changes.changes),
    "diff": SlashCommand("[N]", "what the changes, or those from N on, add up to now", slash_changes.diff),
    "undo": SlashCommand("[N]", "undo the last change, or only change N", slash_changes.undo),
    "rewind": SlashCommand("N|turn N", "go back to before it: files, conversation", slash_changes.rewind),
    "redo": SlashCommand("", "undo the last /undo or /rewind", slash_changes.redo),
    "build": SlashCommand("TASK", "do it in a copy; kept only if the checks agree", slash_verify.build),
    "accept": SlashCommand(
        "[SESSION]", "apply the files of a build that is not complete", slash_verify.accept
    ),
    "split": SlashCommand("TASK", "do it in parallel subtasks, merged and applied as one", slash_split.split),
    "verify": SlashCommand("[NAME|changed]", "run the project's own checks", slash_verify.verify),
    "intent": SlashCommand("[ID|none]", "the intent that changes belong to", intent),
    "run": SlashCommand("[N|N-M|all]", "list or run the commands of the last answer", run_suggested),
    "next": SlashCommand("[N]", "take the first next step that was offered, or number N", send_next_step),
    "todos": SlashCommand("[done ID]", "the todos of this session", show_todos),
    "tasks": SlashCommand("[week|undo|TEXT]", "your task list, or what has the text", slash_project.tasks),
    "continue": SlashCommand("", "accept what was recovered of a cut answer, and go on", continue_turn),
    "retry": SlashCommand("", "repeat the last request; the model forgets its answer", retry),
    "init": SlashCommand("", "write a first AGENTS.md, or add what is missing in it", slash_project.init),
    "skills": SlashCommand("[NAME]", "skills in folders, or one in full", slash_project.skills),
    "sources": SlashCommand("[NAME]", "sources (MCP servers), or test one", slash_project.sources),
    "agents": SlashCommand(
        "[NAME|runs]", "agents in folders, one in full, or their runs", slash_project.agents
    ),
    "compact": SlashCommand("[show|undo]", "summarise older turns for the model", compact),
    "commit": SlashCommand("[MESSAGE]", "commit what this session changed to git, and nothing else", commit),
    "subagents": SlashCommand("[stop ID]", "list or stop sub-agents of the turn", subagents),
    "background": SlashCommand("[[stop] ID]", "list, read or stop background commands", background),
    "fork": SlashCommand("[TURN]", "continue in a copy of this session", fork),
    "sessions": SlashCommand(
        "[STATUS|all]",
        "sessions of this folder; STATUS can be a label",
        slash_sessions.sessions,
    ),
    "resume": SlashCommand("[ID]", "go to another session", resume),
    "rename": SlashCommand("TITLE", "name this session", rename),
    "status": SlashCommand("[STATUS]", "open, in progress, done or archived", slash_sessions.status),
    "label": SlashCommand("[NAME|-NAME]", "add or remove labels of this session", slash_sessions.label),
    "archive": SlashCommand("", "close this session, and hide it from lists", slash_sessions.archive),
    "cost": SlashCommand("", "what this session has cost", cost),
    "export": SlashCommand("FILE", "write this session to one file", export),
    "clear": SlashCommand("", "start a new session", clear),
    "quit": SlashCommand("", "leave", quit_conversation),
}
