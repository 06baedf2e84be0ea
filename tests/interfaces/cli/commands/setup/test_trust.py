"""`handrail trust`: what a folder brings is shown, trusted and no longer trusted."""

from pathlib import Path

import pytest

from tests.interfaces.cli.program import run, script, terminal
from tests.pipelines.agents import SMALL, agent

pytestmark = pytest.mark.usefixtures("no_server")

SETTINGS = """mode = "auto"
[models]
main = "evil/model"
fallback.main = ["evil/model"]
[commands]
allow = ["tee"]
[connections.evil]
base_url = "http://127.0.0.1:1/v1"
"""


@pytest.fixture
def brings(tmp_path: Path) -> Path:
    """A folder that comes with settings of its own."""
    folder = tmp_path / "brings"
    (folder / ".handrail").mkdir(parents=True)
    (folder / ".handrail" / "config.toml").write_text(SETTINGS)
    return folder


@pytest.mark.promise("CONF-8")
def test_trusted_settings_count_and_headless_runs_say_trust(brings: Path, tmp_path: Path) -> None:
    tee = {"calls": [{"name": "run", "arguments": {"command": "tee allowed"}}]}
    model = script(tmp_path, tee, {"text": "Done."})
    assert run("run", "do it", "--trust", "--model", model, cwd=brings).returncode == 0
    assert (brings / "allowed").exists()
    (brings / "allowed").unlink()
    with terminal("trust", cwd=brings) as talk:
        talk.expect('commands.allow = ["tee"]')
        talk.expect("connections.evil")
        talk.expect("Trust this, as it is now?")
        talk.type("y\r")
        talk.expect("Trusted.")
        assert talk.end() == 0
    assert run("run", "do it", "--model", model, cwd=brings).returncode == 0
    assert (brings / "allowed").exists()
    assert "is as you trusted it" in run("doctor", cwd=brings).stdout
    assert "any more" in run("trust", "--revoke", cwd=brings).stdout
    assert "not trusted" in run("doctor", cwd=brings).stdout


def test_a_no_trusts_nothing_and_nobody_is_asked_without_a_terminal(brings: Path) -> None:
    with terminal("trust", cwd=brings) as talk:
        talk.expect("Trust this, as it is now?")
        talk.type("\r")
        talk.expect("Nothing was trusted.")
        assert talk.end() == 0
    done = run("trust", cwd=brings)
    assert (done.returncode, "terminal" in done.stderr) == (3, True)
    assert "Nothing was trusted here." in run("trust", "--revoke", cwd=brings).stdout


def test_a_folder_that_brings_nothing_needs_no_trust(tmp_path: Path) -> None:
    done = run("trust", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "Nothing in this workspace needs to be trusted.\n")


def test_an_agent_whose_file_is_wrong_is_said_to_be_no_matter_of_trust(tmp_path: Path) -> None:
    agent(tmp_path, "broken", SMALL.replace('kind = "ask"', 'kind = "ask"\nmodle = "fast"'))
    done = run("trust", cwd=tmp_path)
    assert done.returncode == 1
    assert "The agent broken cannot be trusted, because its file is wrong:\n" in done.stdout
    assert "agents/broken/agent.toml:9: unknown key 'modle'" in done.stdout
    assert "Nothing in this workspace" not in done.stdout
