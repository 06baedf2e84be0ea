"""The user's own commands in the conversation: completed, listed, sent; a workspace's after trust."""

from pathlib import Path

import pytest

from tests.interfaces.cli.program import script, terminal

pytestmark = pytest.mark.usefixtures("no_server")
ENTER, CTRL_D, TAB = "\r", "\x04", "\t"


@pytest.mark.promise("TERM-61")
@pytest.mark.promise("TERM-62")
def test_own_commands_are_sent_and_a_workspaces_need_trust(tmp_path: Path, home: Path) -> None:
    own, brought = home / "handrail" / "commands", tmp_path / ".handrail" / "commands"
    own.mkdir()
    brought.mkdir(parents=True)
    (own / "explain.md").write_text("---\ndescription: explain a file\narguments: FILE\n---\nExplain $1.\n")
    (own / "quit.md").write_text("Never reached.\n")
    (brought / "ship2.md").write_text("Ship $ARGUMENTS now.\n")
    (brought / "a\napproved.md").write_text("A name that looks like a line of Handrail's.\n")
    model = script(tmp_path, {"when": "Explain", "text": "It adds."}, {"when": "Ship it", "text": "Shipped."})
    with terminal("--model", model, cwd=tmp_path) as talk:
        talk.expect("mode ask")
        talk.type("/help" + ENTER)
        talk.expect("/explain FILE")
        talk.expect("explain a file")
        talk.expect("/ship2")
        talk.expect("`handrail trust` shows it")
        talk.expect("/quit is a command of Handrail's own")
        talk.expect("/a approved")
        talk.type("/expl" + TAB + " cart.py" + ENTER)
        talk.expect("> Explain cart.py.")
        talk.expect("It adds.")
        talk.expect("$0.00")
        talk.type("/explain" + ENTER)
        talk.expect("Say /explain FILE.")
        talk.type("/ship2 it" + ENTER)
        talk.expect("/ship2 came with this workspace and is not trusted")
        talk.type("/quit" + ENTER)
        assert talk.end() == 0
    with terminal("trust", cwd=tmp_path) as talk:
        talk.expect("| Ship $ARGUMENTS now.")
        talk.expect("Trust this, as it is now?")
        talk.type("y\r")
        talk.expect("Trusted.")
        assert talk.end() == 0
    with terminal("--model", model, "/ship2 it", cwd=tmp_path) as talk:
        talk.expect("> Ship it now.")
        talk.expect("Shipped.")
        talk.expect("$0.00")
        talk.type(CTRL_D)
        assert talk.end() == 0
