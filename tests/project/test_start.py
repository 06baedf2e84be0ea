import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.models.fake_server import FakeServer, Reply

LATER = (
    "genai_prices",
    "html.parser",
    "httpx2",
    "prompt_toolkit",
    "rich",
    "tree_sitter",
    "yaml",
    "handrail.changes.apply",
    "handrail.changes.document",
    "handrail.changes.proposal",
    "handrail.context.small",
    "handrail.engine.doctor",
    "handrail.engine.intents",
    "handrail.engine.hooked_end",
    "handrail.engine.proposals",
    "handrail.interfaces.cli.rendering",
    "handrail.models.anthropic",
    "handrail.pipelines.agent_definition",
    "handrail.pipelines.agent_folder",
    "handrail.pipelines.checks",
    "handrail.pipelines.steps",
    "handrail.sessions.past_runs",
    "handrail.sessions.transfer",
    "handrail.tools.hook_program",
    "handrail.tools.hooks",
    "handrail.tools.intent_block",
    "handrail.tools.intents",
    "handrail.tools.together",
    "handrail.workspace.intents.document",
)
"""What some runs need, and none before its first request."""
SETTINGS = """[models]
main = "mine/m"
[connections.mine]
base_url = "{url}/v1"
context_window = 100000
native_tools = true
images = false
"""


@pytest.mark.promise("START-1")
def test_a_start_imports_nothing_that_only_some_runs_need() -> None:
    code = "import sys, handrail.interfaces.cli.commands.run, handrail.app; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {*LATER, "httpcore2"} & set(ran.stdout.split())


@pytest.mark.promise("START-1")
def test_until_the_first_request_nothing_is_imported_that_it_does_not_need(tmp_path: Path) -> None:
    workspace = tmp_path / "w"
    workspace.mkdir()
    with FakeServer([Reply(silent_after=0)]) as server:
        (tmp_path / "config.toml").write_text(SETTINGS.format(url=server.url), encoding="utf-8")
        command = [sys.executable, "-X", "importtime", "-m", "handrail", "run", "hi"]
        environment = os.environ | {"HANDRAIL_HOME": str(tmp_path)}
        ran = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=workspace, env=environment)
        with ran:
            assert server.wait_until(lambda: len(server.requests) == 1, 60)
            ran.kill()
            _, told = ran.communicate()
    imported = set(re.findall(r"^import time:.*\| +(\S+)$", told, re.MULTILINE))
    assert {"handrail.app", "handrail.models.openai"} <= imported
    assert not set(LATER) & imported
