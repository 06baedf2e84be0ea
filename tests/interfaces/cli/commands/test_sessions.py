"""Commands of the shell about sessions and settings."""

import json
import sqlite3
from pathlib import Path

import pytest

from tests.interfaces.cli.program import run, script


@pytest.fixture
def model(tmp_path: Path) -> str:
    return script(tmp_path, *({"text": f"Answer {number}."} for number in (1, 2, 3)))


def session(workspace: Path, model: str, *messages: str) -> str:
    """The id of a session in which this was said."""
    run("run", messages[0], "--model", model, cwd=workspace)
    for message in messages[1:]:
        run("resume", "--message", message, "--model", model, cwd=workspace)
    return str(json.loads(run("sessions", "--json", cwd=workspace).stdout.splitlines()[0])["id"])


def test_sessions_are_listed_with_title_and_turns(tmp_path: Path, model: str) -> None:
    found = session(tmp_path, model, "why does it fail?", "go on")
    listed = run("sessions", cwd=tmp_path).stdout
    assert listed.splitlines()[0].split() == ["session", "last", "used", "cost", "title"]
    assert found in listed
    assert "2 turns" in listed
    assert "why does it fail?" in listed


def test_a_session_is_renamed_deleted_and_brought_back(tmp_path: Path, model: str) -> None:
    found = session(tmp_path, model, "hello")
    assert run("sessions", "rename", found[:14], "the", "cart", cwd=tmp_path).returncode == 0
    assert "the cart" in run("sessions", cwd=tmp_path).stdout
    deleted = run("sessions", "delete", "the cart", cwd=tmp_path)
    assert f"`handrail sessions restore {found}`" in deleted.stdout
    assert run("sessions", cwd=tmp_path).stdout == ""
    assert "deleted the cart" in run("sessions", "--all", cwd=tmp_path).stdout
    assert run("sessions", "restore", found, cwd=tmp_path).returncode == 0
    assert "the cart" in run("sessions", cwd=tmp_path).stdout


def test_a_fork_goes_its_own_way(tmp_path: Path, model: str) -> None:
    found = session(tmp_path, model, "one", "two")
    forked = run("fork", found, "--turn", "1", cwd=tmp_path).stdout.strip()
    said = run("resume", forked, "--message", "other", "--model", model, cwd=tmp_path).stdout
    assert said == "Answer 2.\n"
    assert "fork of one" in run("sessions", cwd=tmp_path).stdout
    turns = {each["id"]: each["turns"] for each in map(json.loads, run_lines(tmp_path))}
    assert turns == {found: 2, forked: 2}


def run_lines(workspace: Path) -> list[str]:
    return run("sessions", "--json", cwd=workspace).stdout.splitlines()


def test_an_exported_session_goes_on_in_another_folder(tmp_path: Path, model: str) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    found = session(here, model, "one", "two")
    assert run("export", found, str(tmp_path / "kept"), cwd=here).returncode == 0
    imported = run("import", str(tmp_path / "kept"), "-C", str(there), cwd=here).stdout.strip()
    said = run("resume", imported, "--message", "three", "--model", model, cwd=there).stdout
    assert said == "Answer 3.\n"


