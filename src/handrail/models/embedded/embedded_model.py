"""The embedded model as a Model: checks its file and starts its server when it is first asked."""

from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing
from pathlib import Path

import anyio
from anyio import get_cancelled_exc_class

from handrail.models.embedded.model_files import (
    ModelFile,
    file_for,
    find_model_file,
    models_folder,
    verify_file,
)
from handrail.models.embedded.server_files import RunningServer
from handrail.models.embedded.server_process import GRACE_SECONDS, POLL_SECONDS, ServerProcess, fitting_window
from handrail.models.model import Capabilities, Part, Progress, Request, Text, Thinking
from handrail.models.providers import EMBEDDED, LOCAL_PRICE, Connection
from handrail.models.wire.openai import OpenAIModel
from handrail.protocol.errors import ConfigProblem, GiveUp, ModelProblem, NoModel, RetryLater


class EmbeddedModel:
    """A model that runs in our own server process, shared with the user's other sessions."""

    def __init__(self, file: ModelFile, path: Path, folder: Path, grace: float = GRACE_SECONDS) -> None:
        self._file = file
        self._path = path
        self._folder = folder
        self.child = ServerProcess(file, path, folder, grace)
        self._adapter: OpenAIModel | None = None
        self._running: RunningServer | None = None
        self._crashes = 0
        """Since the last complete answer."""
        self._preparing = False
        self._progress = Progress("loading", 0)
        """Progress of the preparation, for other requests that wait for it."""
        self._checking: Iterator[int] | None = None
        """A file check that was cancelled; the next request continues it."""
        running = self.child.running()
        self._window = running.context_window if running else fitting_window()

    @property
    def name(self) -> str:
        return f"{EMBEDDED}/{self._file.model}"

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(
            context_window=self._window, schema_output=True, one_action=True, price=LOCAL_PRICE
        )

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
        """Progress until the server answers; one request prepares it, the others wait."""
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
            checking = self._checking or verify_file(self._file, self._path, self._folder)
            self._checking = None
            try:
                while (done := await anyio.to_thread.run_sync(next, checking, None)) is not None:
                    yield Progress("checking", done, self._file.size)
            except (GeneratorExit, get_cancelled_exc_class()):
                self._checking = checking
                raise
        shown = -1
        async with aclosing(self.child.connect()) as waiting:
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
            connection = Connection(
                name=EMBEDDED,
                protocol="openai",
                base_url=f"{running.url}/v1",
                prompt_progress=True,
                schema_output=True,
                price=LOCAL_PRICE,
            )
            self._adapter = OpenAIModel(connection, self._file.model, running.key, self.capabilities)
        return self._adapter

    async def _disconnect(self) -> None:
        adapter, self._adapter, self._running = self._adapter, None, None
        if adapter is not None:
            await adapter.aclose()

    async def _recover(self, problem: ModelProblem, *, answering: bool) -> None:
        """Returns if the request can be repeated and no text was shown yet; otherwise raises."""
        if not await self.child.has_exited(self._running):
            raise problem
        self._crashes += 1
        if self._crashes > 1:
            reason = self.child.files.log_tail()
            raise GiveUp(
                f"The small model's process ended twice while it answered{f' ({reason})' if reason else ''}. "
                f"Its log is {self.child.files.log}. Ask for less at once, or use a key or a local server."
            ) from problem
        if answering:
            raise RetryLater("The small model's process ended; it is started again.", 0.0) from problem


def embedded_model(reference: str, environment: Mapping[str, str]) -> EmbeddedModel:
    """The model `embedded/NAME`; raises NoModel if its file must be downloaded first."""
    file = file_for(reference)
    path = find_model_file(file, environment)
    if path is None:
        raise NoModel(f"{EMBEDDED}/{file.model} is not on this machine yet: run `handrail model fetch`.")
    return EmbeddedModel(file, path, models_folder(environment))
