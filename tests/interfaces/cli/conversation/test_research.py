"""A run of the research agent in a terminal, with a scripted model."""

import shutil
from pathlib import Path

import pytest

from tests.interfaces.cli.program import run, script, terminal
from tests.pipelines.agents import EXAMPLES
from tests.pipelines.research.questions import NIGHT, QUESTION, answers


@pytest.mark.promise("RESEARCH-1")
def test_a_run_shows_its_stages_and_a_report_without_markup(tmp_path: Path) -> None:
    """Catches: a run that is silent until it ends, links and escapes on the screen."""
    work = tmp_path / "work"
    work.mkdir()
    shutil.copy(EXAMPLES / "knowledge" / "ferry-rules.md", work)
    assert run("kb", "add", "ferry-rules.md", cwd=work).returncode == 0
    model = script(tmp_path, *answers())
    with terminal("--model", model, "--mode", "edit", "--workspace", str(work), cwd=work) as talk:
        talk.expect("> ")
        talk.type(f"@research quick: {QUESTION}\r")
        talk.expect("analyse")
        talk.expect("1. Look it up")
        talk.type("1\r")
        for stage in ("retrieve", "synthesise", "verify", "output"):
            talk.expect(stage)
        talk.expect(NIGHT[:30])
        talk.expect("- [S1] ferry-rules.md: Ferry rules, line 3 (ferry-rules.md#L3)")
        talk.expect("Written to reports/")
        assert "](" not in talk.text[talk.text.rindex(QUESTION[:24]) :]
