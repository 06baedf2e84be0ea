r"""Refuse new text that empties a file, hides characters, or has conflict markers or escapes.

Inside quotes `\n` is normal, and comments or documents may mention it. A `\n` counts as a mistake where it
ends a statement or a line: outside quotes, with no space before it.
"""

import re
from collections import Counter
from typing import NamedTuple

from handrail.changes.diff import changed_span, opcodes
from handrail.changes.forms.elision import find_elisions
from handrail.protocol.errors import PathProblem

PROSE = (".md", ".markdown", ".mdx", ".rst", ".txt", ".adoc", ".asciidoc", ".org", ".tex", ".textile")
PROSE_NAMES = ("readme", "license", "licence", "changelog", "changes", "notice", "authors", "copying", "todo")
CODE = (
    *(".py", ".pyi", ".js", ".mjs", ".cjs", ".jsx", ".ts", ".tsx", ".go", ".rs", ".c", ".h", ".cc", ".cpp"),
    *(".hpp", ".java", ".kt", ".cs", ".rb", ".php", ".swift", ".scala", ".lua", ".dart", ".zig", ".sql"),
)
BACKSLASHED = (".tex", ".sty", ".cls", ".ltx", ".bib", ".rtf", ".bat", ".cmd", ".reg")
MARKUP = (".jsx", ".tsx", ".php", ".js", ".mjs", ".ts")  # languages whose code may have HTML entities
QUOTED = re.compile(
    r'"""[\s\S]*?"""'
    r"|'''[\s\S]*?'''"
    r"|`[^`]*`"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'(?:\\.|[^'\\\n])*'"
    r"|(?<=[(,=:\[!&|?{;])\s*/(?![/*])(?:\\.|[^/\\\n])+/"
)
DOUBLE_QUOTED = re.compile(r'"(?:\\.|[^"\\\n])*"|`[^`]*`')
ESCAPED_BREAK = re.compile(r"(?<![\s\\/\[(|^'\"=>])(?:\\r)?\\n")
ANY_ESCAPED_BREAK = re.compile(r"(?<!\\)(?:\\r)?\\n")
COMMENT_START = re.compile(r"\s(?:#|//|--|/\*|\*|;|%)|^\s*(?:#|//|--|/\*|\*|;|%|<!--)")
SEVERAL_BREAKS = 2
ENTITY = re.compile(r"&(?:lt|gt|amp|quot|apos|#39);")


def _is_prose(path: str) -> bool:
    name = path.rpartition("/")[2].lower()
    return name.endswith(PROSE) or name in PROSE_NAMES


def _escaped_break(path: str, old: str, new: str) -> str:
    if new.count("\\n") <= old.count("\\n") or path.lower().endswith(BACKSLASHED):
        return ""
    before = set(_outside(old).split("\n"))
    one_line = "\n" not in new.strip() and ("\n" in old.strip() or not old)
    # An apostrophe looks like a quote, so between two of them a single break outside is enough.
    if (
        one_line
        and ANY_ESCAPED_BREAK.search(_outside(new))
        and len(ESCAPED_BREAK.findall(DOUBLE_QUOTED.sub("", new))) >= SEVERAL_BREAKS
    ):
        return new.strip()[:200]
    is_code = path.lower().endswith(CODE)
    for line in _outside(new).split("\n"):
        if "\\n" not in line or line in before:
            continue
        breaks = [found.start() for found in ESCAPED_BREAK.finditer(line)]
        comment = COMMENT_START.search(line)
        mentions = not is_code or (comment is not None and breaks and comment.start() < breaks[0])
        if len(breaks) >= (SEVERAL_BREAKS if mentions else 1):
            return line.strip()[:200]
    return ""


def _escaped_entity(path: str, old: str, new: str) -> str:
    name = path.lower()
    if not name.endswith(CODE) or name.endswith(MARKUP) or not ENTITY.search(new):
        return ""
    before = set(_outside(old).split("\n"))
    for line in _outside(new).split("\n"):
        found = ENTITY.search(line)
        comment = COMMENT_START.search(line)
        if found and line not in before and (comment is None or found.start() < comment.start()):
            return line.strip()[:200]
    return ""


def _outside(text: str) -> str:
    """The text without what is in quotes, with the same lines."""
    return QUOTED.sub(lambda quoted: '""' + "\n" * quoted[0].count("\n"), text)


BIDIRECTIONAL = re.compile("[\u202a-\u202e\u2066-\u2069]")
SURROGATE = re.compile("[\ud800-\udfff]")
# Joiners belong to some scripts and to emoji, not beside a letter of ASCII.
INVISIBLE = re.compile(
    "[\u200b\u2060\ufeff\u180e]|(?<=[\\x21-\\x7e])[\u200c\u200d]|[\u200c\u200d](?=[\\x21-\\x7e])"
)
CONFLICT = re.compile(
    r"<{7}(?: .*)?|>{7}(?: .*)?|\|{7}(?: .*)?|[<>]{5,9} ?(?:SEARCH|REPLACE|ORIGINAL|UPDATED|HEAD)\b.*"
    r"|-{5,9} ?SEARCH|\+{5,9} ?REPLACE"
)
DIVIDER = "======="
FENCE = re.compile(r"\s{0,3}(?:```|~~~)")
GUARDED_LINES = 20


