"""Changes from the shell and in the conversation: listed, shown, taken back, and brought again."""

import hashlib
import json
import os
import re
import sqlite3
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest

from handrail.workspace.files import Workspace
from handrail.workspace.scratch_copy.copies import COPIES, ScratchCopies
from tests.engine.conversation import conversation
from tests.interfaces.cli.program import DEADLINE, Terminal, command, environment, run, script, terminal

CTRL_C, CTRL_D, ENTER = "\x03", "\x04", "\r"
FIRST = "one\n" + "".join(f"line {number}\n" for number in range(2, 12))
SECOND = FIRST.replace("one", "uno")
SLOW = {"when": "count", "text": "one two " * 60, "chunk_delay_ms": 500}
"""An answer that goes on until it is stopped."""
NO_MODEL = {"HANDRAIL_MODEL": "scripted//nowhere/at/all.json"}


def base(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments}


def edit(before: str, old: str, new: str) -> dict[str, Any]:
    edits = [{"search": old, "replace": new}]
    return call("edit", path="cart.txt", base_hash=base(before), edits=edits)


ANSWERS: list[dict[str, Any]] = [
    {"when": "create it", "calls": [call("write", path="cart.txt", text=FIRST)]},
    {"when": "translate it", "calls": [edit(FIRST, "one", "uno")]},
    {"when": "another", "calls": [call("write", path="new/tax.txt", text="19 %\n")]},
    {"when": "run it", "calls": [call("run", command="touch ran")]},
    SLOW,
    *[{"text": "Done."}] * 12,
]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    return folder


@pytest.fixture
def model(tmp_path: Path) -> str:
    return script(tmp_path, *ANSWERS)


@pytest.fixture
def cart(workspace: Path, model: str) -> Path:
    """A file after two turns, each with a change set of its own."""
    anyio.run(talked, workspace, model, "create it", "translate it")
    file = workspace / "cart.txt"
    assert file.read_text() == SECOND
    return file


async def talked(workspace: Path, model: str, *messages: str) -> None:
    """A session that another process could have left."""
    async with conversation(workspace, None, model=model, mode="edit") as talk:
        for text in messages:
            assert (await talk.turn(text)).reason == "answered"


def said(workspace: Path, model: str, text: str, *more: str) -> None:
    done = run("run", text, *more, "--mode", "edit", "--model", model, cwd=workspace)
    assert done.returncode == 0, done.stderr


def listed(workspace: Path) -> list[dict[str, Any]]:
    return [json.loads(row) for row in run("changes", "--json", cwd=workspace).stdout.splitlines()]


def by_hand(file: Path, old: str = "line 11", new: str = "line 11, by hand") -> str:
    text = file.read_text().replace(old, new)
    file.write_text(text)
    return text


# Looking


@pytest.mark.promise("BACK-1")
def test_changes_are_listed_newest_first_with_what_has_become_of_them(workspace: Path, cart: Path) -> None:
    run("undo", cwd=workspace)
    rows = run("changes", cwd=workspace).stdout.splitlines()
    words = [row.split()[0] for row in rows]
    assert words == ["change", "3", "undoes", "2", "1"]
    assert "rollback  applied" in rows[1]
    assert rows[2].strip() == "undoes 2"
    assert "agent     undone by 3" in rows[3]
    assert rows[4].endswith(f"applied             {cart.name} +11 -0")
    found = listed(workspace)
    assert [each["number"] for each in found] == [3, 2, 1]
    assert [each["status"] for each in found] == ["applied", "taken back", "applied"]
    assert found[1]["taken_back_by"] == found[0]["id"]


@pytest.mark.promise("BACK-1")
def test_a_change_set_is_shown_by_number_or_the_end_of_its_id(workspace: Path, cart: Path) -> None:
    second = listed(workspace)[0]
    for name in ("", "2", second["id"], second["id"][-7:]):
        shown = run("changes", "show", *([name] if name else []), cwd=workspace)
        assert shown.stdout.startswith(f"--- {cart.name}\n+++ {cart.name}\n@@ -1,4 +1,4 @@\n-one\n+uno\n")
        assert f"change 2  {second['id']}  applied" in shown.stderr
    with terminal("changes", "show", "2", cwd=workspace) as talk:
        talk.expect("cart.txt +1 -1")
        talk.expect("1 - one")
        talk.expect("1 + uno")
        assert talk.end() == 0
    wrong = run("changes", "show", "9", cwd=workspace)
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "no change set 9 in this session: choose 1 to 2" in wrong.stderr
    assert "No change set of this session is called 'c_x'" in run("rewind", "c_x", cwd=workspace).stderr


