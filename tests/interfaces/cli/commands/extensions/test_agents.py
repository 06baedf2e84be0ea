"""`handrail agents`, and an agent in a real terminal."""

import json
import os
from pathlib import Path

import pytest

from tests.interfaces.cli.program import run, script, terminal
from tests.models.fake_server import FakeServer, Said
from tests.pipelines.agents import QUESTION, QUOTE, SMALL, agent, answers, demo

pytestmark = pytest.mark.usefixtures("no_server")
ENTER, CTRL_D = "\r", "\x04"


@pytest.mark.promise("AGENT-7")
def test_an_agent_is_trusted_run_by_numbers_and_told_of_afterwards(tmp_path: Path) -> None:
    work = tmp_path / "ferry"
    work.mkdir()
    demo(work)
    model = script(tmp_path, *answers())
    refused = run("run", f"@report {QUESTION}", "--model", model, cwd=work)
    assert refused.returncode == 1
    assert "`handrail trust` lets it be used" in refused.stderr
    with terminal("trust", cwd=work) as talk:
        talk.expect("of this workspace, not trusted\n")
        talk.expect("stage 5    write: code write_file")
        talk.expect("repair     analyse, once at most")
        talk.expect("repair     draft, 2 times at most")
        talk.expect("Trust this, as it is now?")
        talk.type("y" + ENTER)
        talk.expect("Trusted.")
        assert talk.end() == 0
    with terminal("--model", model, "--mode", "edit", cwd=work) as talk:
        talk.expect("model ")
        talk.type(f"@report {QUESTION}" + ENTER)
        talk.expect("1 of 5: analyse")
        talk.expect("1. Look it up")
        talk.expect("3. Leave this run")
        talk.expect("waiting")
        talk.type("1" + ENTER)
        talk.expect("2 of 5: gather")
        talk.expect("gate  ")
        talk.expect("repair 1")
        talk.expect("5 of 5: write")
        talk.expect("## Sources")
        talk.expect("the text of report.md, shown above")
        talk.type(CTRL_D)
        assert talk.end() == 0
    listed = run("agents", "runs", "report", cwd=work).stdout
    assert "finished" in listed
    assert listed.endswith(f"\n    {QUESTION}\n")
    assert max(map(len, listed.splitlines())) < 80
    shown = run("agents", "runs", listed.split()[0], cwd=work).stdout
    for told in ("analyse (1 of 5)", "1. Look it up", "Quote 1 is in no passage", QUOTE, "cost"):
        assert told in shown
    row = json.loads(run("agents", "runs", "--json", cwd=work).stdout)
    assert (row["end"], row["stages"][-1]) == ("finished", "write")
    assert "not a run here" in run("agents", "runs", "run_none", cwd=work).stderr


@pytest.mark.promise("RUN-10")
def test_a_route_on_the_command_line_does_not_pass_by_a_paused_run(tmp_path: Path) -> None:
    demo(tmp_path)
    model = script(tmp_path, *answers(), {"text": "Four."})
    asked = run("run", f"@report {QUESTION}", "--model", model, "--trust", cwd=tmp_path)
    assert asked.returncode == 3
    (row,) = (json.loads(line) for line in run("sessions", "--json", cwd=tmp_path).stdout.splitlines())
    again = ("run", "--session", row["id"], "--model", model, "--trust")
    elsewhere = run(*again, "--route", "agent", "what is two plus two", cwd=tmp_path)
    assert elsewhere.returncode == 3
    assert "your message is for agent" in elsewhere.stderr + elsewhere.stdout
    left = run(*again, "yes", cwd=tmp_path)
    assert (left.returncode, left.stdout.strip()) == (0, "Four."), left.stderr


@pytest.mark.promise("AGENT-2")
def test_agents_are_listed_shown_and_checked(tmp_path: Path) -> None:
    assert run("agents", cwd=tmp_path).stdout.startswith("research             built in")
    agent(tmp_path)
    agent(tmp_path, "broken", SMALL.replace('kind = "ask"', 'kind = "ask"\nmodle = "fast"'))
    rows = [json.loads(line) for line in run("agents", "list", "--json", cwd=tmp_path).stdout.splitlines()]
    states = {"small": "untrusted", "broken": "wrong", "research": "built in"}
    assert {row["agent"]: row["state"] for row in rows} == states
    shown = run("agents", "show", "small", "--prompts", cwd=tmp_path).stdout
    assert "not trusted" in shown
    assert "before you trust it with `handrail trust`." in shown
    assert "Name the topics." in shown
    assert run("agents", "validate", "small", cwd=tmp_path).returncode == 0
    wrong = run("agents", "validate", cwd=tmp_path)
    assert wrong.returncode == 1
    assert "agents/broken/agent.toml:9: unknown key 'modle'; did you mean 'model'?" in wrong.stdout
    missing = run("agents", "show", "smal", cwd=tmp_path)
    assert (missing.returncode, "Agents here: broken, research, small" in missing.stderr) == (2, True)


