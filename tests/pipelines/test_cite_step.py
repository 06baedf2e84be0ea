"""The report of `cite`: words of models and documents are text in it, and nothing else."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from markdown_it import MarkdownIt
from msgspec import convert

from handrail.engine.pipeline import CallResult, Change, Output, Outputs
from handrail.pipelines.steps import STEPS, escape_markdown

pytestmark = pytest.mark.anyio
TRICKS = (
    "Yes [see](http://evil/?q) ![p](http://evil/p.png) [1] [1]: http://evil",
    "<script>x</script> <b>bold</b> <http://evil> &lt;i&gt; &#91;1&#93;",
    "**bold** __bold__ _it_ ~~gone~~ `code` snake_case 2*3*4",
    "# a heading",
    "--- 1 | 2",
    "1. first",
    "+ one more",
    r"a \ b \[ c \\ d",
)


class Cited:
    """What `cite` has at hand."""

    question, earlier, room = "Is <b>it</b> safe?", "", 1_000
    issues: tuple[str, ...] = ()
    feedback: tuple[str, ...] = ()

    def __init__(self, findings: Sequence[Output], passages: Sequence[Output]) -> None:
        self.outputs: Outputs = {"ask": {"findings": findings}, "gather": {"passages": passages}}

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> CallResult:
        raise AssertionError("nothing is looked up")

    async def change_together(self, changes: Sequence[Change]) -> list[CallResult]:
        raise AssertionError("nothing is changed")


async def report(findings: Sequence[Output], passages: Sequence[Output]) -> str:
    known = STEPS["cite"]
    options = convert({"findings": "ask.findings", "passages": "gather.passages"}, known.options)
    return str((await known.function(options, Cited(findings, passages)))["report"])


@pytest.mark.promise("AGENT-1")
@pytest.mark.parametrize("trick", TRICKS)
async def test_words_of_others_are_shown_as_they_are(trick: str) -> None:
    passage = {"path": f"{trick}.md", "lines": "1-1", "text": trick}
    shown = MarkdownIt("commonmark").parse(await report([{"claim": trick, "quote": trick}], [passage]))
    kinds = {child.type for token in shown for child in token.children or ()}
    assert kinds <= {"text", "text_special"}
    texts = ["".join(child.content for child in token.children or ()) for token in shown if token.children]
    assert texts == [
        "Is <b>it</b> safe?",
        f"{trick} [1]",
        f'"{trick}"',
        "Sources",
        f"{trick}.md, lines 1-1",
    ]


async def test_a_quote_that_stands_nowhere_has_no_source() -> None:
    assert "- It is [no source]\n" in await report([{"claim": "It is", "quote": "made up"}], [])


@pytest.mark.parametrize("address", ["http://evil/x", "www.evil.com", "WWW.evil.com", "me@evil.com"])
def test_no_address_becomes_a_link_by_itself(address: str) -> None:
    assert address not in escape_markdown(f"see {address}")
