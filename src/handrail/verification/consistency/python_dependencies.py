"""Distributions that a Python project declares, wherever it does, and whether they provide a module."""

import ast
import configparser
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any

from handrail.verification.consistency.python_distributions import OTHER_NAMES, OTHER_STDLIB, SAME_NAMES
from handrail.verification.consistency.source_tree import SourceTree

REQUIREMENT = re.compile(r"([A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?)\s*(?:\[[^\]]*\]\s*)?(?:[<>=!~;@(#].*)?")
IN_COMMAND = re.compile(
    r"(?:pip3?|uv|poetry|pdm|conda|mamba)(?:[^\S\n]+pip)?[^\S\n]+(?:install|add)([^\n&|;]*)"
)
DECLARING = re.compile(
    r"(?:.*requirements.*\.(?:txt|in)|pyproject\.toml|setup\.(?:py|cfg)|Pipfile|environment.*\.ya?ml)"
)
MENTIONING = re.compile(
    r"(?:constraints.*\.txt|tox\.ini|noxfile\.py|conda.*\.ya?ml|meta\.yaml|\.pre-commit-config\.yaml"
    r"|Dockerfile.*|.*\.dockerfile|Makefile|justfile|(?:uv|poetry|pdm)\.lock|pixi\.toml|Pipfile\.lock)"
)
LISTS = re.compile(
    r"requires?|requirements?|.*_requires?|.*dependenc(?:y|ies).*|deps|dependency-groups|packages"
)
"""Keys of settings that list dependencies, for any tool."""
TOOLS = re.compile(
    r"(?:pytest|types|sphinx|mkdocs|flake8|pylint|pylsp|tox|pre-commit|hatch|poetry|flit|setuptools|myst|mypy"
    r"|coverage|furo|twine|build$|uv$|ty$|bandit|codespell|.*-stubs$|nox|bump|towncrier|interrogate|vulture)"
)
"""Distributions that programs use, not other modules."""
TEST_TOOLS = {"pytest", "nose", "nose2", "hypothesis", "tox", "nox", "coverage", "pytest-cov"}
IMPORTED = re.compile(rb"^[ \t]*(?:import|from)[ \t]+([A-Za-z_]\w*)", re.MULTILINE)
MAX_MANIFESTS = 200
MAX_ENVIRONMENTS = 5
STDLIB = frozenset(sys.stdlib_module_names) | OTHER_STDLIB


def normalize(name: str) -> str:
    """A distribution's name as PyPI compares it."""
    return re.sub(r"[-_.]+", "-", name).lower().strip("-")


