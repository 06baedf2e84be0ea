"""The seam between a split request and whatever runs its subtasks.

A runner carries where and when a job runs, nothing else: the graph, budgets, retries and the log belong to
the split request. A job holds all that a worker needs, and its result is all that comes back, so both can
travel as JSON.
"""

from collections.abc import Awaitable, Callable
from typing import Protocol

from handrail.protocol.subtask import Export, Subtask
from handrail.protocol.values import Effort, Role, Usage, Value


class GivenFile(Value):
    """A file as a subtask is given it."""

    path: str
    text: str | None
    """None: there is no such file."""
    sha256: str


class GivenExport(Value):
    subtask_id: str
    summary: str
    exports: tuple[Export, ...]


class JobBudget(Value):
    """What is reserved for a job; None: there is no such limit."""

    tokens: int | None = None
    usd: float | None = None


class Job(Value):
    key: str
    """The same for the same work, also after a restart: its effects are counted once."""
    subtask: Subtask
    task: str
    """The request that the subtask is a part of."""
    files: tuple[GivenFile, ...]
    exports: tuple[GivenExport, ...]
    refused: str = ""
    """Why the last answer was not used."""
    split_id: str = ""
    """The split that it is a part of; with the key, it is the job's name everywhere."""
    budget: JobBudget = JobBudget()

    @property
    def name(self) -> str:
        return f"{self.split_id}/{self.key}"


class NewFile(Value):
    """A proposal: a file as the subtask would leave it."""

    path: str
    text: str | None
    """None: it is deleted."""


class ModelExchange(Value):
    """What a worker asked a model, and what came back, byte for byte; the split's log gets both."""

    model: str
    role: Role
    request: bytes
    raw: bytes
    text: str
    problem: str = ""
    whole_file: bool = False
    """The answer is the text of the one file, not JSON."""
    prompt_bytes: int = 0
    prompt_tokens: int = 0
    usage: Usage = Usage()
    cost_usd: float | None = None
    seconds: float = 0.0
    effort: Effort | None = None
    effort_sent: bool = False


class JobResult(Value):
    """What came of a job: proposals, or a problem."""

    key: str
    files: tuple[NewFile, ...] = ()
    exports: tuple[Export, ...] = ()
    summary: str = ""
    problem: str = ""
    again: bool = False
    """Whether another try may help."""
    retry_in: float | None = None
    """The provider is busy: seconds until it may be asked again. This is not counted as a try."""
    over_budget: bool = False
    seconds: float = 0.0
    exchanges: tuple[ModelExchange, ...] = ()
    """Of a job whose model was asked elsewhere; the last one has the answer, which nobody has read yet."""
    worker: str = ""


Perform = Callable[[Job], Awaitable[JobResult]]


class JobRunner(Protocol):
    """Runs jobs, each at least once; reports each result once."""

    async def submit(self, job: Job) -> None:
        """Run the job; one with a key that was submitted before is not run twice at the same time."""

    async def cancel(self, key: str) -> None:
        """Stop the job if it runs; it has no result then."""

    def results(self) -> list[JobResult]:
        """Results that have come since the last call."""

    def stalled(self) -> str:
        """Why no job can run at present, and what to do; empty: nothing is in the way."""
