import subprocess
import sys

import pytest

LATER = (
    "genai_prices",
    "html.parser",
    "httpcore2",
    "httpx2",
    "prompt_toolkit",
    "rich",
    "tree_sitter",
    "handrail.changes.apply",
    "handrail.changes.proposal",
    "handrail.context.small",
    "handrail.engine.doctor",
    "handrail.engine.proposals",
    "handrail.models.anthropic",
    "handrail.sessions.transfer",
)
"""What some runs need, and none before its first request."""


@pytest.mark.promise("START-1")
def test_a_start_imports_nothing_that_only_some_runs_need() -> None:
    code = "import sys, handrail.interfaces.cli.commands.run, handrail.app; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not set(LATER) & set(ran.stdout.split())
