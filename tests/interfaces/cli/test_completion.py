"""Completion, in the shells themselves."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from handrail.interfaces.cli.command_list import COMMANDS
from tests.interfaces.cli.program import command, environment, run, script

SHELLS = [name for name in ("bash", "zsh", "fish") if shutil.which(name)]
"""CI has all three; without zsh or fish, the answers that their scripts read are checked all the same."""
LISTS = {
    "bash": 'eval "$(handrail completion bash)"; COMP_WORDS=(%s); COMP_CWORD=$((${#COMP_WORDS[@]} - 1));'
    ' _handrail_completion handrail; printf "%%s\\n" "${COMPREPLY[@]}"',
    # Outside of a line that is being typed, zsh's own functions refuse; these say what they were given.
    "zsh": "compdef() { :; }; compadd() { print -l -- ${(P)@[-1]}; }; _describe() { print -l -- ${(P)3}; };"
    ' eval "$(handrail completion zsh)"; words=(%s); CURRENT=${#words}; _handrail_completion',
    "fish": "handrail completion fish | source; complete --do-complete (string join ' ' -- %s)",
}


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A PATH with handrail from the source."""
    program = tmp_path / "bin" / "handrail"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nexec " + " ".join(f"'{word}'" for word in command()) + ' "$@"\n')
    program.chmod(0o755)
    return f"{program.parent}:{os.environ['PATH']}"


def completed(shell: str, words: str, path: str, cwd: Path) -> list[str]:
    quoted = words if words[-1:] != " " else f"{words}''"
    options = {"bash": ["--norc", "--noprofile"], "zsh": ["-f"], "fish": ["--no-config"]}[shell]
    done = subprocess.run(
        [shell, *options, "-c", LISTS[shell] % quoted],
        cwd=cwd,
        env=environment(PATH=path),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stderr == ""
    return [line.replace("\t", ":").partition(":")[0].strip() for line in done.stdout.splitlines()]


@pytest.mark.promise("TERM-30")
@pytest.mark.parametrize("shell", SHELLS)
def test_shell_completes_commands_modes_and_sessions(shell: str, path: str, tmp_path: Path) -> None:
    workspace = tmp_path / "w"
    workspace.mkdir()
    assert run("run", "hi", "--model", script(tmp_path, {"text": "Hello."}), cwd=workspace).returncode == 0
    session = re.findall(r"s_\w+", run("sessions", cwd=workspace).stdout)[0]
    assert {"verify", "version"} & set(completed(shell, "handrail ver", path, workspace)) == {"verify"}
    assert "sandbox" in completed(shell, "handrail run --mode ", path, workspace)
    assert session in completed(shell, "handrail resume ", path, workspace)


def answers(words: str, number: int, cwd: Path) -> list[str]:
    asked = {"_HANDRAIL_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(number)}
    done = run(cwd=cwd, **asked)
    assert done.stderr == ""
    return [line.partition(",")[2] for line in done.stdout.splitlines() if line]


@pytest.mark.promise("TERM-30")
def test_routes_agents_and_every_command_are_completed(tmp_path: Path) -> None:
    agent = tmp_path / "agents" / "tidy"
    agent.mkdir(parents=True)
    (agent / "agent.toml").write_text('name = "Tidy"\n', encoding="utf-8")
    assert set(answers("handrail ", 1, tmp_path)) == set(COMMANDS)
    assert {"auto", "agent", "chat", "tidy"} <= set(answers("handrail --route ", 2, tmp_path))
    assert answers("handrail completion ", 2, tmp_path) == ["bash", "zsh", "fish"]


def test_unfinished_words_complete_to_nothing_without_an_error(tmp_path: Path) -> None:
    assert answers("handrail verfy x", 3, tmp_path) == []
    assert answers("handrail resume s", 2, tmp_path) == []
    assert not any(Path(os.environ["HANDRAIL_HOME"]).rglob("log.db"))


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_a_script(shell: str, tmp_path: Path) -> None:
    written = run("completion", shell, cwd=tmp_path).stdout
    assert f"_HANDRAIL_COMPLETE={shell}_complete" in written
    # In fish, a description is all that is behind the first comma.
    assert ("string split --max 1" in written) == (shell == "fish")
