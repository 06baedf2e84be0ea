"""The conversation in a real terminal."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from handrail.config.credentials import Credentials
from handrail.config.places import find_places
from tests.interfaces.cli.program import Terminal, run, script, terminal

CTRL_C, CTRL_D, ENTER, ALT_ENTER = "\x03", "\x04", "\r", "\x1b\r"
SLOW = {"text": "one two three four five six seven eight nine ten", "chunk_delay_ms": 1000}
RUN = {"text": "I run it.", "calls": [{"name": "run", "arguments": {"command": "touch ran"}}]}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "cart.py").write_text("def total():\n    return 1\n")
    return folder


def edit_script(workspace: Path, tmp_path: Path) -> str:
    digits = hashlib.sha256((workspace / "cart.py").read_bytes()).hexdigest()[:12]
    edits = [{"search": "return 1", "replace": "return 2"}]
    call: dict[str, Any] = {"path": "cart.py", "base_hash": digits, "edits": edits}
    read = {"calls": [{"name": "read", "arguments": {"path": "cart.py"}}]}
    return script(tmp_path, read, {"calls": [{"name": "edit", "arguments": call}]}, {"text": "So be it."})


def leave(talk: Terminal) -> None:
    talk.type(CTRL_D)
    assert talk.end() == 0


def test_a_conversation(workspace: Path, tmp_path: Path) -> None:
    model = script(tmp_path, {"text": "It is a **cart**."}, {"text": "Bye."})
    with terminal("--model", model, cwd=workspace) as talk:
        talk.expect("mode ask")
        talk.type("what is it?" + ENTER)
        talk.expect("> what is it?")
        talk.expect("It is a cart.")
        talk.expect("$0.00")
        talk.type("two" + ALT_ENTER + "lines" + ENTER)
        talk.expect("> two\n  lines")
        talk.expect("Bye.")
        talk.expect("$0.00")
        leave(talk)
        assert "handrail resume s_" in talk.text.replace("\n", "")
        assert "\x1b[?1049h" not in talk.raw


def test_a_first_message_from_the_shell_is_answered(workspace: Path, tmp_path: Path) -> None:
    model = script(tmp_path, {"text": "Hello."})
    with terminal("--model", model, "say", "hello", cwd=workspace) as talk:
        talk.expect("> say hello")
        talk.expect("Hello.")
        talk.expect("$0.00")
        leave(talk)


@pytest.mark.promise("TERM-7")
def test_ctrl_c_stops_the_turn_and_not_the_program(workspace: Path, tmp_path: Path) -> None:
    model = script(tmp_path, SLOW, {"text": "Still here."})
    with terminal("--model", model, "count", cwd=workspace) as talk:
        talk.expect("one")
        talk.type(CTRL_C)
        talk.expect("stopped")
        talk.type("there?" + ENTER)
        talk.expect("Still here.")
        talk.expect("$0.00")
        talk.type(CTRL_C)
        talk.expect("Ctrl-C again")
        talk.type(CTRL_C)
        assert talk.end() == 0


@pytest.mark.promise("TERM-16")
def test_escape_and_a_message_replace_what_is_being_answered(workspace: Path, tmp_path: Path) -> None:
    model = script(tmp_path, SLOW, {"text": "Something else."})
    with terminal("--model", model, "count", cwd=workspace) as talk:
        talk.expect("one")
        talk.type("say something else")
        talk.type("\x1b")
        talk.expect("stopped")
        talk.type(ENTER)
        talk.expect("> say something else")
        talk.expect("Something else.")
        talk.expect("$0.00")
        leave(talk)
        assert "five" not in talk.text


def test_a_queued_message_comes_back_when_the_turn_is_stopped(workspace: Path, tmp_path: Path) -> None:
    model = script(tmp_path, SLOW, {"text": "Later."})
    with terminal("--model", model, "count", cwd=workspace) as talk:
        talk.expect("one")
        talk.type("and then?" + ENTER)
        talk.expect("queued    and then?")
        talk.type(CTRL_C)
        talk.type("Or not?" + ENTER)
        talk.expect("> and then?\n  Or not?\n")
        talk.expect("Later.")
        talk.expect("$0.00")
        leave(talk)


@pytest.mark.promise("TERM-9")
def test_an_edit_is_made_after_one_key(workspace: Path, tmp_path: Path) -> None:
    with terminal("--model", edit_script(workspace, tmp_path), "change it", cwd=workspace) as talk:
        talk.expect("2 +     return 2")
        talk.expect("y yes")
        talk.type("?")
        talk.expect("  why ")
        assert "return 1" in (workspace / "cart.py").read_text()
        talk.type("y")
        talk.expect("applied   +1 -1")
        assert "return 2" in (workspace / "cart.py").read_text()
        talk.expect("So be it.")
        leave(talk)


@pytest.mark.promise("TERM-9")
def test_a_rejected_edit_is_not_made_and_the_model_is_told_why(workspace: Path, tmp_path: Path) -> None:
    with terminal("--model", edit_script(workspace, tmp_path), "change it", cwd=workspace) as talk:
        talk.expect("y yes")
        talk.type("n")
        talk.expect("why not?")
        talk.type("not in this file" + ENTER)
        talk.expect("refused  user_rejected")
        talk.expect("So be it.")
        leave(talk)
    assert "return 1" in (workspace / "cart.py").read_text()
    listed = json.loads(run("sessions", "--json", cwd=workspace).stdout)
    run("export", listed["id"], str(tmp_path / "kept"), cwd=workspace)
    assert "not in this file" in (tmp_path / "kept").read_text()


def test_always_holds_for_the_rest_of_the_session(workspace: Path, tmp_path: Path) -> None:
    model = script(tmp_path, RUN, RUN, {"text": "Twice."})
    with terminal("--model", model, "run it twice", cwd=workspace) as talk:
        talk.expect("y yes")
        talk.type("a")
        talk.expect("always in this session")
        talk.expect("Twice.")
        assert talk.text.count("run       touch ran") == 2
        leave(talk)
    assert (workspace / "ran").exists()


def test_a_message_during_a_turn_is_queued_and_steers_it(workspace: Path, tmp_path: Path) -> None:
    model = script(tmp_path, RUN, {"text": "As you wish."})
    with terminal("--model", model, "run it", cwd=workspace) as talk:
        talk.expect("y yes")
        talk.type("be quick" + ENTER)
        talk.expect("queued    be quick")
        talk.type("y")
        talk.expect("> be quick")
        talk.expect("As you wish.")
        leave(talk)


@pytest.mark.promise("TERM-10")
def test_a_message_typed_at_an_approval_is_no_answer(workspace: Path, tmp_path: Path) -> None:
    model = script(tmp_path, RUN, {"text": "As you wish."})
    with terminal("--model", model, "run it", cwd=workspace) as talk:
        talk.expect("y yes")
        talk.type("also check style")
        talk.expect("this is a message")
        talk.type(ENTER)
        talk.expect("queued    also check style")
        assert not (workspace / "ran").exists()
        talk.type("Y")
        talk.expect("As you wish.")
        leave(talk)
    assert (workspace / "ran").exists()
    assert "always in this session:" not in talk.text


@pytest.mark.promise("TERM-10")
def test_a_key_that_was_on_its_way_before_the_question_is_no_answer(workspace: Path, tmp_path: Path) -> None:
    slow = RUN | {"chunk_delay_ms": 300}
    with terminal("--model", script(tmp_path, slow, {"text": "Done."}), "run it", cwd=workspace) as talk:
        talk.expect("allow?")
        talk.type("y")
        talk.expect("this is a message")
        assert not (workspace / "ran").exists()
        talk.type(ENTER)  # a word that answers is one, when it is sent
        talk.expect("Done.")
        leave(talk)
    assert (workspace / "ran").exists()


@pytest.mark.promise("TERM-11")
def test_a_yes_to_what_is_hidden_shows_it_first(workspace: Path, tmp_path: Path) -> None:
    text = "".join(f"value_{number} = {number}\n" for number in range(400))
    call = {"name": "write", "arguments": {"path": "new.py", "text": text}}
    model = script(tmp_path, {"calls": [call]}, {"text": "Written."})
    with terminal("--model", model, "write it", cwd=workspace) as talk:
        talk.expect("341 lines are hidden here")
        talk.expect("v view all")
        talk.type("y")
        talk.expect("value_200 = 200")
        assert not (workspace / "new.py").exists()
        talk.expect("y yes")
        talk.type("y")
        talk.expect("Written.")
        leave(talk)
    assert (workspace / "new.py").read_text() == text


@pytest.mark.promise("TERM-8")
def test_two_terminals_show_the_same_session_and_each_can_speak(workspace: Path, tmp_path: Path) -> None:
    model = script(tmp_path, {"text": "First."}, {"text": "Second."}, {"text": "Third."})
    with terminal("--model", model, "one", cwd=workspace) as holder:
        holder.expect("First.")
        holder.expect("$0.00")
        with terminal("resume", "--model", model, cwd=workspace) as follower:
            follower.expect("> one")
            follower.expect("First.")
            follower.expect("another process runs this session")
            follower.type("two" + ENTER)
            holder.expect("> two")
            holder.expect("Second.")
            follower.expect("Second.")
            holder.expect("$0.00")
            leave(holder)
            follower.expect("this one continues")
            follower.type("three" + ENTER)
            follower.expect("Third.")
            follower.expect("$0.00")
            leave(follower)


def test_a_resumed_session_shows_its_last_exchange_and_no_more(workspace: Path, tmp_path: Path) -> None:
    model = script(tmp_path, {"text": "First."}, {"text": "Second."})
    run("run", "one", "--model", model, cwd=workspace)
    run("resume", "--message", "two", "--model", model, cwd=workspace)
    with terminal("resume", "--model", model, cwd=workspace) as talk:
        talk.expect("> two")
        talk.expect("Second.")
        assert "First." not in talk.text
        leave(talk)


def test_a_question_is_answered_by_the_number_of_an_option(workspace: Path, tmp_path: Path) -> None:
    asks = {"name": "ask_user", "arguments": {"question": "Which one?", "options": ["red", "blue"]}}
    model = script(tmp_path, {"calls": [asks]}, {"when": "blue", "text": "So blue it is."})
    with terminal("--model", model, "ask me", cwd=workspace) as talk:
        talk.expect("Which one?")
        talk.expect("a number or your own words")
        talk.type("7" + ENTER)
        talk.expect("there is no 7")
        talk.type("2" + ENTER)
        talk.expect("answer    blue")
        talk.expect("So blue it is.")
        leave(talk)


@pytest.mark.promise("CRED-8")
def test_a_secret_is_typed_without_being_shown_or_kept_in_the_history(
    workspace: Path, tmp_path: Path, home: Path
) -> None:
    asks = {"name": "credential_prompt", "arguments": {"name": "SHOP_TOKEN", "why": "to list the orders"}}
    model = script(tmp_path, {"calls": [asks]}, {"when": "stored", "text": "Thank you."})
    with terminal("--model", model, "ask me", cwd=workspace) as talk:
        talk.expect("asks for a secret, SHOP_TOKEN")
        talk.expect("SHOP_TOKEN (not shown; Enter alone declines)")
        talk.type("/sword fish-0123456789" + ENTER)
        talk.expect("Thank you.")
        leave(talk)
    assert "fish" not in talk.raw
    assert Credentials(find_places(os.environ), os.environ).values() == {
        "SHOP_TOKEN": "/sword fish-0123456789"
    }
    kept = [path for path in home.rglob("*") if path.is_file() and b"fish" in path.read_bytes()]
    assert kept == []


def test_an_end_from_outside_gives_the_terminal_back(workspace: Path, tmp_path: Path) -> None:
    with terminal("--model", script(tmp_path, SLOW), "count", cwd=workspace) as talk:
        talk.expect("one")
        assert not talk.echoes()
        talk.process.terminate()
        assert talk.end() == 0
        assert talk.echoes()


def test_slash_commands(workspace: Path, tmp_path: Path) -> None:
    model = script(tmp_path, {"text": "Hello."})
    with terminal("--model", model, cwd=workspace) as talk:
        talk.expect("mode ask")
        talk.type("/cost" + ENTER)
        talk.expect("no session yet")
        talk.type("/sesions" + ENTER)
        talk.expect("Did you mean /sessions?")
        talk.type("/mode plan" + ENTER)
        talk.expect("mode      plan")
        talk.type("hi" + ENTER)
        talk.expect("Hello.")
        talk.expect("$0.00")
        talk.type("/rename the cart" + ENTER)
        talk.expect("title     the cart")
        talk.type("/sessions" + ENTER)
        talk.expect("1 turn ")
        talk.type(f"/export {tmp_path / 'kept'}" + ENTER)
        talk.expect("exported")
        talk.type("/clear" + ENTER)
        talk.expect("session: it starts with your next message")
        talk.type("/resume cart" + ENTER)
        talk.expect("Hello.")
        talk.type("/quit" + ENTER)
        assert talk.end() == 0
    assert (tmp_path / "kept").exists()


def test_no_colour_where_none_is_wanted(workspace: Path, tmp_path: Path) -> None:
    model = script(tmp_path, {"text": "It is **bold**."})
    with terminal("--model", model, "hi", cwd=workspace, NO_COLOR="1") as talk:
        talk.expect("It is **bold**.")
        talk.expect("$0.00")
        leave(talk)
        assert "\x1b[36m" not in talk.raw


def test_one_tab_completes(workspace: Path, tmp_path: Path) -> None:
    with terminal("--model", script(tmp_path, {"text": "x"}), cwd=workspace) as talk:
        talk.expect("mode ask")
        talk.type("/expo\t")
        talk.type(ENTER)
        talk.expect("no session yet")
        leave(talk)


@pytest.mark.parametrize("moment", ["streaming", "idle"])
def test_a_closed_window_is_no_crash(moment: str, workspace: Path, tmp_path: Path, home: Path) -> None:
    quick = {"text": "one"}
    model = script(tmp_path, SLOW | {"chunk_delay_ms": 30} if moment == "streaming" else quick)
    with terminal("--model", model, "count", cwd=workspace) as talk:
        talk.expect("one" if moment == "streaming" else "$0.00")
        assert talk.close_window() in (0, 1)
    assert not (home / "handrail" / "crashes").exists()


@pytest.mark.promise("CTX-1")
def test_a_compaction_tells_what_it_kept_and_can_be_shown_and_undone(workspace: Path, tmp_path: Path) -> None:
    model = script(tmp_path, *({"text": f"Answer {number}."} for number in range(5)))
    with terminal("--model", model, cwd=workspace) as talk:
        talk.expect("mode ask")
        talk.type("/compact" + ENTER)
        talk.expect("no session yet")
        for number in range(3):
            talk.type(f"message {number}" + ENTER)
            talk.expect(f"Answer {number}.")
            talk.expect("$0.00")
        talk.type("/compact show" + ENTER)
        talk.expect("Nothing is compacted")
        talk.type("/compact" + ENTER)
        talk.expect("kept: the goal")
        talk.expect("no notes by the model: It did not write what it was asked for")
        talk.type("/compact show" + ENTER)
        talk.expect("Goal, in the user's words: message 0")
        talk.type("/compact undo" + ENTER)
        talk.expect("the model sees the full older turns again")
        leave(talk)
