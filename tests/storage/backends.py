"""The databases that a log can be in, for tests of all of them."""

import sqlite3

from handrail.storage.event_log import Log
from handrail.storage.log_file import LogFile


def sqlite_of(log: Log) -> sqlite3.Connection:
    """The connection of a log that is a file."""
    assert isinstance(log.database, LogFile)
    return log.database.connection


def change(log: Log, statement: str, *values: object) -> None:
    """What somebody changes by hand."""
    with log.database.transaction():
        log.database.execute(statement, values)