def test_a_cut_export_brings_nothing_in(tmp_path: Path, model: str) -> None:
    found = session(tmp_path, model, "one")
    kept = tmp_path / "kept"
    run("export", found, str(kept), cwd=tmp_path)
    kept.write_bytes(kept.read_bytes()[:-30])
    done = run("import", str(kept), cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(run_lines(tmp_path)) == 1


def test_a_setting_is_set_and_shown_with_its_place(tmp_path: Path, home: Path) -> None:
    settings = home / "handrail" / "config.toml"
    assert run("config", "path", cwd=tmp_path).stdout == f"{settings}\n"
    assert run("config", "set", "limits.usd", "0.5", cwd=tmp_path).returncode == 0
    assert run("config", "get", "limits.usd", cwd=tmp_path).stdout == "0.5\n"
    shown = run("config", cwd=tmp_path, HANDRAIL_MODE="plan").stdout.splitlines()
    assert any("limits.usd" in row and f"{settings}:2" in row for row in shown)
    assert any(row.startswith("mode ") and "HANDRAIL_MODE" in row for row in shown)


def test_the_default_model_is_shown_with_its_reason_and_can_be_set(tmp_path: Path, model: str) -> None:
    assert run("model", model, cwd=tmp_path).returncode == 0
    assert run("model", cwd=tmp_path).stdout.startswith(f"{model} (set in your settings)\n")
    assert run("run", "hi", cwd=tmp_path).stdout == "Answer 1.\n"


@pytest.mark.usefixtures("no_server")
def test_the_doctor_names_what_is_wrong_and_its_status_says_so(tmp_path: Path, model: str) -> None:
    well = run("doctor", "--model", model, cwd=tmp_path)
    assert well.returncode == 0
    assert "model       ok" in well.stdout
    ill = run("doctor", cwd=tmp_path)
    assert ill.returncode == 1
    assert "model       fail" in ill.stdout


def broken(folder: Path, home: Path) -> Path:
    """The log of the folder, after the end of its first session was overwritten."""
    (log,) = (home / "handrail" / "workspaces").glob("*/log.db")
    with sqlite3.connect(log) as db:
        db.execute("UPDATE events SET data = '{}' WHERE seq > 1")
    db.close()
    return log


@pytest.mark.promise("TERM-12")
def test_a_repair_of_the_log_is_told_by_every_command(tmp_path: Path, model: str, home: Path) -> None:
    session(tmp_path, model, "one")
    broken(tmp_path, home)
    run("doctor", "--model", model, cwd=tmp_path)
    repaired = run("sessions", cwd=tmp_path)
    assert "handrail: The log was damaged and has been repaired" in repaired.stderr
    lost = run("resume", "s_lost", "--message", "hi", cwd=tmp_path)
    assert lost.returncode == 2
    assert "The log was repaired on" in lost.stderr
    assert "are lost" in lost.stderr


@pytest.mark.promise("TERM-12")
def test_the_doctor_finishes_whatever_is_broken(tmp_path: Path, model: str, home: Path) -> None:
    session(tmp_path, model, "one")
    log = broken(tmp_path, home)
    ill = run("doctor", "--model", model, cwd=tmp_path)
    assert ill.returncode == 1
    assert "log         fail" in ill.stdout
    assert "sandbox    " in ill.stdout
    log.write_bytes(b"no database at all" * 1000)
    for extra in log.parent.glob("log.db-*"):
        extra.unlink()
    worse = run("doctor", "--model", model, cwd=tmp_path)
    assert worse.returncode == 1
    assert "log         fail" in worse.stdout
    assert "sandbox    " in worse.stdout


@pytest.mark.promise("TERM-12")
@pytest.mark.parametrize("text", ['mode = "wild"\n', "[limits\n", "nonsense = 1\n"])
def test_the_doctor_works_with_broken_settings(text: str, tmp_path: Path, model: str, home: Path) -> None:
    settings = home / "handrail" / "config.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text(text)
    done = run("doctor", "--model", model, cwd=tmp_path)
    assert done.returncode == 1
    assert "settings    fail" in done.stdout
    assert f"{settings}:1" in "".join(done.stdout.split())
    assert "model       ok" in done.stdout


def test_a_wrong_value_is_mended_by_setting_another(tmp_path: Path, home: Path) -> None:
    settings = home / "handrail" / "config.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text('mode = "wild"\n[limits]\nsteps = "many"\n')
    first = run("config", "set", "mode", "ask", cwd=tmp_path)
    assert (first.returncode, "Still to be fixed" in first.stderr) == (0, True)
    second = run("config", "set", "limits.steps", "7", cwd=tmp_path)
    assert (second.returncode, second.stderr) == (0, "")
    assert run("config", "get", "limits.steps", cwd=tmp_path).stdout == "7\n"
    settings.write_text('mode = "ask"\n[limits\n')
    unread = run("config", "set", "mode", "plan", cwd=tmp_path)
    assert unread.returncode == 2
    assert f"{settings}:2" in unread.stderr


def test_a_setting_is_checked_before_it_is_written(tmp_path: Path, home: Path) -> None:
    negative = run("config", "set", "limits.steps", "-5", cwd=tmp_path)
    assert negative.returncode == 2
    assert "-5" in negative.stderr
    assert "option" not in negative.stderr
    unknown = run("config", "set", "models.main", "nobody/knows", cwd=tmp_path)
    assert unknown.returncode == 2
    assert "nobody" in unknown.stderr
    assert not (home / "handrail" / "config.toml").exists()


def test_settings_of_a_workspace_that_are_ignored_are_listed(tmp_path: Path) -> None:
    (tmp_path / ".handrail").mkdir()
    (tmp_path / ".handrail" / "config.toml").write_text('mode = "auto"\n')
    done = run("config", cwd=tmp_path)
    assert "config.toml:1: mode is ignored" in done.stderr


def test_json_for_machines_cannot_steer_a_terminal(tmp_path: Path) -> None:
    hidden = "\N{RIGHT-TO-LEFT OVERRIDE}gnp\x9b2J"
    model = script(tmp_path, {"text": f"Hello {hidden}"})
    done = run("run", "hi", "--json", "--model", model, cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout.isascii()
    assert hidden in done.stdout.encode().decode("unicode_escape")


@pytest.mark.promise("SESS-61")
def test_sessions_are_listed_by_status_and_label(tmp_path: Path, model: str) -> None:
    first, second = session(tmp_path, model, "one"), session(tmp_path, model, "two")

    def listed(*options: str) -> list[str]:
        done = run("sessions", "--json", *options, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return [json.loads(line)["id"] for line in done.stdout.splitlines()]

    assert run("sessions", "label", first, "bug", "area:cart", cwd=tmp_path).returncode == 0
    assert run("sessions", "label", second, "bug", cwd=tmp_path).returncode == 0
    assert "in progress" in run("sessions", "status", first, "in progress", cwd=tmp_path).stdout
    assert run("sessions", "archive", second, cwd=tmp_path).returncode == 0
    assert (listed(), listed("--archived"), listed("--all")) == ([first], [second], [second, first])
    assert (listed("--label", "BUG"), listed("--label", "other")) == ([first], [])
    assert listed("--label", "#bug") == [first]  # as the list shows it
    assert listed("--label", "bug", "--status", "archived") == [second]
    assert listed("--status", "in-progress") == [first]
    shown = run("sessions", cwd=tmp_path).stdout.splitlines()
    assert (len(shown), "in progress one" in shown[1], shown[2].strip()) == (3, True, "#bug  #area:cart")
    assert max(map(len, shown)) <= 80
    assert run("sessions", "--status", "lost", cwd=tmp_path).returncode == 2
    assert run("sessions", "label", first, "two words", cwd=tmp_path).returncode == 2
    assert run("sessions", "label", first, "bug", "--remove", cwd=tmp_path).returncode == 0
    assert "area:cart" in run("sessions", cwd=tmp_path).stdout
    assert listed("--label", "bug") == []
    # The last session is the last that is not archived; a message brings an archived one back.
    assert run("resume", "--message", "go on", "--model", model, cwd=tmp_path).stdout == "Answer 2.\n"
    assert run("resume", second, "--message", "go on", "--model", model, cwd=tmp_path).returncode == 0
    assert listed("--status", "in-progress") == [second, first]


@pytest.mark.promise("SESS-61")
def test_an_export_keeps_title_status_and_labels(tmp_path: Path, model: str) -> None:
    there = tmp_path / "there"
    there.mkdir()
    found = session(tmp_path, model, "one")
    for words in (["rename", found, "the cart"], ["label", found, "bug"], ["status", found, "done"]):
        assert run("sessions", *words, cwd=tmp_path).returncode == 0
    run("export", found, str(tmp_path / "kept"), cwd=tmp_path)
    assert run("import", str(tmp_path / "kept"), "-C", str(there), cwd=tmp_path).returncode == 0
    (imported,) = map(json.loads, run_lines(there))
    assert (imported["title"], imported["status"], imported["labels"]) == ("the cart", "done", ["bug"])