@pytest.mark.promise("BACK-1")
def test_a_diff_shown_into_a_pipe_is_whole_and_a_patch(workspace: Path, cart: Path, model: str) -> None:
    shown = run("changes", "show", "2", cwd=workspace).stdout
    subprocess.run(["patch", "-R", "-p0"], cwd=workspace, input=shown, text=True, check=True)
    assert cart.read_text() == FIRST


@pytest.mark.promise("BACK-6")
def test_the_diff_of_a_session_leaves_out_what_the_user_wrote_and_what_was_taken_back(
    workspace: Path, cart: Path, model: str
) -> None:
    by_hand(cart)
    net = run("diff", "2", cwd=workspace).stdout
    assert "-one\n+uno\n" in net
    assert "by hand" not in net
    run("undo", "--accept", cart.name, cwd=workspace)
    assert "uno" not in run("diff", cwd=workspace).stdout
    assert run("diff", "2", cwd=workspace).stdout == ""


def test_where_both_changed_the_same_lines_the_diff_says_so(workspace: Path, cart: Path) -> None:
    by_hand(cart, "uno", "eins")
    done = run("diff", "2", cwd=workspace)
    assert "-one\n+eins\n" in done.stdout
    assert "same lines of cart.txt" in done.stderr


# Going back without a terminal


@pytest.mark.promise("BACK-2")
def test_without_a_terminal_a_rewind_needs_a_yes_and_what_is_meant(workspace: Path, cart: Path) -> None:
    asked = run("rewind", "1", cwd=workspace)
    assert asked.returncode == 3
    assert "Would undo 2 change sets (2, 1):" in asked.stdout
    assert "--yes, and --files, --conversation or --both" in asked.stderr
    assert run("rewind", "1", "--yes", cwd=workspace).returncode == 2
    assert run("rewind", "1", "--files", cwd=workspace).returncode == 3
    dry = run("rewind", "1", "--files", "--yes", "--dry-run", cwd=workspace)
    assert (dry.returncode, "Nothing was changed." in dry.stderr) == (0, True)
    assert cart.read_text() == SECOND
    assert len(listed(workspace)) == 2
    done = run("rewind", "1", "--files", "--yes", cwd=workspace)
    assert (done.returncode, cart.exists()) == (0, False), done.stderr
    again = run("redo", cwd=workspace)
    assert (again.returncode, cart.read_text()) == (0, SECOND), again.stderr


@pytest.mark.promise("BACK-2")
def test_a_rewind_of_the_conversation_leaves_files_alone(workspace: Path, cart: Path) -> None:
    done = run("rewind", "2", "--conversation", "--yes", cwd=workspace)
    assert (done.returncode, cart.read_text()) == (0, SECOND)
    assert "the conversation continues after 1 turn" in done.stdout
    again = run("redo", cwd=workspace).stdout
    assert "comes back" in again
    assert "Redone: the conversation is back." in again
    done = run("rewind", "2", "--both", "--yes", cwd=workspace)
    assert "cart.txt is as before; the conversation continues after 1 turn" in done.stdout
    assert cart.read_text() == FIRST


@pytest.mark.promise("BACK-2")
def test_a_rewind_to_before_a_turn(workspace: Path, cart: Path, model: str) -> None:
    said(workspace, model, "hello", "--session", "")
    assert run("rewind", "--turn", "9", cwd=workspace).returncode == 2
    assert run("rewind", "1", "--turn", "2", cwd=workspace).returncode == 2
    alone = run("rewind", "--turn", "3", "--both", "--yes", cwd=workspace)
    assert (alone.returncode, cart.read_text()) == (0, SECOND), alone.stderr
    assert "the conversation continues after 2 turns" in alone.stdout
    done = run("rewind", "--turn", "2", "--files", "--yes", cwd=workspace)
    assert (done.returncode, cart.read_text()) == (0, FIRST), done.stderr


