"""Functions that the newest entry of a changelog names, but that the code does not have."""

import builtins
import re
from collections.abc import Iterator

from handrail.tools.reports.issue import Issue
from handrail.verification.consistency.source_tree import SourceTree, TouchedFile
from handrail.verification.documents.changelog import is_changelog, read_changelog

CALL = re.compile(r"`+(?:[\w$.]+\.)?([A-Za-z$][\w$]{2,})\([^`\n]*\)`+")
GONE = re.compile(
    r"(?i)remov|delet|drop|deprecat|renam|replac|no longer|instead of|obsolete|moved|formerly|was |were "
)
DOCUMENTS = (".md", ".rst", ".txt", ".markdown", ".adoc", ".html", ".json", ".lock", ".svg", ".css")
MAX_NAMES = 100


def check_changelog_names(tree: SourceTree, touched: TouchedFile) -> Iterator[Issue]:
    """An issue for each function that what was added to a changelog names and no source file has."""
    if not is_changelog(touched.path) or (data := tree.read(touched.path)) is None or data == touched.old:
        return
    newest = read_changelog(data).newest
    if newest is None:
        return
    before = set(touched.old.splitlines()) if touched.old else set()
    named: dict[str, int] = {}
    for number, line in enumerate(data.splitlines()[newest.line - 1 :], start=newest.line):
        if line.rstrip() in newest.body and line not in before:
            text = line.decode(errors="replace")
            if not GONE.search(text):
                for name in CALL.findall(text):
                    named.setdefault(name, number)
    missing = {name for name in named if not hasattr(builtins, name)}
    if not missing or len(missing) > MAX_NAMES:
        return
    endings = tuple({ending for path in tree.files if (ending := _ending(path)) not in DOCUMENTS})
    for path, found in tree.search([name.encode() for name in missing], endings):
        if path != touched.path:
            missing -= {
                name
                for name in missing
                if re.search(rb"(?<![\w$])%b(?![\w$])" % re.escape(name.encode()), found)
            }
        if not missing:
            return
    for name in sorted(missing):
        message = f"the changelog names `{name}()`, which no source file has"
        yield Issue("consistency", "medium", message, touched.path, named[name], rule="changelog-name")


def _ending(path: str) -> str:
    name = path.rpartition("/")[2]
    return f".{name.rpartition('.')[2]}" if "." in name else name
