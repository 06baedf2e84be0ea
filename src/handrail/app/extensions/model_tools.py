"""The tools of the models, with what they need from rooms above theirs."""

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from handrail.config.layers import check_settings
from handrail.config.skills import SkillFolders
from handrail.config.source_tools import ApprovedTools
from handrail.config.sources import SourceFolders
from handrail.pipelines.load import AgentFolders
from handrail.protocol.errors import ConfigProblem, UsageProblem
from handrail.tools.sandbox.sandbox import Sandbox
from handrail.tools.sources.sources import Opener, Sources
from handrail.tools.subagent import RunSubagent
from handrail.tools.tool import Tool
from handrail.tools.toolbox import Toolbox
from handrail.workspace.intents_file import IntentFile

if TYPE_CHECKING:
    from anyio.abc import TaskGroup

    from handrail.app.app import App

FENCE = re.compile(r"^(?P<fence>`{3,}|~{3,})[ \t]*mermaid[ \t]*$", re.IGNORECASE)
MAX_CHART = 20_000


def build_sources(app: "App", sandbox: Sandbox, tasks: "TaskGroup", environ: Mapping[str, str]) -> Sources:
    """The sources of one application."""
    places, workspace = app.places, app.workspace
    return Sources(
        SourceFolders(places, workspace.root, trusted=app.options.trust),
        ApprovedTools(places, workspace.root),
        Opener(workspace, sandbox, app.model_pool.credentials, environ, app.log.folder),
        tasks,
    )


def build_agents(app: "App") -> AgentFolders:
    """The agents of one application."""
    return AgentFolders(
        app.places,
        app.workspace.root,
        lambda model: app.model_pool.reach(model).problem,
        app.sources.folders.why_not,
        trusted=app.options.trust,
    )


def build_toolbox(app: "App", sandbox: Sandbox, intents: IntentFile, environ: Mapping[str, str]) -> Toolbox:
    """The tools of one application."""
    places, root, settings = app.places, app.workspace.root, app.settings
    skills = SkillFolders(places, root, trusted=app.options.trust)

    def settings_problems(_name: str) -> list[str]:
        return check_settings(places, root, environ=environ).problems

    def agent_problems(name: str) -> list[str]:
        from handrail.app.extensions.agents import Agents

        agents, found = Agents(root, environ), list[str]()
        for each in [agents.named(name)] if name else agents.all():
            try:
                found += agents.unreachable(agents.load(each))
            except ConfigProblem as problem:
                found += str(problem).splitlines()
        return found

    def skill_problems(name: str) -> list[str]:
        found = list[str]()
        for each in [skills.named(name)] if name else skills.all():
            try:
                found += skills.load(each).warnings
            except ConfigProblem as problem:
                found.append(str(problem))
        return found

    def usable_agents() -> list[tuple[str, str]]:
        found = list[tuple[str, str]]()
        for slug in app.agents.names_in_folders():
            with suppress(ConfigProblem, UsageProblem):  # `handrail agents` tells of those
                if app.agents.pipeline(slug) and (each := app.agents.find(slug)):
                    found.append((slug, app.agents.load(each).definition.description))
        return found

    def knowledge() -> "Mapping[str, Tool[Any]]":
        from handrail.knowledge.model_tools import knowledge_tools

        return knowledge_tools(settings.knowledge.web_search)

    return Toolbox(
        sandbox,
        intents,
        settings.lessons,
        settings.commands.readable_secrets,
        skills=skills,
        sources=app.sources,
        checkers={
            "config": settings_problems,
            "agents": agent_problems,
            "skills": skill_problems,
            "mermaid": mermaid_problems,
        },
        credentials=app.model_pool.credentials,
        subagent=RunSubagent(lambda: app.turn_factory.subagents, usable_agents)
        if settings.limits.subagents
        else None,
        named=knowledge,
    )


def mermaid_problems(text: str) -> list[str]:
    """Why the page could not draw a flowchart, or those in a Markdown text; with line numbers."""
    from handrail.app.flowchart import NotDrawable, parse_flowchart

    charts = list(_fenced(text)) or [(0, text)]
    found = []
    for before, chart in charts:
        try:
            if len(chart) > MAX_CHART:
                raise NotDrawable(f"it has more than {MAX_CHART:,} characters")
            parse_flowchart(chart)
        except NotDrawable as problem:
            found.append(f"line {before + max(problem.line, 1)}: {problem.what}")
    return found


def _fenced(text: str) -> "list[tuple[int, str]]":
    """The mermaid blocks of a Markdown text, each with the number of lines before it."""
    found, fence, start, block = list[tuple[int, str]](), "", 0, list[str]()
    for number, line in enumerate(text.splitlines(), start=1):
        if fence and line.strip().startswith(fence):
            found.append((start, "\n".join(block)))
            fence, block = "", []
        elif fence:
            block.append(line)
        elif opened := FENCE.match(line.strip()):
            fence, start = opened["fence"], number
    return found
