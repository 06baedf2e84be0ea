"""The stat index: what is in it, and that nothing that was written escapes it."""

import os
import subprocess
from pathlib import Path

import pytest

from handrail.workspace.gitignore import MAX_RULES_BYTES
from handrail.workspace.stat_index import FileStat, StatIndex, differences, snapshot


def make(root: Path, *paths: str) -> None:
    for path in paths:
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"text of {path}\n")


def age(root: Path, seconds: int = 60) -> None:
    """Let the files look as if they had been written a while ago, as far as a user can."""
    for folder, _, names in os.walk(root):
        for name in names:
            path = os.path.join(folder, name)
            then = os.lstat(path).st_mtime_ns - seconds * 10**9
            os.utime(path, ns=(then, then), follow_symlinks=False)


@pytest.mark.promise("WORK-5")
def test_added_changed_and_removed_files_are_found(tmp_path: Path) -> None:
    make(tmp_path, "same.txt", "src/edited.py", "src/gone.py")
    before = snapshot(tmp_path)
    (tmp_path / "src/edited.py").write_text("something longer than it was before\n")
    (tmp_path / "src/gone.py").unlink()
    make(tmp_path, "new/file.txt")
    found = differences(before, snapshot(tmp_path, since=before))
    assert found == (("new/file.txt",), ("src/edited.py",), ("src/gone.py",))


@pytest.mark.promise("WORK-5")
def test_write_in_the_same_instant_with_the_same_size_is_noticed(tmp_path: Path) -> None:
    make(tmp_path, "a.txt", "b.txt")
    before = snapshot(tmp_path)
    (tmp_path / "a.txt").write_text("TEXT OF A.TXT\n")
    after = snapshot(tmp_path, since=before)
    # On a slow clock the two versions look exactly the same; here they are made to.
    same = StatIndex({**after.files, "a.txt": before.files["a.txt"]}, after.sums)
    assert differences(before, same).changed == ("a.txt",)
    assert "b.txt" in before.sums
    assert differences(after, snapshot(tmp_path, since=after)).changed == ()


def test_second_index_that_was_not_told_of_the_first_never_calls_a_doubtful_file_unchanged() -> None:
    told = FileStat(1, 10**18, 10**18, 5, 0o100644)
    before = StatIndex({"a": told}, {"a": "1234"})
    assert differences(before, StatIndex({"a": told}, {})).changed == ("a",)


def test_files_that_were_written_long_ago_are_not_read() -> None:
    installed = Path(os.__file__).parent
    found = snapshot(installed, most=300)
    assert len(found.files) == 300
    assert not found.sums


def test_one_change_among_twenty_thousand_files_is_found(tmp_path: Path) -> None:
    for number in range(200):
        folder = tmp_path / f"d{number}"
        folder.mkdir()
        for name in range(100):
            os.close(os.open(folder / f"f{name}.py", os.O_WRONLY | os.O_CREAT))
    before = snapshot(tmp_path)
    assert len(before.files) == 20_000
    (tmp_path / "d7/f7.py").write_text("x = 1\n")
    assert differences(before, snapshot(tmp_path, since=before)) == ((), ("d7/f7.py",), ())


def test_mode_and_time_that_were_set_back_are_noticed(tmp_path: Path) -> None:
    make(tmp_path, "run.sh", "back.txt")
    age(tmp_path)
    before = snapshot(tmp_path)
    (tmp_path / "run.sh").chmod(0o755)
    times = os.stat(tmp_path / "back.txt")
    (tmp_path / "back.txt").write_text("TEXT OF BACK.TXT\n")
    os.utime(tmp_path / "back.txt", ns=(times.st_atime_ns, times.st_mtime_ns))
    assert differences(before, snapshot(tmp_path, since=before)).changed == ("back.txt", "run.sh")


@pytest.mark.promise("WORK-6")
def test_links_are_entries_and_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    make(outside, "secret.txt")
    root = tmp_path / "root"
    make(root, "a.txt")
    (root / "loop").symlink_to(root)
    (root / "away").symlink_to(outside)
    (root / "broken").symlink_to("nowhere")
    before = snapshot(root)
    assert sorted(before.files) == ["a.txt", "away", "broken", "loop"]
    (root / "broken").unlink()
    (root / "broken").symlink_to("nowhere2")
    assert differences(before, snapshot(root, since=before)).changed == ("broken",)


