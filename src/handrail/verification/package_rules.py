"""Rules about what commands of a plan may change in folders of installed packages.

The tools that judge the task are installed there, too: a model must not be able to change them.
"""

import re
from pathlib import Path, PurePosixPath

from handrail.config.open_file import read_file
from handrail.verification.protection import RUNNER_MODULES
from handrail.workspace.scratch_copy.layers import LayerChanges

JAVASCRIPT_TOOLS = frozenset(
    (
        *("jest", "vitest", "mocha", "ava", "chai", "typescript", "eslint", "prettier", "tsx", "ts-node"),
        *("nyc", "c8", "karma", "jasmine", "tap", "uvu", "playwright", "cypress", "vite"),
    )
)
JAVASCRIPT_SCOPES = frozenset({"@jest", "@vitest", "@eslint", "@typescript-eslint", "@playwright"})
HOOKS = re.compile(r"(?:site|user)customize\.pyc?|.+\.pth|pyvenv\.cfg|conftest\.py|.+\.egg-link")
"""Python or a test runner loads these by themselves."""
PLUGINS = re.compile(rb"^\s*\[\s*(?:pytest11|flake8\.|pylint|mypy|hypothesis)", re.MULTILINE)
OWN_RECORDS = frozenset({".package-lock.json", ".yarn-integrity", ".modules.yaml", ".yarn-state.yml"})
"""What installers for JavaScript write about all that is installed."""
PROGRAMS = frozenset({"bin", ".bin", "Scripts"})
METADATA = (".dist-info", ".egg-info")
MAX_BYTES, MAX_PROBLEMS = 1_000_000, 10


def package_problems(changes: LayerChanges, tree: Path, task: str) -> list[str]:
    """What commands changed that only the user may: tools that check, and packages that were there."""
    told: dict[str, None] = {}
    for path in (*changes.added, *changes.changed, *changes.removed):
        package = package_of(path)
        if _is_tool(package):
            told[f"{changes.path}: {package} checks the project, so a build does not change it"] = None
        elif _hooks(path, tree):
            told[f"{changes.path}/{path} is loaded by Python or a test runner by itself"] = None
        elif path not in changes.added and not _may_change(path, package, task):
            what = package or path
            told[f"{changes.path}: {what} was installed before, and the task does not name it"] = None
    return list(told)[:MAX_PROBLEMS]


def package_of(path: str) -> str:
    """The name of the package that a file of such a folder belongs to; empty for what belongs to none."""
    parts = list(PurePosixPath(path).parts)
    if "site-packages" in parts:
        parts = parts[parts.index("site-packages") + 1 :]
    if not parts or parts[0] in PROGRAMS or parts[-1] in OWN_RECORDS:
        return ""
    if parts[0].startswith("@") and len(parts) > 1:
        return f"{parts[0]}/{parts[1]}"
    name = parts[0]
    for end in METADATA:
        if name.endswith(end):
            return name.removesuffix(end).partition("-")[0].lower()
    return name.partition(".")[0].lower()


def _is_tool(package: str) -> bool:
    plain = package.replace("-", "_").lstrip("_")
    return (
        package in JAVASCRIPT_TOOLS
        or package.partition("/")[0] in JAVASCRIPT_SCOPES
        or plain in RUNNER_MODULES
        or f"_{plain}" in RUNNER_MODULES
    )


def _hooks(path: str, tree: Path) -> bool:
    name = PurePosixPath(path).name
    if HOOKS.fullmatch(name):
        return True
    if name != "entry_points.txt":
        return False
    try:
        return PLUGINS.search(read_file(tree / path, MAX_BYTES, follow=False)) is not None
    except OSError:
        return False


def _may_change(path: str, package: str, task: str) -> bool:
    if PurePosixPath(path).name in OWN_RECORDS:
        return True
    words = re.escape(package).replace("_", "[-_]").replace(r"\-", "[-_]")
    return bool(package) and re.search(rf"(?<![\w-]){words}(?![\w-])", task, re.IGNORECASE) is not None
