"""The slash commands that an editor offers: Handrail's own, then those in Markdown files."""

import time
from collections.abc import Awaitable, Callable, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from acp import schema
from msgspec import convert
from msgspec.structs import replace

from handrail.app.app import App
from handrail.app.history.sessions import background_output, change_labels, chosen_route, set_status
from handrail.config.user_commands import UserCommands
from handrail.interfaces.acp.slash_changes import (
    accept,
    changes,
    diff,
    redo,
    require_idle,
    rewind,
    undo,
)
from handrail.interfaces.acp.tool_calls import fenced
from handrail.protocol import commands
from handrail.protocol.errors import HandrailError, UsageProblem
from handrail.protocol.plan import plan_as_text, plan_from_text
from handrail.protocol.values import FOLLOW_INPUT, FOLLOW_ROUTE, PLAN_ROUTE, Mode

if TYPE_CHECKING:
    from handrail.interfaces.acp.open_session import OpenSession

MAX_LISTED, OUTPUT_CHARS = 30, 5_000
INIT_MESSAGE = "Write a first AGENTS.md for this repository, or add what is missing in it."
CONTINUE_MESSAGE, RETRY_MESSAGE = "Go on from where you stopped.", "Answer again, from the start."
NOT_OFFERED = {
    "resume": "the editor has a list of sessions",
    "split": "`handrail split` and the page show a plan and run it; an editor has no place for it",
    "sessions": "the editor has a list of sessions",
    "clear": "the editor starts new sessions",
    "fork": "the editor forks sessions, where it can",
    "archive": "`/status archived` does the same; the editor chooses what it shows",
    "quit": "the editor closes sessions",
    "next": "the next steps are in the answer, to be copied",
    "tasks": "say what you want: messages about your task list are answered",
    "run": "commands of an answer are run in the editor's own terminal",
}
"""{slash command of the terminal: why it is not offered here}"""

Result = str | commands.SendMessage
"""A text for the user, or a message whose turn the prompt waits for."""
Run = Callable[["OpenSession", str], Awaitable[Result]]


class SlashCommand(NamedTuple):
    takes: str
    help: str
    run: Run


class GivenCommand(NamedTuple):
    """A command as the user gave it."""

    given: commands.SendMessage
    argument: str
    run_it: Run

    async def run(self, session: "OpenSession") -> schema.StopReason:
        """Run it, and wait for the turn that it starts; a mistake of the user's is told like a result."""
        cancels = session.cancels
        try:
            result = await self.run_it(session, self.argument)
        except HandrailError as problem:
            await session.tell(str(problem))
            return "end_turn"
        if isinstance(result, commands.SendMessage):
            came = replace(result, images=self.given.images, attached=self.given.attached)
            return await session.send_and_wait(came)
        if result:
            await session.tell(result)
        return "cancelled" if session.cancels != cancels else "end_turn"


def available_commands(app: App) -> schema.AvailableCommandsUpdate:
    own, _ = _own_commands(app).all()
    listed = [(name, each.help, each.takes) for name, each in COMMANDS.items()]
    listed += [(each.name, each.description, each.arguments) for each in own if each.usable]
    return schema.AvailableCommandsUpdate(
        session_update="available_commands_update",
        available_commands=[
            schema.AvailableCommand(
                name=name,
                description=text or name,
                input=schema.AvailableCommandInput(root=schema.UnstructuredCommandInput(hint=takes))
                if takes
                else None,
            )
            for name, text, takes in listed
        ],
    )


def slash_command(app: App, message: commands.SendMessage) -> GivenCommand | None:
    """The command that a message is; None where it is none, as one that begins with a path: `/usr/bin`."""
    text = message.text.strip()
    if not text.startswith("/"):
        return None
    name, _, argument = text[1:].partition(" ")
    name, newline, rest = name.partition("\n")
    argument = f"{rest}\n{argument}" if newline else argument
    if not name.replace("-", "").isalnum() or not name[0].isalpha():
        return None
    if found := COMMANDS.get(name):
        return GivenCommand(message, argument.strip(), found.run)

    async def run_own(_session: "OpenSession", given: str) -> Result:
        own = _own_commands(app)
        if command := own.find(name):
            return commands.SendMessage(text=command.message(given))
        if name in NOT_OFFERED:
            raise UsageProblem(f"/{name} is not offered here: {NOT_OFFERED[name]}.")
        near = get_close_matches(name, [*COMMANDS, *(each.name for each in own.all()[0])], n=1, cutoff=0.5)
        advice = f"Did you mean /{near[0]}?" if near else "/help lists them."
        raise UsageProblem(f"There is no command /{name}. {advice}")

    return GivenCommand(message, argument.strip(), run_own)


