"""Where messages go, on the command line and in a terminal: chosen, asked about, and counted."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from handrail.config.places import find_places, workspace_folder
from handrail.protocol.events import RunStarted
from handrail.sessions.session import Session
from handrail.sessions.session_list import list_sessions
from handrail.storage.log_repair import open_log
from tests.interfaces.cli.program import run, script, terminal

ENTER, CTRL_D = "\r", "\x04"
ON = {"HANDRAIL_AUTO_ROUTE": "on"}
PLAN = {"when": "Output of look", "text": '{"patterns": [], "urls": [], "mentions": [], "todos": []}'}
OPTIONS = [
    {"id": "chat", "title": "only look"},
    {"id": "agent", "title": "anything"},
    {"id": "c", "title": "C"},
]


def said(**decision: Any) -> dict[str, str]:
    return {"when": "The user's message:", "text": json.dumps(decision)}


def runs(workspace: Path) -> dict[str, list[str]]:
    """The sessions here, each with the pipelines that it began."""
    log = open_log(workspace_folder(find_places(os.environ), workspace))
    sessions = [Session(log, info.id) for info in list_sessions(log)]
    events = {each.id: [one.event for one in each.read_after(0, 1_000)] for each in sessions}
    log.close()
    return {
        name: [event.pipeline for event in found if isinstance(event, RunStarted)]
        for name, found in events.items()
    }


def only(workspace: Path) -> list[str]:
    """The pipelines of the only session."""
    (found,) = runs(workspace).values()
    return found


@pytest.mark.promise("ROUTE-3")
def test_a_question_what_is_wanted_is_a_menu_whose_numbers_answer_it(tmp_path: Path) -> None:
    unsure = said(decision="clarify", confidence=0.9, question="Which way?", options=OPTIONS)
    model = script(tmp_path, unsure, {"when": "", "text": "It is clean."})
    with terminal("--model", model, cwd=tmp_path, **ON) as talk:
        talk.expect("mode ask")
        talk.type("clean up" + ENTER)
        talk.expect("which?    Which way?")
        talk.expect("1 an answer; nothing is changed")
        talk.expect("2 do it in the files")
        talk.expect("3 C")
        talk.expect("waiting")
        talk.type("2" + ENTER)
        talk.expect("It is clean.")
        talk.expect("$0.00")
        talk.type(CTRL_D)
        assert talk.end() == 0
    assert only(tmp_path) == ["agent"]


@pytest.mark.promise("ROUTE-2")
def test_a_route_is_shown_and_chosen_in_a_terminal_and_holds_from_then_on(tmp_path: Path) -> None:
    sure = said(decision="agent", confidence=0.92)
    model = script(tmp_path, sure, PLAN, {"when": "", "text": "Here you are."})
    with terminal("--model", model, cwd=tmp_path, **ON) as talk:
        talk.expect("mode ask")
        talk.type("/route" + ENTER)
        talk.expect("route     auto; auto decides, agent works on files")
        talk.type("cart.py, the rounding" + ENTER)
        talk.expect("route     agent (92% sure)")
        talk.expect("$0.00")
        talk.type("/route nonsense" + ENTER)
        talk.expect("There is no route 'nonsense': there are auto, agent, build, chat,")
        talk.type("/route chat" + ENTER)
        talk.expect("route     chat")
        talk.type("fix the rounding in cart.py" + ENTER)
        talk.expect("Here you are.")
        talk.expect("$0.00")
        talk.type("/route" + ENTER)
        talk.expect("route     chat; auto decides")
        talk.type(CTRL_D)
        assert talk.end() == 0
    assert only(tmp_path) == ["agent", "chat"]


@pytest.mark.promise("CHAT-5")
def test_next_goes_on_by_the_route_of_what_it_goes_on_with(tmp_path: Path) -> None:
    todos = [{"text": "write 1.txt", "done": True}, {"text": "write 2.txt", "done": False}]
    change = {"form": "create", "path": "1.txt", "text": "1\n"}
    first = {"summary": "One is written.", "todos": todos, "changes": [change]}
    second = {"when": "Continue with the next", "text": '{"summary": "Two is written."}'}
    model = script(tmp_path, PLAN, second, {"when": "", "text": json.dumps(first)})
    with terminal("--model", model, "--mode", "edit", "--route", "chat", cwd=tmp_path, **ON) as talk:
        talk.expect("mode edit")
        talk.type("Write two files." + ENTER)
        talk.expect("One is written.")
        talk.expect("/next sends it")
        talk.type("/route auto" + ENTER)
        talk.expect("route     auto")
        talk.type("/next" + ENTER)
        talk.expect("Two is written.")
        talk.expect("$0.00")
        talk.type(CTRL_D)
        assert talk.end() == 0
    assert only(tmp_path) == ["chat", "chat"]


@pytest.mark.promise("ROUTE-2")
def test_a_route_of_the_command_line_is_the_sessions_and_a_wrong_one_is_told(tmp_path: Path) -> None:
    model = script(tmp_path, PLAN, {"when": "", "text": "Done."})
    wrong = run("run", "fix cart.py", "--route", "nonsense", "--model", model, cwd=tmp_path, **ON)
    assert (wrong.returncode, "no route 'nonsense'" in wrong.stderr) == (2, True)
    done = run("run", "fix cart.py", "--route", "chat", "--model", model, cwd=tmp_path, **ON)
    assert (done.returncode, done.stdout) == (0, "Done.\n")
    (session,) = runs(tmp_path)
    run("run", "fix cart.py", "--session", session, "--model", model, cwd=tmp_path, **ON)
    assert runs(tmp_path) == {session: ["chat", "chat"]}


@pytest.mark.promise("ROUTE-2")
def test_where_messages_went_and_what_came_of_it_is_counted(tmp_path: Path) -> None:
    assert "No message was routed here yet" in run("stats", "router", cwd=tmp_path).stdout
    write = {
        "when": "write a.txt",
        "calls": [{"name": "write", "arguments": {"path": "a.txt", "text": "x\n"}}],
    }
    doubt = said(decision="agent", confidence=0.6)
    model = script(tmp_path, doubt, PLAN, write, {"when": "", "text": "Done."})
    with terminal("--model", model, "--mode", "edit", cwd=tmp_path, **ON) as talk:
        talk.expect("mode edit")
        for text in ("write a.txt for me", "why does it fail?", "cart.py, the rounding"):
            talk.type(text + ENTER)
            talk.expect("Done.")
            talk.expect("$0.00")
        talk.type("/route agent" + ENTER)
        talk.expect("route     agent")
        talk.type(CTRL_D)
        assert talk.end() == 0
    assert (tmp_path / "a.txt").exists()
    rows = [json.loads(line) for line in run("stats", "router", "--json", cwd=tmp_path).stdout.splitlines()]
    assert rows == [
        {"by": "model", "route": "chat", "band": "0.45-0.70", "total": 1, "applied": 0, "corrected": 1},
        {"by": "rules", "route": "agent", "band": "", "total": 1, "applied": 1, "corrected": 0},
        {"by": "rules", "route": "chat", "band": "", "total": 1, "applied": 0, "corrected": 0},
    ]
    head, *lines = run("stats", "router", cwd=tmp_path).stdout.splitlines()
    assert head.split() == ["by", "route", "confidence", "messages", "changed", "files", "rerouted"]
    assert [line.split() for line in lines] == [
        ["model", "chat", "0.45-0.70", "1", "0", "1"],
        ["rules", "agent", "-", "1", "1", "0"],
        ["rules", "chat", "-", "1", "0", "0"],
    ]


@pytest.mark.promise("RUN-10")
def test_a_number_entered_before_another_session_was_shown_answers_nothing_in_it(tmp_path: Path) -> None:
    unsure = said(decision="clarify", confidence=0.9, question="Which way?", options=OPTIONS)
    asks = script(tmp_path, unsure)
    with terminal("--model", asks, cwd=tmp_path, **ON) as talk:
        talk.expect("mode ask")
        talk.type("clean up" + ENTER)
        talk.expect("waiting")
        talk.type(CTRL_D)
        assert talk.end() == 0
    (session_id,) = runs(tmp_path)
    sure, done = said(decision="chat", confidence=0.9), {"when": "", "text": "It is done."}
    model = script(tmp_path, sure, done, done, done, name="other.json")
    with terminal("--model", model, cwd=tmp_path, **ON) as talk:
        talk.expect("mode ask")
        for _ in range(2):  # more events than the other session has
            talk.type("fix the test in cart.py" + ENTER)
            talk.expect("It is done.")
            talk.expect("$0.00")
        talk.type(f"/resume {session_id}{ENTER}2{ENTER}")
        talk.expect("Which way?")
        talk.expect("It is done.")
        talk.expect("$0.00")
        talk.type(CTRL_D)
        assert talk.end() == 0
    assert runs(tmp_path)[session_id] == ["chat"], "2 has answered a question that was not shown"
