"""The slash commands for the project: /init, /agents, /skills, /sources and /tasks."""

import time
from typing import TYPE_CHECKING

from handrail.app.extensions.agents import RUN_PREFIX, Agents, find_runs
from handrail.app.extensions.sources import ready_names, source_rows, try_source
from handrail.app.tasks import agenda, dated, week
from handrail.config.skills import SkillFolders
from handrail.interfaces.cli.commands.extensions.skills import NO_SKILL, skill_details, skill_row
from handrail.interfaces.cli.commands.extensions.sources import NO_SOURCE, source_lines, trial_lines
from handrail.interfaces.cli.render import task_lines
from handrail.interfaces.cli.render.agent_lines import agent_details, list_row, run_details, run_rows
from handrail.interfaces.cli.render.styles import INDENT, line, wrap
from handrail.protocol.commands import SendMessage
from handrail.protocol.errors import UsageProblem

if TYPE_CHECKING:
    from handrail.interfaces.cli.conversation.conversation import Conversation

INIT_MESSAGE = "Write a first AGENTS.md for this repository, or add what is missing in it."
MAX_RUNS = 10
NO_TASK = "Nothing to do. Say what you want to do, such as: remind me to call the dentist on friday at 9:30"
NO_TASK_FOUND = "No task has these words."


async def init(talk: "Conversation", argument: str) -> None:
    text = f"{INIT_MESSAGE}\n\n{argument}" if argument else INIT_MESSAGE
    await talk.send(SendMessage(text=text, route="init"))


async def agents(talk: "Conversation", argument: str) -> None:
    words, known = argument.split(), Agents(talk.app.workspace.root)
    if words[:1] == ["runs"] and len(words) <= 2:
        rows = run_lines(talk, words[1] if words[1:] else "")
    elif not words:
        rows = [list_row(known.listed(found)) for found in known.all()]
        rows.append("@NAME TASK runs one, /agents NAME shows it, /agents runs lists past runs")
    elif len(words) == 1:
        agent = known.load(known.named(words[0]))
        rows = list(agent_details(agent, known.trust(agent), known))
    else:
        raise UsageProblem("Say /agents, /agents NAME, or /agents runs [NAME|RUN].")
    talk.say([row for text in rows for row in wrap(line(f"{INDENT}{text}"), talk.width, INDENT * 3)])


async def skills(talk: "Conversation", argument: str) -> None:
    known = SkillFolders(talk.app.places, talk.app.workspace.root, trusted=talk.app.options.trust)
    name = argument.strip()
    rows = (
        skill_details(known, name) if name else [skill_row(known, each) for each in known.all()] or [NO_SKILL]
    )
    talk.say([row for text in rows for row in wrap(line(f"{INDENT}{text}"), talk.width, INDENT * 3)])


async def sources(talk: "Conversation", argument: str) -> None:
    if name := argument.strip():
        rows = list(trial_lines(await try_source(talk.app, name)))
    else:
        rows = [text for row in source_rows(talk.app) for text in source_lines(row)]
    empty = NO_SOURCE.format(names=", ".join(ready_names()))
    texts = rows or [empty]
    talk.say([row for text in texts for row in wrap(line(f"{INDENT}{text}"), talk.width, INDENT * 3)])


async def tasks(talk: "Conversation", argument: str) -> None:
    kept, words = talk.app.tasks, argument.strip()
    today = kept.clock.today
    match words:
        case "":
            groups = [group for group in agenda(kept.all(), today) if group.heading != "Done"]
            rows = list(task_lines.agenda_lines(groups, today, talk.width))
        case "week":
            rows = list(task_lines.week_lines(week(kept.all(), today), today, talk.width))
        case "undo":
            rows = [line(f"{INDENT}{text}") for text in task_lines.undone_lines(kept.undo(), today)]
        case _:
            found = [dated(task, today) for task in kept.search(words)]
            rows = list(task_lines.found_lines(found, today, talk.width))
    talk.say(rows or [line(f"{INDENT}{NO_TASK_FOUND if words else NO_TASK}")])


def run_lines(talk: "Conversation", name: str) -> list[str]:
    found = find_runs(talk.app, name)
    if name.startswith(RUN_PREFIX):
        return list(run_details(found[0]))
    rows = [text for run in found[:MAX_RUNS] for text in run_rows(run, time.time())]
    return rows or [f"There is no run{f' of {name}' if name else ''} yet."]
