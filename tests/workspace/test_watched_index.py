"""Looks by the kernel's notices: the same as a look at every file, whatever was done in between."""

import mmap
import os
import subprocess
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random

import pytest

from handrail.workspace import watched_index
from handrail.workspace.stat_index import Differences, StatIndex, differences, snapshot
from handrail.workspace.watched_index import WatchedIndex

NAMES = [
    "a",
    "b.txt",
    "c.log",
    "d/x",
    "d/y.txt",
    "d/e/z",
    "node_modules/p/q",
    "build/r",
    "new/one",
    "s/.gitignore",
]
STEPS = int(os.environ.get("HANDRAIL_STEPS", "80"))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / ".gitignore").write_text("*.log\nbuild/\n")
    for name in NAMES[:-2]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"text of {name}\n")
        os.utime(tmp_path / name, (1, 1))
    return tmp_path


@pytest.fixture
def watched(root: Path) -> WatchedIndex:
    """All of it is watched."""
    index = WatchedIndex(root, fewest=1)
    index.look(index.look())
    return index


def changed_by(
    watched: WatchedIndex, root: Path, deed: Callable[[], object]
) -> tuple[StatIndex, Differences]:
    """The index after the deed, and what is different; it is checked against a look at every file."""
    before, full = watched.look(), snapshot(root)
    deed()
    after, full_after = watched.look(before), snapshot(root, since=full)
    found = differences(before, after)
    assert found == differences(full, full_after)
    assert contents(after) == contents(full_after)
    return after, found


def contents(index: StatIndex) -> tuple[object, ...]:
    unordered = (set(index.unentered), set(index.ignored_folders))
    return index.files, index.ignored, index.folders, index.linked, index.cut, *unordered


def test_changed_files_are_found_without_a_look_at_the_others(watched: WatchedIndex, root: Path) -> None:
    def work() -> None:
        (root / "d/y.txt").write_text("other\n")
        (root / "d/x").unlink()
        (root / "d/e/new").write_text("new\n")
        (root / "a").chmod(0o600)
        (root / "other.log").write_text("ignored\n")

    after, found = changed_by(watched, root, work)
    assert found == (("d/e/new",), ("a", "d/y.txt"), ("d/x",))
    assert after.touched == frozenset({"d/e/new", "a", "d/y.txt", "d/x", "other.log"})
    assert watched.look().touched == frozenset()


def test_file_replaced_in_one_step_needs_no_full_look(watched: WatchedIndex, root: Path) -> None:
    def work() -> None:
        (root / "d/temporary").write_text("text of D/X\n")
        (root / "d/temporary").replace(root / "d/x")

    after, found = changed_by(watched, root, work)
    assert found.changed == ("d/x",)
    assert after.touched == frozenset({"d/x", "d/temporary"})


SECOND_NAMES = {
    "in a folder that is ignored": "mkdir build/deep; ln a build/deep/n; echo more >> build/deep/n",
    "in a folder of packages": "ln a node_modules/p/n; echo more >> node_modules/p/n",
    "beside it": "ln a d/n; echo more >> d/n",
    "removed afterwards": "ln a d/n; echo more >> d/n; rm d/n",
    "given to another file": "ln a d/n; echo more >> d/n; rm d/n; echo another > d/n",
    "moved over another file": "ln a d/n; echo more >> d/n; mv d/n d/x",
    "in a folder that was removed": "mkdir passing; ln a passing/n; echo more >> passing/n; rm -r passing",
    "ignored, beside it": "ln a n.log; echo more >> n.log; mv n.log n2.log",
}


@pytest.mark.promise("WORK-5")
@pytest.mark.parametrize("place", SECOND_NAMES)
def test_write_through_a_second_name_is_found(watched: WatchedIndex, root: Path, place: str) -> None:
    _, found = changed_by(watched, root, partial(shell, root, SECOND_NAMES[place]))
    assert "a" in found.changed


def shell(root: Path, script: str) -> None:
    subprocess.run(["sh", "-ec", script], cwd=root, check=True, timeout=60)


def test_names_from_earlier_are_looked_at_each_time(root: Path) -> None:
    outside = root.with_name(f"{root.name}-outside")
    os.link(root / "a", outside)
    watched = WatchedIndex(root, fewest=1)
    watched.look(watched.look())
    after, found = changed_by(watched, root, lambda: outside.write_text("written outside\n"))
    assert found.changed == ("a",)
    assert after.touched == frozenset({"a"})


def test_write_through_memory_is_found_once_the_file_is_closed(watched: WatchedIndex, root: Path) -> None:
    def work() -> None:
        with (root / "a").open("r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
            memory[0:4] = b"TEXT"
        os.utime(root / "a", (1, 1))

    assert changed_by(watched, root, work)[1].changed == ("a",)


def test_new_rules_are_followed(watched: WatchedIndex, root: Path) -> None:
    _, found = changed_by(watched, root, lambda: (root / "d/.gitignore").write_text("y.txt\n"))
    assert found.removed == ("d/y.txt",)


def test_full_queue_leads_to_a_full_look(watched: WatchedIndex, root: Path) -> None:
    queued = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())

    def work() -> None:
        for number in range(queued // 2 + 1):
            os.utime(root / NAMES[number % 2], (number, number))
            os.utime(root / NAMES[3 + number % 2], (number, number))
        (root / "d/e/z").write_text("lost\n")

    _, found = changed_by(watched, root, work)
    assert "d/e/z" in found.changed


def test_workspace_that_was_away_for_a_moment_is_looked_at_in_full(watched: WatchedIndex, root: Path) -> None:
    before = watched.look()
    (root / "d/x").write_text("other\n")
    root.rename(root.with_name("away"))
    with pytest.raises(FileNotFoundError):
        watched.look(before)
    root.with_name("away").rename(root)
    assert differences(before, watched.look(before)).changed == ("d/x",)


def test_many_folders_are_not_watched(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watched_index, "MAX_FOLDERS", 3)
    watched = WatchedIndex(root, fewest=1)
    watched.look(watched.look())
    after, found = changed_by(watched, root, lambda: (root / "a").write_text("other\n"))
    assert found.changed == ("a",)
    assert after.touched is None


@pytest.mark.promise("WORK-5")
@pytest.mark.parametrize("seed", range(6))
def test_any_work_is_found(watched: WatchedIndex, root: Path, seed: int) -> None:
    random = Random(seed)
    for _ in range(STEPS):
        changed_by(watched, root, partial(disturb, root, random, random.randrange(5)))


def disturb(root: Path, random: Random, times: int) -> None:
    """What programs may do to files."""
    for _ in range(times):
        with suppress(OSError):
            random.choice(deeds(root, random))()


def deeds(root: Path, random: Random) -> list[Callable[[], object]]:
    path, other = (root / random.choice(NAMES) for _ in range(2))
    folder = random.choice([path.parent, other.parent, root / "moved", root / "build/in", root / "d"])

    def write() -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(random.choice(["one\n", "two\n", "*.txt\n", "e\n"]))

    return [
        *[write] * 4,
        path.unlink,
        lambda: path.rename(other),
        lambda: os.link(path, other),
        lambda: os.link(path, root / "second"),
        (root / "second").unlink,
        lambda: (root / "second").write_text("through the second name\n"),
        lambda: path.symlink_to("a"),
        lambda: path.chmod(random.choice([0o600, 0o644])),
        lambda: os.utime(path, (1, 1)),
        lambda: folder.rename(root / random.choice(["moved", "build/in", "new"])) if folder != root else None,
        lambda: folder.chmod(random.choice([0o700, 0o755])),
        folder.mkdir,
        path.parent.rmdir,
    ]
