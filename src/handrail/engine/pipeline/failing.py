"""Errors of functions that a definition names, as the end of the run and not of Handrail."""

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from handrail.protocol.errors import GiveUp, HandrailError

SHOWN = 200


@contextmanager
def failing(what: str) -> Iterator[None]:
    """Raises GiveUp for an error of `what` that nobody foresaw."""
    try:
        yield
    except HandrailError:
        raise
    # A definition is user input, and says which function is given what. A run that crashed Handrail would
    # be gone on with when it is opened again, and crash it again.
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        told = " ".join(f"{type(error).__name__} {error}".split())[:SHOWN]
        raise GiveUp(
            f"{what} failed with what it was given: {told} ({Path(last.filename).name}:{last.lineno}). "
            "What was done before it is kept."
        ) from error
