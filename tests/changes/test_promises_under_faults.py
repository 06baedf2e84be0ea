"""Whatever is proposed, fails, dies or is edited by hand meanwhile: files stay whole, sets all or none.

`HANDRAIL_STEPS` says how many steps are tried.
"""

import os
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from handrail.changes.apply import apply
from handrail.changes.change_set import ChangeSet, FileEdit
from handrail.changes.crash_recovery import recover
from handrail.changes.undo import plan_undo, undo_change_set
from handrail.protocol.errors import HandrailError, PathProblem, Undecided
from handrail.protocol.events import ChangePrepared, SessionStarted
from handrail.sessions.change_history import session_changes
from handrail.sessions.session import Session
from handrail.workspace.files import Workspace
from tests.changes.faults import Dead, Fate, FaultKind, FaultyDisk, FaultyLog, contents, temporaries

STEPS = int(os.environ.get("HANDRAIL_STEPS", "1500"))
STEPS_A_RUN = 25
# Making a failure short takes longer than finding it in many steps.
PHASES = [Phase.generate] if "HANDRAIL_STEPS" in os.environ else list(Phase)
PATHS = ("a", "b.txt", "d/c", "d/e/f", "ü/ñ.txt", "deep/er/still/x")
LINKS = {"link": "a", "ld": "d"}
"""Names that are symbolic links, and where they lead."""
MODES = (0o644, 0o755, 0o600, 0o444)

LINES = (b"one", b"\ttabs", b"", "ünïcödé 漢".encode(), b"x" * 70, b"end")


class Text(NamedTuple):
    """A text file of one kind or another, in few words: a failure is printed."""

    lines: tuple[int, ...]
    number: int
    crlf: bool = False
    bom: bool = False
    final_break: bool = True
    one_long_line: bool = False

    @property
    def data(self) -> bytes:
        ending = b"\r\n" if self.crlf else b"\n"
        text = ending.join(LINES[line] for line in self.lines) + str(self.number).encode()
        text += b"y" * 1_000_000 if self.one_long_line else b""
        return (b"\xef\xbb\xbf" if self.bom else b"") + text + (ending if self.final_break else b"")


texts = st.builds(
    Text,
    st.lists(st.integers(0, len(LINES) - 1), max_size=6).map(tuple),
    st.integers(0, 99),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.integers(0, 60).map(lambda number: number == 60),
)


class Fault(NamedTuple):
    kind: FaultKind
    countdown: int
    seed: int


faults = st.builds(
    Fault,
    st.sampled_from(["none", "none", "fail", "full", "kill", "power cut"]),
    st.integers(0, 40),
    st.integers(0, 2**32),
)

State = dict[str, tuple[bytes, int] | None]


@dataclass
class Made:
    """A change set that was applied: what its files were before and after it."""

    change_id: str
    before: State
    after: State


