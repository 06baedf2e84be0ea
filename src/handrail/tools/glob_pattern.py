"""File name patterns: `*`, `?`, `[...]`, `{a,b}`, and `**` for any number of folders."""

import re
from collections.abc import Callable

PART = re.compile(r"\*\*/|\*\*|\*|\?|\[!?\]?[^\]]*\]|[{},]|.", re.DOTALL)
SIMPLE = {"**/": "(?:[^/]+/)*", "**": ".*", "*": "[^/]*", "?": "[^/]"}


def matcher(pattern: str) -> Callable[[str], bool]:
    """Whether a path relative to the folder fits; a pattern without a slash fits names at any depth."""
    pattern = pattern.removeprefix("./").removeprefix("/")
    if "/" not in pattern:
        pattern = f"**/{pattern}"
    regex = re.compile("".join(_translate(pattern)), re.DOTALL)
    return lambda path: regex.fullmatch(path) is not None


def _translate(pattern: str) -> list[str]:
    result, depth = [], 0
    balanced = pattern.count("{") == pattern.count("}")
    for part in PART.findall(pattern):
        if part in SIMPLE:
            result.append(SIMPLE[part])
        elif part == "{" and balanced:
            depth += 1
            result.append("(?:")
        elif part == "}" and depth:
            depth -= 1
            result.append(")")
        elif part == "," and depth:
            result.append("|")
        else:
            result.append(_set(part) if len(part) > 1 else re.escape(part))
    return [*result, ")" * depth]


def _set(part: str) -> str:
    """`[abc]`, `[a-c]` or `[!a]` as a regular expression; what makes none is taken literally."""
    inside = part[1:-1]
    negated = inside.startswith("!")
    inside = inside.removeprefix("!").replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")
    inside = f"\\{inside}" if inside.startswith("^") else inside
    regex = f"[{'^/' if negated else ''}{inside}]"
    try:
        re.compile(regex)
    except re.error:
        return re.escape(part)
    return regex
