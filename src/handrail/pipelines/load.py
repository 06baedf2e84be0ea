"""Agents in folders: those of the user, and those of the workspace once the user has trusted them."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from handrail.config.places import Places
from handrail.engine.pipeline.definition import Pipeline
from handrail.protocol.errors import ConfigProblem, UsageProblem

if TYPE_CHECKING:
    from handrail.pipelines.agent_definition import Agent
    from handrail.pipelines.agent_folder import Found

Trust = Literal["own", "trusted", "untrusted", "changed"]
WhyNot = Callable[[str], str]
"""Why a model that is named in full cannot be asked; empty where it can."""
MOST_AGENTS = 200
"""Of one folder; the rest is not looked at."""
UNTRUSTED = (
    "The agent {slug} came with this workspace, and would choose prompts, models and steps for you. "
    "Look at it with `handrail agents show {slug}`; `handrail trust` lets it be used."
)
CHANGED = (
    "The agent {slug} of this workspace has changed since you trusted it. Look at it with "
    "`handrail agents show {slug}`; `handrail trust` lets it be used again."
)


def no_reason(_model: str) -> str:
    """For callers that ask no model."""
    return ""


class AgentFolders:
    """The agents there are. Nothing is looked at before one is asked for."""

    def __init__(
        self, places: Places, workspace: Path, why_not: WhyNot = no_reason, *, trusted: bool = False
    ) -> None:
        """`trusted` lets those of the workspace be used this once."""
        self._why_not = why_not
        self._places = places
        self._workspace = workspace
        self._trusted = trusted
        self._loaded: dict[str, Agent] = {}
        """By the hash of all files."""

    def pipeline(self, slug: str) -> Pipeline | None:
        """The pipeline of an agent, None where there is none; raises where it is wrong or not trusted."""
        found = self.find(slug)
        if found is None:
            return None
        agent = self.load(found)
        match self.trust(agent):
            case "untrusted":
                raise UsageProblem(UNTRUSTED.format(slug=slug))
            case "changed":
                raise UsageProblem(CHANGED.format(slug=slug))
        if problems := self.unreachable(agent):
            raise ConfigProblem("\n".join(problems))
        return agent.pipeline

    def find(self, slug: str) -> "Found | None":
        """Where an agent is: the user's own goes before one of the workspace."""
        from handrail.pipelines.agent_folder import Found, is_agent, slug_problem

        if slug_problem(slug):
            return None
        for where, folder in self._folders():
            if is_agent(folder / slug):
                return Found(slug, folder / slug, where)
        return None

    def all(self) -> "Iterator[Found]":
        """All folders that have a definition, the user's own first."""
        from handrail.pipelines.agent_folder import Found, is_agent

        for where, folder in self._folders():
            try:
                names = sorted(entry.name for entry in os.scandir(folder))
            except (FileNotFoundError, NotADirectoryError):
                continue
            agents = [name for name in names if is_agent(folder / name)]
            yield from (Found(name, folder / name, where) for name in agents[:MOST_AGENTS])

    def names(self) -> list[str]:
        """The names under which agents can be called."""
        return [found.slug for found in self.all() if self.find(found.slug)]

    def load(self, found: "Found") -> "Agent":
        """The agent as its files are now; raises ConfigProblem with all that is wrong."""
        from handrail.pipelines.agent_definition import defined
        from handrail.pipelines.agent_folder import read_agent

        files = read_agent(found)
        key = f"{found.where} {found.slug} {files.sha256}"
        if key not in self._loaded:
            self._loaded[key] = defined(files)
        return self._loaded[key]

    def unreachable(self, agent: "Agent") -> list[str]:
        """What stands in the way of the models that its stages name, by file and line."""
        naming = [(at, stage) for at, stage in enumerate(agent.pipeline.stages) if stage.model]
        if not naming:
            return []
        from handrail.pipelines.wording import Problems

        found = Problems(agent.files.toml)
        for at, stage in naming:
            if problem := self._why_not(stage.model):
                found.add(("stages", at, "model"), f"{stage.model} cannot be asked: {problem}")
        return found.found

    def trust(self, agent: "Agent") -> Trust:
        """Whether it may be used as it is now."""
        from handrail.config.trust import trusted_agents

        if agent.files.found.where == "yours":
            return "own"
        before = trusted_agents(self._places, self._workspace).get(agent.slug)
        if self._trusted or before == agent.pipeline.sha256:
            return "trusted"
        return "changed" if before else "untrusted"

    def folder(self, where: Literal["yours", "workspace"]) -> Path:
        """Where agents of this kind are kept."""
        return dict(self._folders())[where]

    def _folders(self) -> tuple[tuple[Literal["yours", "workspace"], Path], ...]:
        from handrail.pipelines.agent_folder import FOLDER

        return ("yours", self._places.settings.parent / FOLDER), ("workspace", self._workspace / FOLDER)
