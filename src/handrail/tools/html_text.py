"""The text of a web page: what a reader would see, without markup."""

import re
import time
from collections import Counter
from html.parser import HTMLParser

SILENT = {"script", "style", "noscript", "template", "svg", "head", "iframe", "object"}
BLOCK = re.compile(
    r"address|article|aside|blockquote|br|d[dlt]|div|fieldset|figcaption|figure|footer|form|h[1-6]|header|hr|li"
    r"|main|nav|ol|p|pre|section|table|t[dhr]|ul"
)
KEEPS_SPACE = {"pre", "textarea"}
MARKED = SILENT | KEEPS_SPACE | {"title"}
PIECE = 16_384
"""Characters between two looks at the clock."""
SECONDS = 2.0
"""What a page has for being read: the parser is slow on some that were made for it."""


def text_of_html(html: str) -> str:
    """Title first, then the words of the page, a line a block; of a page that takes too long, the start."""
    reader = _Reader()
    ends = time.monotonic() + SECONDS
    for start in range(0, len(html), PIECE):
        reader.feed(html[start : start + PIECE])
        if time.monotonic() > ends:
            break
    if len(reader.rawdata) <= PIECE:
        reader.close()
    body = _in_blocks("".join(reader.parts))
    title = " ".join("".join(reader.title).split())
    return f"{title}\n\n{body}".strip() if title else body


def _in_blocks(text: str) -> str:
    """The text with one empty line wherever there are several."""
    blocks: list[list[str]] = [[]]
    for line in text.split("\n"):
        if line.strip(" \t"):
            blocks[-1].append(line)
        elif blocks[-1]:
            blocks.append([])
    return "\n\n".join("\n".join(block).strip(" \t") for block in blocks).strip()


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self.title: list[str] = []
        self._open: list[str] = []
        """Elements that silence their content or keep its white space, innermost last."""
        self._number: Counter[str] = Counter()
        """How many of each are open."""

    def parse_html_declaration(self, i: int) -> int:
        # The parser fails on what begins so and is no section that it knows.
        if self.rawdata.startswith("<![", i):
            return self.parse_bogus_comment(i)
        return super().parse_html_declaration(i)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in MARKED:
            self._open.append(tag)
            self._number[tag] += 1
        elif tag == "body" and (self._number["head"] or self._number["title"]):
            # A head that was never closed must not silence the page.
            self._open = [name for name in self._open if name not in ("head", "title")]
            self._number["head"] = self._number["title"] = 0
        if BLOCK.fullmatch(tag):
            self.parts.append("\n")
        if tag == "li":
            self.parts.append("- ")

    def handle_endtag(self, tag: str) -> None:
        while self._number[tag]:
            closed = self._open.pop()
            self._number[closed] -= 1
            if closed == tag:
                break
        if BLOCK.fullmatch(tag):
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] == "title":
            self.title.append(data)
        elif not any(self._number[name] for name in SILENT):
            self.parts.append(data if self._open else re.sub(r"\s+", " ", data))
