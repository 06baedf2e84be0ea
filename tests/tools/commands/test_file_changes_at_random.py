"""Whatever a command does: all of it is listed, and what is said to come back does, to the byte."""

import os
import stat
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from random import Random

import pytest

from handrail.changes.apply import apply
from handrail.changes.undo import plan_undo, undo_change_set
from handrail.protocol.events import ChangePrepared
from handrail.tools.commands.file_changes import ChangeWatcher
from handrail.tools.tool import CallContext
from tests.tools.calls import Bench
from tests.tools.commands.test_file_changes import commit, git

pytestmark = pytest.mark.anyio

NAMES = ["a", "b.txt", "c.py", "ü.md", "d/x", "d/y.txt", "d/e/z", "f/g/h.py", "new/one", "new/two.txt"]
COMMANDS = int(os.environ.get("HANDRAIL_STEPS", "80")) // 10
Tree = dict[str, tuple[str, bytes, int]]


def tree(root: Path) -> Tree:
    """Everything that is no folder: its kind, content and permissions."""
    found: Tree = {}
    for folder, folders, files in os.walk(root):
        if ".git" in folders:
            folders.remove(".git")
        for name in [*files, *(each for each in folders if Path(folder, each).is_symlink())]:
            path = Path(folder, name)
            if path.is_symlink():
                found[str(path.relative_to(root))] = ("link", os.fsencode(path.readlink()), 0)
            else:
                mode = stat.S_IMODE(path.stat().st_mode)
                found[str(path.relative_to(root))] = ("file", path.read_bytes(), mode)
    return found


def text(random: Random) -> bytes:
    ending = random.choice([b"\n", b"\r\n"])
    lines = [b"line %d" % random.randrange(5) for _ in range(random.randrange(4))]
    extra = random.choice([b"", b"", b"\0\xff", b"x" * 300_000])
    return ending.join(lines) + random.choice([b"", ending]) + extra


def disturb(root: Path, random: Random) -> None:
    """One thing that a program may do to files."""
    path = root / random.choice(NAMES)
    other = root / random.choice(NAMES)

    def write() -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text(random))

    def write_as_of_old() -> None:
        path.write_bytes(text(random))
        os.utime(path, (1, 1))

    deeds: list[Callable[[], object]] = [
        write,
        write,
        lambda: path.write_bytes(path.read_bytes() + b"more\n"),
        path.unlink,
        lambda: path.rename(other),
        lambda: path.parent.rename(root / f"moved{random.randrange(3)}") if path.parent != root else None,
        lambda: path.chmod(random.choice([0o644, 0o755, 0o600])),
        lambda: path.symlink_to(random.choice(["a", "d", "/etc/hostname", "nowhere"])),
        lambda: os.utime(path, (1, 1)),
        write_as_of_old,
    ]
    with suppress(OSError):
        random.choice(deeds)()


@pytest.mark.promise("CMD-1")
@pytest.mark.promise("CMD-4")
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", ["git", "git and crlf", "no git"])
async def test_all_changes_are_listed_and_come_back_or_say_that_they_do_not(
    bench: Bench, seed: int, kind: str
) -> None:
    random, root = Random(f"{kind} {seed}"), bench.root
    (root / "a").write_text("one\n")
    if kind != "no git":
        (root / ".gitattributes").write_text("*.txt text eol=crlf\n" if "crlf" in kind else "* -text\n")
        commit(root)
    watch = ChangeWatcher(bench.workspace)
    work = CallContext(bench.session, bench.workspace, bench.turn_id, "call_1", ExitStack())
    for _ in range(COMMANDS):
        for _ in range(random.randrange(6)):
            disturb(root, random)  # somebody else, before the command
        if kind != "no git" and random.random() < 0.5:
            git(root, "add", "-A")
        before = tree(root)
        known = len(bench.events())
        async with watch.watch(work, "something"):
            for _ in range(random.randrange(1, 6)):
                disturb(root, random)
        check(bench, before, bench.events()[known:])


def check(bench: Bench, before: Tree, events: Sequence[object]) -> None:
    made = [event for event in events if isinstance(event, ChangePrepared)]
    listed = {file.path: file for event in made for file in event.files}
    after = tree(bench.root)
    differing = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    assert differing <= listed.keys()
    plan = plan_undo(bench.session.log, bench.workspace, made)
    left = [conflict.path for conflict in plan.conflicts]
    change_set = undo_change_set(plan, leave=left)
    if change_set:
        apply(bench.session, bench.workspace, change_set, emptied=plan.emptied)
    now = tree(bench.root)
    wrong = {path for path in before.keys() | now.keys() if before.get(path) != now.get(path)}
    assert wrong <= set(left)
    lost = {path for path, file in listed.items() if not file.restorable}
    # A file cannot come back where a folder stands that nothing can be done about, nor below a link.
    in_the_way = {path for path in left if any(is_beside(path, other) for other in [*after, *lost])}
    assert set(left) <= lost | in_the_way


def is_beside(path: str, other: str) -> bool:
    return path != other and (path.startswith(f"{other}/") or other.startswith(f"{path}/"))
