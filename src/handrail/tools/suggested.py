"""Commands that an answer suggests: those of its shell blocks, as the shell grammar parts them."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from handrail.tools.shell_parsing import statements
from handrail.tools.shell_tree import Node

SHELLS = ("sh", "bash", "zsh", "shell")
SCREENS = ("console", "shell-session", "shellsession", "terminal")
"""What such a block shows is input and output: only lines with a prompt are commands."""
FENCE = re.compile(r"^([ \t]*)(`{3,}|~{3,})[ \t]*([^\s`]*)[^`]*$")
PROMPT, MORE = "$ ", "> "
MOST = 50
LONGEST_ANSWER = 200_000
LASTING = ("cd", "pushd", "popd", "source", ".", "set", "shopt", "alias", "unset", "umask", "ulimit")
"""Programs of the shell itself that change what comes after them."""


def has_shell_block(answer: str) -> bool:
    """Whether there may be commands in it; quick."""
    return any(True for _ in _blocks(answer))


def suggested_commands(answer: str) -> tuple[str, ...]:
    """The commands of an answer in its order, each once; waits for the shell grammar."""
    found: dict[str, None] = {}
    for block in _blocks(answer):
        found |= dict.fromkeys(_commands(block))
    return tuple(found)[:MOST]


def _blocks(answer: str) -> Iterator[str]:
    """What stands in fences that are named after a shell and are closed, without prompts."""
    mark, language, indent, lines = "", "", "", list[str]()
    for line in answer[:LONGEST_ANSWER].replace("\r\n", "\n").split("\n"):
        fence = FENCE.match(line)
        if not mark:
            if fence:
                indent, mark, language = fence[1], fence[2], fence[3].lower()
                lines = []
        elif fence and fence[2].startswith(mark) and not fence[3]:
            if block := _without_prompts(lines, language):
                yield block
            mark = ""
        else:
            lines.append(line.removeprefix(indent))


def _without_prompts(lines: Sequence[str], language: str) -> str:
    """The script of a block; empty where it has none."""
    if language not in (*SHELLS, *SCREENS):
        return ""
    if not any(line.startswith(PROMPT) for line in lines):
        return "\n".join(lines).strip() if language in SHELLS else ""
    script: list[str] = []
    goes_on = False
    for line in lines:
        if line.startswith(PROMPT):
            script.append(line.removeprefix(PROMPT))
        elif goes_on:
            script.append(line.removeprefix(MORE))
        else:
            continue
        goes_on = script[-1].endswith("\\")
    return "\n".join(script)


def _commands(block: str) -> Iterator[str]:
    """Each statement by itself, behind those before it in the block that it needs to be the same."""
    parts = _parts(block)
    if not parts:
        yield block  # nobody knows what it is; whoever runs it is told so
        return
    before: list[str] = []
    for text, lasts in parts:
        if lasts:
            before.append(text)
        else:
            yield _joined([*before, text])
    if parts[-1][1]:
        yield _joined(before)


def _joined(texts: Sequence[str]) -> str:
    plain = all("\n" not in text for text in texts[:-1])
    return (" && " if plain else "\n").join(texts)


def _parts(block: str) -> list[tuple[str, bool]]:
    """The statements of a script, and of each whether it lasts for those that follow."""
    data = block.encode(errors="replace")
    parts: list[tuple[str, bool]] = []
    start = end = 0
    lasts = False
    for node in statements(block):
        at = node["Pos"]["Offset"]
        if at < end:  # its here-document stands behind this one: they cannot be told apart
            end = max(end, _end(node))
            continue
        if end:
            parts.append((_text(data[start:end]), lasts))
        start, end, lasts = at, _end(node), _lasts(node)
    if end:
        parts.append((_text(data[start:end]), lasts))
    return parts


def _text(data: bytes) -> str:
    text = data.decode(errors="replace").strip()
    return text.removesuffix(";").rstrip() if not text.endswith(";;") else text


def _end(node: Node) -> int:
    """Where a statement ends, its here-documents included."""
    end: int = node["End"]["Offset"]
    return max([end, *_heredocs(node)])


def _heredocs(node: Any) -> Iterator[int]:
    if isinstance(node, dict):
        for name, inner in node.items():
            if name == "Hdoc":
                yield inner["End"]["Offset"]
            yield from _heredocs(inner)
    elif isinstance(node, list):
        for inner in node:
            yield from _heredocs(inner)


def _lasts(node: Node) -> bool:
    """Whether it changes the shell that runs it, for what follows."""
    command = node.get("Cmd") or {}
    kind = command.get("Type")
    if kind in ("DeclClause", "FuncDecl"):
        return True
    if kind != "CallExpr" or node.get("Background"):
        return False
    words = command.get("Args", ())
    if not words:
        return bool(command.get("Assigns"))
    parts = words[0]["Parts"]
    return len(parts) == 1 and parts[0].get("Value") in LASTING
