"""The embedded model as a Model: its file is checked and its child started when it is first asked."""

from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing
from pathlib import Path

import anyio
from anyio import get_cancelled_exc_class

from handrail.models.base import Capabilities, Part, Progress, Request, Text, Thinking
from handrail.models.connections import EMBEDDED, LOCAL_PRICE, Connection
from handrail.models.embedded.checking import check
from handrail.models.embedded.child import GRACE, POLL_SECONDS, Child
from handrail.models.embedded.files import ModelFile, file_for, find_file, models_folder
from handrail.models.embedded.machine import window
from handrail.models.embedded.notice import Running
from handrail.models.openai import OpenAIModel
from handrail.protocol.errors import ConfigProblem, GiveUp, ModelProblem, NoModel, RetryLater


class EmbeddedModel:
    """A model that answers from a child of ours, shared with the user's other sessions."""

    def __init__(self, file: ModelFile, path: Path, folder: Path, grace: float = GRACE) -> None:
        self._file = file
        self._path = path
        self._folder = folder
        self.child = Child(file, path, folder, grace)
        self._adapter: OpenAIModel | None = None
        self._running: Running | None = None
        """The child that the adapter talks to."""
        self._crashes = 0
        """Since the last answer that came whole."""
        self._preparing = False
        self._progress = Progress("loading", 0)
        """How far whoever prepares the child is, for others who wait for it."""
        self._checking: Iterator[int] | None = None
        """A check that was begun: who was cancelled in it leaves the rest to the next one."""
        running = self.child.running()
        self._window = running.context_window if running else window()

    @property
    def name(self) -> str:
        return f"{EMBEDDED}/{self._file.model}"

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(context_window=self._window, schema_output=True, price=LOCAL_PRICE)

    async def stream(self, request: Request) -> AsyncGenerator[Part, None]:
        while True:
            async with aclosing(self._get_ready()) as preparing:
                async for progress in preparing:
                    yield progress
            answering = False
            try:
                async with aclosing(self._connected().stream(request)) as parts:
                    async for part in parts:
                        answering = answering or isinstance(part, Text | Thinking)
                        yield part
                self._crashes = 0
                return
            except ModelProblem as problem:
                await self._recover(problem, answering=answering)

    async def aclose(self) -> None:
        await self._disconnect()
        self.child.release()

    async def _get_ready(self) -> AsyncGenerator[Progress, None]:
        """Progress until the child answers; of several who need it one prepares it, and all are told."""
        while self._preparing:
            yield self._progress
            await anyio.sleep(POLL_SECONDS)
        self._preparing = True
        try:
            async with aclosing(self._prepare()) as preparing:
                async for self._progress in preparing:
                    yield self._progress
        except (OSError, ConfigProblem) as error:
            raise GiveUp(f"The small model cannot be started: {error}") from error
        finally:
            self._preparing = False

    async def _prepare(self) -> AsyncGenerator[Progress, None]:
        if self._running is not None and self.child.running() == self._running:
            return
        await self._disconnect()
        if self.child.running() is None:
            checking = self._checking or check(self._file, self._path, self._folder)
            self._checking = None
            try:
                while (done := await anyio.to_thread.run_sync(next, checking, None)) is not None:
                    yield Progress("checking", done, self._file.size)
            except (GeneratorExit, get_cancelled_exc_class()):
                self._checking = checking
                raise
        shown = -1
        async with aclosing(self.child.attach()) as waiting:
            async for seconds in waiting:
                if int(seconds) > shown:
                    shown = int(seconds)
                    yield Progress("loading", shown)

    def _connected(self) -> OpenAIModel:
        if self._adapter is None:
            running = self.child.running()
            if running is None:
                raise RetryLater("The small model's process ended before it was asked.")
            self._running, self._window = running, running.context_window
            connection = connection_to(running)
            self._adapter = OpenAIModel(connection, self._file.model, running.key, self.capabilities)
        return self._adapter

    async def _disconnect(self) -> None:
        adapter, self._adapter, self._running = self._adapter, None, None
        if adapter is not None:
            await adapter.aclose()

    async def _recover(self, problem: ModelProblem, *, answering: bool) -> None:
        """Return where asking again is right and nobody has seen words of the answer; raise otherwise."""
        if not await self.child.gone(self._running):
            raise problem
        self._crashes += 1
        if self._crashes > 1:
            words = self.child.notices.last_words()
            raise GiveUp(
                f"The small model's process ended twice while it answered{f' ({words})' if words else ''}. "
                f"Its log is {self.child.notices.log}. Ask for less at once, or use a key or a local server."
            ) from problem
        if answering:
            raise RetryLater("The small model's process ended; it is started again.", 0.0) from problem


def connection_to(running: Running) -> Connection:
    """The way to a child."""
    return Connection(
        name=EMBEDDED,
        protocol="openai",
        base_url=f"{running.url}/v1",
        prompt_progress=True,
        schema_output=True,
        price=LOCAL_PRICE,
    )


def embedded_model(reference: str, environment: Mapping[str, str]) -> EmbeddedModel:
    """The model that `embedded/NAME` names; NoModel where its file has to be fetched first."""
    file = file_for(reference)
    path = find_file(file, environment)
    if path is None:
        raise NoModel(f"{EMBEDDED}/{file.model} is not on this machine yet: run `handrail model fetch`.")
    return EmbeddedModel(file, path, models_folder(environment))
