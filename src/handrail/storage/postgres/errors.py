"""PostgreSQL's errors as those of storage: what happened, then what to do."""

import psycopg

from handrail.protocol.errors import (
    StorageBusy,
    StorageDamaged,
    StorageFull,
    StorageProblem,
    StorageUnreachable,
)

BUSY_STATES = ("55P03", "57014", "40001", "40P01", "53300")
"""Lock or statement timeout, conflict of two transactions, deadlock, too many connections."""
GONE_CLASSES = ("08", "57P")
DAMAGED_CLASS, FULL_STATE, MEMORY_STATE, READ_ONLY_STATE = "XX", "53100", "53200", "25006"
LOGIN_CLASSES = ("28", "3D")
RESTORE = "Ask whoever administers the database; it may have to be restored from a backup."


def storage_problem(error: psycopg.Error, place: str) -> StorageProblem:
    """What to raise in place of an error."""
    state, said = error.sqlstate or "", str(error).strip().partition("\n")[0]
    if state == FULL_STATE:
        message = f"The server of {place} has no room on its disk. Free some there, then continue."
        return StorageFull(message)
    if state in BUSY_STATES:
        return StorageBusy(f"The database {place} is too busy ({said}). Try again.")
    if state.startswith(DAMAGED_CLASS):
        return StorageDamaged(f"The database {place} is damaged ({said}). {RESTORE}")
    if state == READ_ONLY_STATE:
        return StorageProblem(f"The database {place} can only be read. Use the primary server.")
    if state.startswith(GONE_CLASSES) or (not state and isinstance(error, psycopg.OperationalError)):
        return StorageUnreachable(
            f"The database {place} does not answer ({said}). Nothing of this was stored. Try again when it "
            "does."
        )
    return StorageProblem(f"The database {place} cannot be used: {said}. Ask whoever administers it.")


def connect_problem(error: psycopg.Error, place: str) -> StorageProblem:
    """The same for an attempt to connect, about which psycopg only has text."""
    if not isinstance(error, psycopg.OperationalError):
        # What it says may have a part of the password, if that has characters which are to be written as %XX.
        return StorageProblem(f"The address of the database cannot be read: {place}. Correct database.url.")
    # Lines that begin with a tab are hints, such as "Is the server running on that host?".
    lines = [line for line in str(error).splitlines() if line.strip() and not line.startswith("\t")]
    said = "; ".join(" ".join(line.split()) for line in lines).rstrip(".?!;")
    refused = ("authentication failed", "no password", "does not exist", "no pg_hba.conf entry", "denied")
    if (error.sqlstate or "").startswith(LOGIN_CLASSES) or any(each in said for each in refused):
        return StorageProblem(
            f"The database {place} refuses the connection: {said}. Correct database.url, or the password in "
            "it or in ~/.pgpass."
        )
    return StorageUnreachable(
        f"The database {place} cannot be reached: {said}. Start it, or correct database.url."
    )
