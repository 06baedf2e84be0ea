"""A worker as the command starts it: its own settings, models and credentials, and no workspace."""

import errno
import os
from collections.abc import Callable, Mapping
from typing import NamedTuple

from handrail.config.layers import load_settings
from handrail.config.places import find_places
from handrail.config.settings import Settings, without_password
from handrail.engine.durable.jobs import Job, JobResult
from handrail.engine.durable.queue import check_installed, job_version, queue_name
from handrail.engine.durable.worker import Worker, WorkerNews, WorkerSettings
from handrail.engine.host.turn_factory import price
from handrail.engine.requests.model_pool import ModelPool
from handrail.engine.split.remote_work import WorkerModel
from handrail.engine.split.subtask_work import RequestLimits
from handrail.models.model import Model
from handrail.protocol.errors import StorageFull, UsageProblem

__all__ = ["WorkerNews"]


class WorkerOptions(NamedTuple):
    database: str = ""
    """Empty: as the settings say."""
    workspaces: tuple[str, ...] = ()
    parallel: int = 4
    model: str = ""
    grace: float = 20.0


class WorkerStart(NamedTuple):
    """What a worker says of itself when it starts."""

    name: str
    model: str
    version: str
    database: str
    """Without its password."""
    workspaces: tuple[str, ...]
    parallel: int


async def run_worker(
    options: WorkerOptions,
    tell: Callable[[WorkerStart | WorkerNews], None],
    stopper: Callable[[Callable[[], None]], None],
    environ: Mapping[str, str] = os.environ,
) -> None:
    """Work until it is stopped; `stopper` gets the function that does so.

    Raises NoModel, StorageProblem or UsageProblem where it cannot work; jobs that it has go to others.
    """
    check_installed()
    places = find_places(environ)
    flags = {"database.url": options.database} if options.database else {}
    loaded = load_settings(places, None, environ=environ, flags=flags)
    settings = loaded.settings
    if not (url := settings.database.url):
        raise UsageProblem(
            "A worker needs to know its database. Name it with --database postgresql://USER@HOST/DATABASE, or"
            " in HANDRAIL_DATABASE."
        )
    if not options.workspaces:
        raise UsageProblem(
            "A worker takes jobs only of the workspaces that it is started for. Name each with --workspace"
            " NAME."
        )
    pool = ModelPool(loaded, places, environ, options.model)
    try:
        main = (await pool.models(None))[0]
        queues = tuple(queue_name(each) for each in options.workspaces)
        models = WorkerModels(pool, settings, main)
        worker = Worker(
            WorkerSettings(
                url, queues, main.name, options.parallel, settings.splits.worker_seconds, options.grace
            ),
            models.perform,
            tell,
        )
        stopper(worker.stop)
        start = WorkerStart(
            worker.name, main.name, job_version(), without_password(url), options.workspaces, options.parallel
        )
        await worker.run(lambda: tell(start))
    finally:
        await pool.aclose()


class WorkerModels:
    """Answers jobs with the models that are set on this machine."""

    def __init__(self, pool: ModelPool, settings: Settings, main: Model) -> None:
        self._pool = pool
        self._settings = settings
        self._main = main

    async def perform(self, job: Job) -> JobResult:
        """Raises what makes this machine unfit for any job."""
        limits, efforts = self._settings.limits, self._settings.models.effort
        model, effort = self._main, efforts.main
        fast = self._settings.models.fast if job.subtask.model_class == "fast" else ""
        if fast:
            model, effort = await self._pool.named(await self._pool.check(fast)), efforts.fast
        hide = self._pool.secrets().hide
        asked = WorkerModel(
            model,
            "fast" if fast else "main",
            effort or None,
            price,
            RequestLimits(limits.max_output_tokens, limits.answer_seconds, hide),
        )
        try:
            return await asked.answer(job)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise StorageFull(
                    "The disk of this worker is full. Make room, then start it again."
                ) from error
            raise
