"""References to what a change deleted from JavaScript and TypeScript modules."""

import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import PurePosixPath

from handrail.tools.reports.issue import Issue
from handrail.verification.consistency.javascript_imports import JsProject, broken_import
from handrail.verification.consistency.javascript_module import ENDINGS, JsModule, uses_of
from handrail.verification.consistency.python_imports import is_test_data

MAX_SEARCHED_NAMES = 500
GLOBALS = frozenset(
    [
        *(
            "fetch",
            "URL",
            "URLSearchParams",
            "Event",
            "Response",
            "Request",
            "Headers",
            "FormData",
            "Blob",
            "File",
        ),
        *(
            "console",
            "performance",
            "crypto",
            "Node",
            "Element",
            "Text",
            "Range",
            "Option",
            "Image",
            "Location",
        ),
        *("History", "name", "event", "status", "open", "close", "print", "find", "stop", "alert", "confirm"),
        *("prompt", "process", "Buffer", "global", "module", "exports", "require", "self", "top", "parent"),
        *(
            "Map",
            "Set",
            "Promise",
            "Symbol",
            "Error",
            "Date",
            "Object",
            "Array",
            "Function",
            "Proxy",
            "Record",
        ),
        *(
            "Partial",
            "Pick",
            "Omit",
            "Exclude",
            "Extract",
            "Required",
            "Readonly",
            "Awaited",
            "describe",
            "it",
        ),
        *("test", "expect", "jest", "vi", "beforeEach", "afterEach", "JSX", "React", "window", "document"),
    ]
)


def check_references(
    project: JsProject, olds: Mapping[str, JsModule], touched: Collection[str]
) -> Iterator[Issue]:
    """Issues of all files that still refer to what the files in `olds` had before.

    The imports of touched files are checked already.
    """
    gone: dict[str, frozenset[str]] = {}
    words: set[str] = set()
    for path, old in olds.items():
        if not project.tree.exists(path):
            gone[path] = old.exports
            words.add(_stem(path))
            continue
        yield from _check_own_uses(project, path, old)
        exported = project.exports((path,))
        names = old.exports - exported if exported is not None else frozenset()
        if names:
            gone[path] = names
            words |= names - {"default"} | ({_stem(path)} if "default" in names else set())
    if not words:
        return
    some = "|".join(map(re.escape, sorted(words)[:MAX_SEARCHED_NAMES]))
    pattern = re.compile(rb"(?<![\w$])(?:%b)(?![\w$])" % some.encode())
    for path, data in project.tree.search([b"import", b"require", b"export"], ENDINGS):
        if not pattern.search(data) or is_test_data(path):
            continue
        module = project.module(path)
        if module is None:
            continue
        for each in module.imports:
            is_about = {*each.names, *each.source.split("/"), _stem(each.source)} & words
            if path not in touched and is_about and (problem := broken_import(project, path, each)):
                yield _issue(path, each.line, f"{problem} any more")
            if each.namespace:
                files = project.find(path, each.source) or ()
                names = frozenset[str]().union(*(gone.get(file, frozenset()) for file in files))
                for namespace, member, line in module.members if names else ():
                    if namespace == each.namespace and member in names:
                        yield _issue(path, line, f"`{namespace}.{member}` was deleted, but is still used")


def _check_own_uses(project: JsProject, path: str, old: JsModule) -> Iterator[Issue]:
    """Uses of a deleted name in the module that had it."""
    module, data = project.module(path), project.tree.read(path)
    if module is None or data is None:
        return
    names = old.declared - module.declared - GLOBALS
    if not names:
        return
    for name, line in sorted(uses_of(path, data, names).items()):
        if not _is_declared(project, name):
            yield _issue(path, line, f"`{name}` was deleted, but is still used")


def _is_declared(project: JsProject, name: str) -> bool:
    """Whether a declaration may make a name known everywhere."""
    found = project.tree.search([name.encode()], (".d.ts", ".d.mts", ".d.cts"))
    return any(True for _ in found)


def _stem(path: str) -> str:
    name = PurePosixPath(path)
    stem = name.name.partition(".")[0]
    return name.parent.name if stem == "index" else stem


def _issue(path: str, line: int, message: str) -> Issue:
    fix = "Change or remove the reference, or restore what was deleted."
    return Issue("consistency", "high", message, path, line, rule="dangling-reference", fix=fix)