@pytest.mark.promise("BACK-3")
def test_a_merge_is_taken_only_where_it_is_accepted(workspace: Path, cart: Path) -> None:
    mine = by_hand(cart)
    stopped = run("rewind", "2", "--files", "--yes", cwd=workspace)
    assert stopped.returncode == 3
    assert "changed since by you or another program: merged" in stopped.stdout
    assert "--accept cart.txt accepts the merge, --leave cart.txt keeps" in stopped.stderr
    assert run("undo", cwd=workspace).returncode == 3
    assert run("undo", "--accept", "other.txt", cwd=workspace).returncode == 2
    assert cart.read_text() == mine
    done = run("undo", "--accept", "cart.txt", cwd=workspace)
    assert (done.returncode, cart.read_text()) == (0, mine.replace("uno", "one")), done.stderr
    assert run("redo", cwd=workspace).returncode == 0
    assert cart.read_text() == mine


@pytest.mark.promise("BACK-3")
def test_what_cannot_be_merged_stays_and_the_rest_goes_back(workspace: Path, cart: Path, model: str) -> None:
    said(workspace, model, "another", "--session", "")
    mine = by_hand(cart, "uno", "eins")
    alone = run("undo", "2", cwd=workspace)
    assert (alone.returncode, cart.read_text()) == (1, mine)
    assert "nothing that could be undone" in alone.stderr
    stopped = run("rewind", "2", "--files", "--yes", cwd=workspace)
    assert stopped.returncode == 3
    assert "1 - eins" in stopped.stdout
    assert "1 + one" in stopped.stdout
    assert run("rewind", "2", "--files", "--yes", "--accept", "cart.txt", cwd=workspace).returncode == 2
    assert (workspace / "new" / "tax.txt").exists()
    done = run("rewind", "2", "--files", "--yes", "--leave", "cart.txt", cwd=workspace)
    assert done.returncode == 0, done.stderr
    assert not (workspace / "new").exists()
    assert cart.read_text() == mine
    statuses = [each["status"] for each in listed(workspace)]
    assert statuses == ["applied", "taken back", "applied", "applied"], "what was left is said to be gone"


@pytest.mark.promise("BACK-4")
def test_an_undo_takes_back_one_change_set_and_the_next_the_one_before(
    workspace: Path, cart: Path, model: str
) -> None:
    said(workspace, model, "another", "--session", "")
    tax = workspace / "new" / "tax.txt"
    alone = run("undo", "2", cwd=workspace)
    assert (alone.returncode, cart.read_text(), tax.exists()) == (0, FIRST, True), alone.stderr
    twice = run("undo", "2", cwd=workspace)
    assert twice.returncode == 2
    assert "change 2 was already undone, by change 4" in twice.stderr
    assert run("undo", cwd=workspace).returncode == 0
    assert not tax.exists()
    assert run("undo", cwd=workspace).returncode == 0
    assert not cart.exists()
    nothing = run("undo", cwd=workspace)
    assert (nothing.returncode, "is in place" in nothing.stderr) == (2, True)
    for _ in range(3):
        assert run("redo", cwd=workspace).returncode == 0
    assert (cart.read_text(), tax.exists()) == (SECOND, True)
    nothing = run("redo", cwd=workspace)
    assert (nothing.returncode, "no undo or rewind left to redo" in nothing.stderr) == (2, True)


def test_undo_of_a_named_session_says_the_redo_that_works(workspace: Path, cart: Path, model: str) -> None:
    [first] = [json.loads(row)["id"] for row in run("sessions", "--json", cwd=workspace).stdout.splitlines()]
    said(workspace, model, "another")
    undone = run("undo", "--session", first, cwd=workspace)
    again = re.search(r"handrail redo (--session \S+)`", undone.stdout.replace("\n  ", " "))
    assert again, undone.stdout
    before = cart.read_text()
    assert run("redo", *again[1].split(), cwd=workspace).returncode == 0
    assert cart.read_text() != before


@pytest.mark.promise("BACK-5")
def test_all_of_it_works_without_a_model_and_without_git(workspace: Path, cart: Path) -> None:
    for arguments in (("changes",), ("changes", "show"), ("diff",), ("undo",), ("redo",), ("storage",)):
        done = run(*arguments, cwd=workspace, **NO_MODEL)
        assert done.returncode == 0, done.stderr
    assert run("rewind", "1", "--both", "--yes", cwd=workspace, **NO_MODEL).returncode == 0
    assert not cart.exists()


@pytest.mark.parametrize("arguments", [["changes"], ["diff"], ["undo"], ["redo"], ["rewind", "1"]])
def test_a_folder_without_sessions_is_said_to_have_none(workspace: Path, arguments: list[str]) -> None:
    done = run(*arguments, cwd=workspace)
    assert (done.returncode, done.stdout) == (2, "")
    assert "There is no session in this folder yet" in done.stderr


