"""Keys of models and other secrets: no command gets them, and no model is told them."""

import os
from pathlib import Path

import pytest

from handrail.protocol.events import ToolFinished
from tests.engine.conversation import conversation, run

pytestmark = pytest.mark.anyio
KEY = "0123456789abcdef"
SETTINGS = '[connections.corp]\nbase_url = "http://127.0.0.1:1/v1"\nkey_env = ["CORP_LLM"]\n'


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORP_LLM", KEY)


@pytest.mark.promise("TOOL-8")
async def test_the_key_of_a_connection_is_not_in_the_environment_of_commands(tmp_path: Path) -> None:
    answers = [run("env"), {"text": "done"}]
    async with conversation(tmp_path, answers, settings=SETTINGS, mode="auto", allow=("env",)) as talk:
        await talk.turn("go")
    (finished,) = talk.all(ToolFinished)
    assert f"PATH={os.environ['PATH']}"[:10] in finished.content
    assert "CORP_LLM" not in finished.content
