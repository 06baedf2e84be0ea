"""Blame names whose each line is, whatever was moved, renamed, taken back or edited by hand meanwhile."""

import itertools
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from handrail.changes.apply import apply, applying
from handrail.changes.change_set import ChangeSet, FileEdit, Origin
from handrail.changes.crash_recovery import recover
from handrail.changes.trace.blame import blame, lines_of_others
from handrail.changes.trace.logged_changes import applied_changes, logged_lines
from handrail.changes.trace.trace_file import PATH
from handrail.changes.undo import plan_undo, undo_change_set
from handrail.protocol.events import ChangePrepared, SessionStarted
from handrail.sessions.change_history import session_changes
from handrail.sessions.session import Session
from handrail.storage.event_log import Log
from handrail.storage.log_repair import open_log
from handrail.workspace.disk import Disk
from handrail.workspace.files import Workspace
from tests.changes.trace.traces import bind

INTENTS = ("INT-A", "INT-B", "INT-C")
COMMON = ("", "    return None", "}", "    pass", "")
"""Lines that stand in many places, so that they tell nothing by themselves."""


class Quick(Disk):
    """Nothing is forced to the disk, which is not what is looked at."""

    def sync(self, descriptor: int) -> None:
        pass


class Line(NamedTuple):
    text: str
    owner: str
    unique: bool


World = dict[str, list[Line]]


class Replayed:
    """The brute force: files as lists of lines with their owners, changed by the same operations."""

    def __init__(self, root: Path, log: Log, seed: int) -> None:
        self.root = root
        self.log = log
        self.chance = Random(seed)
        self.numbers = itertools.count()
        self.workspace = Workspace(root)
        self.by_others: set[str] = set()
        """Files that somebody else has changed since an agent did."""
        self.sessions = [self._session(intent) for intent in INTENTS]
        self.world: World = {
            name: self.block("-", 8) + self.block("-", 9) for name in ("a.py", "b.py", "d/c.py")
        }
        self._save(self.world)

    def _session(self, intent: str) -> Session:
        session = Session(self.log, f"s_{intent}")
        session.try_hold()
        session.append(SessionStarted(session_id=session.id, workspace=str(self.root), version="0"))
        return session

    def close(self) -> None:
        for session in self.sessions:
            session.release()

    def _save(self, world: World) -> None:
        for path, lines in world.items():
            (self.root / path).parent.mkdir(exist_ok=True)
            (self.root / path).write_text(text(lines))

    # What lines there are

    def unique(self, owner: str) -> Line:
        number = next(self.numbers)
        return Line(f"    value_{number:06d} = computed_anew({number})", owner, unique=True)

    def block(self, owner: str, most: int) -> list[Line]:
        """Lines that begin and end with one that is nowhere else: only then is it plain what was put in."""
        inside = [
            self.unique(owner)
            if self.chance.random() < 0.5
            else Line(self.chance.choice(COMMON), owner, unique=False)
            for _ in range(self.chance.randint(0, most))
        ]
        return [self.unique(owner), *inside, self.unique(owner)]

    def part(self, lines: list[Line]) -> slice:
        """A stretch that begins and ends with lines that are nowhere else; empty where there is none."""
        places = [at for at, line in enumerate(lines) if line.unique]
        if not places:
            return slice(0, 0)
        start = self.chance.randrange(len(places))
        last = min(len(places) - 1, start + self.chance.randint(0, 5))
        return slice(places[start], places[last] + 1)

    def lines(self, world: World) -> list[Line]:
        return world[self.chance.choice(sorted(world))]

    def path(self) -> str:
        return self.chance.choice(sorted(self.world))

    # What is done to them

    def insert(self, world: World, owner: str) -> None:
        lines = self.lines(world)
        at = self.chance.randint(0, len(lines))
        lines[at:at] = self.block(owner, 6)

    def delete(self, world: World, _owner: str) -> None:
        lines = self.lines(world)
        if len(lines) > 12:
            del lines[self.part(lines)]

    def replace(self, world: World, owner: str) -> None:
        lines = self.lines(world)
        lines[self.part(lines)] = [self.unique(owner) for _ in range(self.chance.randint(1, 5))]

    def several(self, world: World, owner: str) -> None:
        """Each file once: where lines go and like ones come in one change, nobody can tell which stayed."""
        for path, lines in world.items():
            self.chance.choice((self.insert, self.replace))({path: lines}, owner)

    def shift(self, world: World, _owner: str) -> None:
        """A block goes to another place of its file."""
        lines = self.lines(world)
        part = self.part(lines)
        block = lines[part]
        del lines[part]
        at = self.chance.randint(0, len(lines))
        lines[at:at] = block

    def carry(self, world: World, _owner: str) -> None:
        """A block goes to another file."""
        lines, to = world[self.path()], world[self.path()]
        part = self.part(lines)
        if lines is not to and part.stop - part.start < len(lines):
            at = self.chance.randint(0, len(to))
            to[at:at] = lines[part]
            del lines[part]

    def indent(self, world: World, _owner: str) -> None:
        """White space is nobody's."""
        path = self.path()
        world[path] = [line._replace(text=f"  {line.text}" if line.text else "") for line in world[path]]

    # Who does it

    def by_agent(self, change: Callable[[World, str], None]) -> ChangePrepared | None:
        number = self.chance.randrange(len(INTENTS))
        after = deepcopy(self.world)
        change(after, INTENTS[number])
        edits = [
            FileEdit(path, "update", text(self.world[path]).encode(), text(after[path]).encode())
            for path in after
            if text(after[path]) != text(self.world[path])
        ]
        return self._apply(number, edits, after)

    def rename(self, *, edited: bool) -> None:
        number = self.chance.randrange(len(INTENTS))
        after = deepcopy(self.world)
        path = self.path()
        if edited:
            self.insert({path: after[path]}, INTENTS[number])
        to = f"d/f{next(self.numbers)}.py"
        after[to] = after.pop(path)
        old, new = text(self.world[path]).encode(), text(after[to]).encode()
        self._apply(number, [FileEdit(path, "move", old, new, destination=to)], after)

    def take_back(self) -> None:
        before = deepcopy(self.world)
        prepared = self.by_agent(self.chance.choice((self.insert, self.delete, self.carry, self.shift)))
        if prepared:
            planned = undo_change_set(plan_undo(self.log, self.workspace, [prepared]))
            assert planned
            apply(self.sessions[0], self.workspace, planned, disk=Quick())
            self.world = before

    def by_hand(self, change: Callable[[World, str], None]) -> None:
        """Once between two changes of an agent: of several at once nobody can tell which lines stayed."""
        path = self.path()
        if path not in self.by_others:
            change({path: self.world[path]}, "-")
            self._save(self.world)
            self.by_others.add(path)

    def renamed_by_hand(self) -> None:
        path = self.path()
        if path in self.by_others:
            return
        to = f"d/h{next(self.numbers)}.py"
        (self.root / path).rename(self.root / to)
        self.world[to] = self.world.pop(path)
        self.by_others.add(to)

    def _apply(self, number: int, edits: list[FileEdit], after: World) -> ChangePrepared | None:
        if not edits:
            return None
        origin = Origin(turn_id="t_1", intent_id=INTENTS[number], model="m/1")
        applied = apply(self.sessions[number], self.workspace, ChangeSet(tuple(edits), origin), disk=Quick())
        self.world = after
        self.by_others.difference_update(path for edit in edits for path in (edit.path, edit.destination))
        changes = session_changes(self.log, self.sessions[number].id)
        return next(each.prepared for each in changes if each.id == applied.change_id)

    def step(self) -> None:
        kind = self.chance.random()
        if kind < 0.7:
            ways = (self.insert, self.delete, self.replace, self.several, self.shift, self.carry, self.indent)
            self.by_agent(self.chance.choice(ways))
        elif kind < 0.78:
            self.rename(edited=self.chance.random() < 0.5)
        elif kind < 0.84:
            self.take_back()
        elif kind < 0.87:
            self.renamed_by_hand()
        else:
            self.by_hand(self.chance.choice((self.insert, self.delete, self.replace, self.shift)))


