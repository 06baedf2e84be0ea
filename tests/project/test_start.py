import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.models.fake_server import FakeServer, Reply

LATER = (
    "cryptography",
    "dbos",
    "genai_prices",
    "email",
    "html.parser",
    "httpcore2._sync",
    "httpx2",
    "importlib.metadata",
    "keyring",
    "mcp",
    "mcp_types",
    "pydantic",
    "prompt_toolkit",
    "psycopg",
    "rich",
    "sqlalchemy",
    "starlette",
    "tree_sitter",
    "uvicorn",
    "yaml",
    "handrail.changes.apply",
    "handrail.changes.forms.document",
    "handrail.changes.proposal",
    "handrail.context.small",
    "handrail.app.splits",
    "handrail.engine.admin.doctor",
    "handrail.engine.durable",
    "handrail.engine.split",
    "handrail.engine.admin.workspace_intents",
    "handrail.engine.admin.proposals",
    "handrail.interfaces.cli.render.events",
    "handrail.models.wire.anthropic",
    "handrail.pipelines.agent_definition",
    "handrail.pipelines.agent_folder",
    "handrail.pipelines.checks",
    "handrail.pipelines.steps",
    "handrail.sessions.past_runs",
    "handrail.sessions.split_state",
    "handrail.sessions.export_import",
    "handrail.storage.copy_log",
    "handrail.storage.postgres",
    "handrail.tools.gate.gate",
    "handrail.tools.gate.hooks",
    "handrail.tools.sandbox.fork_server",
    "handrail.tools.intent_tools",
    "handrail.tools.files.edit_batch",
    "handrail.workspace.intents_document",
)
"""What some runs need, and none before its first request."""
WITHOUT_PRELOAD = """
import handrail.engine.preload as preload
preload.AFTER_SECONDS = 3600
from handrail.__main__ import main
main()
"""
"""What is imported while the model answers comes so late that the test has ended."""
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
    code = "import sys, handrail.interfaces.cli.commands.run, handrail.app.app; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {*LATER, "httpcore2"} & set(ran.stdout.split()) == set()


@pytest.mark.promise("START-1")
def test_until_the_first_request_nothing_is_imported_that_it_does_not_need(tmp_path: Path) -> None:
    workspace = tmp_path / "w"
    workspace.mkdir()
    with FakeServer([Reply(silent_after=0)]) as server:
        (tmp_path / "config.toml").write_text(SETTINGS.format(url=server.url), encoding="utf-8")
        command = [sys.executable, "-X", "importtime", "-c", WITHOUT_PRELOAD, "run", "hi"]
        environment = os.environ | {"HANDRAIL_HOME": str(tmp_path)}
        ran = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=workspace, env=environment)
        with ran:
            assert server.wait_until(lambda: len(server.requests) == 1, 60)
            ran.kill()
            _, told = ran.communicate()
    imported = set(re.findall(r"^import time:.*\| +(\S+)$", told, re.MULTILINE))
    assert {"handrail.app.app", "handrail.models.wire.openai"} <= imported
    assert set(LATER) & imported == set()
