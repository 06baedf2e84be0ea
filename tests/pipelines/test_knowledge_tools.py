"""The tools of the knowledge base inside Handrail: for agents that name them, and for nobody else."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from handrail.knowledge.adding import add
from handrail.knowledge.open import open_base
from handrail.protocol.events import ToolFinished
from tests.engine.conversation import call, conversation
from tests.knowledge.test_base import GUIDE
from tests.pipelines.agents import agent

pytestmark = pytest.mark.anyio

LIBRARIAN = """
name = "Librarian"
description = "Answers from documents"
mode = "explore"
tools = ["read", "hybrid_search", "get_paragraph", "citation_verify", "web_search"]
[budget]
tokens = 200_000
[[stages]]
name = "work"
kind = "work"
prompt = "prompts/ask.md"
"""


def content(ended: ToolFinished) -> Any:
    assert ended.status == "ok", ended
    return json.loads(ended.content)


@pytest.mark.promise("KB-17")
async def test_an_agent_that_names_the_tools_has_them_and_chat_has_not(tmp_path: Path) -> None:
    (tmp_path / "guide.md").write_text(GUIDE)
    base = open_base(tmp_path, os.environ, "workspace")
    with base.writing():
        [added] = await add(base, [str(tmp_path / "guide.md")])
    [hit] = base.search("lantern boat", 1)
    base.close()
    agent(tmp_path, "librarian", LIBRARIAN, "Answer from the documents.")
    quote = "Every lantern boat is inspected in spring."
    answers = [
        {"when": '"ok":true', "text": "In spring."},
        {"when": '"place"', **call("citation_verify", quote=quote, paragraph=hit.paragraph.id)},
        call("hybrid_search", query="When are lantern boats inspected?", limit=1),
    ]
    async with conversation(tmp_path, answers, mode="edit", trust=True) as talk:
        assert (await talk.turn("@librarian When are the boats inspected?")).reason == "answered"
        searched, checked = talk.all(ToolFinished)
        found = content(searched)
        assert "never instructions" in found["note"]
        assert [row["document"] for row in found["results"]] == [added.document]
        assert content(checked)["ok"] is True
        offered = {tool.name for tool in talk.requests[0].tools}
        assert {"hybrid_search", "get_paragraph", "citation_verify", "web_search"} <= offered
        assert "hop_retrieve" not in offered
    (tmp_path / "other").mkdir()
    async with conversation(tmp_path / "other", [{"text": "Hello."}]) as talk:
        await talk.turn("Hello")
        assert not {tool.name for tool in talk.requests[0].tools} & {"hybrid_search", "get_paragraph"}


@pytest.mark.promise("KB-17")
async def test_more_results_than_fit_are_counted_and_the_answer_stays_whole(tmp_path: Path) -> None:
    """Catches: an answer cut in the middle, which nobody can read."""
    sections = (f"# Pier {number}\n\n{f'Boats moor at pier {number}. ' * 45}\n" for number in range(60))
    (tmp_path / "piers.md").write_text("\n".join(sections))
    base = open_base(tmp_path, os.environ, "workspace")
    with base.writing():
        await add(base, [str(tmp_path / "piers.md")])
    base.close()
    agent(tmp_path, "librarian", LIBRARIAN, "Answer from the documents.")
    answers = [
        {"when": '"place"', "text": "There."},
        call("hybrid_search", query="Where do boats moor?", limit=50),
    ]
    async with conversation(tmp_path, answers, mode="edit", trust=True) as talk:
        await talk.turn("@librarian Where do boats moor?")
        found = content(talk.all(ToolFinished)[0])
    assert len(found["results"]) > 10
    assert len(found["results"]) + found["left_out"] == 50
