"""The research agent with a scripted model: what it delivers, refuses, repairs, and finds again."""

import json
from pathlib import Path
from typing import Any

import pytest

from handrail.protocol.events import (
    GateFailed,
    RunCompleted,
    RunPaused,
    StageCompleted,
    ToolStarted,
    UserMessage,
)
from tests.engine.conversation import Conversation, conversation, words
from tests.pipelines.research.questions import BAD, GOOD, NIGHT, PASSENGERS, QUESTION, answers, collection

pytestmark = pytest.mark.anyio
FOLDER = "research/how-many-passengers-does-a-ferry-carry-and-what"


async def research(talk: Conversation, text: str = f"@research quick: {QUESTION}") -> str:
    """Ask, go on at the pause, and return the report."""
    paused = await talk.turn(text)
    assert paused.reason == "waiting", paused.detail
    done = await talk.turn("1")
    assert done.reason == "answered", done.detail
    return talk.all(RunCompleted)[-1].text


def answer(workspace: Path, folder: str = FOLDER) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((workspace / folder / "answer.json").read_text())
    return found


async def test_x(tmp_path: Path) -> None:
    await collection(tmp_path)
    async with conversation(tmp_path, answers(), mode="edit") as talk:
        report = await research(talk)
        print(report)
        print([e for e in talk.types])
        print(talk.all(UserMessage)[0], talk.all(RunPaused)[0].text)
        print((tmp_path/FOLDER/'report.md').read_text())
        print((tmp_path/FOLDER/'answer.json').read_text())
    assert 0
