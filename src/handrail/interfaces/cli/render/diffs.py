"""Unified diffs for people: line numbers and signs instead of headers."""

import re

from handrail.interfaces.cli.render.styles import Line, line

HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
NO_NEWLINE = "\\ No newline at end of file"
OMITTED_NOTE = re.compile(r"\[(\d+) more lines of the diff are not shown\]")
DIFF_INDENT = "    "


def is_diff(text: str) -> bool:
    return any(HUNK.match(one) for one in text.splitlines())


def is_diff_of(text: str, path: str) -> bool:
    """Whether the text is one file's diff and nothing else, so that `render_diff` shows all of it."""
    first, second, *lines = [*text.split("\n"), "", ""]
    names = (path, f"a/{path}", f"b/{path}")
    if not (first.startswith("--- ") and first[4:] in (*names, "/dev/null")):
        return False
    if not (second.startswith("+++ ") and second[4:] in names):
        return False
    old = new = 0
    for one in lines:
        if old <= 0 and new <= 0 and (hunk := HUNK.fullmatch(one)):
            old, new = int(hunk[2] or 1), int(hunk[4] or 1)
        elif one[:1] in ("-", "+", " ") and (old > 0 or new > 0):
            old, new = old - (one[0] != "+"), new - (one[0] != "-")
        elif one and one != NO_NEWLINE and not OMITTED_NOTE.fullmatch(one):
            return False
    return True


def created_text(text: str, path: str) -> str:
    """The full text of a file that the diff creates; empty for any other diff."""
    lines = text.split("\n")[2:]
    others = any(OMITTED_NOTE.fullmatch(one) or one.startswith(("-", " ")) for one in lines)
    if others or not is_diff_of(text, path):
        return ""
    return "\n".join(one[1:] for one in lines if one.startswith("+"))


def render_diff(text: str) -> list[Line]:
    """The lines of all hunks, numbered; a gap between hunks and a further file are marked."""
    rows: list[Line] = []
    old = new = old_left = new_left = 0
    named = False
    for one in text.split("\n"):
        if hunk := HUNK.match(one):
            if rows and not named:
                rows.append(line(DIFF_INDENT, ("dim", "    …")))
            named = False
            old, old_left = int(hunk[1]), int(hunk[2] or 1)
            new, new_left = int(hunk[3]), int(hunk[4] or 1)
        elif OMITTED_NOTE.fullmatch(one):
            rows.append(line(DIFF_INDENT, ("bold", one.strip("[]"))))
        elif one.startswith("\\"):
            rows.append(line(DIFF_INDENT, ("dim", f"      ({one[2:].lower()})")))
        elif old_left <= 0 and new_left <= 0:
            if one.startswith("+++ ") and rows:
                rows.append(line(DIFF_INDENT, ("dim", one[4:].removeprefix("b/"))))
                named = True
        elif one.startswith("-"):
            rows.append(_row(old, "-", one[1:], "dim"))
            old, old_left = old + 1, old_left - 1
        elif one.startswith("+"):
            rows.append(_row(new, "+", one[1:], "accent"))
            new, new_left = new + 1, new_left - 1
        else:
            rows.append(_row(new, " ", one[1:], ""))
            old, old_left = old + 1, old_left - 1
            new, new_left = new + 1, new_left - 1
    return rows


def _row(number: int, sign: str, text: str, style: str) -> Line:
    return line(DIFF_INDENT, ("dim", f"{number:>4} "), (style, f"{sign} {text}"))
