"""Which private name of the old files became which of the new ones: a guess that the comparison proves."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from handrail.changes.mutation.marking import names_of
from handrail.changes.mutation.modules import definitions
from handrail.changes.mutation.tree import Binding, Node, rebuilt, walk

MOST = 200
WORDED = ("attr", "member", "method")


class Side(NamedTuple):
    """One file, before or after."""

    tree: Node
    types: Mapping[str, str]
    private_member: Callable[[str], bool]
    has_receivers: bool
    """The first parameter of a method is what it is called on."""


def renamed_words(old: Sequence[Side], new: Sequence[Side]) -> dict[str, str]:
    """Old word to new word, for names that only one side has and that mean the same as far as one can see."""
    before = set[str]().union(*(names_of(side.tree) for side in old))
    after = set[str]().union(*(names_of(side.tree) for side in new))
    gone = [word for word in _private(old) if word not in after]
    come = [word for word in _private(new) if word not in before]
    if not gone or not come or len(gone) > MOST or len(come) > MOST:
        return {}
    erased = frozenset(gone) | frozenset(come)
    olds, news = _shapes(old, erased), _shapes(new, erased)
    found: dict[str, str] = {}
    for word in gone:
        alike = [each for each in come if each not in found.values() and news.get(each) == olds.get(word)]
        if word in olds and alike:
            found[word] = alike[0]
    left = [word for word in gone if word not in found]
    free = [word for word in come if word not in found.values()]
    uses_before, uses_after = _counts(old), _counts(new)
    for word in left:
        alike = [
            each
            for each in free
            if each not in found.values()
            and uses_before.get(word) == uses_after.get(each)
            and (word in olds) == (each in news)
        ]
        if alike:
            found[word] = alike[0]
    return found


def _private(sides: Sequence[Side]) -> list[str]:
    """Names that may be changed, in the order in which they come."""
    found: dict[str, None] = {}
    for side in sides:
        for one in walk(side.tree):
            if one.binding and one.binding.depth == 0 and not one.binding.fixed:
                found[one.binding.name] = None
            elif one.kind in WORDED and side.private_member(one.text):
                found[one.text] = None
    return list(found)


def _counts(sides: Sequence[Side]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for side in sides:
        for one in walk(side.tree):
            word = one.binding.name if one.binding and one.binding.depth == 0 else one.text
            counts[word] = counts.get(word, 0) + 1
    return counts


def _shapes(sides: Sequence[Side], erased: frozenset[str]) -> dict[str, str]:
    """What each private definition looks like without the names that may have changed."""
    found: dict[str, str] = {}
    for side in sides:
        for one in definitions(side.tree):
            if not one.binding.fixed:
                found[one.binding.name] = written(one.node, lambda word: "?" if word in erased else word)
        for node in walk(side.tree):
            if node.kind == "method" and side.private_member(node.text):
                found[node.text] = written(node, lambda word: "?" if word in erased else word)
    return found


def written(node: Node, rename: Callable[[str], str]) -> str:
    """A tree as text in which local names are numbers."""
    numbers: dict[Binding, int] = {}
    out: list[str] = []
    _write(node, rename, numbers, out)
    return "".join(out)


def _write(node: Node, rename: Callable[[str], str], numbers: dict[Binding, int], out: list[str]) -> None:
    out.append(f"({node.kind}")
    binding = node.binding
    if binding is not None:
        if binding.depth == 0:
            out.append(f" ={rename(binding.name)}")
        elif binding.fixed:
            out.append(f" !{binding.name}")
        else:
            out.append(f" #{numbers.setdefault(binding, len(numbers))}")
    if node.text and node.kind != "define":
        text = rename(node.text) if node.kind in WORDED else node.text
        out.append(f" {text!r}")
    for part in node.parts:
        _write(part, rename, numbers, out)
    out.append(")")


def with_words(tree: Node, words: Mapping[str, str]) -> Node:
    """The tree with its members, and what is imported, by their new names."""
    if not words:
        return tree

    def change(one: Node) -> Node:
        if one.kind in WORDED and one.text in words:
            return one._replace(text=words[one.text])
        if one.kind == "ref":
            return one._replace(text=".".join(words.get(word, word) for word in one.text.split(".")))
        if one.kind == "import":
            module, _, word = one.text.partition(":")
            return one._replace(text=f"{module}:{words.get(word, word)}")
        return one

    return rebuilt(tree, change)
