"""Imports what an answer and its first calls need, while the model answers."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from threading import Timer

AFTER_SECONDS = 0.1
"""The request has been sent by then, and most models take longer to begin their answer."""
MODULES = (
    "handrail.models.reading.tool_calls",
    "handrail.tools.gate.gate",
    "handrail.tools.gate.command_facts",
    "handrail.tools.files.edit_batch",
    "handrail.changes.apply",
    "handrail.tools.commands.file_changes",
    "handrail.tools.sandbox.warm_launcher",
    "handrail.tools.sandbox.bubblewrap",
)


@contextmanager
def preloading() -> Iterator[None]:
    """Import in a thread while the block waits for an answer; when it has come, no further module."""
    if all(name in sys.modules for name in MODULES):
        yield
        return

    def preload() -> None:
        for name in MODULES:
            if timer.finished.is_set():
                return
            with suppress(ImportError):  # whoever needs it will say so
                import_module(name)

    timer = Timer(AFTER_SECONDS, preload)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
