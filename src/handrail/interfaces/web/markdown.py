"""Markdown of models and files as safe HTML: no raw HTML, no foreign pictures, only harmless links."""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from handrail.interfaces.cli.render.styles import clean
from handrail.interfaces.web.highlight import highlighted
from handrail.interfaces.web.html import Html, h, join, safe_address
from handrail.interfaces.web.mermaid import draw_flowchart

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.tree import SyntaxTreeNode

MAX_CHARS = 300_000
FOLDED = ("## Evidence", "## Left out")
PARAGRAPH = re.compile(r"([a-z0-9-]+):([0-9a-f-]+)")
"""The title of a link in a report: document and key of the paragraph that it quotes."""
TAGS = {
    "paragraph": "p",
    "strong": "strong",
    "em": "em",
    "s": "del",
    "blockquote": "blockquote",
    "bullet_list": "ul",
    "list_item": "li",
    "thead": "thead",
    "tbody": "tbody",
    "tr": "tr",
}


def markdown(text: str) -> Html:
    if len(text) > MAX_CHARS:
        return h("pre", clean(text, tab="\t"), class_="plain")
    return join(*(block.html for block in blocks(text)))


def report_html(text: str, knowledge: str) -> Html:
    """The result of an agent's run, with what only backs it up folded.

    `knowledge`: the address of the place whose paragraphs its links may lead to.
    """
    if len(text) > MAX_CHARS:
        return markdown(text)
    lines, parts, folded = text.split("\n"), list[Html](), ""
    for block in blocks(text, knowledge):
        if lines[block.start] in FOLDED:
            folded = lines[block.start].removeprefix("## ")
        else:
            parts.append(h("details", h("summary", folded), block.html) if folded else block.html)
            folded = ""
    return join(*parts)


class Block(NamedTuple):
    html: Html
    start: int
    """Its first line in the text."""


def blocks(text: str, knowledge: str = "") -> list[Block]:
    """The top-level blocks one by one, so that a text that streams is drawn from the last one on."""
    from markdown_it.tree import SyntaxTreeNode

    # Every line stays a line of its own, so that `start` counts those of the text.
    visible = clean(text.replace("\r\n", "\n"), tab="\t")
    tokens = _parser().parse(visible)
    for token in (each for parent in tokens for each in parent.children or ()) if knowledge else ():
        if found := PARAGRAPH.fullmatch(str(token.attrs.get("title", ""))):
            token.meta["address"] = f"{knowledge}/{found[1]}?p={found[2]}#p-{found[2]}"
    root = SyntaxTreeNode(tokens)
    return [Block(_node(child), child.map[0] if child.map else 0) for child in root.children]


@lru_cache(maxsize=1)
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])


def _children(node: "SyntaxTreeNode") -> Iterator[Html]:
    return (_node(child) for child in node.children)


def _node(node: "SyntaxTreeNode") -> Html:
    if node.type in TAGS:
        tight = node.type == "paragraph" and node.hidden
        return join(*_children(node)) if tight else h(TAGS[node.type], *_children(node))
    match node.type:
        case "text" | "html_inline" | "html_block" | "text_special":
            return join(node.content)
        case "softbreak":
            return join("\n")
        case "hardbreak":
            return h("br")
        case "hr":
            return h("hr")
        case "code_inline":
            return h("code", node.content)
        case "fence" | "code_block":
            return code_block(node.content.rstrip("\n"), node.info.split()[0] if node.info.split() else "")
        case "heading":
            # The page has headings of its own above these.
            return h(f"h{min(6, int(node.tag[1:]) + 2)}", *_children(node))
        case "ordered_list":
            start = node.attrs.get("start")
            return h("ol", *_children(node), start=int(start) if start else None)
        case "table":
            # A region that the keyboard can scroll.
            table = h("table", *_children(node))
            return h("div", table, class_="scroll", tabindex="0", role="region", aria_label="table")
        case "th" | "td":
            side = str(node.attrs.get("style", "")).partition("text-align:")[2]
            return h(
                node.type, *_children(node), class_=f"to-{side}" if side in ("right", "center") else None
            )
        case "link" if "address" in node.meta:
            return h("a", *_children(node), href=node.meta["address"])
        case "link":
            return link(str(node.attrs.get("href", "")), join(*_children(node)))
        case "image":
            words = join("image: ", *(_children(node) if node.children else (node.content,)))
            return link(str(node.attrs.get("src", "")), words)
        case _:
            return join(*_children(node))


def link(address: str, words: Html) -> Html:
    """A link to another site in a window of its own; just the words where the address is not harmless."""
    if not safe_address(address).lower().startswith(("http://", "https://", "mailto:")):
        return h("span", words, title=address)
    return h("a", words, href=address, target="_blank", rel="noopener noreferrer")


def code_block(code: str, language: str) -> Html:
    """Code with colours and a button that copies it; a flowchart as a picture."""
    picture = draw_flowchart(code) if language.lower() == "mermaid" else None
    copy = h("button", "Copy", type="button", class_="quiet copy", data_act="copy")
    head = h("div", h("span", language or "text", class_="soft"), copy, class_="code-head")
    body = h("pre", h("code", highlighted(code, language)), tabindex="0")
    if picture is None:
        return h("div", head, body, class_="code")
    source = h("details", h("summary", "Show as text"), h("div", head, body, class_="code"))
    return h("figure", picture, source, class_="chart")
