"""The validate tool: the model checks settings, agents, skills and mermaid, and gets lines."""

import os
from pathlib import Path

import pytest

from handrail.app.extensions.model_tools import mermaid_problems
from handrail.config.places import WORKSPACE_SETTINGS, find_places
from handrail.protocol.events import ToolFinished
from tests.config.test_skills import here, own
from tests.engine.conversation import call, conversation
from tests.interfaces.cli.program import run
from tests.pipelines.agents import agent

pytestmark = pytest.mark.anyio

PAGE = "# Flow\n\n```mermaid\nflowchart LR\nA --> B\nB -> C\n```\n\n```mermaid\ngraph TD\nA-->B\n```\n"


@pytest.mark.promise("SKILL-11")
async def test_the_model_gets_the_problems_that_the_shell_commands_show(tmp_path: Path) -> None:
    agent(tmp_path, "broken", 'name = "x"\n')
    here(tmp_path, "---\nname: notes\n---\nx")
    own(find_places(os.environ), name="fine")
    (tmp_path / "flow.md").write_text(PAGE)
    (tmp_path / "chart.mmd").write_text("flowchart TD\nA --> B")
    answers = [
        call("validate", what="config"),
        call("validate", what="agents"),
        call("validate", what="skills"),
        call("validate", what="skills", name="fine"),
        call("validate", what="mermaid", name="flow.md"),
        call("validate", what="mermaid", name="chart.mmd"),
        call("validate", what="mermaid", name="/etc/passwd"),
        call("validate", what="skills", name="nobody"),
        call("validate", what="mermaid"),
        call("validate", what="mermaid", text="graph TD\nA --> B\nB -> C"),
        {"text": "done"},
    ]
    async with conversation(tmp_path, answers, mode="explore", answerable=False) as talk:
        (tmp_path / WORKSPACE_SETTINGS).parent.mkdir(exist_ok=True)
        (tmp_path / WORKSPACE_SETTINGS).write_text("[limits]\nstep = 3\n")
        await talk.turn("Fix what is wrong with the skills")
    ends = talk.all(ToolFinished)
    config, agents, skills, fine, page, chart, outside, nobody, no_file, text = ends
    shell = {what: run(what, "validate", cwd=tmp_path).stdout for what in ("config", "agents", "skills")}
    assert config.content.strip() == shell["config"].strip()
    assert "config.toml:2: unknown key 'limits.step'" in config.content
    problems = [line for line in shell["agents"].splitlines() if not line.endswith(": nothing wrong.")]
    assert agents.content.splitlines() == problems
    assert skills.content.splitlines()[0] in shell["skills"]
    assert "SKILL.md:1: `description` is missing" in skills.content
    assert page.content == "line 6: an arrow such as --> is expected at ' -> C'"
    assert text.content == "line 3: an arrow such as --> is expected at ' -> C'"
    assert [each.content for each in (fine, chart)] == ["Nothing wrong."] * 2
    assert [each.status for each in (outside, nobody, no_file)] == ["refused"] * 3


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "line 1: it does not begin with"),
        ("\n\nsequenceDiagram\nA->>B: hi", "line 3: it does not begin with"),
        ("graph TD\nsubgraph one\nA-->B", "line 1: the subgraph 'one' has no `end`"),
        ("graph TD\nend", "line 2: `end` without a subgraph"),
        ("graph TD\nA -->", "line 2: the name of a node is expected"),
        ("graph TD", "line 1: there is no node"),
        ("graph TD\n" + "\n".join(f"n{number}" for number in range(200)), "line 1: there are more than 120"),
        ("graph TD\n" + "A-->B\n" * 10_000, "line 1: it has more than 20,000 characters"),
    ],
)
async def test_what_cannot_be_drawn_is_told_with_its_line(text: str, problem: str) -> None:
    (found,) = mermaid_problems(text)
    assert found.startswith(problem)
