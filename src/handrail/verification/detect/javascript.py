"""The checks of a JavaScript or TypeScript project: tsc, eslint, vitest, jest or node's runner, its build."""

import re
import shlex
from collections.abc import Iterator
from typing import Any

from handrail.tools.reports import javascript_tools
from handrail.tools.reports.issue import Issue
from handrail.tools.reports.junit import junit
from handrail.verification.check import ANY_CODE, REPORT_FOLDER, Alone, Check
from handrail.verification.detect.part import Part

MANIFEST = "package.json"
ESLINT_SETTINGS = re.compile(r"eslint\.config\.[cm]?[jt]s|\.eslintrc(?:\.(?:json|js|cjs|ya?ml))?")
VITEST_SETTINGS = re.compile(r"vitest\.config\.[cm]?[jt]s")
JEST_SETTINGS = re.compile(r"jest\.config\.(?:[cm]?[jt]s|json)")
PRETTIER_SETTINGS = re.compile(r"\.prettierrc(?:\.\w+)?|prettier\.config\.[cm]?[jt]s")
LOCK_FILES = {"pnpm-lock.yaml": "pnpm", "yarn.lock": "yarn", "bun.lock": "bun", "bun.lockb": "bun"}
NO_TESTS = "no test specified"
SUFFIXES = (".js", ".jsx", ".ts", ".tsx", ".mjs", ".cjs", ".mts", ".cts")
PACKAGES = {"tsc": "typescript"}
NODE_TEST = ("node", "--test")
SPECIAL = re.compile(r"[|&;<>$`*?()]")


def is_javascript(part: Part) -> bool:
    return part.has(MANIFEST)


def prettier(part: Part) -> str:
    """The project's own prettier, if it formats with that; else empty."""
    configured = "prettier" in part.package or any(PRETTIER_SETTINGS.fullmatch(path) for path in part.files)
    return part.program("prettier", own_only=True) if configured or _declares(part, "prettier") else ""


def checks(part: Part) -> Iterator[Check]:
    """All checks that the part is set up for, also those whose tool is missing."""
    scripts = part.package.get("scripts")
    scripts = scripts if isinstance(scripts, dict) else {}
    if part.has("tsconfig.json"):
        project = "references" in part.text("tsconfig.json")
        words: tuple[str, ...] = ("--build", "--noEmit") if project else ("--noEmit",)
        found = _needs("types", "tsc", part, (*words, "--pretty", "false"), javascript_tools.tsc)
        yield found._replace(found_codes=frozenset({1, 2}))
    if any(ESLINT_SETTINGS.fullmatch(path) for path in part.files) or "eslintConfig" in part.package:
        words = ("--format", "json", "--output-file", f"{REPORT_FOLDER}/report", ".")
        found = _needs("lint", "eslint", part, words, javascript_tools.eslint)
        yield found._replace(suffixes=SUFFIXES, targets=1)
    yield from _tests(part, scripts)
    if isinstance(scripts.get("build"), str):
        yield _script("build", "build", part)


def _tests(part: Part, scripts: dict[str, Any]) -> Iterator[Check]:
    script = str(scripts.get("test") or "")
    if _uses(part, "vitest", VITEST_SETTINGS):
        report = f"--outputFile={REPORT_FOLDER}/report"
        found = _needs("tests", "vitest", part, ("run", "--reporter=json", report), javascript_tools.jest)
        yield found._replace(alone=_by_name(found, "run"))
    elif _uses(part, "jest", JEST_SETTINGS):
        report = f"--outputFile={REPORT_FOLDER}/report"
        found = _needs("tests", "jest", part, ("--json", report), javascript_tools.jest)
        yield found._replace(alone=_by_name(found))
    elif (words := _node_words(script)) is not None:
        yield _node_test(part, words)
    elif script and NO_TESTS not in script:
        yield _script("tests", "test", part)


def _uses(part: Part, name: str, settings: "re.Pattern[str]") -> bool:
    return _declares(part, name) or any(settings.fullmatch(path) for path in part.files)


def _declares(part: Part, package: str) -> bool:
    sections = (part.package.get(key) for key in ("dependencies", "devDependencies"))
    return any(isinstance(section, dict) and package in section for section in sections)


def _node_words(script: str) -> tuple[str, ...] | None:
    """What follows `node --test` in the script, if that is all it runs."""
    if SPECIAL.search(script):
        return None
    try:
        words = tuple(shlex.split(script))
    except ValueError:
        return None
    if "--test-reporter" in script or words[:1] != NODE_TEST[:1] or NODE_TEST[1] not in words:
        return None
    return tuple(word for word in words[1:] if word != NODE_TEST[1])


def _node_test(part: Part, words: tuple[str, ...]) -> Check:
    node = part.program("node")
    if not node:
        return Check("tests", "node", missing="node is not installed: https://nodejs.org")
    reporter = ("--test-reporter=junit", f"--test-reporter-destination={REPORT_FOLDER}/report")

    def alone(issue: Issue) -> tuple[str, ...]:
        name = re.escape(issue.test.rpartition(".")[2] or issue.test)
        files = (issue.path.removeprefix(f"{part.folder}/"),) if issue.path else words
        return (node, "--test", *reporter, f"--test-name-pattern=^{name}$", *files) if issue.test else ()

    return Check("tests", "node", (node, "--test", *reporter, *words), reader=junit, alone=alone)


def _by_name(check: Check, *first: str) -> Alone:
    """Runs one test by its full name; a runner without such a test succeeds, so it must say how many ran."""

    def alone(issue: Issue) -> tuple[str, ...]:
        if not issue.test or not issue.path or issue.test == issue.path or not check.words:
            return ()
        name = f"^{re.escape(issue.test)}$"
        path = issue.path.removeprefix(f"{check.part}/") if check.part else issue.path
        return (check.words[0], *first, *check.words[1 + len(first) :], path, "-t", name)

    return alone


def _script(kind: Any, name: str, part: Part) -> Check:
    """A script of package.json, run by the project's package manager."""
    manager = next((program for file, program in LOCK_FILES.items() if part.has(file)), "npm")
    program = part.program(manager)
    if not program:
        return Check(kind, manager, missing=f"{manager} is not installed")
    needs = part.package.get("dependencies") or part.package.get("devDependencies")
    if needs and not any(folder.name == ".bin" for folder in part.bin_folders):
        return Check(kind, manager, missing=f"the dependencies are not installed: {manager} install")
    return Check(kind, manager, (program, "run", name), found_codes=ANY_CODE, writes=True)


def _needs(kind: Any, tool: str, part: Part, words: tuple[str, ...], reader: Any) -> Check:
    if program := part.program(tool):
        return Check(kind, tool, (program, *words), reader=reader)
    package = PACKAGES.get(tool, tool)
    advice = "npm install" if _declares(part, package) else f"npm install --save-dev {package}"
    return Check(kind, tool, missing=f"{tool} is not installed: {advice}")
