"""A small model with given answers, in a conversation with a check."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from handrail.context.small.one_action_model import OneActionModel
from handrail.models.model import Alternatives, Capabilities, Finished, Part, Request, Text, UserTurn
from handrail.protocol.commands import SendMessage
from handrail.protocol.events import CandidateTried, TurnFinished
from tests.engine.conversation import Conversation, Held, conversation
from tests.verification.projects import write

CHECK = "python3 -m unittest -q"
Answer = Callable[[Request], str]
Weigh = Callable[[str], Mapping[str, float]]


def nothing(_prefill: str) -> Mapping[str, float]:
    return {}


class SmallModel:
    """Answers what a function says; `weigh` says how it would go on after the text that it is shown last."""

    name = "scripted/small"
    capabilities = Capabilities(context_window=8_192, schema_output=True, one_action=True)

    def __init__(self, answer: Answer, weigh: Weigh = nothing) -> None:
        self._answer = answer
        self._weigh = weigh
        self.requests: list[Request] = []

    async def stream(self, request: Request) -> AsyncGenerator[Part, None]:
        if request.alternatives:
            if options := self._weigh(request.prefill):
                yield Alternatives(tuple(options.items()))
            yield Finished("length")
            return
        self.requests.append(request)
        yield Text(self._answer(request))
        yield Finished("stop")

    async def aclose(self) -> None:
        pass

    @property
    def asked(self) -> list[str]:
        return [
            each.text for request in self.requests for each in request.messages if isinstance(each, UserTurn)
        ]


@asynccontextmanager
async def small_conversation(
    root: Path, model: SmallModel, session: str = "", settings: str = ""
) -> AsyncIterator[Conversation]:
    """A conversation with this model, in which files can be changed."""
    async with conversation(root, None, model=model.name, mode="edit", settings=settings) as talk:
        talk.app.model_pool._models[model.name] = OneActionModel(model)
        if session:
            talk.app.attach(session)
            talk = Conversation(talk.app, session, None, Held(), 0)  # noqa: PLW2901
        yield talk


class Tried:
    """What became of a task with a check."""

    def __init__(self, root: Path, talk: Conversation, end: TurnFinished) -> None:
        self.reason, self.detail = end.reason, end.detail
        tried = talk.all(CandidateTried)
        self.candidates = [each for each in tried if each.asked != "mutation"]
        """Answers of the model."""
        self.edits = [each for each in tried if each.asked == "mutation"]
        self._root = root

    def text(self, path: str) -> str:
        return (self._root / path).read_text()

    @property
    def results(self) -> list[str]:
        return [each.result for each in self.candidates]


async def run_check(
    root: Path,
    model: SmallModel,
    files: Mapping[str, str],
    *,
    task: str = "make the failing test pass",
    attempts: int = 20,
    check: str = CHECK,
) -> Tried:
    write(root, files)
    async with small_conversation(root, model) as talk:
        await talk.send(SendMessage(text=task, check=check, attempts=attempts))
        end = await talk.until(TurnFinished)
        return Tried(root, talk, end)
