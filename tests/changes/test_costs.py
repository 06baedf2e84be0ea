"""What applying and taking back cost: counted in calls and bytes, never in time."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from handrail.changes.apply import apply
from handrail.changes.change_set import ChangeSet, FileEdit
from handrail.changes.rewind import plan_rewind
from handrail.changes.undo import undo_change_set
from handrail.workspace.disk import Disk
from tests.tools.calls import Bench, open_bench

EDITS = int(os.environ.get("HANDRAIL_EDITS", "300"))
"""One-line edits to one file; 10,000 is what is promised."""
FILES = 2_000
SETS = 1_000
LINES = 5_000


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = open_bench(tmp_path)
    yield bench
    bench.close()


class Counting(Disk):
    """Counts calls and bytes; forcing things to the disk is left out, which is not what is counted."""

    def __init__(self) -> None:
        self.calls = 0
        self.written = 0

    def create(self, folder: int, name: str, mode: int) -> int:
        self.calls += 1
        return super().create(folder, name, mode)

    def write(self, descriptor: int, data: bytes) -> None:
        self.written += len(data)
        super().write(descriptor, data)

    def sync(self, descriptor: int) -> None:
        self.calls += 1

    def exchange(self, folder: int, one: str, other: str) -> None:
        self.calls += 1
        super().exchange(folder, one, other)

    def move(self, folder: int, name: str, to: str) -> None:
        self.calls += 1
        super().move(folder, name, to)

    def unlink(self, folder: int, name: str) -> None:
        self.calls += 1
        super().unlink(folder, name)


@pytest.mark.promise("CHG-29")
def test_the_last_of_many_edits_costs_what_the_first_did(bench: Bench) -> None:
    lines = [b"line %d of a file\n" % number for number in range(LINES)]
    file = bench.root / "f"
    file.write_bytes(b"".join(lines))
    disk, costs = Counting(), []
    for number in range(EDITS):
        old = b"".join(lines)
        lines[number * 7 % LINES] = b"changed %d\n" % number
        before = disk.calls, disk.written, bench.session.seq
        apply(
            bench.session,
            bench.workspace,
            ChangeSet((FileEdit("f", "update", old, b"".join(lines)),)),
            disk=disk,
        )
        costs.append((disk.calls - before[0], bench.session.seq - before[2]))
        assert disk.written - before[1] == sum(map(len, lines))
    assert file.read_bytes() == b"".join(lines)
    assert len(set(costs)) == 1, "an edit costs more the later it comes"
    assert len(bench.session.log.leftovers()) <= 1, "what was cleared away is not forgotten"


@pytest.mark.promise("CHG-29")
def test_a_set_of_many_files_costs_so_many_times_one_and_one_commit(bench: Bench) -> None:
    def edits(names: range) -> tuple[FileEdit, ...]:
        return tuple(FileEdit(f"folder{number % 20}/f{number}", "create", None, b"new") for number in names)

    small, large = Counting(), Counting()
    apply(bench.session, bench.workspace, ChangeSet(edits(range(100))), disk=small)
    seq = bench.session.seq
    apply(bench.session, bench.workspace, ChangeSet(edits(range(100, 100 + FILES))), disk=large)
    assert bench.session.seq == seq + 2
    assert large.calls <= small.calls * FILES / 100
    assert sum(len(files) for _, _, files in os.walk(bench.root)) == FILES + 100


@pytest.mark.promise("CHG-29")
def test_a_rewind_over_a_thousand_sets_writes_each_file_once(bench: Bench) -> None:
    first = ""
    for number in range(SETS):
        path = f"f{number % 10}"
        old = b"%d" % (number - 10) if number >= 10 else None
        edit = FileEdit(path, "update" if old else "create", old, b"%d" % number)
        done = apply(bench.session, bench.workspace, ChangeSet((edit,)), disk=Counting())
        first = first if number != 10 else done.change_id
    plan = plan_rewind(bench.session.log, bench.workspace, bench.session.id, first).plan
    change_set = undo_change_set(plan)
    assert change_set
    disk = Counting()
    apply(bench.session, bench.workspace, change_set, disk=disk)
    assert {path.name: path.read_bytes() for path in bench.root.iterdir()} == {
        f"f{number}": b"%d" % number for number in range(10)
    }
    assert disk.written == 10
    assert disk.calls <= 10 * 5 + 2
