"""Copies that are kept: after a kill at any moment, with several holders, until they are removed."""

import os
import random
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from handrail.protocol.errors import StorageBusy
from handrail.workspace.files import Workspace
from handrail.workspace.scratch_copy import record as record_module
from handrail.workspace.scratch_copy.copies import MAX_COPIES, ScratchCopies
from handrail.workspace.scratch_copy.copy import ScratchCopy
from tests.forks import DEADLINE, forks
from tests.workspace.scratch_copy.test_copy import put, tree

FILES = 300
KILLS = 25


def numbered(root: Path, text: str) -> None:
    for number in range(FILES):
        put(root, f"part_{number % 7}/file_{number}.txt", f"{text} {number}\n")


def forked(words: list[str]) -> None:
    """A child: refreshes a copy again and again, while it also changes the workspace and the copy."""
    root, folder, seed = Path(words[0]), Path(words[1]), int(words[2])
    copies, chance = ScratchCopies(Workspace(root), folder), random.Random(seed)
    while True:
        with copies.take() as copy:
            os.write(1, b"taken\n")
            for _ in range(20):
                for number in chance.sample(range(FILES), 40):
                    put(root, f"part_{number % 7}/file_{number}.txt", f"{seed} {chance.random()}\n")
                shutil.rmtree(root / f"part_{chance.randrange(7)}")
                copy.write("only/here.txt", b"x")
                copy.refresh()


@pytest.mark.promise("COPY-7")
def test_after_a_kill_at_any_moment_the_next_refresh_makes_the_copy_whole(tmp_path: Path) -> None:
    root, folder, complaints = tmp_path / "shop", tmp_path / "copies", tmp_path / "complaints"
    numbered(root, "first")
    chance = random.Random(7)
    with forks(__name__, folder=tmp_path, complaints=complaints) as children:
        for seed in range(KILLS):
            children.start(str(root), str(folder), str(seed))
            children.read(DEADLINE, lines=chance.randrange(2))
            children.read(chance.random() * 0.08)
            children.kill()
            with ScratchCopies(Workspace(root), folder).take() as copy:
                assert tree(copy.root) == tree(root)
                assert copy.root.parent.name == "0"  # nothing of the killed process holds it
    assert not complaints.read_text()


@pytest.mark.promise("COPY-7")
def test_a_record_that_was_cut_or_is_of_another_boot_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, place = tmp_path / "shop", tmp_path / "copies" / "0"
    numbered(root, "first")
    ScratchCopy(Workspace(root), place).refresh()
    put(root, "part_0/file_0.txt", "second")
    ScratchCopy(Workspace(root), place).refresh()
    data = (place / "record").read_bytes()
    for length in (0, 5, 60, len(data) // 2, len(data) - 1):
        (place / "record").write_bytes(data[:length] + os.urandom(3))
        copy = ScratchCopy(Workspace(root), place)
        copy.refresh()
        assert tree(copy.root) == tree(root)
        assert ScratchCopy(Workspace(root), place).refresh().copied == ()
    boot = tmp_path / "boot"
    boot.write_text("another")
    monkeypatch.setattr(record_module, "BOOT_ID", boot)
    assert len(ScratchCopy(Workspace(root), place).refresh().copied) == FILES


@pytest.mark.promise("COPY-8")
def test_copies_taken_at_once_are_apart_and_there_is_a_most(tmp_path: Path) -> None:
    root = tmp_path / "shop"
    put(root, "a.txt", "a")
    copies, other = (ScratchCopies(Workspace(root), tmp_path / "copies") for _ in range(2))
    with copies.take() as one, other.take() as two:
        one.write("a.txt", b"one")
        two.write("a.txt", b"two")
        assert one.differences().changed == two.differences().changed == ("a.txt",)
        assert (one.root / "a.txt").read_text() == "one"
        assert copies.use()[::2] == (2, 2)
        assert copies.remove() == 0
    assert (root / "a.txt").read_text() == "a"
    taken = [copies.take() for _ in range(MAX_COPIES)]
    assert len({each.__enter__().root for each in taken}) == MAX_COPIES
    with pytest.raises(StorageBusy, match="in use"), copies.take():
        pass
    for each in taken:
        each.__exit__(None, None, None)
    assert copies.use().in_use == 0
    assert copies.remove() == MAX_COPIES
    assert copies.use() == (0, 0, 0)
    with copies.take() as copy:
        assert tree(copy.root) == tree(root)


NAMES = st.sampled_from(["a", "b", "sub", "sub/a", "sub/b", "sub/deep/a", "x.log", "sub/x.log", ".gitignore"])
TEXTS = st.sampled_from([b"", b"1", b"2", b"*.log\n", b"/sub/b\n", b"sub/\n"])
ACTIONS = st.sampled_from(["write", "write", "write", "remove", "folder", "link", "mode"])
STEPS = st.lists(st.tuples(st.booleans(), ACTIONS, NAMES, TEXTS), max_size=8)


def do(root: Path, action: str, path: str, text: bytes) -> None:
    target = root / path
    if any(above.is_symlink() or above.is_file() for above in target.parents if above != root):
        return
    if action == "mode":
        if target.exists() and not target.is_symlink():
            target.chmod(0o700 if text else 0o755)
        return
    if target.is_dir() and not target.is_symlink():
        if action == "folder":
            return
        shutil.rmtree(target)
    else:
        target.unlink(missing_ok=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    if action == "write":
        target.write_bytes(text)
    elif action == "folder":
        target.mkdir()
    elif action == "link":
        target.symlink_to("a" if text else "/etc")


IGNORES = {b"*.log\n": (".log",), b"/sub/b\n": ("sub/b",), b"sub/\n": ("sub",)}


def not_ignored(root: Path) -> dict[str, object]:
    """What a copy should have: all but folders that git ignores, with what is in them."""
    found, rules = tree(root), root / ".gitignore"
    text = rules.read_bytes() if rules.is_file() and not rules.is_symlink() else b""
    ignored = [
        path
        for path, each in found.items()
        if each == ("folder", "") and path.endswith(IGNORES.get(text, ("nothing",)))
    ]
    return {
        path: each
        for path, each in found.items()
        if not any(path == folder or path.startswith(f"{folder}/") for folder in ignored)
    }


@pytest.mark.promise("COPY-1")
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(STEPS, min_size=1, max_size=4))
def test_a_refreshed_copy_equals_the_tree(
    in_memory: Path, rounds: list[list[tuple[bool, str, str, bytes]]]
) -> None:
    root, place = in_memory / "shop", in_memory / "copies"
    shutil.rmtree(root, ignore_errors=True)
    shutil.rmtree(place, ignore_errors=True)
    put(root, "sub/a", "1")
    for number, steps in enumerate(rounds):
        with ScratchCopies(Workspace(root), place).take() as copy:
            assert tree(copy.root) == not_ignored(root)
            assert copy.differences() == ((), (), ())
            if number % 2:
                copy.shown()
            for in_copy, action, path, text in steps:
                do(copy.root if in_copy and number % 2 else root, action, path, text)
            copy.refresh()
            assert tree(copy.root) == not_ignored(root)
