"""`handrail config validate`: everything wrong in the settings files, with its place."""

from pathlib import Path

import pytest

from tests.interfaces.cli.program import run


@pytest.mark.promise("CONF-60")
def test_every_problem_is_shown_with_file_line_and_closest_key(tmp_path: Path, home: Path) -> None:
    own, brought = home / "handrail" / "config.toml", tmp_path / ".handrail" / "config.toml"
    own.parent.mkdir()
    brought.parent.mkdir()
    own.write_text('mode = "wild"\n[limits]\nuds = 3\n')
    brought.write_text("[limitz]\nusd = 1\n")
    wrong = run("config", "validate", cwd=tmp_path)
    assert (wrong.returncode, wrong.stderr) == (1, "")
    assert wrong.stdout.splitlines() == [
        f"{own}:3: unknown key 'limits.uds'; did you mean 'limits.usd'?",
        f"{own}:1: mode should be 'explore', 'plan', 'ask', 'edit', 'auto' or 'sandbox'; it is 'wild'",
        f"{brought}:1: unknown key 'limitz.usd'; did you mean 'limits.usd'?",
    ]
    alone = run("config", "validate", str(brought), cwd=tmp_path)
    assert (alone.returncode, len(alone.stdout.splitlines())) == (1, 1)
    own.write_text("[limits]\nusd = \n")
    assert f"{own}:2: not valid TOML" in run("config", "validate", cwd=tmp_path).stdout


@pytest.mark.promise("CONF-60")
def test_valid_settings_are_named_and_ignored_ones_are_no_problem(tmp_path: Path, home: Path) -> None:
    assert run("config", "validate", cwd=tmp_path).returncode == 0
    own, brought = home / "handrail" / "config.toml", tmp_path / ".handrail" / "config.toml"
    own.parent.mkdir(exist_ok=True)
    brought.parent.mkdir()
    own.write_text('mode = "ask"\n')
    brought.write_text('mode = "auto"\n')
    right = run("config", "validate", cwd=tmp_path)
    assert (right.returncode, right.stdout) == (0, f"{own}: nothing wrong.\n{brought}: nothing wrong.\n")
    assert "config.toml:1: mode is ignored" in right.stderr
    from_outside = run("config", "validate", cwd=tmp_path, HANDRAIL_LIMITS_USD="much")
    assert (from_outside.returncode, "HANDRAIL_LIMITS_USD" in from_outside.stdout) == (1, True)
    assert run("config", "validate", "no-such.toml", cwd=tmp_path).returncode == 2
