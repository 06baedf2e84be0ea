r"""Text that was escaped once too often: `\n` for a line break, `&lt;` for `<`.

Inside of quotes `\n` is what it is for; in a comment or a document it may be talked about. What is looked for
is one that ends a statement or a line: outside of quotes, with no space before it.
"""

import re

from handrail.changes.languages import has_backslashes, is_code

SKIPPED = re.compile(
    r'"""[\s\S]*?"""'
    r"|'''[\s\S]*?'''"
    r"|`[^`]*`"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'(?:\\.|[^'\\\n])*'"
    r"|(?<=[(,=:\[!&|?{;])\s*/(?![/*])(?:\\.|[^/\\\n])+/"
)
DOUBLE_QUOTED = re.compile(r'"(?:\\.|[^"\\\n])*"|`[^`]*`')
BREAK = re.compile(r"(?<![\s\\/\[(|^'\"=>])(?:\\r)?\\n")
ANY = re.compile(r"(?<!\\)(?:\\r)?\\n")
COMMENT = re.compile(r"\s(?:#|//|--|/\*|\*|;|%)|^\s*(?:#|//|--|/\*|\*|;|%|<!--)")
MANY = 2
ENTITY = re.compile(r"&(?:lt|gt|amp|quot|apos|#39);")
MARKUP = (".jsx", ".tsx", ".php", ".js", ".mjs", ".ts")
"""Languages in whose code such entities have a place."""


def escaped_break(path: str, old: str, new: str) -> str:
    """The first new line with such a break; empty where there is none."""
    if new.count("\\n") <= old.count("\\n") or has_backslashes(path):
        return ""
    before = set(_outside(old).split("\n"))
    one_line = "\n" not in new.strip() and ("\n" in old.strip() or not old)
    # An apostrophe looks like a quote, so of what stands between two of them one in the open is enough.
    if one_line and ANY.search(_outside(new)) and len(BREAK.findall(DOUBLE_QUOTED.sub("", new))) >= MANY:
        return new.strip()[:200]
    for line in _outside(new).split("\n"):
        if "\\n" not in line or line in before:
            continue
        breaks = [found.start() for found in BREAK.finditer(line)]
        comment = COMMENT.search(line)
        talk = not is_code(path) or (comment is not None and breaks and comment.start() < breaks[0])
        if len(breaks) >= (MANY if talk else 1):
            return line.strip()[:200]
    return ""


def escaped_entity(path: str, old: str, new: str) -> str:
    """The first new line of code with an entity of HTML outside of quotes; empty where there is none."""
    if not is_code(path) or path.lower().endswith(MARKUP) or not ENTITY.search(new):
        return ""
    before = set(_outside(old).split("\n"))
    for line in _outside(new).split("\n"):
        found = ENTITY.search(line)
        comment = COMMENT.search(line)
        if found and line not in before and (comment is None or found.start() < comment.start()):
            return line.strip()[:200]
    return ""


def _outside(text: str) -> str:
    """The text with what stands in quotes taken out, line by line as it was."""
    return SKIPPED.sub(lambda quoted: '""' + "\n" * quoted[0].count("\n"), text)