def _own_commands(app: App) -> UserCommands:
    reserved = {*COMMANDS, *NOT_OFFERED}
    return UserCommands(app.places, app.workspace.root, reserved, trusted=app.options.trust)


async def show_help(session: "OpenSession", _argument: str) -> Result:
    own, wrong = _own_commands(session.app).all()
    rows = [f"- `/{f'{name} {each.takes}'.strip()}`: {each.help}" for name, each in COMMANDS.items()]
    for each in own:
        meaning = each.description if each.usable else "not trusted: `handrail trust` shows it"
        rows.append(f"- `/{f'{each.name} {each.arguments}'.strip()}`: {meaning}")
    return "\n".join([*rows, *(f"- `/{name}`: {problem}" for name, problem in wrong)])


async def mode(session: "OpenSession", argument: str) -> Result:
    known = get_args(Mode)
    if not argument:
        return f"mode {session.app.state(session.id).mode}; one of {', '.join(known)}"
    if argument not in known:
        raise UsageProblem(f"There is no mode {argument}. Modes: {', '.join(known)}.")
    command = convert({"mode": argument}, commands.SetMode)
    notice = await session.app.check_mode(session.id, command.mode)
    await session.send(command)
    return notice


async def model(session: "OpenSession", argument: str) -> Result:
    if argument:
        await session.send(commands.SetModel(model=argument))
        return ""
    chosen = await session.app.chosen_model(session.id)
    return f"model {chosen.reference} ({chosen.why}); `/model connection/name` changes it"


async def route(session: "OpenSession", argument: str) -> Result:
    if not argument:
        return f"route {chosen_route(session.app, session.id)}; auto decides, or name a pipeline or an agent"
    await session.send(commands.SetRoute(route=argument))
    return ""


async def plan(session: "OpenSession", argument: str) -> Result:
    app, (verb, rest) = session.app, (*argument.split(maxsplit=1), "", "")[:2]
    found = app.state(session.id).plan
    if verb not in ("", "edit", "approve", "follow") or (rest and verb != "edit"):
        if app.state(session.id).mode != "plan":
            await session.send(commands.SetMode(mode="plan"))
        return commands.SendMessage(text=argument, route=PLAN_ROUTE)
    if found is None:
        raise UsageProblem("There is no plan in this session. `/plan TASK` makes one.")
    if not verb or (verb == "edit" and not rest):
        state = "approved" if found.approved else "not approved: `/plan approve` follows it"
        return f"{plan_as_text(found.plan)}\n\n{state}; `/plan edit` and the whole text changes it"
    require_idle(session)
    if verb == "edit":
        await session.send(commands.SetPlan(plan=plan_from_text(rest)))
        return ""
    if verb == "approve" and not found.approved:
        await session.send(commands.ApprovePlan(plan_id=found.plan_id))
    elif not found.approved:
        raise UsageProblem("The plan is not approved. `/plan approve` approves and follows it.")
    return commands.SendMessage(text=FOLLOW_INPUT, route=FOLLOW_ROUTE)


async def auto(session: "OpenSession", argument: str) -> Result:
    if argument not in ("on", "off"):
        raise UsageProblem("Say /auto on or /auto off.")
    await session.send(commands.SetAutoContinue(on=argument == "on"))
    return ""


async def build(_session: "OpenSession", argument: str) -> Result:
    if not argument:
        raise UsageProblem("Say what to build: /build add retries to the http client")
    return commands.SendMessage(text=argument, route="build")


class Silent:
    """Nobody is told how far the checks are."""

    def planned(self, names: Sequence[str]) -> None: ...

    def started(self, name: str, doing: str) -> None: ...

    def finished(self, result: object) -> None: ...


async def verify(session: "OpenSession", argument: str) -> Result:
    from handrail.app.builds.verify import VerifyOptions

    words = argument.split()
    only = tuple(word for word in words if word != "changed")
    options = VerifyOptions(changed="changed" in words, only=only, session_id=session.id)
    with session.stoppable():
        verdict = await session.app.checks.verify(options, Silent())
        rows = [f"- {check.name}: {check.status}" for check in verdict.checks]
        rows += [f"- {each.path}:{each.line}: {each.message}" for each in verdict.issues[:MAX_LISTED]]
        return "\n".join([f"**{verdict.status}**", *rows, *verdict.notes])
    return "Stopped; nothing is known about the files."


