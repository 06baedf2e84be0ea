"""A stage of an agent that names the embedded model is answered by it, whatever else answers."""

from pathlib import Path

import pytest

from handrail.protocol.events import RequestStarted, StageCompleted
from tests.engine.conversation import conversation
from tests.pipelines.agents import SMALL, agent

LIKELY = SMALL.replace("properties.topics", 'required = ["likely"]\nproperties.likely').replace(
    '{ type = "array", items = { type = "string" } }', '{ type = "string", enum = ["yes", "no"] }'
)


@pytest.mark.anyio
@pytest.mark.promise("AGENT-9")
async def test_a_stage_may_name_the_embedded_model(tmp_path: Path, models: Path) -> None:
    named = 'kind = "ask"\nmodel = "embedded/smollm2"\neffort = "high"\nmax_output = 32'
    agent(tmp_path, text=LIKELY.replace('kind = "ask"', named), prompt="Say whether it is likely.")
    async with conversation(tmp_path, [{"text": "Hello."}], trust=True) as talk:
        done = await talk.turn("@small rain in April")
        assert done.reason == "answered", done.detail
        (started,) = talk.all(RequestStarted)
        assert (started.model, started.effort, started.effort_sent) == ("embedded/smollm2", "high", False)
        (completed,) = talk.all(StageCompleted)
        assert (completed.output or {})["likely"] in ("yes", "no")
        assert not talk.requests
