"""Opening the application for a command of the shell: what the user should know is told on stderr."""

import gc
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from handrail.interfaces.cli.styles import clean
from handrail.protocol.errors import UsageProblem

if TYPE_CHECKING:
    from handrail.app import App, Options


@asynccontextmanager
async def opened(options: "Options") -> AsyncIterator["App"]:
    """The application, after its notices: a repaired log, settings that were ignored."""
    from handrail.app import open_app

    async with open_app(options) as app:
        collect_garbage()
        for notice in app.notices:
            for text in notice.splitlines():
                print(f"handrail: {clean(text)}", file=sys.stderr)
        yield app


def collect_garbage() -> None:
    """From here on there is some: all that was imported is there and stays (see `__main__`)."""
    gc.freeze()
    gc.enable()


def named(app: "App", text: str) -> str:
    """The session that the words mean; where there is none, also what a repair of the log may have taken."""
    try:
        return app.find_session(text)
    except UsageProblem as problem:
        repairs = [
            f"The log was repaired on {time.strftime('%Y-%m-%d %H:%M', time.localtime(at / 1000))}: {report}"
            for at, report in app.log.recoveries()
        ]
        raise UsageProblem("\n".join([str(problem), *repairs])) from problem
