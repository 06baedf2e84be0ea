"""What the conversation and the shell say about their own commands."""

from pathlib import Path

import pytest

from tests.interfaces.cli.program import run, script, terminal

pytestmark = pytest.mark.usefixtures("no_server")
ENTER, CTRL_D = "\r", "\x04"


def test_help_names_every_command_apart_from_its_meaning_and_the_keys(tmp_path: Path) -> None:
    with terminal("--model", script(tmp_path, {"text": "Hello."}), cwd=tmp_path) as talk:
        talk.expect("mode ask")
        talk.type("/help" + ENTER)
        talk.expect("/intent [ID|none]        the intent that changes belong to")
        talk.expect("/background [[stop] ID]  list, read or stop background commands")
        talk.expect("Esc, Ctrl-C: stop the turn")
        talk.expect("@agent, as the first word")
        talk.type("/intent" + ENTER)
        talk.expect("`handrail intents init` turns them on")
        talk.type(CTRL_D)
        assert talk.end() == 0


@pytest.mark.parametrize("group", ["stats", "trace", "policy"])
def test_a_group_of_commands_alone_shows_its_help_and_nothing_else(tmp_path: Path, group: str) -> None:
    done = run(group, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == run(group, "--help", cwd=tmp_path).stdout
