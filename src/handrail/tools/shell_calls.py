"""The words of every command in a syntax tree, wherever it stands: in a loop, before a redirection."""

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from handrail.tools.shell_tree import Beyond, inner, word

Node = Mapping[str, Any]
BEFORE = frozenset({"builtin", "command", "env", "exec", "nohup", "sudo", "time"})
"""What may stand before a command and runs it as it is."""


def calls(tree: Node) -> tuple[tuple[str, ...], ...]:
    """Each command's words as far as they are plain, under the name of its program."""
    return tuple(dict.fromkeys(_calls(tree)))


def _calls(node: Any) -> Iterator[tuple[str, ...]]:
    if isinstance(node, list):
        for each in node:
            yield from _calls(each)
    elif isinstance(node, dict):
        if node.get("Type") == "CallExpr" and (words := _plain(node.get("Args", ()))):
            yield (posixpath.basename(words[0]), *words[1:])
        for each in inner(node):
            yield from _calls(each)


def _plain(nodes: Sequence[Node]) -> tuple[str, ...]:
    """The words up to the first that has to be worked out, without what only runs the rest."""
    words: list[str] = []
    for node in nodes:
        try:
            text = word(node).text
        except (Beyond, KeyError):
            break
        if words or (text not in BEFORE and "=" not in text and not text.startswith("-")):
            words.append(text)
    return tuple(words)
