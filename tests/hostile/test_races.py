"""Between the decision and the deed: what is put in the place of a folder or a file is not written."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.tools.calls import Bench, open_bench

pytestmark = pytest.mark.anyio
SWAPPER = """
import os, sys
root, out = sys.argv[1:]
link, folder, name = root + "/link", root + "/folder", root + "/src"
os.symlink(out, link)
print("swapping", flush=True)
while os.path.exists(root + "/a.txt"):
    for other in (link, folder):
        try:
            os.rename(name, folder if other == link else link)
            os.rename(other, name)
        except OSError:
            pass
"""
WRITES = 60


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "kept.txt").write_text("kept")
    (folder / "a.py").write_text("kept")
    return folder


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Bench]]:
    made: list[Bench] = []

    def bench(mode: str) -> Bench:
        made.append(open_bench(tmp_path, mode))  # type: ignore[arg-type]
        root = made[-1].root
        (root / ".git" / "hooks").mkdir(parents=True)
        (root / ".git" / "config").write_text("kept")
        (root / "src").mkdir()
        (root / "src" / "a.py").write_text("one\n")
        (root / "a.txt").write_text("a\n")
        return made[-1]

    yield bench
    for each in made:
        each.close()


def swap_folder(root: Path, outside: Path) -> None:
    (root / "src").rename(root / "old")
    (root / "src").symlink_to(outside)


def swap_file_for_link(root: Path, outside: Path) -> None:
    (root / "src" / "a.py").unlink(missing_ok=True)
    (root / "src" / "a.py").symlink_to(outside / "kept.txt")


def swap_file_for_git(root: Path, outside: Path) -> None:
    (root / "src" / "a.py").unlink(missing_ok=True)
    os.link(root / ".git" / "config", root / "src" / "a.py")


def swap_folder_for_hooks(root: Path, outside: Path) -> None:
    (root / "src").rename(root / "old")
    (root / "src").symlink_to(".git/hooks")


CALLS: dict[str, dict[str, object]] = {
    "write": {"path": "src/a.py", "text": "evil"},
    "edit": {"path": "src/a.py", "edits": [{"search": "one", "replace": "evil"}]},
    "delete": {"path": "src/a.py"},
    "move": {"path": "a.txt", "to": "src/b.py"},
}
SWAPS = (swap_folder, swap_file_for_link, swap_file_for_git, swap_folder_for_hooks)


@pytest.mark.promise("POL-22")
@pytest.mark.parametrize("swap", SWAPS, ids=lambda swap: swap.__name__)
@pytest.mark.parametrize("tool", CALLS)
async def test_what_was_approved_is_not_done_to_something_else(
    make: Callable[..., Bench], outside: Path, tool: str, swap: Callable[[Path, Path], None]
) -> None:
    bench = make("ask")
    bench.user.while_thinking = lambda: swap(bench.root, outside)
    await bench.call("read", path="src/a.py")
    await bench.call("read", path="a.txt")
    finished = await bench.call(tool, **CALLS[tool])
    if tool != "move" or swap in (swap_folder, swap_folder_for_hooks):
        assert finished.status == "refused", finished.content
        assert finished.error
    assert {path.name: path.read_text() for path in outside.iterdir()} == {"kept.txt": "kept", "a.py": "kept"}
    assert (bench.root / ".git" / "config").read_text() == "kept"
    assert not list((bench.root / ".git" / "hooks").iterdir())


@pytest.mark.promise("POL-22")
async def test_a_link_that_a_command_made_in_the_turn_leads_nowhere(
    make: Callable[..., Bench], outside: Path
) -> None:
    bench = make("auto")
    await bench.call("run", command=f"rm -r src && ln -s {outside} src && ln -s .git/hooks h")
    for path in ("src/new.txt", "src/kept.txt", "h/pre-commit"):
        assert (await bench.call("write", path=path, text="evil")).status == "refused"
    assert sorted(file.name for file in outside.iterdir()) == ["a.py", "kept.txt"]


@pytest.mark.promise("POL-22")
async def test_a_folder_that_another_process_swaps_for_a_link_all_the_time_is_never_left(
    make: Callable[..., Bench], outside: Path
) -> None:
    bench = make("auto")
    with swapping(bench.root, outside):
        ended = [
            (await bench.call("write", path=f"src/{number}.txt", text="evil")).status
            for number in range(WRITES)
        ]
    assert len(ended) == WRITES
    assert sorted(file.name for file in outside.iterdir()) == ["a.py", "kept.txt"]


@contextmanager
def swapping(root: Path, outside: Path) -> Iterator[None]:
    """While it lasts, `src` is a folder and a link to the outside in turns."""
    words = [sys.executable, "-I", "-S", "-c", SWAPPER, str(root), str(outside)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "swapping\n"
        try:
            yield
        finally:
            process.kill()