def text(lines: list[Line]) -> str:
    return "".join(f"{line.text}\n" for line in lines)


def blamed(log: Log, root: Path, path: str) -> list[str]:
    """The intent that each line of a file is told to be of."""
    changes = applied_changes(log)
    spoken = {
        name for each in changes for file in each.change.files for name in (file.path, file.destination)
    }
    disk = {
        name: (root / name).read_bytes() if (root / name).is_file() else None
        for name in {*spoken - {""}, path}
    }
    trace = (root / PATH).read_bytes() if (root / PATH).exists() else b""
    others = lines_of_others(trace, logged_lines(log))
    found = blame(path, disk, changes, log.blob, others)
    return [line.author.intent_id if line.author else "-" for line in found]


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    log = open_log(tmp_path / "state")
    yield log
    log.close()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    root.mkdir()
    bind(root)
    return root


@pytest.mark.promise("TRACE-4")
@pytest.mark.parametrize("seed", range(1))
def test_after_five_hundred_edits_renames_and_moves_each_line_has_its_intent(
    log: Log, root: Path, seed: int
) -> None:
    replayed = Replayed(root, log, seed)
    for _ in range(500):
        replayed.step()
    wrong = [
        (path, number, line, told)
        for path, lines in replayed.world.items()
        for number, (line, told) in enumerate(zip(lines, blamed(log, root, path), strict=True), start=1)
        if line.owner != told
    ]
    replayed.close()
    assert not wrong
    assert {line.owner for lines in replayed.world.values() for line in lines} >= {*INTENTS, "-"}


def edited(session: Session, root: Path, path: str, new: str, intent: str = "INT-A") -> None:
    file = root / path
    old = file.read_bytes() if file.exists() else None
    edit = FileEdit(path, "update" if file.exists() else "create", old, new.encode())
    origin = Origin(turn_id="t_1", intent_id=intent, model="m/1")
    apply(session, Workspace(root), ChangeSet((edit,), origin), disk=Quick())


