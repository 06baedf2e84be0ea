"""`handrail credentials`: what is stored is listed, replaced and removed, and never shown."""

from pathlib import Path

import pytest

from tests.config.test_credentials import SECRET, holding
from tests.interfaces.cli.program import run, terminal


@pytest.mark.promise("CRED-6")
def test_secrets_are_stored_listed_and_removed_without_being_shown(tmp_path: Path, home: Path) -> None:
    none = run("credentials", cwd=tmp_path)
    assert (none.returncode, none.stdout) == (0, "")
    assert "None is stored" in none.stderr
    piped = run("credentials", "set", "GITHUB_TOKEN", cwd=tmp_path, stdin=f"{SECRET}\n")
    assert piped.returncode == 0
    assert "with a key in" in piped.stderr
    with terminal("credentials", "set", "model/openai", cwd=tmp_path) as talk:
        talk.expect("model/openai (not shown)")
        talk.type(f"{SECRET}\r")
        talk.expect("is stored")
        assert talk.end() == 0
    listed = run("credentials", cwd=tmp_path)
    assert listed.stdout == "GITHUB_TOKEN\nmodel/openai\n"
    doctor = run("doctor", "--model", "scripted/none", cwd=tmp_path).stdout
    assert "2 stored (GITHUB_TOKEN, model/openai)" in " ".join(doctor.split())
    assert SECRET not in talk.raw + listed.stdout + listed.stderr + piped.stderr + doctor
    assert holding(home, SECRET) == []
    unknown = run("credentials", "remove", "GITHUB", cwd=tmp_path)
    assert (unknown.returncode, "Nothing is stored as GITHUB" in unknown.stderr) == (2, True)
    assert run("credentials", "remove", cwd=tmp_path).returncode == 2
    assert run("credentials", "remove", "GITHUB_TOKEN", cwd=tmp_path).returncode == 0
    assert run("credentials", "remove", "--all", cwd=tmp_path).returncode == 0
    assert run("credentials", "list", cwd=tmp_path).stdout == ""


def test_doctor_tells_of_credentials_that_cannot_be_read(tmp_path: Path, home: Path) -> None:
    run("credentials", "set", "A", cwd=tmp_path, stdin=SECRET)
    (home / "handrail" / "credentials.key").unlink()
    doctor = run("doctor", "--model", "scripted/none", cwd=tmp_path)
    told = " ".join(doctor.stdout.split())
    assert doctor.returncode == 1
    assert "what is stored cannot be used" in told
    assert "credentials.key is missing" in told
    assert run("credentials", "list", cwd=tmp_path).stdout == "A\n"
