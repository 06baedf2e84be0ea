"""`handrail model`: show or set the model; `model fetch` downloads the small one."""

import signal
import sys
import time
from collections import deque
from typing import TYPE_CHECKING, Any

import click

from handrail.interfaces.cli.options import opened_app, options_for, workspace_option
from handrail.interfaces.cli.render.styles import line
from handrail.interfaces.cli.terminal import can_ask, is_terminal, print_text, redraw
from handrail.protocol.errors import HandrailError, UsageProblem

if TYPE_CHECKING:
    from pathlib import Path

    from handrail.app.extensions.knowledge import EmbeddingDownload
    from handrail.app.models import DownloadProgress, SmallModel


MEGABYTE = 1_000_000
REDRAW_SECONDS = 0.1
PIPED_SECONDS = 10.0
SPEED_SECONDS = 10.0


class DownloadLine:
    """Shows progress on stderr: redrawn in a terminal, a line now and then elsewhere."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._live = is_terminal(sys.stderr)
        self._past: deque[tuple[float, int]] = deque()
        self._shown = float("-inf")

    def __call__(self, progress: "DownloadProgress") -> None:
        now = time.monotonic()
        self._past.append((now, progress.done))
        while now - self._past[0][0] > SPEED_SECONDS:
            self._past.popleft()
        if now - self._shown >= (REDRAW_SECONDS if self._live else PIPED_SECONDS):
            self._shown = now
            first, had = self._past[0]
            speed = max(0.0, (progress.done - had) / (now - first)) if now > first else 0.0
            text = download_text(self._name, progress, speed)
            if self._live:
                redraw(line(text), file=sys.stderr)
            else:
                print_text(text, file=sys.stderr)

    def close(self) -> None:
        if self._live and self._past:
            redraw(file=sys.stderr)


def download_text(name: str, progress: "DownloadProgress", speed: float) -> str:
    """`download  qwen2.5-coder-1.5b  412/1117 MB  38 MB/s  0:19 left`."""
    text = f"download  {name}  {progress.done // MEGABYTE}/{progress.total // MEGABYTE} MB"
    if speed < 1000:
        return f"{text}  from the {progress.source}" if progress.source != "another Handrail" else text
    minutes, seconds = divmod(round((progress.total - progress.done) / speed), 60)
    digits = 0 if speed >= 10 * MEGABYTE else 1
    return f"{text}  {speed / MEGABYTE:.{digits}f} MB/s  {minutes}:{seconds:02} left"


async def download_with_progress(model: "SmallModel | EmbeddingDownload") -> "Path":
    """Download the model with a progress line, and return its file. Ctrl-C keeps what has arrived."""
    import anyio

    line = DownloadLine(model.name)

    async def stop(scope: anyio.CancelScope) -> None:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async for _ in signals:
                scope.cancel()

    path: Path | None = None
    problem: Exception | None = None
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stop, tasks.cancel_scope)
            path = await model.download(line)
            tasks.cancel_scope.cancel()
    except* HandrailError as problems:
        problem = problems.exceptions[0]  # raised here, it would be wrapped again
    finally:
        line.close()
    if problem:
        raise problem
    if path is None:
        kept = f"{megabytes(model.downloaded)} of {megabytes(model.size)} MB are kept"
        print_text(f"stopped   {kept}; the next download continues from there.", file=sys.stderr)
        raise KeyboardInterrupt
    return path


def megabytes(count: int) -> str:
    return f"{count // MEGABYTE:,}"


@click.command()
@click.argument("name", default="")
@click.option("--yes", is_flag=True, help="With fetch: download without asking.")
@workspace_option
def command(name: str, yes: bool, **given: Any) -> int:
    """Show which model answers here and why; with NAME, make that your default.

    `handrail model fetch` downloads the small model that answers without a key and without a network.
    """
    if name == "fetch":
        return fetch_model(yes=yes)
    show_model(name, given)
    return 0


def show_model(name: str, given: dict[str, Any]) -> None:
    import anyio

    from handrail.app.models import structured_output
    from handrail.config.toml_edit import save_setting

    async def run() -> None:
        async with opened_app(options_for(given)._replace(model=name)) as app:
            chosen = await app.chosen_model()
            if name:
                save_setting(app.places, "models.main", chosen.reference)
                print_text(f"{chosen.reference} is your default now, in {app.places.settings}.")
            else:
                print_text(f"{chosen.reference} ({chosen.why})")
                way = await structured_output(app.model_pool, chosen.reference)
                print_text(f"answers in JSON are asked for by {way}; `handrail doctor` tries it")

    anyio.run(run)


def fetch_model(*, yes: bool) -> int:
    import anyio

    from handrail.app.models import SmallModel, install_runtime

    model = SmallModel()
    path = model.path()
    if path is None and not model.has_runtime:
        missing = "the library that runs the model is missing"
        raise UsageProblem(f"Nothing was downloaded: {missing}. First run `{install_runtime()}`.")
    if path is None and not yes:
        size = f"{model.size / 1e9:.1f} GB"
        if not can_ask(sys.stderr):
            raise UsageProblem(
                f"This downloads {size}, and nobody can be asked here. Give --yes to download it."
            )
        print_text(f"download {size}? [y/N] ", end="", file=sys.stderr)
        if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
            return 1
    if path is None or model.is_ours(path):
        path = anyio.run(download_with_progress, model)
    print_text(f"embedded/{model.name} is here: {path}")
    if not model.has_runtime:
        print_text(f"The library that runs it is missing: `{install_runtime()}` installs it.")
    return 0
