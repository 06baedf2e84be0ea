"""Builds of a small project with a scripted model, real checks and a real log."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from handrail.pipelines.build.states import BuildHistory, history_of
from handrail.protocol.commands import SendMessage
from handrail.protocol.events import RunEvent, TurnFinished
from tests.engine.conversation import Conversation, conversation
from tests.tools.sandbox.machine import working
from tests.verification.projects import write

COPIES = bool(working())
"""Whether checks can be confined here; where they cannot, every build fails before it begins."""
WRONG = "def double(number):\n    return number + 1\n\n\ndef half(number):\n    return number // 2\n"
RIGHT = WRONG.replace("number + 1", "number * 2")
TESTS = """\
import unittest

from calc import double, half


class CalcTest(unittest.TestCase):
    def test_double(self):
        self.assertEqual(double(4), 8)
        assert double(21) == 42

    def test_half(self):
        self.assertEqual(half(9), 4)
"""
PROJECT = {"calc.py": WRONG, "tests/__init__.py": "", "tests/test_calc.py": TESTS}
TASK = "Fix the bug in calc.py: double gives wrong results."
FAST = '[checks]\nlocalise = false\nskip = ["consistency"]\n'
NO_DECISION = {"kind": "none", "reason": ""}
PLAN: dict[str, Any] = {
    "objective": "double returns twice its number",
    "steps": [{"kind": "modify-file", "description": "Multiply by two", "targets": ["calc.py"]}],
    "risks": [],
    "rollback": "Undo the change set.",
    "acceptance": ["the tests pass"],
    "escalation": NO_DECISION,
}
APPROVED: dict[str, Any] = {"verdict": "approved", "issues": [], "escalation": NO_DECISION}


def replaced(search: str, replace: str, path: str = "calc.py") -> dict[str, Any]:
    return {"form": "replace", "path": path, "edits": [{"search": search, "replace": replace}]}


def whole(path: str, text: str) -> dict[str, Any]:
    return {"form": "create", "path": path, "text": text}


FIX = replaced("number + 1", "number * 2")


def script(
    *rounds: Sequence[Mapping[str, Any]] | Mapping[str, Any],
    plan: Mapping[str, Any] = PLAN,
    audit: Mapping[str, Any] = APPROVED,
) -> list[dict[str, Any]]:
    """Answers for the stages; each round is the changes of one answer, or the whole answer."""
    answers = []
    for number, given in enumerate(rounds, 1):
        answer = given if isinstance(given, Mapping) else {"changes": list(given)}
        last = number == len(rounds)
        when = '"round": ' if last else f'"round": {number},'
        answers.append({"when": when, "text": json.dumps(answer)})
    # The answer of the audit comes before the plan's: its request holds the plan's words, too.
    answers.append({"when": "Output of read", "text": json.dumps(audit)})
    answers.append({"when": "Output of survey", "text": json.dumps(plan)})
    return answers


ITEM_CHECKS = """\
[checks]
detect = false
skip = ["consistency"]
[[checks.commands]]
name = "tests"
run = "test ! -e no-tool || exit 127; ! grep -q WRONG *.py"
"""


def item_script(
    task: str, *rounds: Sequence[Mapping[str, Any]], plan: Mapping[str, Any] = PLAN
) -> list[dict[str, Any]]:
    """What the model answers to one item: changes round by round, an approved audit, a plan."""
    targets = [each["path"] for each in rounds[0]] if rounds else ["a.py"]
    steps: list[dict[str, Any]] = [{"kind": "create-file", "description": task, "targets": targets}]
    asked: list[tuple[str, Any]] = [
        (f'{task}\n\nOutput of brief:\n{{"round": {number},', {"changes": list(each)})
        for number, each in enumerate(rounds, 1)
    ]
    asked += [
        (f"{task}\n\nOutput of plan", APPROVED),
        (f"{task}\n\nOutput of survey", {**plan, "steps": steps}),
    ]
    return [{"when": when, "text": json.dumps(answer)} for when, answer in asked]


class Build:
    """How a build ended."""

    def __init__(self, root: Path, talk: Conversation, end: TurnFinished) -> None:
        self.root = root
        self.reason, self.detail = end.reason, end.detail
        self.events = [one.event for one in talk.seen]
        self.history: BuildHistory = history_of(event for event in self.events if isinstance(event, RunEvent))
        self.requests = talk.requests

    @property
    def state(self) -> str:
        return self.history.state

    def text(self, path: str) -> str:
        return (self.root / path).read_text()


async def build(
    root: Path,
    answers: Sequence[Mapping[str, Any]],
    *,
    task: str = TASK,
    files: Mapping[str, str] = PROJECT,
    settings: str = FAST,
) -> Build:
    write(root, files)
    async with conversation(root, answers, mode="edit", answerable=False, settings=settings) as talk:
        await talk.send(SendMessage(text=task, route="build"))
        end = await talk.until(TurnFinished)
        return Build(root, talk, end)
