"""The tools of the knowledge base for agents inside Handrail that name them."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from handrail.knowledge.open import open_base
from handrail.knowledge.toolset import TOOLS, Knowledge, KnowledgeTool
from handrail.policy.call_facts import Action
from handrail.protocol.errors import UsageProblem
from handrail.protocol.values import Value, to_json
from handrail.tools.tool import CallContext, CallTarget, Outcome, Tool, tool_refused, truncate

MAX_CHARACTERS, ROOM_FOR_NOTES = 40_000, 2_000


class KnowledgeCall(Tool[Value]):
    """One of the tools; the base is opened for the call."""

    action: ClassVar[Action] = "look"

    def __init__(
        self, tool: KnowledgeTool, web_endpoint: str, environ: Mapping[str, str] = os.environ
    ) -> None:
        self.name = tool.name  # type: ignore[misc]
        self.description = tool.description  # type: ignore[misc]
        self.arguments = tool.arguments
        self._tool = tool
        self._endpoint = web_endpoint
        self._environ = environ

    def summary(self, arguments: Value, work: CallContext) -> str:
        words = getattr(arguments, "query", "") or getattr(arguments, "id", "")
        return " ".join(str(words).split())[:80]

    async def run(self, arguments: Value, work: CallContext) -> Outcome:
        base = open_base(Path(work.workspace.root), self._environ)
        try:
            answer = await self._tool.run(Knowledge(base, self._endpoint), arguments)
        except UsageProblem as problem:
            raise tool_refused(self.name, "invalid_arguments", str(problem)) from problem
        finally:
            base.close()
        text = to_json(_fitting(answer))
        return Outcome(_summary(answer), truncate(text, MAX_CHARACTERS, "Ask for less."))


class WebSearchCall(KnowledgeCall):
    """A search of the web: asked about as a fetched page is. It changes nothing, so a crash repeats it."""

    action = "fetch"
    repeatable = True

    def target(self, arguments: Value) -> CallTarget:
        return CallTarget(url=self._endpoint)


def _fitting(answer: dict[str, Any]) -> dict[str, Any]:
    """The answer with as many of its results as fit, the best; the rest are only counted."""
    results = answer.get("results")
    if not isinstance(results, list):
        return answer
    room, kept = MAX_CHARACTERS - ROOM_FOR_NOTES, 0
    for each in results:
        room -= len(to_json(each)) + 1
        kept += room >= 0
    return (
        answer
        | {"results": results[:kept]}
        | ({"left_out": len(results) - kept} if kept < len(results) else {})
    )


def _summary(answer: dict[str, Any]) -> str:
    for key in ("results", "documents", "paragraphs", "candidates"):
        if isinstance(found := answer.get(key), list):
            return f"{len(found)} {key}"
    return "done" if answer.get("ok", True) else "not ok"


def knowledge_tools(web_endpoint: str) -> dict[str, Tool[Any]]:
    """All of them, by name. A web search that is not set up only says so: there is nothing to ask about."""
    return {
        name: (WebSearchCall if name == "web_search" and web_endpoint else KnowledgeCall)(tool, web_endpoint)
        for name, tool in TOOLS.items()
    }
