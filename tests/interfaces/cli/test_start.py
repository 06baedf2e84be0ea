"""How the program starts, and how it says what is wrong with a call."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from handrail import __version__
from handrail.interfaces.cli.command_list import COMMANDS, EXIT_STATUSES
from tests.interfaces.cli.program import DEADLINE, command, environment, run

HEAVY = ("click", "msgspec", "pydantic", "prompt_toolkit", "rich", "anyio", "httpx2", "sqlite3")


@pytest.mark.promise("TERM-2")
@pytest.mark.parametrize("option", ["--version", "--help"])
def test_version_and_help_import_nothing_that_costs_time(option: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "handrail", option],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=True,
    )
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if "|" in line}
    assert "handrail.interfaces.cli.command_list" in imported
    assert not imported & set(HEAVY)
    assert __version__ in done.stdout


def test_a_whole_turn_with_an_edit_does_without_pydantic(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    call = {"name": "write", "arguments": {"path": "a.txt", "text": "one\n"}}
    script.write_text(json.dumps([{"calls": [call]}, {"text": "Written."}]))
    words = ("run", "write a.txt", "--mode", "edit", "--route", "agent", "--model", f"scripted/{script}")
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "handrail", *words],
        env=environment(),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=True,
    )
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if "|" in line}
    assert (tmp_path / "a.txt").read_text() == "one\n"
    assert "handrail.changes.apply" in imported
    assert not imported & {"pydantic", "pydantic_core"}


def test_help_names_every_command_and_every_exit_status(tmp_path: Path) -> None:
    text = run("--help", cwd=tmp_path).stdout
    assert all(f"handrail {entry.usage}" in text for entry in COMMANDS.values())
    assert all(f"  {status:<5} {meaning}\n" in text for status, meaning in EXIT_STATUSES.items())
    assert max(len(line) for line in text.splitlines()) <= 80


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_of_its_own(name: str, tmp_path: Path) -> None:
    done = run(name, "--help", cwd=tmp_path)
    assert done.returncode == 0
    assert f"handrail {name}" in done.stdout


@pytest.mark.promise("TERM-3")
@pytest.mark.usefixtures("no_server")
@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        ([], 2, "needs a terminal"),
        (["fix the test"], 2, 'handrail run "TASK"'),
        (["sesions"], 2, "handrail sessions"),
        (["run"], 2, "TASK"),
        (["run", "   "], 2, "empty"),
        (["run", "hi", "--mode", "wild"], 2, "wild"),
        (["run", "hi", "--max-usd", "much"], 2, "much"),
        (["run", "hi", "--wrong"], 2, "--wrong"),
        (["run", "hi", "-C", "missing"], 2, "There is no folder missing"),
        (["-C", "missing", "run", "hi"], 2, "There is no folder missing"),
        (["run", "hi", "-C", "a-file"], 2, "a-file is a file"),
        (["run", "hi"], 1, "There is no model"),
        (["run", "hi", "--model", "nobody/knows"], 2, "nobody"),
        (["run", "hi", "--session", "s_unknown"], 2, "s_unknown"),
        (["resume"], 2, "needs a terminal"),
        (["resume", "--message", "hi"], 2, "no session"),
        (["resume", "--json"], 2, "--message"),
        (["fork", "s_unknown"], 2, "s_unknown"),
        (["export", "s_unknown", "out"], 2, "s_unknown"),
        (["import", "missing"], 2, "missing"),
        (["import", "a-file"], 2, "not a complete export"),
        (["import", "binary"], 2, "binary"),
        (["sessions", "delete", "s_unknown"], 2, "s_unknown"),
        (["config", "get", "limits.us"], 2, "limits.us"),
        (["config", "set", "mode", "wild"], 2, "mode"),
        (["model", "nobody/knows"], 2, "nobody"),
        (["delete", "--help"], 2, "handrail sessions delete"),
        (["nothing", "--help"], 2, "handrail --help"),
    ],
)
def test_what_is_wrong_is_told_once_without_a_traceback(
    arguments: list[str], status: int, words: str, tmp_path: Path
) -> None:
    (tmp_path / "a-file").write_text("something else\n")
    (tmp_path / "binary").write_bytes(b"\x00\xff\xfe" * 100)
    done = run(*arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (status, "")
    assert words in done.stderr
    assert done.stderr.startswith("handrail: ")
    assert "Traceback" not in done.stderr


def test_a_settings_file_that_cannot_be_read_is_told_by_its_line(tmp_path: Path, home: Path) -> None:
    settings = home / "handrail" / "config.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text('mode = "ask"\n[limits\n')
    done = run("run", "hi", cwd=tmp_path)
    assert done.returncode == 2
    assert f"{settings}:2" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("arguments", [[], ["run", "-"]])
def test_a_closed_stdin_is_told(arguments: list[str], tmp_path: Path) -> None:
    closed = ["sh", "-c", 'exec "$@" <&-', "sh", *command(*arguments)]
    done = subprocess.run(
        closed, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=DEADLINE, check=False
    )
    assert done.returncode == 2
    assert "handrail run" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["sessions"], ["nonsense"]])
def test_output_into_a_closed_pipe_is_no_crash(arguments: list[str], tmp_path: Path, home: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            command(*arguments),
            cwd=tmp_path,
            stdout=writing,
            stderr=writing,
            env=environment(),
            timeout=DEADLINE,
            check=False,
        )
    finally:
        os.close(writing)
    assert done.returncode == (2 if arguments == ["nonsense"] else 1)
    assert not (home / "handrail" / "crashes").exists()


def test_a_task_that_is_no_text_is_told(tmp_path: Path) -> None:
    done = subprocess.run(
        [*map(os.fsencode, command("run")), b"\xff\xfe"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )
    assert done.returncode == 2
    assert "UTF-8" in done.stderr


def test_an_import_of_something_else_is_told_without_a_parsers_words(tmp_path: Path) -> None:
    (tmp_path / "passwd").write_text("root:x:0:0:root:/root:/bin/bash\n")
    done = run("import", "passwd", cwd=tmp_path)
    assert "This is not a complete export of a session. Nothing was imported" in done.stderr


@pytest.mark.promise("TERM-4")
def test_a_crash_is_one_line_and_a_report_in_the_data_folder(tmp_path: Path, home: Path) -> None:
    broken = tmp_path / "broken" / "anyio"
    broken.mkdir(parents=True)
    (broken / "__init__.py").write_text("1 / 0\n")
    path = f"{broken.parent}{os.pathsep}{environment()['PYTHONPATH']}"
    done = run("sessions", cwd=tmp_path, PYTHONPATH=path)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "ZeroDivisionError" in done.stderr
    (report,) = (home / "handrail" / "crashes").iterdir()
    assert str(report) in done.stderr
    assert "Traceback" in report.read_text()
    assert report.stat().st_mode & 0o077 == 0
    debugged = run("sessions", cwd=tmp_path, PYTHONPATH=path, HANDRAIL_DEBUG="1")
    assert "Traceback" in debugged.stderr
