"""Markdown, tables included, as styled lines while it streams."""

import re
from collections.abc import Callable, Sequence

from handrail.interfaces.cli.render.styles import Line, Piece, length, line, trim_right, wrap

TABLE_RULE = re.compile(r"^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$")
CELL_BAR = re.compile(r"(?<!\\)\|")
COLUMN_GAP = "  "
MIN_COLUMN = 6

Inline = Callable[[str], Line]


def render_table(rows: Sequence[str], width: int, inline: Inline) -> list[Line]:
    """The rows as a table; unchanged where they are not one, or do not fit."""
    if len(rows) < 2 or not TABLE_RULE.match(rows[1]):
        return [inline(row) for row in rows]
    head, *body = [row_cells(row) for row in (rows[0], *rows[2:])]
    count = max(len(row) for row in (head, *body))
    table = [[inline(cell) for cell in [*row, *[""] * (count - len(row))]] for row in (head, *body)]
    widths = fit_columns([max(length(row[at]) for row in table) for at in range(count)], width)
    if not widths:
        return [inline(row) for row in rows]
    bold = [tuple(Piece(style or "bold", text) for style, text in cell) for cell in table[0]]
    rule = line(("dim", COLUMN_GAP.join("-" * each for each in widths)))
    rows_below = [part for row in table[1:] for part in lay_out_row(row, widths)]
    return [*lay_out_row(bold, widths), rule, *rows_below]


def row_cells(row: str) -> list[str]:
    inside = row.strip().removeprefix("|")
    inside = inside[:-1] if inside.endswith("|") and not inside.endswith("\\|") else inside
    return [cell.strip().replace("\\|", "|") for cell in CELL_BAR.split(inside)]


def fit_columns(widths: list[int], width: int) -> list[int]:
    """The widths, the widest narrowed until all fit; empty where they cannot."""
    room = width - len(COLUMN_GAP) * (len(widths) - 1)
    if room < MIN_COLUMN * len(widths):
        return []
    while sum(widths) > room:
        widths[widths.index(max(widths))] -= 1
    return [max(1, each) for each in widths]


def lay_out_row(row: Sequence[Line], widths: list[int]) -> list[Line]:
    """One row of the table, with as many lines as its longest cell needs."""
    parts = [wrap(cell, each) for cell, each in zip(row, widths, strict=True)]
    done: list[Line] = []
    for number in range(max(len(part) for part in parts)):
        pieces: list[Piece] = []
        for part, each in zip(parts, widths, strict=True):
            shown = part[number] if number < len(part) else ()
            pieces += [*shown, Piece("", " " * (each - length(shown)) + COLUMN_GAP)]
        done.append(trim_right(pieces))
    return done


FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})\s*([\w+#.-]*)\s*$")
HEADING = re.compile(r"^(#{1,6})\s+(.*?)\s*#*$")
ITEM = re.compile(r"^(\s*)([-*+]|\d{1,3}[.)])\s+(.*)$")
QUOTE = re.compile(r"^\s*>\s?(.*)$")
RULE = re.compile(r"^\s*([-*_])(\s*\1){2,}\s*$")
ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
INLINE = re.compile(
    r"(?P<code>(?P<ticks>`+)(?P<literal>.+?)(?P=ticks))"
    rf"|(?P<escaped>{ESCAPED.pattern})"
    r"|(?P<link>\[(?P<words>(?:\\.|[^\[\]\\])+)\]"
    r"\((?:<(?P<address>[^<>]+)>|(?P<bare>[^\s()<>]+))(?:\s+\"[^\"]*\")?\))"
    r"|(?P<bold>\*\*(?P<strong>\S(?:.*?\S)?)\*\*)"
    r"|(?P<italic>(?<![\w*])\*(?P<soft>[^\s*](?:[^*]*[^\s*])?)\*(?![\w*]))"
)
MARKED = {"code": ("code", "literal"), "bold": ("bold", "strong"), "italic": ("italic", "soft")}
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
        *finished, self.rest = (self.rest + text).split("\n")
        return [styled for one in finished for styled in self._finish(one)]

    def close(self) -> list[Line]:
        """The last line, where it had no line end."""
        rest, self.rest = self.rest, ""
        return (self._finish(rest) if rest else []) + self._end_table()

    def unfinished(self) -> list[Line]:
        return self._laid_out() + (self._styled(self.rest) if self.rest else [])

    def _finish(self, text: str) -> list[Line]:
        text = text.rstrip("\r")
        if not self._fence and text.lstrip().startswith("|"):
            # A table is laid out when it is complete.
            self._table.append(text)
            return []
        rows, mark = self._end_table(), FENCE.match(text)
        if not self._fence and mark:
            self._fence = mark[1]
            return rows
        if self._fence and mark and mark[1].startswith(self._fence) and not mark[2]:
            self._fence = ""
            return rows
        return rows + self._styled(text)

    def _end_table(self) -> list[Line]:
        rows, self._table = self._laid_out(), []
        return rows

    def _laid_out(self) -> list[Line]:
        return render_table(self._table, self.width, lambda text: _inline(text, colour=self.colour))

    def _styled(self, text: str) -> list[Line]:
        if self._fence:
            return [line(CODE_INDENT, ("code", text))]
        return styled_line(text, self.width, colour=self.colour)


def render_markdown(text: str, width: int, *, colour: bool = True) -> list[Line]:
    markdown = Markdown(width, colour=colour)
    return markdown.feed(text) + markdown.close()


def styled_line(text: str, width: int, *, colour: bool) -> list[Line]:
    """One line outside of code, wrapped. Without colour the marks stay, to keep their meaning."""
    if RULE.match(text):
        return [line(("dim", "-" * min(width, 40)))]
    if heading := HEADING.match(text):
        return wrap(_inline(heading[2] if colour else text, colour=colour, base="bold"), width)
    if quote := QUOTE.match(text):
        return wrap((Piece("dim", "| "), *_inline(quote[1], colour=colour, base="dim")), width, "  ")
    if item := ITEM.match(text):
        lead = f"{item[1]}{item[2]} "
        content = (Piece("", item[1]), Piece("accent", item[2]), Piece("", " "))
        return wrap((*content, *_inline(item[3], colour=colour)), width, " " * len(lead))
    if text.lstrip().startswith("|"):
        return [_inline(text, colour=colour)]
    indent = text[: len(text) - len(text.lstrip())]
    return wrap(_inline(text, colour=colour), width, indent)


def _inline(text: str, *, colour: bool, base: str = "") -> Line:
    pieces: list[Piece] = []
    end = 0
    for mark in INLINE.finditer(text):
        if mark.start() > end:
            pieces.append(Piece(base, text[end : mark.start()]))
        if mark["escaped"]:
            pieces.append(Piece(base, mark[0][1:]))
        elif mark["link"]:
            words = Piece(base, ESCAPED.sub(r"\1", mark["words"]))
            pieces += [words, Piece("dim", f" ({mark['address'] or mark['bare']})")]
        else:
            style, inside = MARKED[mark.lastgroup or ""]
            pieces.append(Piece(style, mark[inside] if colour else mark[0]))
        end = mark.end()
    if end < len(text):
        pieces.append(Piece(base, text[end:]))
    return tuple(pieces)