async def intent(session: "OpenSession", argument: str) -> Result:
    active = session.app.state(session.id).intent
    if argument:
        await session.send(commands.SelectIntent(intent_id="" if argument == "none" else argument))
        return ""
    if not active and not session.app.intents.bound:
        return "Intents are not in use here; `handrail intents init` turns them on."
    listed = session.app.intents.now()
    rows = [f"- {each.id}: {each.name}" for each in listed.selectable]
    return "\n".join([f"intent {active or 'none'}; `/intent ID` selects one", *rows])


async def todos(session: "OpenSession", argument: str) -> Result:
    items = session.app.state(session.id).todos
    if not argument:
        rows = [f"- [{'x' if todo.done else ' '}] {todo.id}: {todo.text}" for todo in items]
        return "\n".join(rows) or "There are no todos."
    verb, _, todo_id = argument.partition(" ")
    if verb != "done" or todo_id.strip() not in {todo.id for todo in items}:
        known = ", ".join(todo.id for todo in items if not todo.done) or "none"
        raise UsageProblem(f"Say /todos done ID. Open ones: {known}.")
    await session.send(commands.CompleteTodo(todo_id=todo_id.strip()))
    return ""


async def continue_turn(session: "OpenSession", argument: str) -> Result:
    return _on_last_route(session, argument or CONTINUE_MESSAGE, "continue")


async def retry(session: "OpenSession", argument: str) -> Result:
    return _on_last_route(session, argument or RETRY_MESSAGE, "" if argument else "retry")


def _on_last_route(session: "OpenSession", text: str, resume: Literal["", "retry", "continue"]) -> Result:
    last = session.app.state(session.id).routes.last
    return commands.SendMessage(text=text, route=last, resume=resume)


async def compact(session: "OpenSession", argument: str) -> Result:
    state = session.app.state(session.id)
    if argument not in ("", "undo", "show"):
        raise UsageProblem("Say /compact, /compact show, or /compact undo.")
    if argument and not state.cut.compaction_id:
        raise UsageProblem("Nothing is compacted in this session.")
    if argument == "show":
        return state.cut.summary
    if not argument and state.turns == 0:
        raise UsageProblem("There is nothing to compact yet.")
    await session.send(commands.UndoCompaction() if argument else commands.Compact())
    return ""


async def commit(session: "OpenSession", argument: str) -> Result:
    await session.send(commands.CommitChanges(message=argument))
    return ""


async def rename(session: "OpenSession", argument: str) -> Result:
    if not argument:
        raise UsageProblem("Say /rename and the new title.")
    await session.send(commands.Rename(title=" ".join(argument.split())))
    return ""


async def status(session: "OpenSession", argument: str) -> Result:
    if not argument:
        now = session.app.state(session.id).status.replace("_", " ")
        return f"{now}; /status sets it: open, in progress, done or archived"
    await session.send(set_status(argument))
    return f"session {argument}"


async def label(session: "OpenSession", argument: str) -> Result:
    state, words = session.app.state(session.id), argument.split()
    if not words:
        return f"labels {', '.join(state.labels) or 'none'}; /label NAME adds one, /label -NAME removes it"
    added = [word.removeprefix("#") for word in words if not word.startswith("-")]
    removed = [word[1:] for word in words if word.startswith("-")]
    await session.send(change_labels(state, added, removed))
    return ""


async def cost(session: "OpenSession", _argument: str) -> Result:
    state = session.app.state(session.id)
    more = "" if state.cost_known else " plus requests of unknown cost"
    tokens = f"{state.usage.input_tokens:,} in, {state.usage.output_tokens:,} out"
    return f"${state.cost_usd:.4f}{more}; {tokens}; {state.turns} turns"


async def export(session: "OpenSession", argument: str) -> Result:
    if not argument:
        raise UsageProblem("Say /export and the file to write.")
    session.app.export(session.id, session.folder / argument)
    return f"exported to {argument}; `handrail import` reads it"


async def init(_session: "OpenSession", argument: str) -> Result:
    text = f"{INIT_MESSAGE}\n\n{argument}" if argument else INIT_MESSAGE
    return commands.SendMessage(text=text, route="init")


async def agents(session: "OpenSession", _argument: str) -> Result:
    from handrail.app.extensions.agents import Agents

    known = Agents(session.app.workspace.root)
    listed = [known.listed(found) for found in known.all()]
    return "\n".join(f"- @{each.found.slug} ({each.state}): {each.description}" for each in listed)


async def skills(session: "OpenSession", _argument: str) -> Result:
    from handrail.config.skills import SkillFolders

    known = SkillFolders(session.app.places, session.app.workspace.root, trusted=session.app.options.trust)
    rows = [f"- {each.name}" for each in known.all()]
    return "\n".join(rows) or "There is no skill yet. `handrail skills new NAME` writes a starter."


