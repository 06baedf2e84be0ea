"""`/continue` and `/retry` after an answer that was cut, in a terminal."""

import json
from pathlib import Path

import pytest

from tests.interfaces.cli.program import run, script, terminal

ENTER, CTRL_D = "\r", "\x04"
NOTHING: dict[str, list[str]] = {"patterns": [], "urls": [], "mentions": [], "todos": []}
OFFERS = {
    "summary": "Two parts.",
    "commands": ["ls -l"],
    "next_steps": [{"label": "Why", "input": "Why?"}],
}
CUT = json.dumps(OFFERS)[:-2] + ', {"la'
SCRIPT = (
    {"when": "Output of look", "text": json.dumps(NOTHING)},
    {"when": "was cut. The user accepts", "text": json.dumps({"summary": "The rest of it."})},
    {"when": "what is", "text": CUT, "finish": "length"},
)


@pytest.mark.promise("CHAT-40")
@pytest.mark.promise("CHAT-42")
def test_recovered_parts_are_shown_and_the_user_continues_or_repeats(tmp_path: Path) -> None:
    with terminal("--model", script(tmp_path, *SCRIPT), cwd=tmp_path, HANDRAIL_AUTO_ROUTE="on") as talk:
        talk.expect("mode ask")
        talk.type("what is missing here?" + ENTER)
        talk.expect("Two parts.")
        talk.expect("ls -l")
        talk.expect("Recovered: 1 command, 1 next step")
        talk.expect("/next sends it")
        talk.type("/retry" + ENTER)
        talk.expect("Two parts.")
        talk.expect("Recovered: 1 command, 1 next step")
        talk.type("/continue" + ENTER)
        talk.expect("The rest of it.")
        talk.type(CTRL_D)
    listed = [json.loads(line) for line in run("audit", "--json", cwd=tmp_path).stdout.splitlines()]
    asked = [each for each in listed if each["purpose"] == "answer"]
    assert [each["finish"] for each in asked] == ["length", "length", "stop"]
    assert asked[0]["body"] == asked[1]["body"] != asked[2]["body"]
    assert asked[0]["recovered"]["commands"] == ["ls -l"]
