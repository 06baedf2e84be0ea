"""Agents for tests: one of five stages in `report/`, and small ones written down in a test."""

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parents[2] / "examples"
REPORT = Path(__file__).parent / "report"
QUESTION = "Do passengers get money back when fog stops a crossing?"
QUOTE = "When a crossing is cancelled by us, every passenger gets the full fare back within seven days."
GOOD = {"claim": "The full fare is paid back.", "quote": QUOTE}
WRONG = {"claim": "The full fare is paid back.", "quote": "Every passenger gets all money back in a week."}
SMALL = """
name = "Small"
description = "Asks one thing"
[budget]
tokens = 20_000
[[stages]]
name = "ask"
kind = "ask"
prompt = "prompts/ask.md"
[stages.output]
type = "object"
properties.topics = { type = "array", items = { type = "string" } }
"""


def demo(workspace: Path) -> Path:
    """A workspace with the agent `report` and its documents."""
    shutil.copytree(REPORT / "documents", workspace / "documents")
    shutil.copytree(REPORT / "agent", workspace / "agents" / "report")
    return workspace


def agent(folder: Path, slug: str = "small", text: str = SMALL, prompt: str = "Name the topics.") -> Path:
    """An agent below `folder/agents`; its folder."""
    here = folder / "agents" / slug
    (here / "prompts").mkdir(parents=True, exist_ok=True)
    (here / "agent.toml").write_text(text, encoding="utf-8")
    (here / "prompts" / "ask.md").write_text(prompt, encoding="utf-8")
    return here


def as_json(when: str, value: Mapping[str, Any]) -> dict[str, Any]:
    return {"when": when, "text": json.dumps(value)}


def answers(*others: Mapping[str, Any], first: Mapping[str, Any] = WRONG) -> Sequence[Any]:
    """What the model says to each stage of `report`: the first draft is `first`, the second is right."""
    questions = ["Are passengers refunded when a crossing is cancelled?", "When does fog cancel a crossing?"]
    return [
        *others,
        as_json("The user's message:", {"means": "pipeline_response", "confidence": 0.9}),
        as_json("have to be corrected", {"findings": [GOOD]}),
        as_json("Output of gather", {"findings": [first]}),
        as_json("Question:\n", {"questions": questions}),
    ]
