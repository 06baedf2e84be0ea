"""The door: a change that is said to be a refactor, and what can be said of that."""

import os
import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from handrail.changes.mutation.comparing import Elsewhere, difference
from handrail.changes.mutation.renames import Side

PYTHON = (".py", ".pyi")
JAVASCRIPT = (".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts")
PROSE = (".md", ".rst")
READS_NAMES = re.compile(
    r"__dict__|vars\(|asdict\(|__getattr|__setattr|\.__(?:qual)?name__|\b(?:pickle|shelve)\b"
    r"|\b(?:get|set|has|del)attr\([^,()]+,\s*(?![\"'])|\b(?:attrgetter|methodcaller)\("
)
"""Python that reads names as texts, which are not known before it runs."""


class Version(NamedTuple):
    """A file before and after; None where there is none."""

    path: str
    old: str | None
    new: str | None


class Checked(NamedTuple):
    verdict: Literal["holds", "flagged", "unchecked"]
    why: str = ""
    elsewhere: Elsewhere = Elsewhere()


def check_refactor(files: Sequence[Version]) -> Checked:
    """Whether the files do the same after the change, all of them together."""
    code = [one for one in files if not one.path.endswith(PROSE) and one.old != one.new]
    for one in code:
        if one.old is None or one.new is None:
            return Checked("flagged", f"{one.path} {'is new' if one.old is None else 'is gone'}")
    unknown = [one.path for one in code if not one.path.endswith(PYTHON + JAVASCRIPT)]
    try:
        old = [_side(one.path, one.old or "") for one in code if one.path not in unknown]
        new = [_side(one.path, one.new or "") for one in code if one.path not in unknown]
        found = difference(old, new)
    except SyntaxError as error:
        return Checked("flagged", f"it cannot be parsed: {error.msg}")
    except RecursionError:
        return Checked("flagged", "it is nested too deeply to be checked")
    if found.why:
        return Checked("flagged", found.why)
    if unknown:
        ending = os.path.splitext(unknown[0])[1] or os.path.basename(unknown[0])
        return Checked("unchecked", f"{ending} files are not checked")
    stems = (_stem(one.path) for one in code)
    elsewhere = found.elsewhere
    return Checked("holds", "", elsewhere._replace(known_by=(*elsewhere.known_by, *stems)))


def _stem(path: str) -> str:
    """The word by which other files import a file."""
    folder, name = os.path.split(path)
    stem = name.partition(".")[0]
    return os.path.basename(folder) if stem in ("__init__", "index") and folder else stem


def _side(path: str, text: str) -> Side:
    if path.endswith(PYTHON):
        from handrail.changes.mutation.python import read_python
        from handrail.changes.mutation.python_names import is_private

        tree, types = read_python(path, text)
        # Who reads an object's names as text sees private ones too.
        seen = READS_NAMES.search(text) is not None
        return Side(tree, types, (lambda _: False) if seen else is_private, has_receivers=True)
    from handrail.changes.mutation.javascript import read_javascript

    script = read_javascript(path, text)
    return Side(script.tree, script.types, script.private.__contains__, has_receivers=False)
