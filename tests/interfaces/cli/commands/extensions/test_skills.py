"""`handrail skills`, and trust in skills of a workspace."""

import json
from pathlib import Path

import pytest

from handrail.config.skills import SKILL_FILE
from tests.config.test_skills import here, text
from tests.interfaces.cli.program import run, script, terminal

ENTER, CTRL_D = "\r", "\x04"


@pytest.mark.promise("SKILL-10")
def test_a_skill_is_made_listed_shown_checked_and_corrected_by_its_line(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    assert "no skill yet" in run("skills", cwd=work).stderr
    made = run("skills", "new", "release-notes", cwd=work)
    assert made.returncode == 0
    path = Path(made.stdout.removeprefix("Wrote ").strip().rstrip("."))
    assert path.name == SKILL_FILE
    assert run("skills", "new", "release-notes", cwd=work).returncode == 2
    assert run("skills", "validate", cwd=work).stdout == "release-notes: nothing wrong.\n"
    assert "  | # Release notes" in run("skills", "show", "release-notes", cwd=work).stdout
    (row,) = map(json.loads, run("skills", "list", "--json", cwd=work).stdout.splitlines())
    assert (row["skill"], row["state"], row["where"]) == ("release-notes", "yours", "yours")
    path.write_text("---\nname: release-notes\ndescription: one: two\n---\nx\n")
    wrong = run("skills", "validate", cwd=work)
    assert wrong.returncode == 1
    assert f"{path}:3: this is not YAML" in wrong.stdout
    assert "wrong" in run("skills", cwd=work).stdout


@pytest.mark.promise("SKILL-1")
def test_a_skill_of_the_workspace_is_shown_in_full_before_it_is_trusted(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    here(work, text(body="Line one.\n\x1b[2JLine two."))
    broken = here(work, text("broken"), "broken")
    (broken / "out").symlink_to("/etc/passwd")
    model = script(tmp_path, {"text": "Hello."})
    assert "untrusted" in run("skills", cwd=work).stdout
    with terminal("trust", cwd=work) as talk:
        talk.expect("The skill broken cannot be trusted")
        talk.expect("The skill notes: Writes release notes.")
        talk.expect("  | Line one.")
        talk.expect("Line two.")
        talk.expect("SKILL.md: ")
        talk.expect("Trust this, as it is now?")
        talk.type("y" + ENTER)
        talk.expect("Trusted.")
        assert talk.end() == 0
    assert "notes                    trusted" in run("skills", cwd=work).stdout
    with terminal("--model", model, cwd=work) as talk:
        talk.expect("model ")
        talk.type("/skills" + ENTER)
        talk.expect("broken                   wrong")
        talk.type("/skills notes" + ENTER)
        talk.expect("| Line one.")
        talk.type(CTRL_D)
        assert talk.end() == 0


def test_a_new_skill_of_the_workspace_is_a_change_that_can_be_undone(tmp_path: Path) -> None:
    made = run("skills", "new", "--here", "deploy", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    file = tmp_path / ".agents" / "skills" / "deploy" / SKILL_FILE
    assert file.exists()
    assert run("undo", cwd=tmp_path).returncode == 0
    assert not file.exists()