def test_a_new_agent_is_yours_or_a_change_of_the_workspace_that_can_be_undone(tmp_path: Path) -> None:
    made = run("agents", "new", "faq", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    own = Path(os.environ["HANDRAIL_HOME"], "agents", "faq")
    assert (own / "prompts" / "answer.md").is_file()
    assert own.stat().st_mode & 0o077 == 0
    assert "exists already" in run("agents", "new", "faq", cwd=tmp_path).stderr
    assert "route of Handrail's own" in run("agents", "new", "chat", cwd=tmp_path).stderr
    here = run("agents", "new", "faq", "--here", cwd=tmp_path)
    assert here.returncode == 0, here.stderr
    assert (tmp_path / "agents/faq/agent.toml").is_file()
    assert "hidden" in run("agents", cwd=tmp_path).stdout
    assert run("agents", "validate", cwd=tmp_path).returncode == 0
    assert run("undo", cwd=tmp_path).returncode == 0
    assert not (tmp_path / "agents/faq/agent.toml").exists()


@pytest.mark.promise("AGENT-9")
def test_who_is_asked_is_shown_before_trust_and_told_afterwards(tmp_path: Path, home: Path) -> None:
    """The model decides who sees the files."""
    named = SMALL.replace('kind = "ask"', 'kind = "ask"\nmodel = "lab/deep"\neffort = "high"')
    agent(tmp_path, text=named)
    agent(tmp_path, "lost", named.replace("lab/", "nowhere/"))
    with FakeServer([Said(text=('```json\n{"topics": ["costs"]}\n```',))]) as server:
        with open(home / "handrail" / "config.toml", "a") as settings:
            settings.write(f'[connections.lab]\nbase_url = "{server.url}/v1"\n')
        checked = run("agents", "validate", cwd=tmp_path)
        place = tmp_path / "agents" / "lost" / "agent.toml"
        assert f"warning: {place}:9: nowhere/deep cannot be asked: your settings have" in checked.stdout
        assert (checked.returncode, "small: nothing wrong." in checked.stdout) == (0, True)
        host = server.url.removeprefix("http://")
        with terminal("trust", cwd=tmp_path) as talk:
            talk.expect("nowhere/deep")
            talk.expect("which cannot be asked")
            talk.expect(f"model lab/deep at {host}")
            talk.expect("effort high (not sent: this model is not known to take it)")
            talk.expect("Trust this, as it is now?")
            talk.type("y" + ENTER)
            talk.expect("Trusted.")
            assert talk.end() == 0
        assert "no model" in run("agents", "list", cwd=tmp_path).stdout
        done = run("run", "@small look", "--model", script(tmp_path, {"text": "Hello."}), cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        told = run(
            "agents", "runs", run("agents", "runs", cwd=tmp_path).stdout.split()[0], cwd=tmp_path
        ).stdout
        assert "model      lab/deep, effort high (not sent: this model is not known to take it)" in told
        assert "read       from a fence" in told


FORGED = "\\n  trust      yours\\u0085  file       all is well \\u202e\\u009b2J"


@pytest.mark.promise("AGENT-3")
def test_nothing_in_an_agent_looks_like_a_line_of_handrail(tmp_path: Path) -> None:
    cites = """
[[stages]]
name = "find"
kind = "code"
step = "gather"
options = {{ files = ["*.md"] }}
[[stages]]
name = "cite"
kind = "code"
step = "cite"
options = {{ findings = "ask.found", passages = "find.passages", title = "{title}" }}
"""
    found = """
[stages.output.properties.found]
type = "array"
items = { type = "object", properties = { claim = { type = "string" }, quote = { type = "string" } } }
"""
    agent(
        tmp_path,
        text=SMALL + found + cites.format(title=FORGED + "x" * 5_000),
        prompt="a\n  trust      yours",
    )
    agent(
        tmp_path, "wrong", SMALL.replace("properties.topics", f'properties."{FORGED}"').replace("string", "x")
    )
    agent(tmp_path, "odd\n  trust      yours")
    shown = [
        run("agents", "show", "small", "--prompts", cwd=tmp_path).stdout,
        run("agents", "validate", cwd=tmp_path).stdout,
        run("agents", "list", cwd=tmp_path).stdout,
        run("agents", "list", "--json", cwd=tmp_path).stdout,
        run("trust", cwd=tmp_path).stdout,
    ]
    for text in shown:
        lines = text.splitlines()
        assert not any(line.startswith(("  trust      yours", "  file       all")) for line in lines), text
        assert not set("\u0085\u202e\u009b") & set(text)
        assert all(len(line) < 700 for line in lines if not line.startswith("  | "))
    assert "title = trust yours<U+0085> file all is well <U+202E><U+009B>2J" in shown[0]
    assert "  | a\n  |   trust      yours\n" in shown[0]
