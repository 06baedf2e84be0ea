"""Agents in folders, their past runs, and the pipeline state of a session."""

from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta

from handrail.app.history.sessions import RunState
from handrail.interfaces.http.endpoint import Call, Endpoint
from handrail.interfaces.http.errors import not_found
from handrail.interfaces.http.event_feed import RecordedEvent
from handrail.protocol.errors import ConfigProblem
from handrail.protocol.values import Value

if TYPE_CHECKING:
    from handrail.app.app import App
    from handrail.app.extensions.agents import Agent, Agents, PastRun

MAX_RUNS = 200


class ListedAgent(Value):
    name: str
    folder: str
    where: str
    """`yours` or `workspace`."""
    state: str
    """`yours`, `trusted`, `untrusted`, `changed`, `hidden`, `wrong` or `no model`."""
    description: str


class AgentList(Value):
    agents: tuple[ListedAgent, ...]


class AgentStage(Value):
    name: str
    kind: str
    prompt: str
    takes: tuple[str, ...]
    model: str
    gates: tuple[str, ...]
    output: dict[str, Any] | None
    """JSON Schema of its output."""


class AgentDetail(Value):
    agent: ListedAgent
    problem: str
    """What is wrong with its files; the stages are then empty."""
    stages: tuple[AgentStage, ...]
    pauses: tuple[str, ...]
    """The stages after which the user is asked."""
    files: tuple[str, ...]


def _agents(call: Call) -> "Agents":
    from handrail.app.extensions.agents import Agents

    return Agents(call.workspace.root, call.workspace.environ)


async def list_agents(call: Call) -> AgentList:
    """The agents of the user and of the workspace, and whether each can be used."""
    agents = _agents(call)
    return AgentList(tuple(_listed(agents, each.slug) for each in agents.all() if agents.find(each.slug)))


def _listed(agents: "Agents", name: str) -> ListedAgent:
    found = agents.find(name)
    if found is None:
        raise not_found(f"There is no agent {name!r}.", "GET agents lists them.")
    listed = agents.listed(found)
    return ListedAgent(found.slug, str(found.folder), found.where, listed.state, listed.description)


async def show_agent(call: Call) -> AgentDetail:
    """One agent: its stages, gates, pauses and files."""
    agents = _agents(call)
    listed = _listed(agents, call.names["agent"])
    try:
        agent: Agent = agents.load(agents.named(listed.name))
    except ConfigProblem as problem:
        return AgentDetail(listed, str(problem), (), (), ())
    stages = tuple(
        AgentStage(
            each.name,
            each.kind,
            each.prompt,
            each.takes,
            agents.model_of(each).name,
            tuple(gate.check for gate in each.gates),
            dict(each.schema) if each.schema is not None else None,
        )
        for each in agent.pipeline.stages
    )
    pauses = tuple(each.after for each in agent.pipeline.pauses)
    return AgentDetail(listed, "", stages, pauses, tuple(sorted(agent.files.files)))


class RunInfo(Value):
    run_id: str
    session_id: str
    agent: str
    question: str
    began: float
    ended: float
    state: str
    """`finished`, `failed`, `left`, `waiting` or `open`."""
    tokens: int
    cost_usd: float | None
    stages: tuple[str, ...]


class RunList(Value):
    runs: tuple[RunInfo, ...]


class RunDetail(Value):
    run: RunInfo
    events: tuple[RecordedEvent, ...]


def _run_info(run: "PastRun") -> RunInfo:
    return RunInfo(
        run.run_id,
        run.session_id,
        run.pipeline,
        run.question,
        run.began,
        run.ended,
        run.end,
        run.tokens,
        run.usd,
        tuple(run.stages),
    )


class RunQuery(Value):
    agent: Annotated[str, Meta(max_length=100)] = ""


async def list_runs(call: Call, query: RunQuery) -> RunList:
    """Past and paused runs of agents, the latest first."""
    from handrail.app.extensions.agents import find_runs

    found = await call.app.query(find_runs)
    wanted = [run for run in found if query.agent in ("", run.pipeline)]
    return RunList(tuple(map(_run_info, wanted[:MAX_RUNS])))


async def find_run(app: "App", run_id: str) -> "PastRun":
    """The run of this id. Raises ApiError where there is none."""
    from handrail.app.extensions.agents import find_runs

    found = next((run for run in await app.query(find_runs) if run.run_id == run_id), None)
    if found is None:
        raise not_found(f"There is no run {run_id!r}.", "GET runs lists them.")
    return found


async def show_run(call: Call) -> RunDetail:
    """One run with its events."""
    found = await find_run(call.app, call.names["run"])
    events = tuple(RecordedEvent(one.seq, one.at, one.event) for one in found.events)
    return RunDetail(_run_info(found), events)


class PipelineState(Value):
    current: RunState | None
    """The run of the turn that is running."""
    paused: RunState | None
    """The run that waits for the user."""


async def pipeline_state(call: Call) -> PipelineState:
    """The runs of the session that are not over: stages, gates, pauses, what each has spent."""
    state = call.app.state(call.session_id)
    return PipelineState(state.run, state.paused)


AGENT_ENDPOINTS = (
    Endpoint("GET", "/agents", list_agents),
    Endpoint("GET", "/agents/{agent}", show_agent),
    Endpoint("GET", "/runs", list_runs),
    Endpoint("GET", "/runs/{run}", show_run),
    Endpoint("GET", "/sessions/{session}/pipeline", pipeline_state),
)
