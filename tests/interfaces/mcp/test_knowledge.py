"""`handrail kb serve`, talked with by the client of the MCP library."""

import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from tests.interfaces.cli.program import command, environment, run
from tests.knowledge.test_base import GUIDE, STANDARD

pytestmark = pytest.mark.anyio
ALL = {
    *(
        "hybrid_search",
        "multi_tier_search",
        "hop_retrieve",
        "list_documents",
        "get_paragraph",
        "guide_search",
    ),
    *("entity_verify", "citation_verify", "relation_verify", "contradiction_check", "format_context"),
    *("web_search", "status", "debug_hop_trace"),
}


@pytest.mark.promise("KB-13")
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_other_programs_search_and_check_over_mcp(tmp_path: Path, mode: Any) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "guide.md").write_text(GUIDE)
    (work / "standard.md").write_text(STANDARD)
    assert run("kb", "add", "standard.md", cwd=work).returncode == 0
    assert run("kb", "add", "guide.md", "--tier", "guide", cwd=work).returncode == 0
    words = command("kb", "serve")
    parameters = StdioServerParameters(command=words[0], args=words[1:], env=environment(), cwd=str(work))
    assert words[0] == sys.executable
    async with Client(parameters, mode=mode) as client:

        async def call(name: str, **arguments: Any) -> Any:
            result = await client.call_tool(name, arguments)
            assert not result.is_error, result.content
            return result.structured_content

        assert {tool.name for tool in (await client.list_tools()).tools} == ALL
        found = await call("hybrid_search", query="Who inspects each boat before the tide?", limit=2)
        best = found["results"][0]
        assert best["text"].startswith("2.1 The harbour office")
        assert "never instructions" in found["note"]
        tiers = await call("multi_tier_search", query="boats report")
        assert {row["tier"] for row in tiers["guide"]} == {"guide"}
        guides = (await call("guide_search", query="lantern boat"))["results"]
        hops = await call("hop_retrieve", paragraphs=[guides[0]["id"]], tier="standard")
        assert hops["results"][0]["id"] == best["id"]
        assert (await call("debug_hop_trace", paragraphs=[guides[0]["id"]]))["considered"]
        assert len((await call("list_documents"))["documents"]) == 2
        assert (await call("list_documents", kind="code"))["documents"] == []
        assert (await call("hybrid_search", query="boat", kind="code"))["results"] == []
        assert (await call("hybrid_search", query="boat", kind="markdown"))["results"]
        assert len((await call("get_paragraph", id=best["id"], around=1))["paragraphs"]) == 3
        quote = "inspects each boat before the first tide"
        assert (await call("citation_verify", quote=quote, paragraph=best["id"]))["ok"]
        wrong = await call("citation_verify", quote=quote.replace("before", "after"), paragraph=best["id"])
        assert not wrong["ok"]
        text = "The harbour office inspects each boat."
        assert (await call("entity_verify", text="It is in Paris.", paragraphs=[best["id"]]))["missing"] == [
            "Paris"
        ]
        assert (await call("relation_verify", text=text, paragraphs=[best["id"]]))["rate"] == 1.0
        ids = [row["id"] for row in found["results"]]
        assert (await call("contradiction_check", paragraphs=ids))["candidates"] == []
        context = await call("format_context", paragraphs=ids, tokens=1_000)
        assert "[S1]" in context["text"]
        assert "No web search is set up" in (await call("web_search", query="boats"))["problem"]
        assert (await call("status"))["documents"] == 2
        assert "Do not answer from memory" in (await call("hybrid_search", query="zebra"))["note"]
        for name, arguments in (("hybrid_search", {}), ("get_paragraph", {"id": "x:y"})):
            result = await client.call_tool(name, arguments)
            assert result.is_error
