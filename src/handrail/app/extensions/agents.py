"""Questions about agents in folders: which there are, their models, whether they are trusted, their runs."""

import os
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from handrail.changes.forms.document import CreateChange, Document
from handrail.config.layers import load_settings
from handrail.config.places import find_places
from handrail.engine.pipeline import Stage
from handrail.models.model import Request
from handrail.pipelines.agent_definition import Agent
from handrail.pipelines.agent_folder import FoundAgent, slug_problem, starter_files
from handrail.pipelines.load import AGENTS_FOLDER, AgentFolders, Trust
from handrail.protocol.errors import ConfigProblem, UsageProblem
from handrail.sessions.past_runs import PastRun, past_runs

if TYPE_CHECKING:
    from handrail.app.app import App
    from handrail.engine.requests.model_pool import ModelPool

__all__ = ["Agent", "Agents", "FoundAgent", "NewAgent", "PastRun", "Stage", "Trust", "UntrustedAgent"]

RUN_PREFIX = "run_"


class ListedAgent(NamedTuple):
    """An agent in a list: can it be used, and what it is for or what is wrong with it."""

    found: FoundAgent
    state: Literal["yours", "built in", "trusted", "untrusted", "changed", "hidden", "wrong", "no model"]
    description: str


class UntrustedAgent(NamedTuple):
    agent: Agent
    trust: Trust


class StageModel(NamedTuple):
    """The model that a stage asks, as the user's settings have it."""

    name: str
    """Empty where the settings name none."""
    place: str
    problem: str
    takes_effort: bool


class NewAgent(NamedTuple):
    folder: Path
    files: dict[str, str]


class Agents(AgentFolders):
    """The agents of the user and of one workspace. Settings are read when a model is asked about."""

    def __init__(self, workspace: Path, environ: Mapping[str, str] = os.environ) -> None:
        super().__init__(find_places(environ), workspace, lambda model: self._model_pool.reach(model).problem)
        self._environ = environ

    def named(self, name: str) -> FoundAgent:
        """The agent of this name; raises UsageProblem where there is none."""
        if found := self.find(name):
            return found
        known = ", ".join(sorted({each.slug for each in self.all()})) or "none yet"
        raise UsageProblem(f"There is no agent {name!r}. Agents here: {known}.")

    def listed(self, found: FoundAgent) -> ListedAgent:
        used = self.find(found.slug)
        if used and used.folder != found.folder:
            whose = "your own agent" if used.where == "yours" else "the workspace's agent"
            return ListedAgent(found, "hidden", f"{whose} {found.slug} is used instead")
        try:
            agent = self.load(found)
        except ConfigProblem as problem:
            return ListedAgent(found, "wrong", str(problem).splitlines()[0])
        trust = self.trust(agent)
        if trust in ("own", "built in", "trusted") and (problems := self.unreachable(agent)):
            return ListedAgent(found, "no model", problems[0])
        return ListedAgent(found, "yours" if trust == "own" else trust, agent.definition.description)

    def untrusted(self) -> tuple[list[UntrustedAgent], dict[str, ConfigProblem]]:
        """Agents of the workspace that wait for trust; and {name: problem} of those with wrong files."""
        found, wrong = list[UntrustedAgent](), dict[str, ConfigProblem]()
        for each in self.all():
            if each.where != "workspace":
                continue
            try:
                agent = self.load(each)
            except ConfigProblem as problem:
                wrong[each.slug] = problem
            else:
                found.append(UntrustedAgent(agent, self.trust(agent)))
        return [each for each in found if each.trust != "trusted"], wrong

    def model_of(self, stage: Stage) -> StageModel:
        name = stage.model or (self._model_pool.set_for(stage.role) if stage.kind == "ask" else "")
        if not name:
            return StageModel("", "", "", takes_effort=True)
        reached = self._model_pool.reach(name)
        effort = reached.problem or reached.capabilities.effort_for(Request("", (), effort=stage.effort))
        return StageModel(name, reached.place, reached.problem, takes_effort=bool(effort))

    def new(self, name: str, *, in_workspace: bool) -> NewAgent:
        """A starter agent, not written yet; raises UsageProblem where the name cannot be used."""
        if problem := slug_problem(name):
            raise UsageProblem(f"{problem}.")
        folder = self.folder("workspace" if in_workspace else "yours") / name
        if os.path.lexists(folder):
            raise UsageProblem(f"{folder} exists already. Choose another name, or edit what is there.")
        return NewAgent(folder, starter_files(name))

    @cached_property
    def _model_pool(self) -> "ModelPool":
        from handrail.engine.requests.model_pool import ModelPool

        loaded = load_settings(self._places, self._workspace, environ=self._environ)
        return ModelPool(loaded, self._places, self._environ, "", self._workspace)


def workspace_agent_document(new: NewAgent) -> Document:
    """The change that writes a starter agent into the workspace."""
    folder = f"{AGENTS_FOLDER}/{new.folder.name}"
    return file_document({f"{folder}/{file}": text for file, text in new.files.items()})


def file_document(files: Mapping[str, str]) -> Document:
    """The change that writes new files, by their paths in the workspace."""
    return Document(changes=tuple(CreateChange(path=path, text=text) for path, text in files.items()))


def find_runs(app: "App", name: str = "") -> list[PastRun]:
    """Runs of the agent of this name, or the one run whose id starts so; all runs when empty."""
    if not name.startswith(RUN_PREFIX):
        return past_runs(app.log, name)
    found = [run for run in past_runs(app.log) if run.run_id.startswith(name)]
    if len(found) != 1:
        many = "means several runs" if found else "is not a run here"
        raise UsageProblem(f"{name} {many}; `handrail agents runs` lists them.")
    return found
