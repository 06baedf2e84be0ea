"""Splits of small projects: a scripted model that knows what to do with each file, and one check."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from handrail.app.app import App
from handrail.app.splits.plans import keep_plan
from handrail.app.splits.report import SplitReport
from handrail.app.splits.run import run_split
from handrail.protocol.events import Event
from handrail.protocol.subtask import SplitCommand, SplitLimits, SplitPlan, Strategy, Subtask
from handrail.sessions.session import Session
from tests.pipelines.build.builds import COPIES
from tests.verification.projects import write

ENDS = "complete" if COPIES else "unverified"

CHECKS = """\
[checks]
detect = false
skip = ["consistency"]
[[checks.commands]]
name = "tests"
run = "! grep -rq WRONG --include=*.py ."
"""
USAGE = {"input_tokens": 100, "output_tokens": 20}


def answer(when: str, *files: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    """What the model says to a request with these words."""
    exports = fields.pop("exports", ())
    text = json.dumps({"summary": "It is done", "files": files, "exports": exports})
    return {"when": when, "text": [text], "usage": USAGE, **fields}


def edited(path: str, search: str, replace: str) -> dict[str, Any]:
    return {"path": path, "edits": [{"search": search, "replace": replace}]}


def subtask(name: str, *files: str, **fields: Any) -> Subtask:
    return Subtask(name, f"Do {name}.", files, **fields)


def plan_of(*subtasks: Subtask, strategy: Strategy = "graph", **limits: Any) -> SplitPlan:
    return SplitPlan("Improve it", subtasks, strategy, limits=SplitLimits(**limits))


def module(number: int) -> str:
    """A file of nine lines, of which the third and the seventh can be changed apart."""
    return f"# Module {number}.\n\nONE = {number}\n\nTEXT = 'same'\n\nTWO = {number}\n\nEND = 0\n"


def project(root: Path, count: int) -> Path:
    return write(root, {f"m{number:02}.py": module(number) for number in range(count)})


def contents(root: Path) -> dict[str, bytes]:
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in sorted(root.rglob("*.*"))}


async def split(app: App, plan: SplitPlan) -> SplitReport:
    """The plan, run to its end."""
    return await run_split(app, keep_plan(app, plan))


async def resumed(app: App, session_id: str, action: Any = "resume", **fields: Any) -> SplitReport:
    return await run_split(app, session_id, SplitCommand(action, **fields))


def events_of(app: App, session_id: str) -> list[Event]:
    session = Session(app.log, session_id).load()
    return [one.event for one in session.read_after(0, session.seq)]


def kinds(found: Iterable[Event], *types: type) -> list[Any]:
    return [each for each in found if isinstance(each, types)]