@pytest.fixture
def session(log: Log, root: Path) -> Iterator[Session]:
    session = Session(log, "s_1")
    session.try_hold()
    session.append(SessionStarted(session_id=session.id, workspace=str(root), version="0"))
    yield session
    session.release()


BLOCK = "def total(items):\n    return sum(item.price for item in items)\n\n"
MORE = "def shown(amount):\n    return f'{amount:.2f} EUR'\n"


def test_a_block_that_the_user_carries_to_another_file_stays_whose_it_is(
    log: Log, root: Path, session: Session
) -> None:
    edited(session, root, "a.py", BLOCK + MORE)
    (root / "a.py").write_text(MORE)
    (root / "new.py").write_text("import sys\n" + BLOCK.replace("    ", "\t") + "print(sys.argv)\n")
    assert blamed(log, root, "new.py") == ["-", "INT-A", "INT-A", "INT-A", "-"]
    assert blamed(log, root, "a.py") == ["INT-A", "INT-A"]


def test_a_file_that_the_user_renames_and_edits_keeps_its_authors(
    log: Log, root: Path, session: Session
) -> None:
    edited(session, root, "a.py", BLOCK + MORE)
    (root / "a.py").unlink()
    (root / "b.py").write_text(BLOCK + "# by hand, on purpose\n" + MORE)
    edited(session, root, "b.py", BLOCK + "# by hand, on purpose\n" + MORE + "x = shown(1)\n", "INT-B")
    assert blamed(log, root, "b.py") == [*["INT-A"] * 3, "-", "INT-A", "INT-A", "INT-B"]


def test_a_block_taken_out_in_one_change_and_put_in_by_another_stays_whose_it_is(
    log: Log, root: Path, session: Session
) -> None:
    edited(session, root, "a.py", BLOCK + MORE)
    edited(session, root, "a.py", MORE, "INT-B")
    edited(session, root, "c.py", BLOCK + "y = 1\n", "INT-B")
    assert blamed(log, root, "c.py") == ["INT-A", "INT-A", "INT-A", "INT-B"]


@pytest.mark.promise("TRACE-4")
def test_what_a_session_wrote_that_ended_before_it_could_say_so_is_of_its_intent(
    log: Log, root: Path, session: Session
) -> None:
    edit = FileEdit("a.py", "create", None, (BLOCK + MORE).encode())
    origin = Origin(turn_id="t_1", intent_id="INT-A", model="m/1")
    with applying(session, Workspace(root), ChangeSet((edit,), origin), disk=Quick()):
        pass  # the end of the change is never committed
    other = Session(log, "s_2")
    other.try_hold()
    other.append(SessionStarted(session_id=other.id, workspace=str(root), version="0"))
    edited(other, root, "a.py", BLOCK + "x = 'of the other session'\n" + MORE, "INT-B")
    expected = [*["INT-A"] * 3, "INT-B", *["INT-A"] * 2]
    assert blamed(log, root, "a.py") == expected
    session.append(*recover(session, Workspace(root)))
    assert blamed(log, root, "a.py") == expected
    other.release()


def test_what_the_user_types_again_is_the_users(log: Log, root: Path, session: Session) -> None:
    edited(session, root, "a.py", "if x:\n    return None\n" + MORE)
    (root / "a.py").write_text("if x:\n    return None\nelse:\n    return None\n" + MORE)
    assert blamed(log, root, "a.py") == ["INT-A", "INT-A", "-", "-", "INT-A", "INT-A"]


def test_without_the_log_blocks_are_found_by_their_hashes(
    log: Log, root: Path, session: Session, tmp_path: Path
) -> None:
    edited(session, root, "a.py", BLOCK + MORE)
    edited(session, root, "b.py", "z = total([]) + shown(0)\n", "INT-B")
    (root / "c.py").write_text("import os\n\n" + BLOCK + MORE + "print(os.name)\n")
    other = open_log(tmp_path / "another machine")
    assert blamed(other, root, "a.py") == ["INT-A"] * 5
    assert blamed(other, root, "b.py") == ["INT-B"]
    assert blamed(other, root, "c.py") == ["-", "-", *["INT-A"] * 5, "-"]
    other.close()


def test_where_a_content_is_not_kept_the_ranges_tell(log: Log, root: Path, session: Session) -> None:
    (root / "a.py").write_text(BLOCK)
    edited(session, root, "a.py", BLOCK + MORE)
    edited(session, root, "a.py", "import re\n" + BLOCK + MORE, "INT-B")
    changes = applied_changes(log)
    found = blame("a.py", {"a.py": (root / "a.py").read_bytes()}, changes, lambda _sha256: None)
    told = [line.author.intent_id if line.author else "-" for line in found]
    assert told == ["INT-B", "-", "-", "-", "INT-A", "INT-A"]