def test_pipe_is_an_entry_and_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    before = snapshot(tmp_path)
    assert "pipe" in differences(before, snapshot(tmp_path, since=before)).changed  # doubtful, as it is new


def test_names_that_are_no_text_are_kept(tmp_path: Path) -> None:
    name = b"caf\xe9\n.txt"
    (tmp_path / os.fsdecode(name)).write_text("x")
    assert [os.fsencode(path) for path in snapshot(tmp_path).files] == [name]


@pytest.mark.promise("WORK-7")
def test_what_git_ignores_is_left_out_unless_asked_for(tmp_path: Path) -> None:
    make(
        tmp_path, "a.py", "a.log", "build/x", "src/keep.log", "src/old/b.tmp", "node_modules/m/i.js", "sub/x"
    )
    (tmp_path / ".gitignore").write_text("*.log\n/build/\n!keep.log\n")
    (tmp_path / "src/old/.gitignore").write_text("*.tmp\n")
    found = snapshot(tmp_path)
    assert sorted(found.files) == [".gitignore", "a.py", "src/keep.log", "src/old/.gitignore", "sub/x"]
    assert found.unentered == ("node_modules",)
    everything = snapshot(tmp_path, ignored=True)
    assert {"a.log", "build/x", "src/old/b.tmp"} <= set(everything.files)
    assert everything.unentered == ("node_modules",)


def test_rules_of_the_repository_hold_in_a_workspace_inside_it(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    make(tmp_path, "in/a.py", "in/b.log", "in/gen/c.py", "in/d.tmp")
    (tmp_path / ".gitignore").write_text("*.log\n/in/gen\n")
    (tmp_path / ".git/info/exclude").write_text("*.tmp\n")
    assert sorted(snapshot(tmp_path / "in").files) == ["a.py"]


def test_repository_inside_the_workspace_is_a_folder_with_rules_of_its_own(tmp_path: Path) -> None:
    make(tmp_path, "a.py", "vendor/lib/b.py", "vendor/lib/b.o")
    subprocess.run(["git", "init", "-q", tmp_path / "vendor/lib"], check=True)
    (tmp_path / "vendor/lib/.gitignore").write_text("*.o\n")
    found = snapshot(tmp_path)
    assert sorted(found.files) == ["a.py", "vendor/lib/.gitignore", "vendor/lib/b.py"]
    assert found.unentered == ("vendor/lib/.git",)


def test_more_files_than_the_cap_are_said_to_be_cut(tmp_path: Path) -> None:
    make(tmp_path, *(f"d{number}/f" for number in range(6)))
    found = snapshot(tmp_path, most=4)
    assert len(found.files) == 4
    assert found.cut


def test_folder_that_is_too_deep_is_named(tmp_path: Path) -> None:
    deep = tmp_path
    for _ in range(120):
        deep = deep / "d"
    deep.mkdir(parents=True)
    (deep / "f").write_text("x")
    found = snapshot(tmp_path)
    assert not found.files
    assert len(found.unentered) == 1


@pytest.mark.promise("WORK-10")
def test_endless_rules_are_read_only_up_to_a_limit(tmp_path: Path) -> None:
    rules = "".join(f"name{number}\n" for number in range(20_000))[: MAX_RULES_BYTES - 10] + "\nlast\n"
    for number in range(8):
        folder = tmp_path / f"folder{number}"
        folder.mkdir()
        (folder / ".gitignore").write_text(rules)
        (folder / "name7").write_text("ignored as long as its rules are read")
    files = snapshot(tmp_path).files
    assert "folder0/name7" not in files
    assert "folder7/name7" in files


@pytest.mark.promise("WORK-10")
def test_a_folder_with_very_many_entries_is_looked_at_up_to_a_limit(tmp_path: Path) -> None:
    for number in range(50):
        (tmp_path / f"file{number}").touch()
    found = snapshot(tmp_path, most=20)
    assert found.cut
    assert len(found.files) == 20
