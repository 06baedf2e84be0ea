"""What there is to write to: whether it is a terminal, how wide, whether it takes colour."""

import os
import shutil
import sys
from collections.abc import Mapping
from typing import IO

from handrail.config.settings import DisplaySettings
from handrail.protocol.errors import UsageProblem

PIPED_WIDTH = 100


def is_terminal(stream: IO[str] | None) -> bool:
    """Whether a person is at the other end."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # closed
        return False


def need_terminal() -> None:
    """UsageProblem where there is nobody to talk with."""
    if is_terminal(sys.stdin) and is_terminal(sys.stdout) and os.environ.get("TERM") != "dumb":
        return
    missing = "input" if not is_terminal(sys.stdin) else "output"
    what = "this terminal cannot move its cursor" if is_terminal(sys.stdout) else f"the {missing} is not one"
    raise UsageProblem(
        f"The conversation needs a terminal, and {what}. "
        'For one task without a terminal: handrail run "TASK", or handrail run - to read the task from stdin.'
    )


def takes_colour(stream: IO[str] | None, display: DisplaySettings, environ: Mapping[str, str]) -> bool:
    """Whether to write colours; NO_COLOR is one of the ways to set `display.color`."""
    if display.color != "auto":
        return display.color == "always"
    return is_terminal(stream) and environ.get("TERM") not in (None, "", "dumb")


def width_of(stream: IO[str] | None) -> int:
    """Columns to fill."""
    return shutil.get_terminal_size((PIPED_WIDTH, 24)).columns - 1 if is_terminal(stream) else PIPED_WIDTH
