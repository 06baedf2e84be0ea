"""A picture that is dropped on the terminal goes with the message; everything else is text."""

import json
import os
from pathlib import Path

import pytest

from handrail.interfaces.cli.conversation.message_input import dropped_file
from tests.interfaces.cli.program import run, terminal
from tests.pictures import png


@pytest.mark.parametrize(
    "form",
    [
        "{plain}",
        "'{plain}'",
        '"{plain}"',
        "file://{encoded}",
        "{escaped}",
        "  '{plain}' \n",
    ],
)
def test_every_way_in_which_terminals_write_a_dropped_file_is_understood(tmp_path: Path, form: str) -> None:
    name = "shot" if form == "{plain}" else "my shot (1)"
    file = tmp_path / name
    file.write_bytes(b"")
    plain = str(file)
    escaped = plain.replace(" ", "\\ ").replace("(", "\\(").replace(")", "\\)")
    text = form.format(plain=plain, encoded=plain.replace(" ", "%20"), escaped=escaped)
    assert dropped_file(text) == file


@pytest.mark.parametrize(
    "text", ["", "hello", "see /etc/passwd", "a.png", "/no/such/file", "/etc", "'a'\n'b'", "\0"]
)
def test_what_is_no_dropped_file_is_text(text: str) -> None:
    assert dropped_file(text) is None


@pytest.mark.promise("IMG-7")
def test_a_picture_dropped_on_the_terminal_is_attached_from_wherever_it_is(tmp_path: Path) -> None:
    root = tmp_path / "ws"
    root.mkdir()
    picture, note = tmp_path / "my shot.png", tmp_path / "note.txt"
    picture.write_bytes(png(12, 34))
    note.write_text("no picture")
    script = tmp_path / "seeing.json"
    script.write_text(json.dumps({"images": True, "answers": [{"text": "I see."}]}))
    with terminal("--model", f"scripted/{script}", cwd=root, COLUMNS="200") as talk:
        talk.expect("mode ask")
        talk.type("what is ")
        talk.type(f"\x1b[200~'{picture}'\x1b[201~")
        talk.type("and ")
        talk.type(f"\x1b[200~{note}\x1b[201~")
        talk.type("\r")
        talk.expect("attached")
        talk.expect("I see.")
        talk.expect("$0.00")
        talk.type("\x04")
        assert talk.end() == 0
    target = tmp_path / "out.jsonl"
    session = json.loads(run("sessions", "--json", cwd=root).stdout.splitlines()[0])["id"]
    assert run("export", session, os.fspath(target), cwd=root).returncode == 0
    rows = [json.loads(line) for line in target.read_text().splitlines()]
    (message,) = [json.loads(row[5]) for row in rows if isinstance(row, list) and row[4] == "user_message"]
    assert [(image["name"], image["width"]) for image in message["images"]] == [(str(picture), 12)]
    assert message["text"] == f'what is @"{picture}" and {note}'
    assert message["unattached"] == []


@pytest.mark.promise("IMG-7")
def test_the_picture_in_the_clipboard_is_attached_by_ctrl_v(tmp_path: Path) -> None:
    (tmp_path / "shot").write_bytes(png(7, 8))
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "wl-paste").write_text(f'#!/bin/sh\n[ "$3" = image/png ] && cat "{tmp_path}/shot"\n')
    (programs / "wl-paste").chmod(0o755)
    script = tmp_path / "seeing.json"
    script.write_text(json.dumps({"images": True, "answers": [{"text": "I see."}]}))
    path = f"{programs}:{os.environ['PATH']}"
    with terminal("--model", f"scripted/{script}", cwd=tmp_path, PATH=path, WAYLAND_DISPLAY="w") as talk:
        talk.expect("mode ask")
        talk.expect("> ")  # before, the terminal itself would take Ctrl-V for a prefix
        talk.type("what is \x16")
        talk.expect('@"clipboard-')
        (tmp_path / "shot").write_bytes(b"no picture")
        talk.type("\x16")
        talk.expect("no image in the clipboard")
        talk.type("\r")
        talk.expect("(PNG, 7 x 8)")
        talk.expect("I see.")
        talk.expect("$0.00")
        talk.type("\x04")
        assert talk.end() == 0
