"""The next steps of an answer, in a terminal and without one."""

import json
from pathlib import Path

import pytest

from tests.interfaces.cli.program import run, script, terminal

ENTER, CTRL_D = "\r", "\x04"
ANSWER = {
    "summary": "Caching is missing.",
    "sections": [{"title": "Where", "text": "In the reader."}],
    "commands": ["ls -l"],
    "next_steps": [
        {"label": "Say more", "input": "Why is it missing?"},
        {"label": "Add it", "input": "Add caching to main.py"},
    ],
}
NOTHING: dict[str, list[str]] = {"patterns": [], "urls": [], "mentions": [], "todos": []}
SCRIPT = (
    {"when": "Output of look", "text": json.dumps(NOTHING)},
    {"when": "what is missing", "text": json.dumps(ANSWER)},
    {"when": "Why is it", "text": "Nobody needed it."},
    {"when": "Add caching", "text": "It is added."},
)


@pytest.mark.promise("CHAT-7")
def test_next_steps_are_numbered_and_sent(tmp_path: Path) -> None:
    with terminal("--model", script(tmp_path, *SCRIPT), cwd=tmp_path, HANDRAIL_AUTO_ROUTE="on") as talk:
        talk.expect("mode ask")
        talk.type("/next" + ENTER)
        talk.expect("suggests no next step")
        talk.type("what is missing here?" + ENTER)
        talk.expect("Caching is missing.")
        talk.expect("In the reader.")
        talk.expect("Add it")
        talk.expect("1 command: /run shows it")
        talk.expect("/next sends the first, /next 2 the second")
        talk.type("/next 3" + ENTER)
        talk.expect("a number from 1 to 2")
        talk.type("/next 2" + ENTER)
        talk.expect("Add caching to main.py")
        talk.expect("It is added.")
        talk.type(CTRL_D)


@pytest.mark.promise("CHAT-7")
def test_without_a_terminal_the_next_steps_are_text(tmp_path: Path) -> None:
    model = script(tmp_path, *SCRIPT)
    done = run("run", "what is missing here?", "--model", model, cwd=tmp_path, HANDRAIL_AUTO_ROUTE="on")
    assert done.returncode == 0
    assert done.stdout == (
        "Caching is missing.\n\n### Where\n\nIn the reader.\n\n```sh\nls -l\n```\n\n"
        "**Next**\n\n1. Say more: `Why is it missing?`\n2. Add it: `Add caching to main.py`\n"
    )
