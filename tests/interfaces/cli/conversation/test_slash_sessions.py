"""Status and labels of sessions, set from the conversation."""

import json
from pathlib import Path

import pytest

from tests.interfaces.cli.program import run, script, terminal

pytestmark = pytest.mark.usefixtures("no_server")
ENTER, CTRL_D = "\r", "\x04"


@pytest.mark.promise("SESS-61")
def test_a_session_is_labelled_finished_and_archived(tmp_path: Path) -> None:
    model = script(tmp_path, {"text": "First."}, {"text": "Second."})
    with terminal("--model", model, "fix the total", cwd=tmp_path) as talk:
        talk.expect("$0.00")
        talk.type("/label bug area:cart" + ENTER)
        talk.expect("bug, area:cart")
        talk.type("/label -bug" + ENTER)
        talk.expect("labels    area:cart")
        talk.type("/label -bug" + ENTER)
        talk.expect("no label 'bug'")
        talk.type("/status finished" + ENTER)
        talk.expect("There is no status 'finished'")
        talk.type("/status in progress" + ENTER)
        talk.expect("session   in progress")
        talk.type("/sessions area:cart" + ENTER)
        talk.expect("in progress fix the total")
        talk.expect("#area:cart")
        talk.type("/sessions done" + ENTER)
        talk.expect("none with the status or label done")
        talk.type("/archive" + ENTER)
        talk.expect("your next message starts a new session")
        talk.type("another thing" + ENTER)
        talk.expect("First.")
        talk.expect("$0.00")
        talk.type("/sessions" + ENTER)
        talk.expect("title")
        talk.expect("another thing")
        talk.type("/sessions archived" + ENTER)
        assert "fix the total" not in talk.expect("archived fix the total").rpartition("another thing")[2]
        talk.type(CTRL_D)
        assert talk.end() == 0
    listed = [
        json.loads(line) for line in run("sessions", "--json", "--archived", cwd=tmp_path).stdout.splitlines()
    ]
    assert [(each["status"], each["labels"]) for each in listed] == [("archived", ["area:cart"])]


@pytest.mark.promise("SESS-60")
def test_a_title_by_the_fast_model_disturbs_nobody(tmp_path: Path, home: Path) -> None:
    fast = script(tmp_path, {"text": "The cart's total"}, name="fast.json")
    with (home / "handrail" / "config.toml").open("a") as settings:
        settings.write(f'[models]\nfast = "{fast}"\n')
    model = script(tmp_path, {"text": "First."}, {"text": "Second."})
    with terminal("--model", model, "fix the total", cwd=tmp_path) as talk:
        talk.expect("$0.00")
        talk.type("go on" + ENTER)
        talk.expect("Second.")
        talk.expect("$0.00")
        while "The cart's total" not in run("sessions", cwd=tmp_path).stdout:
            talk.type("/sessions" + ENTER)
            talk.expect("last used")
        talk.type(CTRL_D)
        assert talk.end() == 0
        assert "The cart's total" not in talk.text.partition("/sessions")[0].partition("last used")[0]