def test_a_session_without_changes_is_said_to_have_none(workspace: Path, model: str) -> None:
    said(workspace, model, "hello")
    assert "No file was changed" in run("changes", cwd=workspace).stderr
    assert "No file was changed" in run("undo", cwd=workspace).stderr
    assert run("undo", cwd=workspace).returncode == 2
    assert "Nothing that this session changed" in run("diff", cwd=workspace).stderr


# In a terminal


def interrupt(talk: Terminal) -> None:
    """Ctrl-C, again where the first came in the instant between the prompt and Python's reading of it."""
    for _ in range(20):
        talk.type(CTRL_C)
        with suppress(subprocess.TimeoutExpired):
            talk.process.wait(timeout=1)
            return


@pytest.mark.promise("BACK-2")
def test_at_a_terminal_a_rewind_asks_what_goes_back(workspace: Path, cart: Path) -> None:
    mine = by_hand(cart)
    with terminal("rewind", "2", cwd=workspace) as talk:
        talk.expect("[f/c/b/n, d shows the diffs] ")
        talk.type("x" + ENTER)
        talk.expect("[f/c/b/n, d shows the diffs] ")
        talk.type("d" + ENTER)
        talk.expect("1 + one")
        talk.expect("[f/c/b/n, d shows the diffs] ")
        talk.type(ENTER)
        talk.expect("Nothing was changed.")
        assert talk.end() == 0
    assert cart.read_text() == mine
    with terminal("rewind", "2", cwd=workspace) as talk:
        talk.expect("[f/c/b/n, d shows the diffs] ")
        interrupt(talk)
        assert talk.end() == 130
    assert cart.read_text() == mine
    with terminal("rewind", "2", cwd=workspace) as talk:
        talk.expect("[f/c/b/n, d shows the diffs] ")
        talk.type("f" + ENTER)
        talk.expect("cart.txt is as before")
        assert talk.end() == 0
    assert cart.read_text() == mine.replace("uno", "one")


def opened(talk: Terminal) -> None:
    talk.expect("mode ")
    talk.expect("> ")


@pytest.mark.promise("BACK-5")
def test_a_session_that_a_terminal_holds_is_taken_back_from_a_shell(
    workspace: Path, cart: Path, model: str
) -> None:
    with terminal("resume", "--model", model, cwd=workspace) as talk:
        talk.expect("> translate it")
        done = run("undo", cwd=workspace)
        assert (done.returncode, cart.read_text()) == (0, FIRST), done.stderr
        talk.expect("undone    cart.txt is as before; /redo undoes this")
        talk.type("count" + ENTER)
        talk.expect("one")
        with subprocess.Popen(
            command("redo"), cwd=workspace, env=environment(), stderr=subprocess.PIPE, text=True
        ) as waiting:
            assert waiting.stderr
            assert waiting.stderr.readline() == "waiting for the turn that is running in another terminal\n"
            assert cart.read_text() == FIRST, "it was done in the middle of a turn"
            talk.type(CTRL_C)
            assert waiting.wait(timeout=DEADLINE) == 0
        talk.expect("redone    cart.txt is changed again")
        talk.type(CTRL_D)
        assert talk.end() == 0
    assert cart.read_text() == SECOND


def test_who_does_not_want_to_wait_is_told_that_it_may_still_be_done(
    workspace: Path, cart: Path, model: str
) -> None:
    with terminal("resume", "--model", model, cwd=workspace) as talk:
        talk.expect("> translate it")
        talk.type("count" + ENTER)
        talk.expect("one")
        with terminal("undo", cwd=workspace) as other:
            other.expect("waiting   for the turn that is running in another terminal")
            other.type(CTRL_C)
            other.expect("It may still be done")
            assert other.end() == 130
        assert cart.read_text() == SECOND
        talk.type(CTRL_C)
        talk.expect("undone    cart.txt is as before")
        talk.type(CTRL_D)
        assert talk.end() == 0
    assert cart.read_text() == FIRST


@pytest.mark.promise("BACK-5")
def test_a_turn_that_waits_for_the_user_is_not_gone_on_with(workspace: Path, cart: Path, model: str) -> None:
    with terminal("resume", "--model", model, cwd=workspace) as talk:
        talk.expect("> translate it")
        talk.type("run it" + ENTER)
        talk.expect("allow?")
        talk.close_window()
    done = run("undo", cwd=workspace)
    assert done.returncode == 2
    assert "waits for your answer" in done.stderr
    assert cart.read_text() == SECOND
    assert not (workspace / "ran").exists()


