"""Menus in the conversation: a number alone chooses, without Enter."""

import json
import os
from pathlib import Path

import pytest

from handrail.config.places import find_places, workspace_folder
from tests.interfaces.cli.program import run, script, terminal
from tests.tasks.lists import task_list

ENTER, CTRL_D = "\r", "\x04"
MANY = 22


@pytest.mark.promise("TASK-20")
def test_a_proposal_and_its_second_question_are_answered_with_one_key_each(tmp_path: Path) -> None:
    bulk = {"operations": [{"op": "bulk_delete", "where": {"text": "old"}}], "answer": "", "question": ""}
    words = {"when": "Output of check", "text": json.dumps({"text": "Deletes the old ones."})}
    model = script(tmp_path, {"text": json.dumps(bulk)}, words)
    folder = tmp_path / "work"
    folder.mkdir()
    with task_list(workspace_folder(find_places(os.environ), folder)) as kept:
        kept.apply([{"title": f"Old {number}"} for number in range(MANY)])
    with terminal("--model", model, cwd=folder, HANDRAIL_AUTO_ROUTE="on") as talk:
        talk.expect("mode ask")
        talk.type("delete all old tasks on my list" + ENTER)
        talk.expect("Deletes the old ones.")
        talk.expect("1 to 3: one key chooses")
        talk.type("1")
        talk.expect(f"This deletes {MANY} tasks.")
        talk.expect("1. Yes, I am sure")
        talk.expect("1 to 3: one key chooses")
        talk.type("1")
        talk.expect(f"Deleted {MANY} tasks.")
        talk.type(CTRL_D)
    assert "No tasks" in run("tasks", cwd=folder).stdout
    assert run("tasks", "undo", cwd=folder).returncode == 0
    assert f"No date  {MANY}" in run("tasks", cwd=folder).stdout


@pytest.mark.promise("TASK-20")
def test_a_number_that_begins_a_message_is_no_choice(tmp_path: Path) -> None:
    first = {"operations": [{"op": "create", "title": "Dinner"}], "answer": "", "question": ""}
    again = {"operations": [{"op": "create", "title": "Lunch"}], "answer": "", "question": ""}
    means = {"when": "It asked:", "text": '{"means": "pipeline_response", "confidence": 0.9}'}
    words = {"when": "Output of check", "text": json.dumps({"text": ""})}
    model = script(
        tmp_path, {"text": json.dumps(first)}, words, means, {"when": "1 pm", "text": json.dumps(again)}
    )
    folder = tmp_path / "work"
    folder.mkdir()
    with terminal("--model", model, cwd=folder, HANDRAIL_AUTO_ROUTE="on") as talk:
        talk.expect("mode ask")
        talk.type("add dinner to my list" + ENTER)
        talk.expect("1 to 3: one key chooses")
        talk.type("1 pm is lunch, not dinner" + ENTER)
        talk.expect('add "Lunch"')
        talk.type(CTRL_D)
    assert "No tasks" in run("tasks", cwd=folder).stdout
