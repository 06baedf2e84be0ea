"""`handrail policy explain`: what the rules say, without anything being done."""

import json
from pathlib import Path

import pytest

from tests.interfaces.cli.program import run, script, terminal
from tests.tools.sandbox.machine import working


@pytest.mark.promise("POL-9")
def test_a_command_is_explained_with_its_rule_and_what_would_change_it(tmp_path: Path) -> None:
    asked = run("policy", "explain", "--command", "find . -delete", cwd=tmp_path)
    assert asked.returncode == 0
    facts = dict(line.split(maxsplit=1) for line in asked.stdout.splitlines())
    assert (facts["verdict"], facts["decided"]) == ("ask", "rule: find")
    assert "`-delete`" in facts["because"]
    assert "--allow 'find . -delete'" in facts["change"]
    allowed = run(
        "policy", "explain", "--command", "find . -delete", "--allow", "find . -delete", cwd=tmp_path
    )
    assert "verdict  auto" in allowed.stdout


@pytest.mark.promise("POL-9")
def test_many_commands_are_explained_a_line_each(tmp_path: Path) -> None:
    given = ["ls -la", {"cmd": "rm -rf x"}, {"command": "git status\u2028rm"}, "touch a"]
    lines = "".join(json.dumps(each) + "\n" for each in given)
    (tmp_path / "some.jsonl").write_text(lines)
    for name, stdin in (("some.jsonl", ""), ("-", lines)):
        done = run("policy", "explain", "--jsonl", name, "--mode", "auto", cwd=tmp_path, stdin=stdin)
        found = [json.loads(line) for line in done.stdout.splitlines()]
        assert [each["verdict"] for each in found] == ["auto", "ask", "ask", "auto"]
    assert not (tmp_path / "a").exists()


def test_settings_of_the_user_and_denials_of_the_workspace_count(tmp_path: Path) -> None:
    kept = tmp_path / ".handrail" / "config.toml"
    kept.parent.mkdir()
    kept.write_text('[commands]\nallow = ["make"]\ndeny = ["git log"]\n')
    said = [
        run("policy", "explain", "--command", text, cwd=tmp_path).stdout for text in ("make x", "git log -5")
    ]
    assert [text.split()[1] for text in said] == ["ask", "deny"]
    assert "commands.deny" in said[1]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((), "Give --command"),
        (("--jsonl", "missing"), "cannot be read"),
        (("--jsonl", "wrong"), "is not JSON"),
        (("--jsonl", "none"), "has no command"),
    ],
)
def test_what_cannot_be_explained_is_a_usage_problem(
    tmp_path: Path, arguments: tuple[str, ...], problem: str
) -> None:
    (tmp_path / "wrong").write_text("ls -la\n")
    (tmp_path / "none").write_text("{}\n")
    done = run("policy", "explain", *arguments, cwd=tmp_path)
    assert (done.returncode, problem in done.stderr) == (2, True)


def test_a_key_writes_the_entry_while_the_user_is_asked(tmp_path: Path, home: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    call = {"calls": [{"name": "run", "arguments": {"command": "tr a b"}}]}
    model = script(tmp_path, call, call, {"text": "Both ran."})
    with terminal("--model", model, "--mode", "auto", "run it", cwd=folder) as talk:
        talk.expect("write `tr a b` to your")
        talk.type("w")
        talk.expect("from now on, in your settings")
        talk.expect("Both ran.")
        talk.type("\x04")
        assert talk.end() == 0
    (kept,) = home.rglob("config.toml")
    assert 'allow = ["tr a b"]' in kept.read_text()


@pytest.mark.promise("POL-24")
def test_commands_of_mode_sandbox_are_explained(tmp_path: Path) -> None:
    """With whatever sandbox this machine has."""

    def explained(command: str) -> str:
        done = run("policy", "explain", "--mode", "sandbox", "--command", command, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    if not working() or working()[0].not_full:
        assert "apt install bubblewrap" in explained("for i in 1 2; do echo $i; done")
        return
    assert "verdict  auto" in explained("for i in 1 2; do echo $i > f$i; done")
    asked = explained("cd src && git commit -m x")
    assert "verdict  ask" in asked
    assert "`git commit` writes .git" in asked
    assert "verdict  deny" in explained("echo x > .git/config")
