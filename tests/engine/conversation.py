"""A conversation in a test: the application with a scripted model, and a deadline on every wait."""

import json
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import anyio
from msgspec import convert

from handrail.app.app import App, Options, open_app
from handrail.engine.pipeline import Catalogue
from handrail.models.model import AssistantTurn, Request, ToolResult, UserTurn
from handrail.models.scripted_model import Script, ScriptedModel
from handrail.pipelines.load import BUILT_IN_PIPELINES
from handrail.protocol.commands import Command, SendMessage
from handrail.protocol.events import Delta, Recorded, TurnFinished

DEADLINE = 60.0
Answers = Sequence[Mapping[str, Any]]
Kind = TypeVar("Kind")


class Held:
    """Holds a scripted answer before a chunk until the test lets it go on."""

    def __init__(self) -> None:
        self._at: dict[tuple[int, int], anyio.Event] = {}
        self._reached: dict[tuple[int, int], anyio.Event] = {}

    def hold(self, answer: int, chunk: int) -> None:
        self._at[answer, chunk] = anyio.Event()
        self._reached[answer, chunk] = anyio.Event()

    async def reached(self, answer: int, chunk: int) -> None:
        """Wait until the answer stands before the chunk."""
        with anyio.fail_after(DEADLINE):
            await self._reached[answer, chunk].wait()

    def let_go(self, answer: int, chunk: int) -> None:
        self._at[answer, chunk].set()

    async def before_chunk(self, answer: int, chunk: int) -> None:
        if (answer, chunk) in self._at:
            self._reached[answer, chunk].set()
            await self._at[answer, chunk].wait()


class Conversation:
    """One session of one application, as an interface sees it."""

    def __init__(
        self, app: App, session_id: str, model: ScriptedModel | None, held: Held, after: int
    ) -> None:
        self.app = app
        self.id = session_id
        self.held = held
        self.seen: list[Recorded] = []
        self.deltas: list[Delta] = []
        self._model = model
        self._items = app.follow(session_id, after)

    @property
    def requests(self) -> list[Request]:
        """What the scripted model was asked."""
        assert self._model, "this conversation has no scripted model"
        return self._model.requests

    async def send(self, command: Command) -> None:
        await self.app.send(self.id, command)

    async def say(self, text: str) -> None:
        await self.send(SendMessage(text=text))

    async def until(self, kind: type[Kind], where: Callable[[Kind], bool] = lambda _: True) -> Kind:
        """The next event (or delta) of a kind; what comes before it is kept in `seen` and `deltas`."""
        while True:
            with anyio.fail_after(DEADLINE):
                item = await anext(self._items)
            if isinstance(item, Delta):
                self.deltas.append(item)
            else:
                self.seen.append(item)
            found: object = item if isinstance(item, Delta) else item.event
            if isinstance(found, kind) and where(found):
                return found

    async def turn(self, text: str) -> TurnFinished:
        """Say something and wait for the end of the turn."""
        await self.say(text)
        return await self.until(TurnFinished)

    def all(self, kind: type[Kind]) -> list[Kind]:
        """Every event of a kind seen so far."""
        return [one.event for one in self.seen if isinstance(one.event, kind)]

    @property
    def types(self) -> list[str]:
        return [one.event.type for one in self.seen]

    async def aclose(self) -> None:
        await self._items.aclose()


@asynccontextmanager
async def conversation(
    workspace: Path,
    answers: Answers | None = (),
    *,
    session: str = "",
    after: int = 0,
    settings: str = "",
    window: int = 100_000,
    images: bool = False,
    model: str = "",
    environ: Mapping[str, str] = os.environ,
    catalogue: Catalogue = BUILT_IN_PIPELINES,
    **options: Any,
) -> AsyncIterator[Conversation]:
    """An application whose model gives these answers (`None`: the model that settings or flag say)."""
    write_settings(settings)
    held, scripted = Held(), None
    if answers is not None:
        model = model or "scripted/test"
        script = convert({"answers": list(answers), "context_window": window, "images": images}, Script)
        scripted = ScriptedModel(script, model, held.before_chunk)
    wanted = Options(workspace=workspace, model=model, **options)
    async with open_app(wanted, environ, catalogue) as app:
        if scripted:
            app.model_pool._models[model] = scripted
        if session:
            app.attach(session)
        talk = Conversation(app, session or app.new_session(), scripted, held, after)
        try:
            yield talk
        finally:
            await talk.aclose()


def write_settings(text: str) -> None:
    """The user's settings file."""
    if text:
        path = Path(os.environ["HANDRAIL_HOME"], "config.toml")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def script_file(folder: Path, answers: Answers, name: str = "script.json") -> str:
    """The reference of a scripted model that another process, or another application, can load too."""
    path = folder / name
    path.write_text(json.dumps(list(answers)), encoding="utf-8")
    return f"scripted/{path}"


def call(name: str, /, **arguments: Any) -> dict[str, Any]:
    """An answer that is one call."""
    return {"calls": [{"name": name, "arguments": arguments}]}


def calls(*answers: Mapping[str, Any]) -> dict[str, Any]:
    """An answer with all the calls of several."""
    return {"calls": [each for answer in answers for each in answer["calls"]]}


def run(command: str, **arguments: Any) -> dict[str, Any]:
    return call("run", command=command, **arguments)


def words(request: Request) -> str:
    """Everything the model was told in a request, as one text."""
    parts = []
    for message in request.messages:
        match message:
            case UserTurn(text) | AssistantTurn(text):
                parts.append(text)
            case ToolResult() as result:
                parts.append(result.content)
    return "\n".join(parts)


async def eventually(condition: Callable[[], bool]) -> None:
    """Wait until something holds that no event tells of."""
    with anyio.fail_after(DEADLINE):
        while not condition():
            await anyio.sleep(0.01)
