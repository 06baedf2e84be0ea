"""`handrail worker`: asks models for subtasks that other machines have put on the queue."""

import os
import signal
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from handrail.interfaces.cli.main import exit_status_of
from handrail.interfaces.cli.options import collect_garbage
from handrail.interfaces.cli.terminal import print_text

if TYPE_CHECKING:
    from handrail.app.splits.worker import WorkerNews, WorkerStart


@click.command()
@click.option("--database", metavar="URL", default="", help="The PostgreSQL database of the queue.")
@click.option(
    "--workspace",
    "workspaces",
    metavar="NAME",
    multiple=True,
    help="Take jobs of this workspace, by its name in the database; repeatable.",
)
@click.option("--parallel", type=click.IntRange(1, 256), default=4, help="Jobs at once; default 4.")
@click.option("--model", metavar="NAME", default="", help="The model, as connection/name.")
@click.option(
    "--grace",
    type=click.FloatRange(min=0),
    default=20.0,
    help="Seconds to end jobs at Ctrl-C; default 20.",
)
def command(database: str, workspaces: tuple[str, ...], *, parallel: int, model: str, grace: float) -> None:
    """Ask models for subtasks of splits that run elsewhere, until Ctrl-C.

    It uses this machine's own settings and credentials, and has no workspace.
    docs/scaling.md explains it.
    """
    import anyio

    from handrail.app.splits.worker import WorkerOptions, run_worker

    options = WorkerOptions(database, workspaces, parallel, model, grace)

    async def run() -> None:
        collect_garbage()
        async with anyio.create_task_group() as tasks:

            def stop_on_signals(stop: Callable[[], None]) -> None:
                tasks.start_soon(_watch_signals, stop)

            await run_worker(options, _tell, stop_on_signals)
            tasks.cancel_scope.cancel()

    status = 0
    try:
        anyio.run(run)
    except BaseException as error:  # noqa: BLE001
        status = exit_status_of(error)
    sys.stdout.flush()
    sys.stderr.flush()
    # A thread of DBOS may still wait for what another worker makes of a job; do not wait with it.
    os._exit(status)


async def _watch_signals(stop: Callable[[], None]) -> None:
    import anyio

    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for _ in signals:
            print_text("handrail: ends when its jobs have; once more, and they go back to the queue now.")
            stop()


def _tell(news: "WorkerStart | WorkerNews") -> None:
    print_text(_words(news))
    sys.stdout.flush()


def _words(news: Any) -> str:
    from handrail.app.splits.worker import WorkerStart

    if isinstance(news, WorkerStart):
        return (
            f"worker {news.name}: {news.model}, {news.parallel} at once, workspaces "
            f"{', '.join(news.workspaces)} in {news.database}, version {news.version}"
        )
    match news.kind:
        case "began":
            return f"began {news.job}"
        case "done" | "failed":
            spent = news.result.exchanges
            tokens = sum(each.usage.input_tokens + each.usage.output_tokens for each in spent)
            costs = [each.cost_usd for each in spent]
            usd = f"${sum(costs):.4f}" if None not in costs else "cost unknown"
            why = f": {news.result.problem}" if news.kind == "failed" else ""
            return f"{news.kind} {news.job} in {news.seconds:.1f} s, {tokens:,} tokens, {usd}{why}"
        case "returned":
            return f"{news.detail} unfinished jobs are back on the queue"
        case "unreachable":
            return f"{news.detail} This worker goes on when it can be reached again."
        case _:
            return "the database can be reached again"