async def sources(session: "OpenSession", argument: str) -> Result:
    from handrail.app.extensions.sources import ready_names, source_rows, try_source

    if not argument:
        rows = [
            f"{each.name} ({each.state}): {each.description or each.problem}"
            for each in source_rows(session.app)
        ]
        empty = (
            f"There is no source yet. `handrail sources add NAME` writes one of {', '.join(ready_names())}."
        )
        return fenced("\n".join(rows)) if rows else empty
    with session.stoppable():
        found = await try_source(session.app, argument)
        marks = {tool.name: "" if tool.allowed else " (denied)" for tool in found.tools}
        rows = [f"{tool.name}{marks[tool.name]}: {tool.description}" for tool in found.tools]
        changed = [f"not what you approved: {found.changes}"] if found.changes else []
        return fenced("\n".join(["works" if found.ok else found.problem, *changed, *rows]))
    return "Stopped."


async def background(session: "OpenSession", argument: str) -> Result:
    running, words = session.app.state(session.id).background.running, argument.split()
    if not words:
        rows = [
            f"- {each.id}, {time.time() - each.since:.0f} s: `{each.command}`" for each in running.values()
        ]
        return "\n".join(rows) or "No command is running in the background."
    if len(words) > 2 or words[-1] not in running or (len(words) == 2 and words[0] != "stop"):
        known = ", ".join(running) or "none"
        raise UsageProblem(f"Say /background, /background ID, or /background stop ID. Running: {known}.")
    if len(words) == 2:
        await session.send(commands.StopBackground(background_id=words[1]))
        return ""
    return fenced(background_output(session.app, session.id, words[0], OUTPUT_CHARS))


async def subagents(session: "OpenSession", argument: str) -> Result:
    running = session.app.state(session.id).running_subagents
    word, _, name = argument.partition(" ")
    if not argument:
        return "\n".join(f"- {key}: {each.task}" for key, each in running.items()) or "None are running."
    if word != "stop" or name not in running:
        raise UsageProblem(f"Say /subagents, or /subagents stop ID. Running: {', '.join(running) or 'none'}.")
    await session.send(commands.CancelSubagent(subagent_id=name))
    return ""


COMMANDS = {
    "help": SlashCommand("", "this list", show_help),
    "mode": SlashCommand("[MODE]", "what may be done without asking", mode),
    "model": SlashCommand("[NAME]", "which model answers", model),
    "route": SlashCommand("[ROUTE]", "where messages go: auto, agent, chat, or an agent's name", route),
    "plan": SlashCommand("[TASK|VERB]", "make or show a plan; or edit, approve, follow it", plan),
    "auto": SlashCommand("on|off", "whether a request in steps continues by itself", auto),
    "changes": SlashCommand("[N]", "what this session changed, or change N in full", changes),
    "diff": SlashCommand("[N]", "what the changes, or those from N on, add up to now", diff),
    "undo": SlashCommand("[N]", "undo the last change, or only change N", undo),
    "rewind": SlashCommand("N|turn N", "go back to before it: files, conversation", rewind),
    "redo": SlashCommand("", "undo the last /undo or /rewind", redo),
    "build": SlashCommand("TASK", "do it in a copy; kept only if the checks agree", build),
    "accept": SlashCommand("[SESSION]", "apply the files of a build that is not complete", accept),
    "verify": SlashCommand("[changed|CHECK]", "run the project's own checks", verify),
    "intent": SlashCommand("[ID|none]", "which intent the changes belong to", intent),
    "todos": SlashCommand("[done ID]", "the todo list of this session", todos),
    "continue": SlashCommand("[TEXT]", "go on with a turn that stopped", continue_turn),
    "retry": SlashCommand("[TEXT]", "ask again for the last answer", retry),
    "compact": SlashCommand("[show|undo]", "summarise older turns now", compact),
    "commit": SlashCommand("[MESSAGE]", "commit what this session changed", commit),
    "rename": SlashCommand("TITLE", "give the session a title", rename),
    "status": SlashCommand("[STATUS]", "open, in progress, done or archived", status),
    "label": SlashCommand("[NAME|-NAME]", "labels of the session", label),
    "cost": SlashCommand("", "what this session has cost", cost),
    "export": SlashCommand("FILE", "write the session to a file", export),
    "init": SlashCommand("[FOCUS]", "write a first AGENTS.md", init),
    "agents": SlashCommand("", "the agents that there are", agents),
    "skills": SlashCommand("", "the skills that there are", skills),
    "sources": SlashCommand("[NAME]", "the sources, or try one", sources),
    "background": SlashCommand("[ID|stop ID]", "commands that run in the background", background),
    "subagents": SlashCommand("[stop ID]", "the sub-agents of the turn", subagents),
}
