"""Writing the file of intents under faults: it is old or new, and what it was is in the log before."""

from functools import partial
from pathlib import Path

import pytest

from handrail.changes.intents_writer import write_intent_file
from handrail.protocol.errors import HandrailError
from handrail.protocol.events import IntentEdited
from handrail.sessions.workspace_events import intent_history
from handrail.storage.log_repair import open_log
from handrail.workspace.files import Workspace
from handrail.workspace.intents_file import INTENTS_FILE
from tests.changes.faults import Dead, Fate, FaultKind, FaultyDisk

OLD, NEW, THEIRS = b"- id: A\n", b"- id: A\n  status: done\n", b"- id: B\n"
EFFECTS = 14


def _write(path: Path) -> None:
    path.write_bytes(THEIRS)


@pytest.mark.parametrize("kind", ["none", "fail", "full", "kill", "meddle"])
@pytest.mark.parametrize("exchanges", [True, False])
def test_a_fault_at_any_moment_leaves_the_file_old_or_new_and_what_it_was_in_the_log(
    tmp_path: Path, kind: FaultKind, exchanges: bool
) -> None:
    log = open_log(tmp_path / "log")
    for number in range(EFFECTS):
        root = tmp_path / f"work{number}"
        (root / INTENTS_FILE).parent.mkdir(parents=True)
        (root / INTENTS_FILE).write_bytes(OLD)
        edited = IntentEdited(intent_id=f"A{number}", old=OLD.decode(), new=NEW.decode())
        fate = Fate(kind, number, meddle=partial(_write, root / INTENTS_FILE))
        disk = FaultyDisk(root, fate, exchanges=exchanges)
        try:
            write_intent_file(
                log, Workspace(root), INTENTS_FILE, old=OLD, new=NEW, edits=(edited,), disk=disk
            )
            ended = True
        except (HandrailError, OSError, Dead):
            ended = False
        disk.close()
        now = (root / INTENTS_FILE).read_bytes()
        kept = [path.read_bytes() for path in (root / INTENTS_FILE).parent.iterdir()]
        if kind == "meddle" and fate.struck:
            assert THEIRS in kept
        else:
            assert now in (OLD, NEW)
        assert not ended or now == NEW or kind == "meddle"
        if now == NEW:
            assert intent_history(log).text(f"A{number}") == NEW.decode()
        elif not ended and kind != "kill":
            assert intent_history(log).text(f"A{number}") in (None, OLD.decode())
    log.close()