class PythonDependencies:
    def __init__(self, tree: SourceTree, touched: Iterable[str] = ()) -> None:
        self._tree = tree
        self._touched = frozenset(touched)

    @cached_property
    def _imported(self) -> frozenset[str]:
        """What the project imports, without separators: a distribution of that name provides nothing else."""
        found = self._tree.search([b"import"], (".py", ".pyi"))
        names = {name.decode() for _, data in found for name in IMPORTED.findall(data)}
        return frozenset(map(_squeezed, names))

    def _files(self, pattern: re.Pattern[str], folder: str) -> list[str]:
        found = [
            path
            for path in self._tree.files
            if pattern.fullmatch(PurePosixPath(path).name) or folder in f"/{path}"
        ]
        return sorted(found, key=lambda path: (path.count("/"), path))[:MAX_MANIFESTS]

    @cached_property
    def _declaring(self) -> list[str]:
        return self._files(DECLARING, "/requirements/")

    @cached_property
    def is_declared_at_all(self) -> bool:
        """Whether the project says what it depends on, and not in code that would have to run."""
        texts = {path: self._tree.text(path) for path in self._declaring}
        return any(_declares(path, text) for path, text in texts.items())

    @cached_property
    def declared(self) -> frozenset[str]:
        found = {name for path in self._declaring for name in _names(path, self._tree.text(path))}
        return frozenset({normalize(name) for name in found} - {"", "python"})

    @cached_property
    def _mentioned(self) -> frozenset[str]:
        """Names, without separators, that a lock file or a command of the project installs."""
        paths = self._files(MENTIONING, "/.github/workflows/")
        found = {name for path in paths for name in _names(path, self._tree.text(path))}
        return frozenset(map(_squeezed, found))

    @cached_property
    def has_test_tools(self) -> bool:
        return not TEST_TOOLS.isdisjoint(self.declared)

    @cached_property
    def _installed(self) -> dict[str, set[str]]:
        """Distributions by the module that they provide, in the project's own environments."""
        found: dict[str, set[str]] = {}
        tree = self._tree
        homes = [name for name in tree.names_in(".") if tree.exists(f"{name}/pyvenv.cfg")][:MAX_ENVIRONMENTS]
        for home in homes:
            for version in tree.names_in(f"{home}/lib"):
                folder = f"{home}/lib/{version}/site-packages"
                for name in tree.names_in(folder):
                    if name.endswith(".dist-info"):
                        distribution = normalize(name.partition("-")[0])
                        for module in _modules_of(tree, f"{folder}/{name}"):
                            found.setdefault(module, set()).add(distribution)
        return found

    def missing(self, module: str) -> str:
        """The distribution to declare for a top-level module; empty if it may be declared already."""
        if module in STDLIB or not self.is_declared_at_all:
            return ""
        found = self.provider(module)
        return found if found and not self._is_used_elsewhere(module) else ""

    def lost_modules(self, manifests: Mapping[str, str]) -> frozenset[str]:
        """Modules of distributions that these old texts of manifests declare, and nothing declares now."""
        old = {
            normalize(name)
            for path, text in manifests.items()
            if path in self._declaring
            for name in _names(path, text)
        }
        lost = old - self.declared
        other = {module for module, names in OTHER_NAMES.items() if not lost.isdisjoint(names.split())}
        return frozenset(other | {name.replace("-", "_") for name in lost})

    def provider(self, module: str) -> str:
        """The distribution that would have to be declared for a module; empty if it may be declared."""
        plain = _squeezed(module)
        squeezed = {_squeezed(name) for name in self.declared}
        if plain in self._mentioned or any(
            plain in name or (len(name) > 2 and name in plain) for name in squeezed
        ):
            return ""
        known = [*OTHER_NAMES.get(module, "").split(), *sorted(self._installed.get(module, ()))]
        if module in SAME_NAMES:
            known.append(normalize(module))
        if known:
            is_declared = any(each in self.declared or _squeezed(each) in self._mentioned for each in known)
            return "" if is_declared else known[0]
        return "" if any(self._may_provide(name) for name in self.declared) else normalize(module)

    def may_provide(self, module: str) -> bool:
        """Whether a top-level module may be a distribution's, declared or widely used."""
        plain = _squeezed(module)
        known = plain in self._mentioned or plain in map(_squeezed, self.declared)
        return known or module in SAME_NAMES or module in OTHER_NAMES

    def _is_used_elsewhere(self, module: str) -> bool:
        """Whether a file that the change did not touch imports a module, so that something provides it."""
        pattern = re.compile(rb"^(?:import|from)[ \t]+%b\b" % re.escape(module.encode()), re.MULTILINE)
        found = self._tree.search([module.encode()], (".py",))
        return any(path not in self._touched and pattern.search(data) for path, data in found)

    def _may_provide(self, distribution: str) -> bool:
        """Whether a declared distribution could provide a module of any name."""
        module = distribution.replace("-", "_")
        if module in SAME_NAMES or _squeezed(module) in self._imported:
            return False
        if TOOLS.match(distribution) or any(distribution in names.split() for names in OTHER_NAMES.values()):
            return False
        return not any(distribution in names for names in self._installed.values())


