"""All pipelines: the built-in ones, and agents in folders once the user has trusted them."""

import os
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from handrail.config.places import Places
from handrail.config.settings import Settings
from handrail.engine.pipeline import Catalogue, Pipeline, Stage
from handrail.pipelines import chat, init_notes, plan
from handrail.pipelines.chat import CHAT
from handrail.pipelines.init_notes import INIT
from handrail.pipelines.plan import FOLLOW, PLAN
from handrail.protocol.errors import ConfigProblem, UsageProblem

if TYPE_CHECKING:
    from handrail.pipelines.agent_definition import Agent
    from handrail.pipelines.agent_folder import FoundAgent

AGENT = Pipeline("agent", stages=(Stage("work", "work"),))


def _build(candidates: int = 1) -> Pipeline:
    from handrail.pipelines.build.pipeline import build_pipeline

    return build_pipeline(candidates)


def _tasks() -> Pipeline:
    from handrail.pipelines.tasks import TASKS

    return TASKS


BUILT_IN_PIPELINES = Catalogue(
    {pipeline.name: pipeline for pipeline in (AGENT, CHAT, INIT, PLAN, FOLLOW)},
    checks={
        "chat_steps_left": chat.steps_left,
        "plan_has_steps": plan.has_steps,
        "plan_has_open_step": plan.has_open_step,
        "plan_step_done": plan.step_done,
        "plan_steps_left": plan.steps_left,
    },
    steps={
        "chat_look": chat.look_around,
        "chat_load": chat.load_planned,
        "chat_apply": chat.apply_answer,
        "plan_look": plan.look_for_plan,
        "plan_record": plan.record_plan,
        "plan_next": plan.next_step,
        "plan_load": plan.load_step,
        "plan_review": plan.review_step,
        "init_look": init_notes.look,
        "init_write": init_notes.write,
    },
    words={
        "chat_loaded": chat.loaded_text,
        "chat_applied": chat.applied_text,
        "init_ended": init_notes.ended_text,
        "plan_study": plan.study_text,
        "plan_text": plan.plan_text,
        "plan_told": plan.plan_told,
        "plan_step": plan.step_text,
        "plan_progress": plan.progress_text,
    },
    loaded={"build": _build, "tasks": _tasks},
    skips={
        "chat_skips": chat.skipped_stages,
        "init_skips": init_notes.skipped_stages,
        "plan_skips": plan.plan_skips,
        "follow_skips": plan.follow_skips,
    },
)


def with_settings(catalogue: Catalogue, settings: Settings) -> Catalogue:
    """The catalogue with pipelines as the user has set them."""
    candidates = settings.build.candidates
    return catalogue._replace(loaded={**catalogue.loaded, "build": partial(_build, candidates)})


Trust = Literal["own", "built in", "trusted", "untrusted", "changed"]
WhyUnreachable = Callable[[str], str]  # why a model, named in full, cannot be used; empty where it can
AGENTS_FOLDER = "agents"
BUILT_IN_AGENTS = {"research": Path(__file__).parent / "research" / "agent"}
MAX_AGENTS = 200  # agents of one folder
MAX_ENTRIES = 5_000
UNTRUSTED = (
    "The agent {slug} came with this workspace, and would choose prompts, models and steps for you. "
    "Look at it with `handrail agents show {slug}`; `handrail trust` lets it be used."
)
CHANGED = (
    "The agent {slug} of this workspace has changed since you trusted it. Look at it with "
    "`handrail agents show {slug}`; `handrail trust` lets it be used again."
)


class AgentFolders:
    """The agents of the user and of the workspace, loaded when they are needed."""

    def __init__(
        self,
        places: Places,
        workspace: Path,
        why_not: WhyUnreachable = lambda _model: "",
        why_no_source: WhyUnreachable = lambda _source: "",
        *,
        trusted: bool = False,
    ) -> None:
        """`trusted` allows the workspace's agents in this process."""
        self._why_not = why_not
        self._why_no_source = why_no_source
        self._places = places
        self._workspace = workspace
        self._trusted = trusted
        self._loaded: dict[str, Agent] = {}

    def pipeline(self, slug: str) -> Pipeline | None:
        """The pipeline of an agent, or None; raises where it is invalid or not trusted."""
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

    def find(self, slug: str) -> "FoundAgent | None":
        """The folder of an agent: the user's own, else the workspace's, else a built-in one."""
        from handrail.pipelines.agent_folder import FoundAgent, is_agent, slug_problem

        if slug_problem(slug):
            return None
        for where, folder in self._folders():
            if is_agent(folder / slug):
                return FoundAgent(slug, folder / slug, where)
        return FoundAgent(slug, BUILT_IN_AGENTS[slug], "built in") if slug in BUILT_IN_AGENTS else None

    def all(self) -> "Iterator[FoundAgent]":
        from handrail.pipelines.agent_folder import FoundAgent, is_agent

        for where, folder in self._folders():
            try:
                with os.scandir(folder) as entries:
                    names = sorted(entry.name for entry in islice(entries, MAX_ENTRIES))
            except OSError:
                continue
            agents = [name for name in names if is_agent(folder / name)]
            yield from (FoundAgent(name, folder / name, where) for name in agents[:MAX_AGENTS])
        yield from (FoundAgent(name, folder, "built in") for name, folder in BUILT_IN_AGENTS.items())

    def names(self) -> list[str]:
        return list(dict.fromkeys([*self.names_in_folders(), *BUILT_IN_AGENTS]))

    def names_in_folders(self) -> list[str]:
        """Those of the user and of the workspace."""
        if not any(folder.is_dir() for _, folder in self._folders()):
            return []
        return [found.slug for found in self.all() if found.where != "built in" and self.find(found.slug)]

    def load(self, found: "FoundAgent") -> "Agent":
        """The agent as its files are now; raises ConfigProblem with everything that is wrong."""
        from handrail.pipelines.agent_definition import define_agent
        from handrail.pipelines.agent_folder import read_agent

        files = read_agent(found)
        key = f"{found.where} {found.slug} {files.sha256}"
        if key not in self._loaded:
            self._loaded[key] = define_agent(files)
        return self._loaded[key]

    def unreachable(self, agent: "Agent") -> list[str]:
        """Why models and sources that it names cannot be used, each with file and line."""
        from handrail.pipelines.agent_file import DefinitionProblems

        problems = DefinitionProblems(agent.files.toml)
        for at, stage in enumerate(agent.pipeline.stages):
            if stage.model and (why := self._why_not(stage.model)):
                problems.add(("stages", at, "model"), f"{stage.model} cannot be asked: {why}")
        for source in agent.pipeline.sources:
            if why := self._why_no_source(source):
                problems.add(("needs",), why)
        return problems.found

    def trust(self, agent: "Agent") -> Trust:
        from handrail.config.trust import trusted_agents

        if agent.files.found.where == "yours":
            return "own"
        if agent.files.found.where == "built in":
            return "built in"
        before = trusted_agents(self._places, self._workspace).get(agent.slug)
        if self._trusted or before == agent.pipeline.sha256:
            return "trusted"
        return "changed" if before else "untrusted"

    def folder(self, where: Literal["yours", "workspace"]) -> Path:
        return dict(self._folders())[where]

    def _folders(self) -> tuple[tuple[Literal["yours", "workspace"], Path], ...]:
        own, shared = self._places.settings.parent / AGENTS_FOLDER, self._workspace / AGENTS_FOLDER
        return ("yours", own), ("workspace", shared)