class Machine(RuleBasedStateMachine):
    taken = 0
    """Steps of all machines."""
    exchanges = True

    def __init__(self) -> None:
        super().__init__()
        shared = "/dev/shm" if os.path.isdir("/dev/shm") else None
        self.folder = tempfile.TemporaryDirectory(dir=shared, prefix="handrail-test-")
        self.root = Path(self.folder.name, "work")
        self.root.mkdir()
        (self.root / "d").mkdir()
        for name, target in LINKS.items():
            (self.root / name).symlink_to(target)
        self.workspace = Workspace(self.root)
        self.fate = Fate()
        self.disk = FaultyDisk(self.root, self.fate, exchanges=self.exchanges)
        self.session = self.opened()
        self.session.append(SessionStarted(session_id="s_1", workspace=str(self.root), version="0"))
        self.now: State = dict.fromkeys(PATHS)
        self.made: list[Made] = []
        self.copies: set[bytes] = set()

    def teardown(self) -> None:
        self.session.release()
        self.session.log.close()
        self.disk.close()
        self.folder.cleanup()

    def opened(self) -> Session:
        session = Session(FaultyLog(Path(self.folder.name, "log"), self.fate), "s_1").load()
        assert session.try_hold()
        return session

    # Doing things

    def attempt(self, work: Callable[[], object], wanted: State, fault: Fault) -> bool:
        """Do something with a fault in store; then the files are as they were, or as wanted, all of them."""
        before = dict(self.now)
        after = before | wanted
        self.disk.watch = lambda: self.each_is_whole(before, after)
        self.strike(fault)
        survived = False
        try:
            with suppress(OSError, HandrailError):
                work()
            survived = True
        except Dead:
            self.come_back(Random(fault.seed))
        self.calm()
        if survived and self.session.log.begun():
            self.come_back(None)  # it could be neither finished nor undone: the next start does it
        self.disk.watch = lambda: None
        found = contents(self.root, PATHS)
        assert found in (before, after), "a set is neither old nor new"
        self.now = found
        return found == after

    def strike(self, fault: Fault) -> None:
        self.fate.kind, self.fate.countdown, self.fate.struck = fault.kind, fault.countdown, False

    def calm(self) -> None:
        self.fate.kind, self.fate.dead, self.fate.struck = "none", False, False

    def come_back(self, cut: Random | None) -> None:
        """A new process, after a kill or a power cut; it may die over the recovery as well."""
        power_was_cut = self.fate.kind == "power cut"
        self.calm()
        self.session.release()
        self.session.log.close()
        if power_was_cut and cut:
            self.disk.cut_power(cut)
        again = cut.randint(0, 60) if cut else 1_000
        kind: FaultKind = "power cut" if power_was_cut else "kill"
        while True:
            self.session = self.opened()
            self.strike(Fault(kind, again, 0))
            try:
                if told := recover(self.session, self.workspace, self.disk):
                    self.session.append(*told)
            except Dead:
                self.calm()
                self.session.release()
                self.session.log.close()
                if kind == "power cut" and cut:
                    self.disk.cut_power(cut)
                again = 1_000
                continue
            break
        self.calm()
        assert not self.session.state.files.prepared
        assert not self.session.log.begun()

    def each_is_whole(self, before: State, after: State) -> None:
        for path, found in contents(self.root, PATHS).items():
            assert found in (before[path], after[path]), f"{path} is neither old nor new"

    # Rules

    @initialize(files=st.dictionaries(st.sampled_from(PATHS[:4]), st.tuples(texts, st.sampled_from(MODES))))
    def begin(self, files: dict[str, tuple[Text, int]]) -> None:
        for path, (text, mode) in files.items():
            self.write(path, text.data, mode)

    @rule(
        wishes=st.dictionaries(
            st.sampled_from(PATHS), st.one_of(st.none(), texts), min_size=1, max_size=len(PATHS)
        ),
        moves=st.booleans(),
        fault=faults,
    )
    def a_set_is_applied(self, wishes: dict[str, Text | None], moves: bool, fault: Fault) -> None:
        wanted: State = {}
        edits: list[FileEdit] = []
        for path, text in wishes.items():
            now, new = self.now[path], text.data if text else None
            if now is None and new is None:
                continue
            if now and new is not None:
                if now[0] == new:
                    continue
                edits.append(FileEdit(path, "update", now[0], new))
                wanted[path] = (new, now[1])
            elif now:
                edits.append(FileEdit(path, "delete", now[0], None))
                wanted[path] = None
            elif new is not None:
                edits.append(FileEdit(path, "create", None, new))
                wanted[path] = (new, 0o666 & ~umask())
        if moves:
            edits, wanted = with_a_move(edits, wanted, self.now)
        if edits:
            self.apply_and_remember(ChangeSet(tuple(edits)), wanted, fault)

    def apply_and_remember(self, change_set: ChangeSet, wanted: State, fault: Fault) -> None:
        before = dict(self.now)
        known = {change.id for change in session_changes(self.session.log, "s_1")}

        def work() -> None:
            apply(self.session, self.workspace, change_set, disk=self.disk)

        done = self.attempt(work, wanted, fault)
        new = [change for change in session_changes(self.session.log, "s_1") if change.id not in known]
        assert all(change.status in ("applied", "not applied") for change in new)
        applied = [change for change in new if change.in_place]
        assert len(applied) == (1 if done else 0), "the log says something else than the disk"
        for change in applied:
            paths = [path for path in wanted if before[path] != wanted[path]]
            self.made.append(
                Made(
                    change.id, {path: before[path] for path in paths}, {path: wanted[path] for path in paths}
                )
            )

    @rule(path=st.sampled_from(PATHS), base=texts, new=texts, other=st.sampled_from(PATHS))
    def a_set_on_an_old_version_is_refused(self, path: str, base: Text, new: Text, other: str) -> None:
        now = self.now[path]
        if path == other or (now and now[0] == base.data):
            return
        beside = self.now[other]
        edits = [FileEdit(other, "update", beside[0], b"changed")] if beside else []
        edits.append(FileEdit(path, "update", base.data, new.data))
        with pytest.raises(PathProblem) as caught:
            apply(self.session, self.workspace, ChangeSet(tuple(edits)), disk=self.disk)
        assert caught.value.reason == "stale_file"
        assert contents(self.root, PATHS) == self.now

    @rule(path=st.sampled_from(["link", "ld/c", "ld/new"]), new=texts)
    def nothing_is_written_through_a_link(self, path: str, new: Text) -> None:
        old = self.now["a" if path == "link" else "d/c"] if path != "ld/new" else None
        edit = FileEdit(path, "update" if old else "create", old[0] if old else None, new.data)
        with pytest.raises((OSError, PathProblem)):
            apply(self.session, self.workspace, ChangeSet((edit,)), disk=self.disk)
        assert contents(self.root, PATHS) == self.now

    @rule(path=st.sampled_from(PATHS), text=st.one_of(st.none(), texts), mode=st.sampled_from(MODES))
    def the_user_edits(self, path: str, text: Text | None, mode: int) -> None:
        if text is not None:
            self.write(path, text.data, mode)
        elif self.now[path]:
            (self.root / path).unlink()
            self.now[path] = None
            self.disk.adopt()

    def write(self, path: str, data: bytes, mode: int) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        overwrite(file, data)
        file.chmod(mode)
        self.now[path] = (data, mode)
        self.disk.adopt()

    @rule(
        path=st.sampled_from(PATHS),
        texts=st.tuples(texts, texts),
        moment=st.integers(0, 12),
        by_rename=st.booleans(),
    )
    def the_user_edits_at_the_same_moment(
        self, path: str, texts: tuple[Text, Text], moment: int, by_rename: bool
    ) -> None:
        now, new, theirs = self.now[path], texts[0].data, texts[1].data
        others = {name: found for name, found in self.now.items() if found and name != path}
        if now is None or now[0] in (new, theirs) or theirs == new or not self.exchanges:
            return
        file = self.root / path

        def meddle() -> None:
            if by_rename:
                beside = file.with_name("theirs")
                beside.write_bytes(theirs)
                beside.rename(file)
            else:
                overwrite(file, theirs)

        edits = [FileEdit(name, "delete", found[0], None) for name, found in others.items()]
        edits.insert(len(edits) // 2, FileEdit(path, "update", now[0], new))
        self.fate.meddle = meddle
        self.strike(Fault("meddle", moment, 0))
        with suppress(PathProblem):
            apply(self.session, self.workspace, ChangeSet(tuple(edits)), disk=self.disk)
        struck = self.fate.struck
        self.calm()
        found = contents(self.root, PATHS)
        gone = {name for name in others if found[name] is None}
        assert gone in (set(), set(others)), "a set was applied in part"
        if struck:
            kept = [each.read_bytes() for each in self.root.rglob("*.conflict-*")]
            now_there = found[path]
            assert (now_there and now_there[0] == theirs) or theirs in kept, "what the user wrote is lost"
        for copy in self.root.rglob("*.conflict-*"):
            copy.unlink()
        self.now = found
        self.made = []
        self.disk.adopt()

    @rule(back_to=st.integers(0, 20), fault=faults)
    def the_user_rewinds(self, back_to: int, fault: Fault) -> None:
        if not self.made:
            return
        first = max(0, len(self.made) - 1 - back_to)
        ids = {made.change_id for made in self.made[first:]}
        plan = plan_undo(self.session.log, self.workspace, self.prepared(ids), self.disk)
        left = [conflict.path for conflict in plan.conflicts]
        if left:
            with pytest.raises(Undecided):
                undo_change_set(plan)
        before = dict(self.now)
        change_set = undo_change_set(plan, leave=left)
        wanted = self.state_before(first, left)
        if change_set is None:
            assert all(before[path] == found for path, found in wanted.items())
            return
        self.apply_and_remember(change_set, wanted, fault)

    def state_before(self, first: int, left: Sequence[str]) -> State:
        """What a rewind gives back, of files that nobody else has touched in between."""
        wanted: State = {}
        for made in reversed(self.made[first:]):
            wanted |= made.before
        return {path: found for path, found in wanted.items() if path not in left}

    @rule(fault=faults)
    def the_last_set_is_rolled_back_and_redone(self, fault: Fault) -> None:
        if not self.made:
            return
        last = self.made[-1]
        if any(self.now[path] != found for path, found in last.after.items()):
            return
        for wanted in (last.before, last.after):
            newest = self.made[-1].change_id
            plan = plan_undo(self.session.log, self.workspace, self.prepared({newest}), self.disk)
            assert not plan.conflicts
            change_set = undo_change_set(plan)
            assert change_set
            self.apply_and_remember(change_set, wanted, fault)
            if self.made[-1].change_id == newest:
                return  # a fault came between

    def prepared(self, ids: set[str]) -> list[ChangePrepared]:
        return [change.prepared for change in session_changes(self.session.log, "s_1") if change.id in ids]

    @rule(seed=st.integers(0, 2**32), cut=st.booleans())
    def the_machine_is_started_again(self, seed: int, cut: bool) -> None:
        self.fate.kind = "power cut" if cut else "kill"
        self.come_back(Random(seed))
        assert not temporaries(self.root)
        assert contents(self.root, PATHS) == self.now

    # What always holds

    @invariant()
    def the_files_are_what_is_known_of_them(self) -> None:
        Machine.taken += 1
        assert contents(self.root, PATHS) == self.now
        assert {name: os.readlink(self.root / name) for name in LINKS} == LINKS

    @invariant()
    def nothing_is_left_beside_them_that_nobody_knows_of(self) -> None:
        assert not temporaries(self.root) or self.session.log.leftovers()


def overwrite(file: Path, data: bytes) -> None:
    """Write in place and keep the mode, also of a read-only file, which only root could open for writing."""
    mode = file.stat().st_mode if file.exists() else None
    if mode is not None:
        file.chmod(mode | 0o200)
    file.write_bytes(data)
    if mode is not None:
        file.chmod(mode)


def umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def with_a_move(edits: list[FileEdit], wanted: State, now: State) -> tuple[list[FileEdit], State]:
    """The same set with one file that is not in it moved to a place where there is none."""
    sources = [path for path, found in now.items() if found and path not in wanted]
    places = [path for path, found in now.items() if not found and path not in wanted]
    if not sources or not places:
        return edits, wanted
    source, place = sources[0], places[0]
    found = now[source]
    assert found
    move = FileEdit(source, "move", found[0], found[0], destination=place)
    return [*edits, move], wanted | {source: None, place: found}


class OldFileSystem(Machine):
    """The same where names cannot be exchanged at once; only a race with somebody else is then open."""

    exchanges = False


@pytest.mark.promise("CHG-24")
@pytest.mark.promise("CHG-25")
@pytest.mark.parametrize(("machine", "share"), [(Machine, 1.0), (OldFileSystem, 0.25)])
def test_files_stay_whole_and_sets_all_or_none_whatever_happens(machine: type[Machine], share: float) -> None:
    Machine.taken = 0
    while Machine.taken < STEPS * share:
        run_state_machine_as_test(
            machine,
            settings=settings(
                max_examples=20,
                stateful_step_count=STEPS_A_RUN,
                deadline=None,
                phases=PHASES,
                database=None,
                suppress_health_check=list(HealthCheck),
            ),
        )
