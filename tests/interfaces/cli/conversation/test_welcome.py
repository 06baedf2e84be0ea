"""The first lines, and the last one."""

import sys
from pathlib import Path

import pytest

from handrail.interfaces.cli.conversation.welcome import heading, short_model
from handrail.interfaces.cli.render.styles import length, line, plain
from handrail.interfaces.cli.terminal import program_name, workspace_flag


@pytest.mark.parametrize("width", [120, 79, 49, 30])
def test_the_heading_fits_and_names_model_and_mode(width: int) -> None:
    left = line("handrail 0.1.0  ~/code/a-shop  main, 3 files changed")
    model, rest = line("model openai/gpt-5-long-name"), line("   mode ask   sandbox: files, network")
    rows = heading(left, (*model, *line(" (there is a key in SOME_KEY)"), *rest), (*model, *rest), width)
    assert all(length(row) <= width for row in rows)
    words = " ".join(plain(row) for row in rows).split()
    assert {"openai/gpt-5-long-name", "mode", "ask", "~/code/a-shop"} <= set(words)


def test_a_model_that_is_a_path_is_named_by_its_last_part() -> None:
    assert short_model("scripted//a/long/way/to/script.json") == "scripted/script.json"
    assert short_model("openrouter/maker/model") == "openrouter/maker/model"


def test_what_to_type_works_in_this_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["/a b/.venv/bin/handrail"])
    assert program_name() == "'/a b/.venv/bin/handrail'"
    monkeypatch.setattr(sys, "argv", ["/x/handrail/__main__.py"])
    assert program_name().endswith(" -P -m handrail")
    (tmp_path / "handrail").touch(mode=0o755)
    assert program_name() == "handrail"
    monkeypatch.chdir(tmp_path)
    assert workspace_flag(tmp_path) == ""
    assert workspace_flag(tmp_path / "other") == f" -C {tmp_path / 'other'}"
