"""The text of a web page: what a reader would see, without markup."""

import re
from html.parser import HTMLParser

SILENT = {"script", "style", "noscript", "template", "svg", "head", "iframe", "object"}
BLOCK = re.compile(
    r"address|article|aside|blockquote|br|d[dlt]|div|fieldset|figcaption|figure|footer|form|h[1-6]|header|hr|li"
    r"|main|nav|ol|p|pre|section|table|t[dhr]|ul"
)
KEEPS_SPACE = {"pre", "textarea"}


def text_of_html(html: str) -> str:
    """Title first, then the words of the page, a line a block."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    body = re.sub(r"[ \t]*\n[ \t]*(?:\n[ \t]*)+", "\n\n", "".join(reader.parts)).strip()
    title = " ".join("".join(reader.title).split())
    return f"{title}\n\n{body}".strip() if title else body


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self.title: list[str] = []
        self._open: list[str] = []
        """Elements that silence their content or keep its white space, innermost last."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in SILENT | KEEPS_SPACE | {"title"}:
            self._open.append(tag)
        elif tag == "body":
            # A head that was never closed must not silence the page.
            self._open = [name for name in self._open if name not in ("head", "title")]
        if BLOCK.fullmatch(tag):
            self.parts.append("\n")
        if tag == "li":
            self.parts.append("- ")

    def handle_endtag(self, tag: str) -> None:
        if tag in self._open:
            del self._open[len(self._open) - 1 - self._open[::-1].index(tag) :]
        if BLOCK.fullmatch(tag):
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] == "title":
            self.title.append(data)
        elif not SILENT.intersection(self._open):
            self.parts.append(data if self._open else re.sub(r"\s+", " ", data))
