"""Checks a declared refactor: the syntax trees of both versions must be equal.

The readers (`python.py`, `javascript.py`) write a tree as tokens, without formatting and comments, and sort
what may stand in any order. A name is a `Binding`, not a word: two trees are equal when their bindings match
one to one, and only a name that nobody else can see may have changed its word. Doubt is a difference.
"""

import json
import re
import resource
import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple

PYTHON = (".py", ".pyi")
JAVASCRIPT = (".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts")
MEMORY = 1_000_000_000
DEPTH = 20_000
EXCERPT = 60


class Version(NamedTuple):
    path: str
    old: str | None
    new: str | None


class Checked(NamedTuple):
    """No reason against it means that the refactor is confirmed, if the rest of the workspace agrees."""

    why: str = ""
    words: tuple[str, ...] = ()  # private names before and after a rename; no other file may contain them
    known_by: tuple[str, ...] = ()  # modules and classes by which other files get hold of a renamed name
    modules: tuple[str, ...] = ()  # of the standard library, imported in another order: no file replaces them


class Binding:
    """What a name stands for, on one side of the change; `problem` says why its word must stay."""

    def __init__(self, word: str, kind: str, problem: Callable[[], str]) -> None:
        self.word = word
        self.kind = kind
        self.problem = problem


class Token:
    def __init__(self, line: int, text: str, binding: Binding | None = None) -> None:
        self.line = line
        self.text = text
        self.binding = binding


class Pairs:
    """Which binding became which, in all files of a change."""

    def __init__(self) -> None:
        self.forth: dict[Binding, Binding] = {}
        self._back: dict[Binding, Binding] = {}

    def problem(self, old: Binding, new: Binding) -> str:
        """Why a name is not the same as before; empty if it is."""
        if self.forth.get(old) is new:
            return ""
        if old.word != new.word and (why := old.problem() or new.problem()):
            return f"{old.word} became {new.word}, but {why}"
        if old in self.forth or new in self._back or old.kind != new.kind:
            return f"{new.word} is not the {old.word} of before everywhere"
        self.forth[old] = new
        self._back[new] = old
        return ""


def check_refactor(files: Sequence[Version]) -> Checked:
    """Whether the files do the same after the change, all of them together."""
    from handrail.changes.mutation.javascript import read_javascript
    from handrail.changes.mutation.python import PrivateNames, read_python

    changed = [one for one in files if one.old != one.new]
    stems = {_stem(one.path) for one in changed}
    sides = (PrivateNames(stems), PrivateNames(stems))
    trees: list[list[list[Token]]] = []
    for one in changed:
        if one.old is None or one.new is None:
            return Checked(f"{one.path} is {'new' if one.old is None else 'gone'}")
        if not one.path.endswith(PYTHON + JAVASCRIPT):
            return Checked(f"{one.path} is not Python, JavaScript or TypeScript, so it cannot be checked")
        texts = (one.old, one.new)
        # What both versions have is sorted by name.
        kept = set.intersection(*(set(re.findall(r"[\w$]+", text)) for text in texts))
        try:
            if one.path.endswith(PYTHON):
                trees.append([read_python(text, kept, side) for text, side in zip(texts, sides, strict=True)])
            else:
                trees.append([read_javascript(one.path, text, kept) for text in texts])
        except (SyntaxError, ValueError) as error:
            return Checked(f"{one.path} cannot be parsed: {error}")
    pairs = Pairs()
    for one, (before, after) in zip(changed, trees, strict=True):
        if why := _first_difference(one, before, after, pairs):
            return Checked(why)
    private = [(old.word, new.word) for old, new in pairs.forth.items() if old.kind == "private"]
    names = tuple(word for old, new in private if old != new for word in (old, new))
    classes = {one.name for side in sides for file in side.files for one in file.classes}
    known_by = sorted(stems | classes) if names else ()
    return Checked("", names, tuple(known_by), tuple(sorted(sides[0].moved | sides[1].moved)))


def _stem(path: str) -> str:
    """The word by which other files import a file."""
    *folders, name = path.split("/")
    stem = name.partition(".")[0]
    return folders[-1] if stem in ("__init__", "index") and folders else stem


def _first_difference(one: Version, before: list[Token], after: list[Token], pairs: Pairs) -> str:
    for old, new in zip(before, after, strict=False):
        words = pairs.problem(old.binding, new.binding) if old.binding and new.binding else ""
        if words or old.text != new.text or bool(old.binding) != bool(new.binding):
            break
    else:
        if len(before) == len(after):
            return ""
        old, new, words = before[-1], after[-1], ""
    was, became = _excerpt(one.old, old.line), _excerpt(one.new, new.line)
    changed = f"`{was}` became `{became}`" if was != became else f"the code at `{became}` changed"
    return f"line {new.line} of {one.path}: {words or changed}"


def _excerpt(text: str | None, line: int) -> str:
    lines = (text or "").split("\n")
    found = lines[min(line, len(lines)) - 1].strip()
    return found if len(found) <= EXCERPT else f"{found[:EXCERPT]}..."


def main() -> None:
    """Check the files given as JSON on standard input, in a process of its own: grammars are C code."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    sys.setrecursionlimit(DEPTH)
    checked = check_refactor([Version(*each) for each in json.load(sys.stdin)])
    json.dump(checked._asdict(), sys.stdout)
