"""Running what an answer suggests: one command, or all of them with the model in the loop."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from handrail.models.base import Request, ToolResult, UserTurn
from handrail.protocol.commands import AnswerApproval, Cancel, RunAll, RunCommand, SetMode
from handrail.protocol.events import (
    ApprovalAsked,
    ApprovalPicked,
    BatchDecided,
    BatchFinished,
    BatchStep,
    SideAnswered,
    ToolFinished,
    ToolStarted,
    TurnFinished,
)
from tests.engine.conversation import Conversation, conversation, words

pytestmark = pytest.mark.anyio

DECIDES = "say how to go on"
"""What only the question holds that asks for a decision."""


def says(decision: str, **more: Any) -> dict[str, Any]:
    """The model's word after a command."""
    return {"when": DECIDES, "text": json.dumps({"decision": decision, **more})}


def answers(text: str = "All is well.") -> list[dict[str, Any]]:
    """What it answers to anything else."""
    return [{"when": "", "text": text}]


def decisions(talk: Conversation) -> list[Request]:
    return [request for request in talk.requests if DECIDES in words(request).rsplit("\n\n", 2)[-1]]


def counted(finished: BatchFinished) -> tuple[int, int, int, int, int]:
    return (
        finished.number,
        finished.total,
        finished.succeeded,
        finished.failed,
        finished.remaining,
    )


async def test_each_command_is_run_and_shown_to_the_model_before_the_next(tmp_path: Path) -> None:
    async with conversation(tmp_path, [says("continue"), *answers("Three lines.")]) as talk:
        await talk.send(RunAll(commands=("echo one >> log", "echo two >> log; cat log", "wc -l < log")))
        finished = await talk.until(BatchFinished)
        await talk.until(TurnFinished)
    assert (tmp_path / "log").read_text() == "one\ntwo\n"
    assert finished.end == "completed" and counted(finished) == (3, 3, 3, 0, 0)
    steps = [(step.number, step.succeeded, step.failed, step.remaining) for step in talk.all(BatchStep)]
    assert steps == [(1, 0, 0, 2), (2, 1, 0, 1), (3, 2, 0, 0)]
    asked = decisions(talk)
    assert len(asked) == 2, "nothing is left to decide after the last one"
    results = [message.content for message in asked[-1].messages if isinstance(message, ToolResult)]
    assert len(results) == 2 and "one\ntwo" in results[1]
    assert "The next is: wc -l < log" in words(asked[-1])
    assert talk.requests[-1].messages[-1] != asked[-1].messages[-1], "it answers when all have run"
