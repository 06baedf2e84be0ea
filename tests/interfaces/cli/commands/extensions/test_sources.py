"""`handrail sources`, and trust in sources of a workspace."""

import json
from pathlib import Path

import pytest

from tests.interfaces.cli.program import run, script, terminal
from tests.tools.sources.places import shared, words

ENTER = "\r"


@pytest.mark.promise("SOURCE-21")
def test_a_source_is_added_listed_given_its_secret_tested_and_removed(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    empty = run("sources", cwd=work)
    assert "no source yet" in empty.stderr
    assert "filesystem, git, github" in empty.stderr
    added = run("sources", "add", "github", cwd=work)
    assert added.returncode == 0
    assert "It needs GITHUB_TOKEN" in added.stdout
    assert run("sources", "add", "github", cwd=work).returncode == 2
    assert "Ready are" in run("sources", "add", "nothing-known", cwd=work).stderr
    stored = run("sources", "auth", "github", cwd=work, stdin="ghp_secret1234567890\n")
    assert "GITHUB_TOKEN of github is stored" in stored.stdout
    assert "needs GITHUB_TOKEN" not in run("sources", cwd=work).stdout
    assert run("sources", "add", "plain", "--description", "Plain.", "--", *words(), cwd=work).returncode == 0
    tested = run("sources", "test", "plain", cwd=work)
    assert tested.returncode == 0, tested.stdout
    assert "plain: works (plain 1, MCP 2025-11-25" in tested.stdout
    assert "look (says it only reads): Only looks." in tested.stdout
    assert run("sources", "add", "broken", "--", "/nothing/there", cwd=work).returncode == 0
    broken = run("sources", "test", "broken", cwd=work)
    assert broken.returncode == 1
    assert "broken: The source broken cannot be used" in broken.stdout
    rows = {
        row["name"]: row
        for row in map(json.loads, run("sources", "list", "--json", cwd=work).stdout.splitlines())
    }
    assert [rows[name]["state"] for name in ("broken", "github", "plain")] == ["on"] * 3
    assert rows["github"]["address"] == "https://api.githubcopilot.com/mcp/"
    assert run("sources", "remove", "github", cwd=work).returncode == 3
    assert run("sources", "remove", "github", "--yes", cwd=work).stdout == "Removed github.\n"
    assert "source/github" not in run("credentials", cwd=work).stdout
    assert "github" not in run("sources", cwd=work).stdout


@pytest.mark.promise("SOURCE-3")
def test_a_source_of_the_workspace_is_shown_with_its_rights_before_it_is_trusted(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    program, *arguments = words()
    shared(
        work,
        plain={"command": program, "args": arguments, "env": {"X": "${HOME_TOKEN:-none}"}},
        wrong={"url": "ftp://x"},
    )
    assert "untrusted" in run("sources", cwd=work).stdout
    assert run("sources", "test", "plain", cwd=work).returncode == 2
    model = script(tmp_path, {"text": "Hello."})
    with terminal("trust", cwd=work) as talk:
        talk.expect("The source wrong cannot be trusted")
        talk.expect("The source plain, from ")
        talk.expect("    runs: ")
        talk.expect("    gets your variables or secrets: HOME_TOKEN")
        talk.expect("network: yes; writes: nothing")
        talk.expect("Trust this, as it is now?")
        talk.type("y" + ENTER)
        talk.expect("Trusted.")
        assert talk.end() == 0
    with terminal("--model", model, cwd=work) as talk:
        talk.expect("model ")
        talk.type("/sources" + ENTER)
        talk.expect("plain                on")
        talk.type("/sources plain" + ENTER)
        talk.expect("plain: works")
        talk.type("/quit" + ENTER)
        assert talk.end() == 0
