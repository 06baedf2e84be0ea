"""Whenever a process dies, the power goes or the disk is full: no line is lost, doubled or torn."""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from handrail.changes.apply import apply
from handrail.changes.change_set import ChangeSet, FileEdit, Origin
from handrail.changes.crash_recovery import recover
from handrail.changes.trace.integrity import verify
from handrail.changes.trace.logged_changes import logged_lines
from handrail.changes.trace.trace_file import PATH, TraceFile
from handrail.changes.trace.write import record_applied
from handrail.protocol.errors import HandrailError, PathProblem, StorageFull
from handrail.protocol.events import ChangePrepared, SessionStarted
from handrail.protocol.values import FileChange
from handrail.sessions.session import Session
from handrail.workspace.files import Workspace
from tests.changes.faults import Dead, Fate, FaultKind, FaultyDisk, FaultyLog, temporaries
from tests.changes.trace.traces import bind, lines_in

MOST_EFFECTS = 60


class Desk:
    """A workspace with intents, a session, and a disk that obeys fate."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "work"
        self.root.mkdir(parents=True)
        bind(self.root)
        (self.root / "a").write_bytes(b"0\n")
        self.log_folder = folder / "log"
        self.fate = Fate()
        self.disk = FaultyDisk(self.root, self.fate)
        self.session = self.opened()
        self.session.append(SessionStarted(session_id="s_1", workspace=str(self.root), version="0"))

    def opened(self) -> Session:
        session = Session(FaultyLog(self.log_folder, self.fate), "s_1").load()
        assert session.try_hold()
        return session

    def change(self, number: int) -> None:
        """Two files, so two lines."""
        old = (self.root / "a").read_bytes()
        edits = (
            FileEdit("a", "update", old, old + b"%d\n" % number),
            FileEdit(f"b{number}", "create", None, b"new\n"),
        )
        origin = Origin(turn_id="t_1", intent_id="INT-1")
        apply(self.session, Workspace(self.root), ChangeSet(edits, origin), disk=self.disk)

    def strike(self, kind: FaultKind, countdown: int) -> None:
        self.fate.kind, self.fate.countdown, self.fate.struck = kind, countdown, False

    def calm(self) -> None:
        self.fate.kind, self.fate.dead, self.fate.struck = "none", False, False

    def die(self) -> None:
        self.session.release()
        self.session.log.close()

    def close(self) -> None:
        self.die()
        self.disk.close()

    def come_back(self, cut: Random | None) -> None:
        self.calm()
        self.session.log.leftover.noted()  # what was to be noted died with the process
        self.die()
        if cut:
            self.disk.cut_power(cut)
        self.session = self.opened()
        if told := recover(self.session, Workspace(self.root), self.disk):
            self.session.append(*told)

    def check(self) -> None:
        """The file has what the log says, all of it and nothing else; and so the files."""
        known = logged_lines(self.session.log)
        found = verify((self.root / PATH).read_bytes(), known)
        assert (found.findings, found.gaps) == ((), ())
        assert found.own == found.lines == len(known)
        made = [said["file"] for said in lines_in(self.root) if said["file"].startswith("b")]
        assert sorted(made) == sorted(path.name for path in self.root.glob("b*"))


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    desk = Desk(tmp_path)
    yield desk
    desk.close()


@pytest.mark.promise("TRACE-3")
@pytest.mark.parametrize("kind", ["kill", "power cut", "full", "fail"])
@pytest.mark.parametrize("first", [True, False], ids=["first line", "later line"])
def test_a_fault_at_any_moment_leaves_a_trace_that_is_whole(
    tmp_path: Path, kind: FaultKind, first: bool
) -> None:
    for effect in range(MOST_EFFECTS):
        desk = Desk(tmp_path / str(effect))
        if not first:
            desk.change(1)
        desk.disk.adopt()
        desk.strike(kind, effect)
        try:
            with suppress(OSError, HandrailError):
                desk.change(2)
        except Dead:
            desk.come_back(Random(effect) if kind == "power cut" else None)
        struck = desk.fate.struck or kind in ("kill", "power cut")
        over = desk.fate.kind != "none" and not desk.fate.struck
        desk.calm()
        if desk.session.log.begun():
            desk.come_back(None)
        desk.change(3)
        desk.check()
        desk.come_back(None)
        desk.check()
        assert not temporaries(desk.root)
        desk.close()
        shutil.rmtree(tmp_path / str(effect))
        if over:
            return
        assert struck
    raise AssertionError("the change has more effects than were tried")


def test_a_full_disk_is_told_before_the_next_change_and_nothing_is_missing_afterwards(desk: Desk) -> None:
    class Full(FaultyDisk):
        full = False

        def append(self, folder: int, name: str, mode: int) -> int:
            if self.full:
                raise OSError(28, "No space left on device")
            return super().append(folder, name, mode)

    desk.change(1)
    full = Full(desk.root, desk.fate)
    desk.disk.close()
    desk.disk = full
    full.full = True
    desk.change(2)  # made and recorded; only its lines wait
    with pytest.raises(StorageFull, match="Free some disk space"):
        desk.change(3)
    assert len(lines_in(desk.root)) == 2
    full.full = False
    desk.change(4)
    desk.check()
    assert [said["number"] for said in lines_in(desk.root)] == [1, 2, 3, 4, 5, 6]


def test_the_first_part_of_a_line_is_written_again_and_what_is_not_ours_stays(desk: Desk) -> None:
    desk.change(1)
    trace = desk.root / PATH
    whole = trace.read_bytes()
    half = whole[: whole.rindex(b"\n", 0, -1) + 40]
    trace.write_bytes(half)
    lines = whole.splitlines()
    file = TraceFile(desk.root, desk.log_folder)
    writer = writer_in(whole)
    assert file.add(writer, 1, lines)
    assert trace.read_bytes() == whole
    trace.write_bytes(whole + b"not ours")
    assert file.add(writer, 1, [*lines, b"{}"])
    assert trace.read_bytes() == whole + b"not ours\n{}\n"


def writer_in(data: bytes) -> str:
    return str(json.loads(data.splitlines()[0])["writer"])


@pytest.mark.promise("TRACE-6")
@pytest.mark.parametrize("what", ["folder", "file", "pipe"])
def test_a_link_or_a_pipe_in_place_of_the_trace_stops_changes_and_is_not_followed(
    desk: Desk, tmp_path_factory: pytest.TempPathFactory, what: str
) -> None:
    desk.change(1)
    outside = tmp_path_factory.mktemp("outside")
    (outside / "victim").write_text("precious\n")
    if what == "folder":
        shutil.rmtree(desk.root / ".orchestration")
        (desk.root / ".orchestration").symlink_to(outside)
    else:
        (desk.root / PATH).unlink()
        if what == "file":
            (desk.root / PATH).symlink_to(outside / "victim")
        else:
            os.mkfifo(desk.root / PATH)
    with pytest.raises(PathProblem) as caught:
        desk.change(2)
    assert caught.value.reason == "storage_failed"
    assert [path.name for path in outside.iterdir()] == ["victim"]
    assert (outside / "victim").read_text() == "precious\n"
    assert not (desk.root / "b2").exists()


def test_the_lines_of_a_command_that_a_crash_kept_from_the_file_come_with_the_next_change(
    desk: Desk,
) -> None:
    desk.change(1)
    files = (FileChange(path="made", op="create", new_sha256="3" * 64),)
    change = ChangePrepared(turn_id="t_1", change_id="c_2", call_id="x", files=files, by="command")
    (desk.root / PATH).chmod(0o400)
    desk.strike("kill", 1)
    with suppress(Dead):
        record_applied(desk.session, Workspace(desk.root), change, ())
    (desk.root / PATH).chmod(0o600)
    desk.come_back(None)
    assert [said["file"] for said in lines_in(desk.root)][-1] == "made"
    desk.change(3)
    desk.check()
