"""Functions that a definition names and that fail: the run has failed, and the session goes on."""

from pathlib import Path

import pytest

from handrail.engine.pipeline import (
    Catalogue,
    Gate,
    Output,
    Outputs,
    Pause,
    Pipeline,
    Stage,
    StepContext,
    Verdict,
)
from handrail.pipelines.load import AGENT
from handrail.protocol.commands import SendMessage
from handrail.protocol.events import RunFailed, TurnFinished
from tests.engine.conversation import conversation

pytestmark = pytest.mark.anyio
TABLE: Output = {}


async def fine(_work: StepContext) -> Output:
    return {"a": 1}


async def bad_step(_work: StepContext) -> Output:
    return {"a": TABLE["missing"]}


def bad_check(_output: Output, _outputs: Outputs) -> Verdict:
    raise TypeError("'int' object\nis not iterable")


def bad_words(outputs: Outputs) -> str:
    return str(outputs["gone"])


@pytest.mark.promise("RUN-9")
@pytest.mark.parametrize(
    ("pipeline", "told"),
    [
        (
            Pipeline("p", (Stage("s", "code", step="bad"),)),
            "The stage s failed with its input: KeyErr",
        ),
        (
            Pipeline("p", (Stage("s", "code", step="fine", gates=(Gate("bad"),)),)),
            "The check bad of the stage s failed with its input: TypeError 'int' object is not iter",
        ),
        (
            Pipeline("p", (Stage("s", "code", step="fine"),), (Pause("s", "bad"),)),
            "The text of the pause after s failed",
        ),
        (Pipeline("p", (Stage("s", "code", step="fine"),), ends="bad"), "The text at the end failed"),
        (
            Pipeline("p", (Stage("s", "code", step="fine"), Stage("t", "answer", says="bad"))),
            "The input of t failed",
        ),
    ],
)
async def test_a_function_that_fails_ends_the_run_and_not_handrail(
    tmp_path: Path, pipeline: Pipeline, told: str
) -> None:
    catalogue = Catalogue(
        {"agent": AGENT, "p": pipeline},
        checks={"bad": bad_check},
        steps={"bad": bad_step, "fine": fine},
        words={"bad": bad_words},
    )
    async with conversation(tmp_path, [{"text": "Hello."}], catalogue=catalogue) as talk:
        await talk.send(SendMessage(text="Why?", route="p"))
        finished = await talk.until(TurnFinished)
        assert finished.reason == "failed"
        assert told in finished.detail
        assert f"{Path(__file__).name}:" in finished.detail
        assert len(talk.all(RunFailed)) == 1
        await talk.send(SendMessage(text="Hello", route="agent"))
        assert (await talk.until(TurnFinished)).reason == "answered"
    async with conversation(tmp_path, [{"text": "Again."}], catalogue=catalogue, session=talk.id) as again:
        assert again.app.state(talk.id).run is None
