"""A process that changes a file of its own, so many times.

python tracing_child.py LOG ROOT SESSION TIMES
"""

import sys
from pathlib import Path

from handrail.changes.apply import apply
from handrail.changes.change_set import ChangeSet, FileEdit, Origin
from handrail.protocol.events import SessionStarted
from handrail.sessions.session import Session
from handrail.storage.log_repair import open_log
from handrail.workspace.files import Workspace


def main(folder: str, root: str, session_id: str, times: str) -> None:
    session = Session(open_log(Path(folder)), session_id).load()
    assert session.try_hold()
    session.append(SessionStarted(session_id=session_id, workspace=root, version="0"))
    old = None
    for number in range(int(times)):
        new = f"{session_id} {number}\n".encode() * 30
        edit = FileEdit(f"{session_id}.txt", "update" if old else "create", old, new)
        apply(session, Workspace(Path(root)), ChangeSet((edit,), Origin(intent_id=f"INT-{session_id}")))
        old = new


if __name__ == "__main__":
    main(*sys.argv[1:])
