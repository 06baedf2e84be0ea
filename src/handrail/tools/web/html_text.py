"""Convert HTML to the text a reader would see."""

import re
import time
from collections import Counter
from html.parser import HTMLParser

SKIPPED_TAGS = {"script", "style", "noscript", "template", "svg", "head", "iframe", "object"}
BLOCK_TAGS = re.compile(
    r"address|article|aside|blockquote|br|d[dlt]|div|fieldset|figcaption|figure|footer|form|h[1-6]|header|hr|li"
    r"|main|nav|ol|p|pre|section|table|t[dhr]|ul"
)
PREFORMATTED_TAGS = {"pre", "textarea"}
TRACKED_TAGS = SKIPPED_TAGS | PREFORMATTED_TAGS | {"title"}
CHUNK = 16_384  # characters between two checks of the time
SECONDS = 2.0  # time limit for a page: some pages are made to be slow to parse


def html_to_text(html: str) -> str:
    """The title, then the text, one line a block; only the start if parsing takes too long."""
    reader = _TextParser()
    ends = time.monotonic() + SECONDS
    for start in range(0, len(html), CHUNK):
        reader.feed(html[start : start + CHUNK])
        if time.monotonic() > ends:
            break
    if len(reader.rawdata) <= CHUNK:
        reader.close()
    blocks: list[list[str]] = [[]]
    for line in "".join(reader.parts).split("\n"):
        if line.strip(" \t"):
            blocks[-1].append(line)
        elif blocks[-1]:
            blocks.append([])
    body = "\n\n".join("\n".join(block).strip(" \t") for block in blocks).strip()
    title = " ".join("".join(reader.title).split())
    return f"{title}\n\n{body}".strip() if title else body


class _TextParser(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self.title: list[str] = []
        self._open: list[str] = []  # tags that hide content or keep white space, innermost last
        self._number: Counter[str] = Counter()

    def parse_html_declaration(self, i: int) -> int:
        # The parser fails on sections of this kind that it does not know.
        if self.rawdata.startswith("<![", i):
            return self.parse_bogus_comment(i)
        return super().parse_html_declaration(i)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in TRACKED_TAGS:
            self._open.append(tag)
            self._number[tag] += 1
        elif tag == "body" and (self._number["head"] or self._number["title"]):
            # A head that was never closed must not hide the page.
            self._open = [name for name in self._open if name not in ("head", "title")]
            self._number["head"] = self._number["title"] = 0
        if BLOCK_TAGS.fullmatch(tag):
            self.parts.append("\n")
        if tag == "li":
            self.parts.append("- ")

    def handle_endtag(self, tag: str) -> None:
        while self._number[tag]:
            closed = self._open.pop()
            self._number[closed] -= 1
            if closed == tag:
                break
        if BLOCK_TAGS.fullmatch(tag):
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] == "title":
            self.title.append(data)
        elif not any(self._number[name] for name in SKIPPED_TAGS):
            self.parts.append(data if self._open else re.sub(r"\s+", " ", data))
