"""Change sets through an editor that fails: what was written is put back, and the log says what is left."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from handrail.changes.apply import apply_when_free
from handrail.changes.change_set import ChangeSet, FileEdit
from handrail.protocol.errors import PathProblem
from handrail.protocol.events import ChangeAbandoned, ChangeApplied
from tests.changes.test_apply import delete, update
from tests.tools.calls import Bench, open_bench

pytestmark = pytest.mark.anyio


class Buffers:
    """An editor in this process. `fails`: a file that it does not write; `saves`: it saves what it writes."""

    writes = True

    def __init__(self, root: Path, *, fails: str = "", saves: bool = True) -> None:
        self.root = root
        self.fails = fails
        self.saves = saves
        self.texts: dict[str, str] = {}
        self.silent = False

    def has(self, session_id: str) -> bool:
        return True

    async def read(self, session_id: str, path: str) -> str | None:
        if self.silent:
            raise PathProblem("The editor did not answer.", "timeout", path)
        place = self.root / path
        return self.texts.get(path, place.read_text() if place.exists() else None)

    async def write(self, session_id: str, path: str, text: str) -> None:
        if path == self.fails:
            raise PathProblem(f"The editor did not write {path}: read-only.", "protected_path", path)
        if self.saves:
            (self.root / path).write_text(text)
            self.texts.pop(path, None)
        else:
            self.texts[path] = text


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = open_bench(tmp_path)
    for name in ("a", "b", "c"):
        (bench.root / name).write_text(f"{name}\n")
    yield bench
    bench.close()


async def run(bench: Bench, editor: Buffers, *edits: FileEdit) -> ChangeApplied:
    bench.workspace.editor = editor
    with ExitStack() as held:
        applied = await apply_when_free(held, bench.session, bench.workspace, ChangeSet(edits))
        bench.session.append(applied)
    return applied


def abandoned(bench: Bench) -> str:
    events = [one.event for one in bench.session.read_after(0, 100)]
    (why,) = [event.why for event in events if isinstance(event, ChangeAbandoned)]
    return why


@pytest.mark.promise("ACP-4")
@pytest.mark.parametrize("saves", [True, False])
async def test_when_one_file_fails_the_others_are_as_before(bench: Bench, saves: bool) -> None:
    editor = Buffers(bench.root, fails="b", saves=saves)
    editor.texts["a"] = "a, not saved\n"
    with pytest.raises(PathProblem, match="read-only"):
        await run(
            bench,
            editor,
            update("a", b"a, not saved\n", b"a, changed\n"),
            update("b", b"b\n", b"b, changed\n"),
            delete("c", b"c\n"),
        )
    assert await editor.read("", "a") == "a, not saved\n"
    assert [(bench.root / name).read_text() for name in ("b", "c")] == ["b\n", "c\n"]
    assert "read-only" in abandoned(bench)
    assert sorted(path.name for path in bench.root.iterdir()) == ["a", "b", "c"], "nothing is left over"


@pytest.mark.promise("ACP-4")
async def test_a_text_that_cannot_be_taken_back_is_named(bench: Bench) -> None:
    class Stubborn(Buffers):
        async def write(self, session_id: str, path: str, text: str) -> None:
            if path == "a" and path in self.texts:
                raise PathProblem("The editor did not answer.", "timeout", path)
            await super().write(session_id, path, text)

    editor = Stubborn(bench.root, fails="b", saves=False)
    with pytest.raises(PathProblem):
        await run(bench, editor, update("a", b"a\n", b"A\n"), update("b", b"b\n", b"B\n"))
    assert "The editor still has the change of a." in abandoned(bench)


@pytest.mark.promise("ACP-4")
async def test_a_silent_editor_changes_nothing(bench: Bench) -> None:
    editor = Buffers(bench.root)
    editor.silent = True
    with pytest.raises(PathProblem, match="did not answer"):
        await run(bench, editor, update("a", b"a\n", b"A\n"), delete("c", b"c\n"))
    assert (bench.root / "a").read_text() == "a\n"
    assert (bench.root / "c").exists()


@pytest.mark.promise("ACP-4")
async def test_unsaved_text_is_neither_deleted_nor_overwritten(bench: Bench) -> None:
    editor = Buffers(bench.root)
    editor.texts |= {"a": "typed since\n", "c": "not saved\n"}
    with pytest.raises(PathProblem) as refused:
        await run(bench, editor, update("a", b"a\n", b"A\n"))
    assert refused.value.reason == "stale_file"
    with pytest.raises(PathProblem, match="unsaved text in the editor"):
        await run(bench, editor, delete("c", b"c\n"))
    assert editor.texts == {"a": "typed since\n", "c": "not saved\n"}
    assert (bench.root / "c").exists()


async def test_writes_and_deletions_of_one_set_are_one_change(bench: Bench) -> None:
    editor = Buffers(bench.root)
    applied = await run(
        bench,
        editor,
        update("a", b"a\n", b"A\n"),
        delete("c", b"c\n"),
        FileEdit("new/file", "create", None, b"made\n"),
    )
    assert (bench.root / "a").read_text() == "A\n"
    assert (bench.root / "new" / "file").read_text() == "made\n"
    assert not (bench.root / "c").exists()
    events = [one.event for one in bench.session.read_after(0, 100)]
    assert applied in events
    assert sorted(path.name for path in bench.root.iterdir()) == ["a", "b", "new"]
