"""Markdown line by line: a line is styled and given out as soon as it is finished, a table as a whole."""

import re

from handrail.interfaces.cli import tables
from handrail.interfaces.cli.styles import (
    ACCENT,
    BOLD,
    CODE,
    DIM,
    ITALIC,
    PLAIN,
    Line,
    Piece,
    line,
    wrap,
)

FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})\s*([\w+#.-]*)\s*$")
HEADING = re.compile(r"^(#{1,6})\s+(.*?)\s*#*$")
ITEM = re.compile(r"^(\s*)([-*+]|\d{1,3}[.)])\s+(.*)$")
QUOTE = re.compile(r"^\s*>\s?(.*)$")
RULE = re.compile(r"^\s*([-*_])(\s*\1){2,}\s*$")
INLINE = re.compile(
    r"(?P<code>(?P<ticks>`+)(?P<literal>.+?)(?P=ticks))"
    r"|(?P<bold>\*\*(?P<strong>\S(?:.*?\S)?)\*\*)"
    r"|(?P<italic>(?<![\w*])\*(?P<soft>[^\s*](?:[^*]*[^\s*])?)\*(?![\w*]))"
)
MARKED = {"code": (CODE, "literal"), "bold": (BOLD, "strong"), "italic": (ITALIC, "soft")}
"""{outer group of INLINE: (its style, the group without the marks)}"""
CODE_INDENT = "  "


class Markdown:
    """A stream of markdown in, styled lines out; `rest` is the unfinished line."""

    def __init__(self, width: int, *, colour: bool = True) -> None:
        self.width = width
        self.colour = colour
        self.rest = ""
        self._fence = ""
        self._table: list[str] = []

    def feed(self, text: str) -> list[Line]:
        """The lines that this text finishes."""
        *finished, self.rest = (self.rest + text).split("\n")
        return [styled for one in finished for styled in self._finish(one)]

    def close(self) -> list[Line]:
        """The last line, when it had no end of its own."""
        rest, self.rest = self.rest, ""
        return (self._finish(rest) if rest else []) + self._end_table()

    def unfinished(self) -> list[Line]:
        """How the unfinished line looks now."""
        return self._laid_out() + (self._styled(self.rest) if self.rest else [])

    def _finish(self, text: str) -> list[Line]:
        text = text.rstrip("\r")
        if not self._fence and tables.is_row(text):
            # A table is laid out when all of it is known.
            self._table.append(text)
            return []
        return self._end_table() + self._finish_other(text)

    def _end_table(self) -> list[Line]:
        rows, self._table = self._laid_out(), []
        return rows

    def _laid_out(self) -> list[Line]:
        return tables.render(self._table, self.width, lambda text: _inline(text, colour=self.colour))

    def _finish_other(self, text: str) -> list[Line]:
        mark = FENCE.match(text)
        if not self._fence and mark:
            self._fence = mark[1]
            return []
        if self._fence and mark and mark[1].startswith(self._fence) and not mark[2]:
            self._fence = ""
            return []
        return self._styled(text)

    def _styled(self, text: str) -> list[Line]:
        if self._fence:
            return [line(CODE_INDENT, (CODE, text))]
        return styled_line(text, self.width, colour=self.colour)


def render(text: str, width: int, *, colour: bool = True) -> list[Line]:
    """The whole text, styled."""
    markdown = Markdown(width, colour=colour)
    return markdown.feed(text) + markdown.close()


def styled_line(text: str, width: int, *, colour: bool) -> list[Line]:
    """One line outside of code, wrapped. Without colour the marks stay, so that their meaning does."""
    if RULE.match(text):
        return [line((DIM, "-" * min(width, 40)))]
    if heading := HEADING.match(text):
        return wrap(_inline(heading[2] if colour else text, colour=colour, base=BOLD), width)
    if quote := QUOTE.match(text):
        return wrap((Piece(DIM, "| "), *_inline(quote[1], colour=colour, base=DIM)), width, "  ")
    if item := ITEM.match(text):
        lead = f"{item[1]}{item[2]} "
        content = (Piece(PLAIN, item[1]), Piece(ACCENT, item[2]), Piece(PLAIN, " "))
        return wrap((*content, *_inline(item[3], colour=colour)), width, " " * len(lead))
    if text.lstrip().startswith("|"):
        return [_inline(text, colour=colour)]
    indent = text[: len(text) - len(text.lstrip())]
    return wrap(_inline(text, colour=colour), width, indent)


def _inline(text: str, *, colour: bool, base: str = PLAIN) -> Line:
    pieces: list[Piece] = []
    end = 0
    for mark in INLINE.finditer(text):
        if mark.start() > end:
            pieces.append(Piece(base, text[end : mark.start()]))
        style, inside = MARKED[mark.lastgroup or ""]
        pieces.append(Piece(style, mark[inside] if colour else mark[0]))
        end = mark.end()
    if end < len(text):
        pieces.append(Piece(base, text[end:]))
    return tuple(pieces)
