"""What the user is asked to approve: all of it, with invisible characters spelled out."""

import re
import unicodedata
from functools import lru_cache

from handrail.interfaces.cli.render import diffs, styles
from handrail.interfaces.cli.render.styles import BODY_INDENT, INDENT, NAME_COLUMNS, Line, Piece, line, wrap
from handrail.interfaces.cli.render.tool_calls import SHORT_TOOL_NAMES
from handrail.protocol.events import ApprovalAsked

VISIBLE_LINES = 60
CONTINUATION = "↪ "
BREAK_WINDOW = 16
LONG_BLANKS = re.compile(" {24,}")


def approval_lines(asked: ApprovalAsked, width: int) -> list[Line]:
    """Everything that would be done; long lines continue below themselves."""
    return list(_approval_lines(asked.tool, asked.summary, asked.preview, width))


@lru_cache(maxsize=4)  # drawn several times a second while it waits
def _approval_lines(tool: str, summary: str, preview: str, width: int) -> tuple[Line, ...]:
    head = Piece("dim", f"{INDENT}{SHORT_TOOL_NAMES.get(tool, tool):<{NAME_COLUMNS}}")
    if diffs.is_diff_of(preview, summary):
        rows = [(head, Piece("", summary)), *diffs.render_diff(preview)]
    else:
        first, *others = (preview if preview.strip() else summary).rstrip().split("\n")
        below = Piece("dim", " " * len(head.text))
        rows = [(head, Piece("", first)), *((below, Piece("", other)) for other in others)]
    return tuple(part for row in rows for part in break_line(row, width))


def approval_preview(asked: ApprovalAsked, width: int) -> list[Line]:
    """The lines shown at once, and how many more there are."""
    rows = approval_lines(asked, width)
    rows += [line(("dim", f"{INDENT}{'intent':<{NAME_COLUMNS}}"), asked.intent)] if asked.intent else []
    if not (more := hidden_lines(asked, width)):
        return rows
    first = VISIBLE_LINES // 3
    notice = line(("bold", f"{BODY_INDENT}… {more} lines are hidden here; v shows all of it"))
    return [*rows[:first], notice, *rows[first + more :]]


def hidden_lines(asked: ApprovalAsked, width: int) -> int:
    return max(0, len(approval_lines(asked, width)) - VISIBLE_LINES)


def missing_lines(asked: ApprovalAsked) -> int:
    """How many lines of the change are not in the preview, so that they cannot be shown here."""
    note = diffs.OMITTED_NOTE.fullmatch(asked.preview.rpartition("\n")[2])
    return int(note[1]) if note else 0


def keys_line(width: int, *, more: bool, entry: str = "") -> list[Line]:
    keys = [("y", "yes"), ("n", "no"), ("a", "always in this session"), ("?", "why am I asked")]
    if entry:
        keys.insert(3, ("w", f"write `{styles.clean(entry)}` to your allowed commands"))
    if more:
        keys.insert(0, ("v", "view all"))
    pieces: list[str | tuple[str, str]] = [("bold", "  allow?")]
    for key, meaning in keys:
        pieces += ["   ", ("accent", key), f" {meaning}"]
    return wrap(line(*pieces), width, " " * 11)


def break_line(content: Line, width: int) -> list[Line]:
    """The line with its last piece broken at the width, after a space if one is near; nothing is lost."""
    *head, (style, text) = content
    start = styles.length(head)
    rows: list[Line] = []
    room, part, used = max(1, width - start), list[str](), 0
    for unit in visible_units(text):
        if part and used + styles.columns(unit) > room:
            end = reversed(part[-BREAK_WINDOW:])
            kept = len(part) - next((at for at, each in enumerate(end) if each == " "), 0)
            rows.append((*head, Piece(style, "".join(part[:kept]))))
            head = [Piece("dim", " " * start + CONTINUATION)]
            room, part = max(1, width - start - len(CONTINUATION)), part[kept:]
            used = sum(map(styles.columns, part))
        part.append(unit)
        used += styles.columns(unit)
    return [*rows, (*head, Piece(style, "".join(part)))]


def visible_units(text: str) -> list[str]:
    """The text in unbreakable units, with invisible characters and long blanks spelled out."""
    spelled = "".join(map(visible_character, text.replace("\t", "    ")))
    parts: list[str] = []
    end = 0
    for run in LONG_BLANKS.finditer(spelled):
        parts += [*spelled[end : run.start()], f"·×{len(run[0])}"]  # noqa: RUF001
        end = run.end()
    return [*parts, *spelled[end:]]


def visible_character(character: str) -> str:
    """The character, or `<U+200B>` for an invisible one."""
    blank = character == "\ufe0f" or (character != " " and unicodedata.category(character) == "Zs")
    return f"<U+{ord(character):04X}>" if blank else styles.clean(character)
