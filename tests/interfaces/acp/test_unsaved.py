"""Unsaved text in an editor: the model sees it, edits keep it, and what was done can be undone."""

from pathlib import Path
from typing import Any

import pytest

from tests.interfaces.acp.editor import Editor, Opened, files, opened
from tests.interfaces.acp.test_session import call
from tests.interfaces.cli.program import script

pytestmark = pytest.mark.anyio

SAVED = "one\ntwo\nthree\n"
UNSAVED = "one\ntwo\nthree\nfour, not saved\n"
READ = call("read", path="notes.txt")
EDIT = call("edit", path="notes.txt", edits=[{"search": "two", "replace": "2"}])
EDITED = "one\n2\nthree\nfour, not saved\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "work"
    made.mkdir()
    (made / "notes.txt").write_text(SAVED)
    return made


def typing(folder: Path, text: str = UNSAVED) -> Editor:
    """An editor in which the user has typed, and not saved."""
    editor = Editor()
    editor.buffers[folder / "notes.txt"] = text
    return editor


def results(open_: Opened) -> list[str]:
    """What each call showed in the end."""
    return [
        "\n".join(part["content"]["text"] for part in known.get("content", []) if part["type"] == "content")
        for known in open_.editor.calls().values()
    ]


@pytest.mark.promise("ACP-3")
async def test_the_model_sees_the_unsaved_text_and_its_edit_keeps_it(tmp_path: Path, folder: Path) -> None:
    model = script(tmp_path, {"calls": [READ]}, {"calls": [EDIT]}, {"text": "done"})
    editor = typing(folder)
    async with opened(folder, model, "--mode", "edit", editor=editor, can=files()) as open_:
        session = await open_.new()
        await open_.prompt(session, "change it")
        read, edited = results(open_)
        assert "four, not saved" in read
        assert "which is not saved" in read
        assert (folder / "notes.txt").read_text() == EDITED, "this editor saves what it writes"
        assert editor.writes == [folder / "notes.txt"]
        diff = editor.calls()["call_1_0"]["content"][0]
        assert (diff["old_text"], diff["new_text"]) == (UNSAVED, EDITED)
        await open_.prompt(session, "/undo")
        await editor.until(lambda: (folder / "notes.txt").read_text() == UNSAVED or None)
    assert "not saved" not in edited


@pytest.mark.promise("ACP-4")
async def test_an_edit_is_refused_when_the_user_has_typed_since_the_model_read(
    tmp_path: Path, folder: Path
) -> None:
    model = script(tmp_path, {"calls": [READ]}, {"calls": [EDIT]}, {"text": "I will read it again."})
    editor = typing(folder)

    async def decide(*_asked: Any) -> str:
        editor.buffers[folder / "notes.txt"] = UNSAVED + "and one more line\n"
        return "once"

    editor.decide = decide
    async with opened(folder, model, "--mode", "ask", editor=editor, can=files()) as open_:
        await open_.prompt(await open_.new(), "change it")
        assert "is not the version that was shown" in results(open_)[1]
    assert editor.writes == []
    assert editor.buffers[folder / "notes.txt"] == UNSAVED + "and one more line\n"
    assert (folder / "notes.txt").read_text() == SAVED


@pytest.mark.promise("ACP-5")
async def test_commands_are_said_to_see_the_disk_when_the_editor_has_other_text(
    tmp_path: Path, folder: Path
) -> None:
    model = script(
        tmp_path,
        {"calls": [READ]},
        {"calls": [EDIT]},
        {"calls": [call("run", command="cat notes.txt")]},
        {"text": "done"},
    )
    editor = typing(folder)
    editor.saves = False
    async with opened(folder, model, "--mode", "edit", editor=editor, can=files()) as open_:
        session = await open_.new()
        await open_.prompt(session, "change it")
        assert editor.buffers[folder / "notes.txt"] == EDITED
        assert (folder / "notes.txt").read_text() == SAVED
        await open_.prompt(session, "/export out.jsonl")
    log = (folder / "out.jsonl").read_bytes()
    assert b"The editor has not saved it" in log
    assert b"Not saved in the editor, so that this saw the files on disk: notes.txt." in log


@pytest.mark.promise("ACP-3")
async def test_a_formatter_in_the_editor_is_reported_and_undone_with_the_edit(
    tmp_path: Path, folder: Path
) -> None:
    model = script(tmp_path, {"calls": [READ]}, {"calls": [EDIT]}, {"text": "done"})

    class Formatting(Editor):
        def put(self, path: Path, content: str) -> None:
            super().put(path, content.replace("2\n", "2  # two\n"))

    editor = Formatting()
    async with opened(folder, model, "--mode", "edit", editor=editor, can=files()) as open_:
        session = await open_.new()
        await open_.prompt(session, "change it")
        assert (folder / "notes.txt").read_text() == "one\n2  # two\nthree\n"
        await open_.prompt(session, "/changes")
        assert "+1 -1 (applied)" in editor.text_of()
        editor.put = Editor.put.__get__(editor)  # type: ignore[method-assign]
        await open_.prompt(session, "/undo")
        await editor.until(lambda: (folder / "notes.txt").read_text() == SAVED or None)


@pytest.mark.promise("ACP-4")
async def test_an_editor_that_does_not_write_keeps_its_text(tmp_path: Path, folder: Path) -> None:
    model = script(tmp_path, {"calls": [READ]}, {"calls": [EDIT]}, {"text": "done"})
    editor = typing(folder)
    async with opened(folder, model, "--mode", "edit", editor=editor, can=files(write=False)) as open_:
        await open_.prompt(await open_.new(), "change it")
        assert "has unsaved text in the editor" in results(open_)[1]
    assert (folder / "notes.txt").read_text() == SAVED


@pytest.mark.promise("ACP-4")
async def test_an_editor_that_claims_to_have_written_is_not_believed(tmp_path: Path, folder: Path) -> None:
    model = script(tmp_path, {"calls": [READ]}, {"calls": [EDIT]}, {"text": "done"})

    class Lying(Editor):
        def put(self, path: Path, content: str) -> None: ...

    editor = Lying()
    editor.buffers[folder / "notes.txt"] = UNSAVED
    async with opened(folder, model, "--mode", "edit", editor=editor, can=files()) as open_:
        session = await open_.new()
        await open_.prompt(session, "change it")
        assert "but it has not" in results(open_)[1]
        await open_.prompt(session, "/changes")
        assert "(not applied)" in editor.text_of()
    assert (folder / "notes.txt").read_text() == SAVED


@pytest.mark.promise("ACP-3")
async def test_line_endings_that_the_editor_hides_survive(tmp_path: Path, folder: Path) -> None:
    """Editors show CRLF as LF, without the byte order mark; a file without unsaved text is read from disk."""
    model = script(tmp_path, {"calls": [READ]}, {"calls": [EDIT]}, {"text": "done"})
    path = folder / "notes.txt"
    path.write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n")

    class Hiding(Editor):
        def text(self, path: Path) -> str:
            return path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")

        def put(self, path: Path, content: str) -> None:
            assert "\r" not in content
            path.write_bytes(b"\xef\xbb\xbf" + content.replace("\n", "\r\n").encode())

    async with opened(folder, model, "--mode", "edit", editor=Hiding(), can=files()) as open_:
        session = await open_.new()
        await open_.prompt(session, "change it")
        assert path.read_bytes() == b"\xef\xbb\xbfone\r\n2\r\n"
        await open_.prompt(session, "/changes")
        assert "1. notes.txt +1 -1 (applied)" in open_.editor.text_of()
