"""The commands that a project's manifests name or imply: build, run, test, lint, format."""

import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from handrail.protocol.values import is_deeper

ReadText = Callable[[str], str]
"""The text of a file at the top of the project; empty where it cannot be read."""
MAX_COMMANDS = 16
MAX_DEPTH = 30
PURPOSES = {
    "install": ("install", "setup", "bootstrap"),
    "build": ("build", "all", "compile"),
    "run": ("run", "start", "dev", "serve"),
    "test": ("test", "tests", "check"),
    "lint": ("lint", "clippy", "vet"),
    "types": ("typecheck", "types", "mypy", "tsc"),
    "format": ("format", "fmt"),
}
TARGET = re.compile(r"^([A-Za-z][\w.-]*)\s*:(?![=:])[^#\n]*(?:##\s*(.*))?$", re.MULTILINE)
RECIPE = re.compile(r"^([A-Za-z][\w-]*)(?:[ \t]+[^:\n]*)?:(?!=)", re.MULTILINE)
SCRIPT = re.compile(r"[A-Za-z][\w:.-]*")


class ProjectCommand(NamedTuple):
    command: str
    purpose: str
    source: str
    """The file that names it or implies it."""


def find_commands(names: Iterable[str], read: ReadText) -> list[ProjectCommand]:
    """Commands by the files at the top of the project: what a file names goes before what it implies."""
    top = set(names)
    named = list(dict.fromkeys([*_make(top, read), *_just(top, read), *_scripts(top, read)]))
    covered = {each.purpose for each in named}
    implied = [each for each in _implied(top, read) if each.purpose not in covered]
    order = list(PURPOSES)
    found = sorted([*named, *implied], key=lambda each: order.index(each.purpose))
    return list(dict.fromkeys(found))[:MAX_COMMANDS]


def read_table(read: ReadText, name: str, parse: Callable[[str], Any]) -> Mapping[str, Any]:
    """A manifest as a table; empty where it cannot be read."""
    try:
        found = parse(read(name))
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) and not is_deeper(found, MAX_DEPTH) else {}


def table(value: Mapping[str, Any], *path: str) -> Mapping[str, Any]:
    """An inner table; empty where there is none."""
    for name in path:
        inner = value.get(name)
        value = inner if isinstance(inner, dict) else {}
    return value


def _purpose(name: str) -> str:
    """What a target or script of this name is for; empty where its name does not say."""
    return next((purpose for purpose, words in PURPOSES.items() if name in words), "")


def _make(top: set[str], read: ReadText) -> Iterator[ProjectCommand]:
    for file in ("GNUmakefile", "makefile", "Makefile"):
        if file in top:
            for name, _ in TARGET.findall(read(file)):
                if purpose := _purpose(name):
                    yield ProjectCommand(f"make {name}", purpose, file)
            return


def _just(top: set[str], read: ReadText) -> Iterator[ProjectCommand]:
    for file in top & {"justfile", "Justfile"}:
        for name in RECIPE.findall(read(file)):
            if purpose := _purpose(name):
                yield ProjectCommand(f"just {name}", purpose, file)


def _scripts(top: set[str], read: ReadText) -> Iterator[ProjectCommand]:
    if "package.json" in top:
        lock_files = {"pnpm-lock.yaml": "pnpm", "yarn.lock": "yarn", "bun.lockb": "bun", "bun.lock": "bun"}
        runner = next((tool for file, tool in lock_files.items() if file in top), "npm")
        yield ProjectCommand(f"{runner} install", "install", "package.json")
        for name in table(read_table(read, "package.json", json.loads), "scripts"):
            if SCRIPT.fullmatch(name) and (purpose := _purpose(name.partition(":")[0])):
                short = f"{runner} test" if name == "test" else f"{runner} run {name}"
                yield ProjectCommand(short, purpose, "package.json")
    if "composer.json" in top:
        for name in table(read_table(read, "composer.json", json.loads), "scripts"):
            if SCRIPT.fullmatch(name) and (purpose := _purpose(name)):
                yield ProjectCommand(f"composer {name}", purpose, "composer.json")


IMPLIED: Mapping[str, tuple[tuple[str, str], ...]] = {
    "Cargo.toml": (
        ("cargo build", "build"),
        ("cargo test", "test"),
        ("cargo clippy", "lint"),
        ("cargo fmt", "format"),
    ),
    "go.mod": (
        ("go build ./...", "build"),
        ("go test ./...", "test"),
        ("go vet ./...", "lint"),
        ("gofmt -w .", "format"),
    ),
    "pom.xml": (("mvn package", "build"), ("mvn test", "test")),
    "gradlew": (("./gradlew build", "build"), ("./gradlew test", "test")),
    "CMakeLists.txt": (
        ("cmake -B build && cmake --build build", "build"),
        ("ctest --test-dir build", "test"),
    ),
    "Gemfile": (("bundle install", "install"),),
    ".rspec": (("bundle exec rspec", "test"),),
    "tox.ini": (("tox", "test"),),
    "noxfile.py": (("nox", "test"),),
    "mix.exs": (("mix deps.get", "install"), ("mix test", "test"), ("mix format", "format")),
    "deno.json": (("deno test", "test"), ("deno lint", "lint"), ("deno fmt", "format")),
}


def _implied(top: set[str], read: ReadText) -> Iterator[ProjectCommand]:
    yield from _python(top, read)
    for file, pairs in IMPLIED.items():
        if file in top:
            yield from (ProjectCommand(command, purpose, file) for command, purpose in pairs)
    if solution := next((name for name in sorted(top) if name.endswith((".sln", ".csproj"))), ""):
        yield ProjectCommand("dotnet build", "build", solution)
        yield ProjectCommand("dotnet test", "test", solution)


def _python(top: set[str], read: ReadText) -> Iterator[ProjectCommand]:
    project = read_table(read, "pyproject.toml", tomllib.loads) if "pyproject.toml" in top else {}
    tools = table(project, "tool")
    prefix = "uv run " if "uv.lock" in top else "poetry run " if "poetry.lock" in top else ""
    if "uv.lock" in top:
        yield ProjectCommand("uv sync", "install", "uv.lock")
    elif "poetry.lock" in top:
        yield ProjectCommand("poetry install", "install", "poetry.lock")
    elif project.get("build-system") or "setup.py" in top:
        file = "pyproject.toml" if project.get("build-system") else "setup.py"
        yield ProjectCommand("python -m pip install -e .", "install", file)
    elif "requirements.txt" in top:
        yield ProjectCommand("python -m pip install -r requirements.txt", "install", "requirements.txt")
    if found := next((name for name in ("pytest.ini", "conftest.py") if name in top), ""):
        yield ProjectCommand(f"{prefix}python -m pytest", "test", found)
    elif "pytest" in tools:
        yield ProjectCommand(f"{prefix}python -m pytest", "test", "pyproject.toml")
    ruff = next((name for name in ("ruff.toml", ".ruff.toml") if name in top), "")
    if ruff or "ruff" in tools:
        yield ProjectCommand(f"{prefix}ruff check .", "lint", ruff or "pyproject.toml")
        yield ProjectCommand(f"{prefix}ruff format .", "format", ruff or "pyproject.toml")
    elif "black" in tools:
        yield ProjectCommand(f"{prefix}black .", "format", "pyproject.toml")
    if "mypy.ini" in top or "mypy" in tools:
        yield ProjectCommand(
            f"{prefix}mypy .", "types", "mypy.ini" if "mypy.ini" in top else "pyproject.toml"
        )
