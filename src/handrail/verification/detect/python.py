"""The checks of a Python project: mypy, pyright, ty, ruff, pytest or unittest, build."""

import re
from collections.abc import Iterator
from configparser import Error as ConfigParserError
from configparser import RawConfigParser
from typing import Any

from handrail.tools.reports import python_tools
from handrail.tools.reports.issue import Issue
from handrail.tools.reports.sarif import sarif
from handrail.verification.check import REPORT_FOLDER, Check
from handrail.verification.detect.part import Part

MANIFESTS = ("pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "Pipfile")
SETTINGS = ("pytest.ini", "tox.ini", "mypy.ini", ".mypy.ini", "ruff.toml", ".ruff.toml")
REQUIREMENTS = re.compile(r"(?:[\w-]*requirements[\w-]*\.(?:txt|in)|requirements/[\w-]+\.(?:txt|in))")
TEST_FILE = re.compile(r"(?:^|/)(?:test_[^/]*|[^/]*_test)\.py$")
OTHER_FOLDERS = ("tests", "test", "docs", "doc", "examples", "scripts", "bench", "benchmarks", "tools")
SUFFIXES = (".py", ".pyi")
MYPY_TARGETS = re.compile(r"(?m)^\s*(?:files|packages|modules)\s*=")
COVERAGE_OPTION = re.compile(r"--cov\b")
FAIL_UNDER = re.compile(r"(?m)^\s*fail_under\s*=\s*([\d.]+)")
MAX_LOOKED_AT = 50


def is_python(part: Part) -> bool:
    return part.has(*MANIFESTS, *SETTINGS) or any(TEST_FILE.search(path) for path in part.files)


def checks(part: Part, coverage: float) -> Iterator[Check]:
    """All checks that the part is set up for, also those whose tool is missing."""
    yield from _types(part)
    yield from _lint(part)
    yield from _tests(part, coverage)
    if part.pyproject.get("build-system") and (build := part.program("pyproject-build", own_only=True)):
        words = (build, "--no-isolation", "--wheel", "--outdir", f"{REPORT_FOLDER}/dist")
        yield Check("build", "build", words, writes=True)


def _types(part: Part) -> Iterator[Check]:
    mypy_section, setup = part.tool_section("mypy"), part.text("setup.cfg")
    ini = part.text("mypy.ini") or part.text(".mypy.ini")
    if mypy_section is not None or ini or "[mypy]" in setup:
        own = mypy_section or {}
        named = any(own.get(key) for key in ("files", "packages", "modules"))
        named = named or bool(MYPY_TARGETS.search(ini or (setup if "[mypy]" in setup else "")))
        targets = () if named else _packages(part)
        yield _needs("types", "mypy", part, ("--output", "json", *targets), python_tools.mypy)
    if part.has("pyrightconfig.json") or part.tool_section("pyright") is not None:
        yield _needs("types", "pyright", part, ("--outputjson",), python_tools.pyright)
    if part.has("ty.toml") or part.tool_section("ty") is not None:
        yield _needs("types", "ty", part, ("check", "--output-format", "sarif"), sarif)


def _packages(part: Part) -> tuple[str, ...]:
    """What a person would give to a type checker: `src`, or the packages beside it."""
    if part.names_below("src"):
        return ("src",)
    found = [
        path.split("/")[0] for path in part.files if path.count("/") == 1 and path.endswith("/__init__.py")
    ]
    return tuple(sorted(name for name in found if name not in OTHER_FOLDERS)) or (".",)


def _lint(part: Part) -> Iterator[Check]:
    configured = part.has("ruff.toml", ".ruff.toml") or part.tool_section("ruff") is not None
    if configured or _depends_on(part, "ruff"):
        words = ("check", "--no-fix", "--force-exclude", "--output-format", "json", ".")
        found = _needs("lint", "ruff", part, words, python_tools.ruff)
        yield found._replace(suffixes=SUFFIXES, targets=1)


def _tests(part: Part, coverage: float) -> Iterator[Check]:
    tests = [path for path in part.files if TEST_FILE.search(path)]
    settings = part.text("setup.cfg"), part.text("tox.ini")
    options = part.tool_section("pytest")
    configured = options is not None or part.has("pytest.ini", "conftest.py", "tests/conftest.py")
    configured = configured or "[tool:pytest]" in settings[0] or "[pytest]" in settings[1]
    if not tests and not configured:
        return
    if configured or _depends_on(part, "pytest") or _import_in(part, tests, "pytest") or not part.python:
        yield _pytest(part, coverage)
    elif _import_in(part, tests, "unittest"):
        top = "tests" if part.names_below("tests") else "."
        words = (part.python, "-m", "unittest", "discover", "-s", top, "-t", ".")
        alone = _unittest_alone(part.python)
        yield Check("tests", "unittest", words, reader=python_tools.unittest, alone=alone)
    else:
        yield _pytest(part, coverage)


def _pytest(part: Part, coverage: float) -> Check:
    words: tuple[str, ...] = ("-o", "junit_family=xunit1", f"--junitxml={REPORT_FOLDER}/report")
    threshold: float | None = None
    quiet: tuple[str, ...] = ()
    if any(COVERAGE_OPTION.search(options) for options in _added_options(part)):
        words += (f"--cov-report=json:{REPORT_FOLDER}/coverage",)
        threshold, quiet = _fail_under(part, coverage), ("--no-cov",)
    found = _needs("tests", "pytest", part, words, python_tools.pytest)

    def alone(issue: Issue) -> tuple[str, ...]:
        is_id = ".py::" in issue.test and not issue.test.startswith("-")
        return (*found.words[:4], *quiet, issue.test) if is_id else ()

    return found._replace(alone=alone, threshold=threshold)


def _added_options(part: Part) -> Iterator[str]:
    """What pytest's settings add to its command line, from each file that can have them."""
    yield str(_ini_options(part).get("addopts", ""))
    for file, section in (("pytest.ini", "pytest"), ("tox.ini", "pytest"), ("setup.cfg", "tool:pytest")):
        settings = RawConfigParser(strict=False)
        try:
            settings.read_string(part.text(file))
        except ConfigParserError:
            continue  # pytest says what is wrong with it
        yield settings.get(section, "addopts", fallback="")


def _ini_options(part: Part) -> dict[str, Any]:
    section = part.tool_section("pytest") or {}
    options = section.get("ini_options", section)
    return options if isinstance(options, dict) else {}


def _fail_under(part: Part, default: float) -> float:
    report = (part.tool_section("coverage") or {}).get("report")
    own = report.get("fail_under") if isinstance(report, dict) else None
    if isinstance(own, int | float):
        return float(own)
    found = FAIL_UNDER.search(part.text(".coveragerc") + part.text("setup.cfg") + part.text("tox.ini"))
    try:
        return float(found[1]) if found else default
    except ValueError:
        return default


def _unittest_alone(python: str) -> "Any":
    def alone(issue: Issue) -> tuple[str, ...]:
        return (python, "-m", "unittest", issue.test) if re.fullmatch(r"[\w.]+", issue.test) else ()

    return alone


def _depends_on(part: Part, name: str) -> bool:
    """Whether a manifest names this distribution."""
    texts = [part.text(path) for path in ("pyproject.toml", "setup.cfg", "tox.ini", "Pipfile", "setup.py")]
    texts += [part.text(path) for path in part.files if REQUIREMENTS.fullmatch(path)]
    word = re.compile(rf"(?im)(?:^|[\s\"'\[,]){re.escape(name)}(?=$|[\s\"'<>=~!;,\[\]])")
    return any(word.search(text) for text in texts)


def _import_in(part: Part, tests: list[str], module: str) -> bool:
    found = re.compile(rf"(?m)^\s*(?:import|from)\s+{module}\b")
    return any(found.search(part.text(path)) for path in tests[:MAX_LOOKED_AT])


NEEDS_ENVIRONMENT = ("mypy", "pytest")
"""Tools that import the project's code or dependencies: one of another environment would not find them."""


def _needs(kind: Any, tool: str, part: Part, words: tuple[str, ...], reader: Any) -> Check:
    """A check by a tool, or what to do where the tool is missing."""
    own = bool(part.environments) and tool in NEEDS_ENVIRONMENT
    program = part.program(tool, own_only=own)
    if program:
        return Check(kind, tool, (program, *words), reader=reader)
    where = f" in {part.environments[0].name}" if own else ""
    pip = f"{part.environments[0].name}/bin/python -m pip" if part.environments else "pip"
    return Check(kind, tool, missing=f"{tool} is not installed{where}: {pip} install {tool}")