def _squeezed(name: str) -> str:
    return re.sub(r"[-_.]", "", name).lower()


def _modules_of(tree: SourceTree, info: str) -> Iterator[str]:
    if text := tree.text(f"{info}/top_level.txt"):
        yield from text.split()
        return
    for line in tree.text(f"{info}/RECORD").splitlines():
        top = line.partition(",")[0].partition("/")[0]
        if top.endswith(".py"):
            yield top.removesuffix(".py")
        elif "." not in top:
            yield top


def _declares(path: str, text: str) -> bool:
    if path.endswith("setup.py"):
        return "install_requires" in text
    if path.endswith("setup.cfg"):
        return "install_requires" in text
    if not path.endswith("pyproject.toml"):
        return True
    data = _toml(text)
    project, tools = data.get("project"), data.get("tool")
    if isinstance(project, dict):
        return "dependencies" not in project.get("dynamic", ())
    return isinstance(tools, dict) and "poetry" in tools


def _names(path: str, text: str) -> Iterator[str]:
    """Names of distributions in a manifest, or in the commands of a script."""
    name = PurePosixPath(path).name
    if name.endswith(".lock"):
        packages = _toml(text).get("package", ())
        yield from (str(each.get("name")) for each in packages if isinstance(each, dict))
    elif name.endswith(".toml") or name == "Pipfile":
        yield from _listed(_toml(text))
    elif name.endswith(".py"):
        yield from _python_strings(text)
    elif name.endswith((".txt", ".in")):
        yield from _requirements(text.splitlines())
        yield from re.findall(r"#egg=([\w.-]+)", text)
    elif name.endswith((".cfg", ".ini")):
        yield from _ini_values(text)
    elif name.endswith((".yaml", ".yml")):
        yield from _requirements(
            line.strip(" -\t'\"") for line in text.splitlines() if line.strip().startswith("-")
        )
    yield from (each for words in IN_COMMAND.findall(text) for each in _requirements(words.split()))


def _requirements(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        if found := REQUIREMENT.fullmatch(line.strip().strip("'\"\\,")):
            yield found[1]


def _toml(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError):
        return {}


def _listed(value: Any) -> Iterator[str]:
    """Requirements and names of tables below every key that lists dependencies, for any tool."""
    waiting: list[tuple[Any, bool]] = [(value, False)]
    while waiting:
        found, listed = waiting.pop()
        if isinstance(found, dict):
            for key, each in found.items():
                if not listed:
                    names_groups = isinstance(each, list) and "group" in key
                    waiting.append((each, bool(LISTS.fullmatch(key)) and not names_groups))
                elif isinstance(each, list) and all(isinstance(item, str) for item in each):
                    waiting.append((each, True))  # a group: its key is no distribution
                else:
                    yield from _requirements([key])
        elif isinstance(found, list):
            if listed:
                yield from _requirements(each for each in found if isinstance(each, str))
            waiting += [(each, False) for each in found if not isinstance(each, str)]


def _python_strings(text: str) -> Iterator[str]:
    """Strings in what a setup script calls its requirements, and in what a session installs."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return
    for node in ast.walk(tree):
        name = ""
        if isinstance(node, ast.keyword):
            name = node.arg or ""
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name = node.func.attr
        if re.search(r"require|depend|extra|install", name, re.IGNORECASE):
            for each in ast.walk(node):
                if isinstance(each, ast.Constant) and isinstance(each.value, str):
                    yield from _requirements(each.value.splitlines())


def _ini_values(text: str) -> Iterator[str]:
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
    try:
        parser.read_string(text)
    except (configparser.Error, ValueError):
        return
    for title, section in parser.items():
        for key, value in section.items():
            if LISTS.fullmatch(key) or title == "options.extras_require":
                lines = (value or "").splitlines()
                yield from _requirements(re.sub(r"^[\w,{}.!-]+:\s+", "", line.strip()) for line in lines)
