"""A run step by step beside another: `python -m tests.engine.breakout.two_runs WORKSPACE MEETINGS NAME`.

Each has a name that stands in all that belongs to it, so that whatever gets into the other can be told.
"""

import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import anyio

from handrail.engine.pipeline import Catalogue, Failed, Output, Outputs, Passed, StepContext, Verdict
from handrail.models.model import Part, Request
from handrail.models.scripted_model import ScriptedModel
from handrail.protocol.commands import SendMessage
from handrail.protocol.events import TurnFinished
from tests.engine.conversation import Conversation, conversation, eventually, words
from tests.engine.scripted import as_json, catalogue

NAMES = ("alpha", "beta")


def named(text: str) -> str:
    """Whose text it is."""
    return next(name for name in NAMES if name in text)


def other_of(name: str) -> str:
    return next(each for each in NAMES if each != name)


class Meetings:
    """Nobody goes on from one before the other run has come as far, in whichever process it is."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def meet(self, name: str) -> None:
        number = self.count(name)
        (self._folder / f"{name}-{number}").touch()
        await eventually((self._folder / f"{other_of(name)}-{number}").exists)

    def count(self, name: str) -> int:
        return len(list(self._folder.glob(f"{name}-*")))


class Meeting(ScriptedModel):
    """Answers one run when the other has asked as often."""

    def __init__(self, meetings: Meetings) -> None:
        answers = [each for name in NAMES for each in _answers(name)]
        super().__init__(answers, "scripted/test")
        self._meetings = meetings

    async def stream(self, request: Request) -> AsyncGenerator[Part, None]:
        await self._meetings.meet(named(words(request)))
        async for part in super().stream(request):
            yield part


def _answers(name: str) -> list[dict[str, str]]:
    asked = f"Question:\nWhat do the notes say about {name}?"
    feedback = f"also look at {name}'s dates"
    return [
        as_json(f"The user's message:\n{feedback}", {"means": "pipeline_response", "confidence": 0.9}),
        as_json(f"have to be corrected:\n- {name}", {"findings": [f"{name} rose by 3 %."], "score": 0.9}),
        as_json(f'Output of plan:\n{{"topics": ["{name}"]}}', {"findings": [f"{name} rose."], "score": 0.2}),
        as_json(asked, {"topics": [name]}),
        {"when": f"And {name} now?", "text": f"Nothing more of {name}."},
    ]


def meeting(meetings: Meetings) -> Catalogue:
    """The report of the other tests, its files and findings with the name of the run."""

    async def gather(work: StepContext) -> Output:
        name, number = work.outputs["plan"]["topics"][0], 1 + bool(work.issues)
        for part in ("first", "second"):
            await work.call("write", {"path": f"{name}-{part}-{number}.txt", "text": f"{name}\n"})
            await meetings.meet(named(work.question))
        return {"files": f"of {name}", "feedback": list(work.feedback)}

    async def publish(work: StepContext) -> Output:
        text = "\n".join(work.outputs["draft"]["findings"])
        await meetings.meet(named(work.question))
        end = await work.call("write", {"path": f"{named(text)}.md", "text": f"{text}\n"})
        return {"conclusions": f"The report on {named(text)}: {end.content}"}

    def well_scored(output: Output, _outputs: Outputs) -> Verdict:
        told = f"{named(str(output))} is not proven."
        return Passed() if output["score"] >= 0.5 else Failed((told,))

    return catalogue()._replace(
        steps={"gather": gather, "publish": publish}, checks={"well_scored": well_scored}
    )


async def whole(talk: Conversation, name: str) -> None:
    """The run from its question to its end, and a turn that is told of it."""
    await talk.send(SendMessage(text=f"What do the notes say about {name}?", route="report"))
    assert (await talk.until(TurnFinished)).reason == "waiting"
    done = await talk.turn(f"also look at {name}'s dates")
    assert done.reason == "answered", done.detail
    assert (await talk.turn(f"And {name} now?")).reason == "answered"


async def main(workspace: Path, folder: Path, name: str) -> None:
    meetings = Meetings(folder)
    async with conversation(workspace, [], mode="edit", catalogue=meeting(meetings)) as talk:
        model = Meeting(meetings)
        talk.app.model_pool._models["scripted/test"] = model
        await whole(talk, name)
        assert {named(words(request)) for request in model.requests} == {name}


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