class Loss(NamedTuple):
    """How many lines of a text are removed without others in their place."""

    lost: int
    total: int

    @property
    def is_large(self) -> bool:
        return self.total >= GUARDED_LINES and self.lost * 2 > self.total


class ChangedStretch(NamedTuple):
    """The part in which two texts differ, as lines, and the last line before it that is not blank."""

    old: list[str]
    new: list[str]
    above: str


def check_new_text(path: str, old: str | None, new: str) -> Loss:
    """Raises PathProblem where the new text must not be written; `old` is None where there is no file."""
    before = old or ""
    if old is not None and new == old:
        raise PathProblem(f"{path} already has exactly this text.", "no_change", path)
    old_lines, new_lines = _lines(before), _lines(new)
    head, end_before, end_after = changed_span(old_lines, new_lines)
    above = next((line for line in reversed(new_lines[:head]) if line.strip()), "")
    stretch = ChangedStretch(old_lines[head:end_before], new_lines[head:end_after], above.strip())
    _refuse_characters(path, "\n".join(stretch.old), "\n".join(stretch.new))
    if before.strip() and not new.strip():
        message = f"This would leave {path} empty. Give the text it should contain, or delete the file."
        raise PathProblem(message, "emptied", path)
    checked = ChangedStretch(old_lines, new_lines, "") if _is_prose(path) else stretch
    if marker := _conflict(path, checked):
        why = f"The new text of {path} has a marker of a merge conflict or an edit block: {marker[:80]!r}."
        raise PathProblem(f"{why} Send the text without such lines.", "conflict_markers", path)
    if line := _escaped_break(path, before, new):
        why = f"The new text of {path} has \\n as two characters where a line break is meant: {line!r}."
        raise PathProblem(f"{why} Send real line breaks, escaped once in JSON.", "escaped_breaks", path)
    if line := _escaped_entity(path, before, new):
        why = f"The new text of {path} has code that is escaped for HTML: {line!r}."
        raise PathProblem(f"{why} Send it as the file should have it.", "suspicious_text", path)
    if line := _elision(path, stretch):
        why = f"{line!r} stands for lines that would be lost. Write out all of {path}"
        raise PathProblem(f"{why}, or edit only the lines that change.", "elision", path)
    return _loss(before, stretch)


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]


def _refuse_characters(path: str, old: str, new: str) -> None:
    if half := SURROGATE.search(new):
        raise _characters(path, f"half of a surrogate pair ({half[0]!a})")
    if not new.isascii():
        if len(BIDIRECTIONAL.findall(new)) > len(BIDIRECTIONAL.findall(old)):
            raise _characters(path, "characters that change the reading direction (U+202A to U+2069)")
        if len(INVISIBLE.findall(new)) > len(INVISIBLE.findall(old)):
            raise _characters(path, "invisible characters, such as a zero-width space")
    if "\0" in new:
        raise _characters(path, "NUL characters")


def _characters(path: str, what: str) -> PathProblem:
    return PathProblem(f"The new text of {path} has {what}. Leave them out.", "suspicious_text", path)


def _conflict(path: str, stretch: ChangedStretch) -> str:
    known = Counter(line.rstrip() for line in stretch.old)
    prose, fenced, above = _is_prose(path), False, stretch.above
    for line in stretch.new:
        text = line.rstrip()
        fenced ^= prose and FENCE.match(text) is not None
        # Under a short title such a row underlines it.
        divides = text == DIVIDER and not prose and not 0 < len(above) <= len(DIVIDER)
        if (divides or CONFLICT.fullmatch(text)) and not fenced:
            if not known[text]:
                return text
            known[text] -= 1
        above = text
    return ""


def _elision(path: str, stretch: ChangedStretch) -> str:
    """The first new line that stands for code; in a document one does only where text is removed."""
    found = find_elisions(stretch.old, stretch.new, stretch.above)
    certain = [marker.text for marker in found if marker.certain]
    if not found or (certain and not _is_prose(path)):
        return certain[0] if found else ""
    numbers = {marker.line for marker in found}
    rest = [line for number, line in enumerate(stretch.new) if number not in numbers]
    return found[0].text if _lost(stretch.old, rest) or _lost(*map(_written, (stretch.old, rest))) else ""


def _loss(old: str, stretch: ChangedStretch) -> Loss:
    """The larger share: of all lines, or of those that are not blank."""
    total = len(_lines(old))
    lost, written = _lost(stretch.old, stretch.new), _lost(_written(stretch.old), _written(stretch.new))
    if not written:
        return Loss(lost, total)
    return Loss(max(lost, -(-written * total // len(_written(_lines(old))))), total)


def _written(lines: list[str]) -> list[str]:
    return [line for line in lines if line.strip()]


def _lost(before: list[str], after: list[str]) -> int:
    """Lines that are removed, neither moved nor replaced by others."""
    codes = [code for code in opcodes(before, after) if code[0] != "equal"]
    came = Counter(line.strip() for _, _, _, start, end in codes for line in after[start:end])
    lost = 0
    for _, old_start, old_end, start, end in codes:
        gone = 0
        for line in before[old_start:old_end]:
            if came[line.strip()]:
                came[line.strip()] -= 1
            else:
                gone += 1
        lost += max(0, gone - (end - start))
    return lost