@pytest.mark.promise("BACK-4")
def test_changes_in_the_conversation(workspace: Path, model: str) -> None:
    cart = workspace / "cart.txt"
    with terminal("--mode", "edit", "--model", model, cwd=workspace) as talk:
        opened(talk)
        talk.type("/undo" + ENTER)
        talk.expect("There is no session yet")
        talk.type("create it" + ENTER)
        talk.expect("$0.00")
        talk.type("translate it" + ENTER)
        talk.expect("$0.00")
        talk.type("/changes" + ENTER)
        talk.expect("2     just now  agent     applied             cart.txt +1 -1")
        talk.type("/changes 2" + ENTER)
        talk.expect("1 + uno")
        talk.type("/undo" + ENTER)
        talk.expect("undone    cart.txt is as before; /redo undoes this")
        assert cart.read_text() == FIRST
        talk.type("/redo" + ENTER)
        talk.expect("redone    cart.txt is changed again; the conversation did not change")
        talk.type("/diff 2" + ENTER)
        talk.expect("cart.txt +1 -1")
        mine = by_hand(cart)
        talk.type("/rewind 2" + ENTER)
        talk.expect("Would undo 1 change set (2):")
        talk.expect("merged, no overlap")
        talk.expect("[f/c/b/n, d shows the diffs] >")
        talk.type(CTRL_C)
        talk.expect("nothing was changed")
        talk.type("/rewind 2" + ENTER)
        talk.expect("[f/c/b/n, d shows the diffs] >")
        talk.type("y" + ENTER)
        talk.expect("answer with f files, c conversation, b both, n no, d diffs")
        talk.type("b" + ENTER)
        talk.expect("the conversation continues after 1 turn;")
        assert cart.read_text() == mine.replace("uno", "one")
        talk.type("/rewind 9" + ENTER)
        talk.expect("no change set 9")
        talk.type(CTRL_D)
        assert talk.end() == 0


# Storage


@pytest.mark.promise("COPY-8")
def test_scratch_copies_that_nobody_uses_are_pruned(workspace: Path, cart: Path) -> None:
    (log,) = Path(os.environ["HANDRAIL_HOME"]).rglob("*.db")
    copies = ScratchCopies(Workspace(workspace), log.parent / COPIES)
    with copies.take() as used, copies.take():
        assert "2 scratch copies of this folder, for checks, 2 in use" in run("storage", cwd=workspace).stdout
        assert "nothing to delete" in run("storage", "prune", "--yes", cwd=workspace).stdout
        assert (used.root / cart.relative_to(workspace)).exists()
    assert run("storage", "prune", cwd=workspace).returncode == 3
    assert run("storage", "prune", "--yes", cwd=workspace).stdout == "Deleted 2 scratch copies.\n"
    assert "scratch" not in run("storage", cwd=workspace).stdout


@pytest.mark.promise("BACK-7")
def test_only_what_nothing_needs_is_dropped_and_only_after_a_yes(workspace: Path, cart: Path) -> None:
    small = {"HANDRAIL_STORAGE_MEGABYTES": "1"}
    done = run("storage", "prune", cwd=workspace, **small)
    assert (done.returncode, "nothing to delete" in done.stdout) == (0, True)
    (log,) = Path(os.environ["HANDRAIL_HOME"]).rglob("*.db")
    with sqlite3.connect(log) as db:
        db.execute("UPDATE blobs SET at = 1")
        db.execute("INSERT INTO blobs VALUES ('0', 2000000, 2, zeroblob(2000000))")
    db.close()
    told = run("storage", cwd=workspace, **small).stdout
    assert "1 session" in told
    assert "the limit is 1.0 MB" in told
    assert run("storage", "prune", cwd=workspace, **small).returncode == 3
    with terminal("storage", "prune", cwd=workspace, **small) as talk:
        talk.expect("2.0 MB? [y/N]: ")
        talk.type(ENTER)
        assert talk.end() == 0
    done = run("storage", "prune", "--yes", cwd=workspace, **small)
    assert (done.returncode, "Deleted" in done.stdout) == (0, True)
    assert run("rewind", "1", "--files", "--yes", cwd=workspace).returncode == 0
    assert run("redo", cwd=workspace).returncode == 0
    assert cart.read_text() == SECOND
