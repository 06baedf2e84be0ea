"""The queue that conductors and workers share: DBOS on PostgreSQL; imports it only when it is used.

A job is a workflow of one step. Its id is the job's name, so the same job is queued once. The step's output
is the whole answer of the model, so a job that begins again after that does not ask again.
"""

import hashlib
import logging
from functools import cache
from typing import TYPE_CHECKING

import msgspec

from handrail import __version__
from handrail.config.extras import install_command
from handrail.engine.durable.jobs import Job, JobResult
from handrail.protocol.errors import StorageProblem, UsageProblem
from handrail.storage.postgres.workers import JobTables, queue_problem, url_parts

if TYPE_CHECKING:
    from dbos import DBOSClient, EnqueueOptions

APPLICATION, WORKFLOW = "handrail", "handrail_subtask"
LOST_AFTER = 30.0
"""Seconds of silence after which a worker is taken for dead."""
POLL_SECONDS = 0.25


@cache
def job_version() -> str:
    """What a worker and a job must have in common: Handrail's version and the format of jobs and results."""
    types = msgspec.json.schema_components([Job, JobResult])
    digest = hashlib.sha256(msgspec.json.encode(types, order="sorted")).hexdigest()
    return f"{__version__}-{digest[:8]}"


def queue_name(workspace: str) -> str:
    """The queue of a workspace's jobs."""
    return f"handrail:{workspace}"


def check_installed() -> None:
    """Raises UsageProblem where the extra is missing."""
    from importlib.util import find_spec

    if not (find_spec("dbos") and find_spec("psycopg")):
        raise UsageProblem(f"Workers need more packages. Install them: {install_command('distributed')}")


def prepare_dbos() -> None:
    """Make DBOS quiet, and unable to load pickled values, by which others could run code here."""
    from dbos._serialization import DefaultSerializer

    def refuse(_self: object, _data: str) -> object:
        raise StorageProblem("A job in the database is not JSON. Handrail did not write it, and refuses it.")

    DefaultSerializer.deserialize = refuse  # type: ignore[assignment, method-assign]
    logging.getLogger("dbos").setLevel(logging.CRITICAL)


def dbos_url(url: str) -> str:
    """The URL as SQLAlchemy wants it, which writes several hosts in another way than libpq."""
    from sqlalchemy import URL

    found = url_parts(url)
    user, password, name = (found.pop(each, None) for each in ("user", "password", "dbname"))
    made = URL.create("postgresql+psycopg", user, password, database=name, query=found)
    return made.render_as_string(hide_password=False)


class JobQueue:
    """The queue of one workspace, for conductors. Its methods block: call them in a thread, one at a time."""

    def __init__(self, url: str, workspace: str) -> None:
        self.name = queue_name(workspace)
        self.workspace = workspace
        self._url = url
        self._client: DBOSClient | None = None
        self.tables = JobTables(url, WORKFLOW)

    def open(self) -> "DBOSClient":
        """Create what the database lacks; raises StorageProblem where it cannot be used."""
        from dbos import DBOS, DBOSClient
        from dbos._serialization import DBOSPortableJSON
        from sqlalchemy.exc import SQLAlchemyError

        prepare_dbos()
        self.tables.create()
        try:
            DBOS.migrate(dbos_url(self._url))
            self._client = DBOSClient(
                system_database_url=dbos_url(self._url),
                serializer=DBOSPortableJSON,
                application_name=APPLICATION,
                system_database_pool_size=1,
                retry_connection_errors=False,
            )
        except SQLAlchemyError as error:
            raise queue_problem(error, self._url) from error
        return self._client

    def close(self) -> None:
        if self._client:
            self._client.destroy()
            self._client = None
        self.tables.close()

    def put(self, job: Job) -> None:
        """Queue the job, unless it is there."""
        from dbos._error import DBOSException
        from sqlalchemy.exc import SQLAlchemyError

        client = self._client or self.open()
        options: EnqueueOptions = {
            "queue_name": self.name,
            "workflow_name": WORKFLOW,
            "workflow_id": job.name,
            "app_version": job_version(),
        }
        try:
            client.enqueue(options, msgspec.json.encode(job).decode())
        except SQLAlchemyError as error:
            raise queue_problem(error, self._url) from error
        except DBOSException as error:
            raise StorageProblem(
                f"The queue refuses the job {job.name}: {error}. Somebody else has put a job of this name on"
                " it. Remove that from the database, or cancel the split."
            ) from error
