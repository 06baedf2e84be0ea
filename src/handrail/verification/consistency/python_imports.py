"""Problems with the imports of Python files: modules and names that do not exist, undeclared dependencies."""

import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import PurePosixPath
from typing import NamedTuple

from handrail.tools.reports.issue import Issue
from handrail.verification.consistency.python_dependencies import STDLIB, PythonDependencies
from handrail.verification.consistency.python_module import Import, PythonModule, read_module
from handrail.verification.consistency.source_tree import SourceTree, TreeTooLarge

ENDINGS = (".py", ".pyi")
COMPILED = (".so", ".pyd", ".pyx", ".c", ".cc", ".cpp", ".rs", ".pxd", ".in", ".ipynb", ".f90", ".zip")
SOURCE_FOLDERS = {"src", "lib", "python", "source", "backend", "server", "app"}
PROJECT_FILES = {"pyproject.toml", "setup.py", "setup.cfg", "manage.py", "requirements.txt"}
SIDE_FOLDERS = {"docs", "doc", "examples", "example", "benchmarks", "benchmark", "bench", "scripts", "script"}
SIDE_FOLDERS |= {"tools", "demo", "demos", "samples", "tutorial", "tutorials", "notebooks", "ci", ".github"}
SIDE_FOLDERS |= {
    "docs_src",
    "contrib",
    "vendor",
    "_vendor",
    "third_party",
    "site-packages",
    "fixtures",
    "testdata",
}
SIDE_FILES = {"setup.py", "noxfile.py", "tasks.py", "fabfile.py", "conf.py", "dodo.py", "hatch_build.py"}
TEST_FOLDER = re.compile(r"tests?|testing|__tests__|spec|t|.*[-_]tests?|tests?[-_].*")
DATA = re.compile(
    r"^(?:.*data|cases?|fixtures?|roots?|outputs?|resources?|snapshots?|projects?|assets|samples?|expected|golden"
    r"|input|examples?|documents)$|broken|invalid|bad_|missing|error"
)
MODULE_ATTRIBUTES = {"__name__", "__file__", "__doc__", "__path__", "__spec__", "__loader__", "__package__"}
MODULE_ATTRIBUTES |= {"__dict__", "__builtins__", "__annotations__", "__cached__", "__all__"}


class Found(NamedTuple):
    """Where a dotted name leads. Without files: a folder that is a namespace package."""

    files: tuple[str, ...] = ()
    folder: str = ""
    is_unknown: bool = False


UNKNOWN = Found(is_unknown=True)


class Namespace(NamedTuple):
    names: frozenset[str]
    is_open: bool
    """It may have other names too."""


class PythonProject:
    """The Python modules of a tree, found as Python would find them."""

    def __init__(
        self, tree: SourceTree, dependencies: PythonDependencies, deleted: frozenset[str] = frozenset()
    ) -> None:
        self.tree = tree
        self.dependencies = dependencies
        self._deleted = deleted
        """Files that the change deleted: their modules were in the tree."""
        self._modules: dict[str, PythonModule | None] = {}
        self._set_elsewhere: dict[str, bool] = {}

    def module(self, path: str) -> PythonModule | None:
        if path not in self._modules:
            data = self.tree.read(path)
            self._modules[path] = read_module(data) if data is not None else None
        return self._modules[path]

    @cached_property
    def _tops(self) -> frozenset[str]:
        """Every name in the tree that might be a module in some folder on the path."""
        stems = {PurePosixPath(path).stem for path in self.tree.files if path.endswith((*ENDINGS, *COMPILED))}
        return frozenset(stems | {PurePosixPath(folder).name for folder in self.tree.folders})

    def _is_package(self, folder: str) -> bool:
        return any(_join(folder, f"__init__{ending}") in self.tree.files for ending in ENDINGS)

    def _roots(self, path: str) -> Iterator[tuple[str, bool]]:
        """Folders that are probably on the path of a file, and whether they hold a project's sources."""
        for parent in map(str, PurePosixPath(path).parents):
            if self._is_package(parent):
                continue
            is_project = parent == "." or any(
                _join(parent, name) in self.tree.files for name in PROJECT_FILES
            )
            is_source = PurePosixPath(parent).name in SOURCE_FOLDERS
            yield parent, is_project or is_source
            for name in SOURCE_FOLDERS if is_project else ():
                inner = _join(parent, name)
                if inner in self.tree.folders and not self._is_package(inner):
                    yield inner, True

    def find(self, path: str, module: str, level: int) -> Found | None:
        """What a module's name in a file leads to; None if it certainly leads nowhere."""
        parts = module.split(".") if module else []
        if level:
            parents = PurePosixPath(path).parents
            if level > len(parents):
                return UNKNOWN
            return self._descend(str(parents[level - 1]), parts)
        top = parts[0]
        roots = {root: own for root, own in self._roots(path) if self._has(root, top)}
        if not roots or top in STDLIB:
            return UNKNOWN
        if not any(roots.values()) and self.dependencies.may_provide(top):
            return UNKNOWN  # a folder of examples or tests may have the name of a distribution
        found = [self._descend(root, parts) for root in roots]
        known = [each for each in found if each and not each.is_unknown]
        if known:
            # Several roots have it: which one comes first on the path is not known.
            files = tuple(dict.fromkeys(file for each in known for file in each.files))
            return known[0]._replace(files=files)
        certain = any(self._is_package(_join(root, top)) or self._was(_join(root, top)) for root in roots)
        return None if certain and not any(found) else UNKNOWN

    def _was(self, base: str) -> bool:
        """Whether the change deleted the module or package of this path."""
        files = {base + ending for ending in ENDINGS} | {f"{base}/__init__{ending}" for ending in ENDINGS}
        return not files.isdisjoint(self._deleted)

    def dotted_name(self, path: str, target: str) -> str:
        """The name by which a file imports the module of another one; empty if there is none for certain."""
        parts = list(PurePosixPath(target).with_suffix("").parts)
        start = len(parts) - 1
        while start and self._is_package("/".join(parts[:start])):
            start -= 1
        if start == len(parts) - 1:  # not in a package: a module at its root, or in a namespace package
            start = next((at + 1 for at, part in enumerate(parts[:-1]) if part in SOURCE_FOLDERS), 0)
        dotted = ".".join(parts[start:]).removesuffix(".__init__")
        found = self.find(path, dotted, 0) if all(map(str.isidentifier, parts[start:])) else None
        return dotted if found and found.files == (target,) else ""

    def is_local(self, module: str) -> bool:
        """Whether a top-level module may be in the tree."""
        return module in self._tops

    def _has(self, folder: str, name: str) -> bool:
        base = _join(folder, name)
        known = base in self.tree.folders or any(base + ending in self.tree.files for ending in ENDINGS)
        return known or self._was(base)

    def _descend(self, folder: str, parts: list[str]) -> Found | None:
        for number, part in enumerate(parts):
            base = _join(folder, part)
            files = tuple(base + ending for ending in ENDINGS if self.tree.is_file(base + ending))
            last = number == len(parts) - 1
            if self.tree.is_folder(base) and (not last or self._is_package(base) or not files):
                folder = base
                continue
            if files:
                return Found(files) if last else self._maybe_path(files)
            if self._might_exist(folder, part) or self._has_own_path(folder):
                return UNKNOWN
            return None
        inits = tuple(_join(folder, f"__init__{ending}") for ending in ENDINGS)
        return Found(tuple(init for init in inits if self.tree.is_file(init)), folder)

    def _maybe_path(self, files: tuple[str, ...]) -> Found | None:
        """A module as a package: only one that sets `__path__`, or replaces itself, can be one."""
        texts = [self.tree.text(file) for file in files]
        return UNKNOWN if any("__path__" in text or "sys.modules" in text for text in texts) else None

    def _has_own_path(self, folder: str) -> bool:
        words = ("__path__", "sys.modules", "extend_path", "meta_path")
        for parent in (folder, *map(str, PurePosixPath(folder).parents)):
            text = self.tree.text(_join(parent, "__init__.py"))
            if any(word in text for word in words):
                return True
        return False

    def _might_exist(self, folder: str, name: str) -> bool:
        """Whether a missing module may come from a build, a compiler, or another part of a namespace."""
        names = self.tree.names_in(folder)
        if any(each.startswith(f"{name}.") and each.endswith((*COMPILED, *ENDINGS)) for each in names):
            return True  # compiled, or something that is no file
        if self.tree.may_be_generated(_join(folder, name)):
            return True
        tail = f"/{PurePosixPath(folder).name}/{name}"
        stem = f"/{name}."
        for path in self.tree.files:
            if f"/{path}".endswith((f"{tail}.py", f"{tail}.pyi")) or f"{tail}/" in f"/{path}":
                return True
            if stem in f"/{path}" and path.endswith(COMPILED):
                return True
        return False

    def namespace(self, files: tuple[str, ...], seen: frozenset[str] = frozenset()) -> Namespace:
        """The names of a module, together with those of what it imports with a star."""
        names: set[str] = set()
        is_open = False
        for file in files:
            module = self.module(file)
            if module is None or file in seen or len(seen) > 50:
                is_open = is_open or file not in seen
                continue
            names |= module.names | module.strings
            is_open = is_open or module.is_dynamic
            for star in module.imports:
                if star.name == "*":
                    target = self.find(file, star.module, star.level)
                    if target is None or target.is_unknown or not target.files:
                        is_open = True
                        continue
                    inner = self.namespace(target.files, seen | {file})
                    names |= inner.names
                    is_open = is_open or inner.is_open
        return Namespace(frozenset(names), is_open)

    def has_name(self, found: Found, name: str) -> bool:
        """Whether a module has a name, as an attribute or a submodule; also if that is not certain."""
        if found.is_unknown or name in MODULE_ATTRIBUTES:
            return True
        if not found.files:
            return True
        space = self.namespace(found.files)
        if space.is_open or name in space.names:
            return True
        return bool(found.folder) and self._descend(found.folder, [name]) is not None

    def is_set_elsewhere(self, name: str) -> bool:
        """Whether any file assigns an attribute of this name: modules can be patched from outside."""
        if name not in self._set_elsewhere:
            self._set_elsewhere[name] = self._is_set(name)
        return self._set_elsewhere[name]

    def _is_set(self, name: str) -> bool:
        word = re.escape(name.encode())
        assigned = re.compile(rb"\.%b\b\s*(?::[^=\n]+)?=[^=]|setattr\([^\n]*[\"']%b[\"']" % (word, word))
        try:
            return any(assigned.search(data) for _, data in self.tree.search([name.encode()], ENDINGS))
        except TreeTooLarge:
            return True


def check_imports(project: PythonProject, path: str, old: PythonModule | None) -> Iterator[Issue]:
    """Issues of the imports of one file; `old` is what it was before, if that is known."""
    module = project.module(path)
    if module is None or is_test_data(path):
        return
    before = {each.module.partition(".")[0] for each in old.imports} if old else set()
    for each in module.imports[:5_000]:
        top = each.module.partition(".")[0]
        if problem := broken_import(project, path, each):
            yield _issue(path, each.line, problem)
        # What was imported before the change is not the change's affair.
        elif old is not None and top not in before and must_be_declared(project, path, each):
            yield from undeclared(project, path, each)
    yield from _check_exports(project, path, module)


def undeclared(project: PythonProject, path: str, each: Import) -> Iterator[Issue]:
    top = each.module.partition(".")[0]
    if missing := project.dependencies.missing(top):
        message = f"`{top}` is imported, but {missing} is not a declared dependency"
        fix = f"Add {missing} to the project's dependencies, or remove the import."
        yield Issue("consistency", "high", message, path, each.line, rule="undeclared-dependency", fix=fix)


def broken_import(project: PythonProject, path: str, each: Import) -> str:
    """What does not exist of an import within the tree; empty if it is fine, or nobody can tell."""
    if each.guard == "maybe":
        return ""
    found = project.find(path, each.module, each.level)
    if found is None:
        return f"the module `{'.' * each.level}{each.module}` does not exist"
    if each.name and each.name != "*" and not project.has_name(found, each.name):
        if each.name.startswith("__") or project.is_set_elsewhere(each.name):
            return ""
        return f"`{'.' * each.level}{each.module}` has no name `{each.name}`"
    return ""


def must_be_declared(project: PythonProject, path: str, each: Import) -> bool:
    """Whether an import must be covered by a declared dependency."""
    top, module = each.module.partition(".")[0], project.module(path)
    if each.level or each.guard or project.is_local(top) or (module and top in module.skipped):
        return False
    *folders, name = PurePosixPath(path).parts
    if name in SIDE_FILES or not SIDE_FOLDERS.isdisjoint(folders):
        return False
    in_tests = any(part.startswith("test") for part in folders) or name == "conftest.py"
    if in_tests or name.startswith("test_") or name.endswith("_test.py"):
        return project.dependencies.has_test_tools
    return "# /// script" not in project.tree.text(path)


def is_test_data(path: str) -> bool:
    """Whether a file in a folder of tests is what they work on, which may be broken on purpose."""
    parts = PurePosixPath(path.lower()).parts
    tests = [number for number, part in enumerate(parts[:-1]) if TEST_FOLDER.fullmatch(part)]
    return bool(tests) and any(DATA.search(part) for part in parts[tests[0] + 1 :])


def _check_exports(project: PythonProject, path: str, module: PythonModule) -> Iterator[Issue]:
    if not module.exported:
        return
    folder = str(PurePosixPath(path).parent) if PurePosixPath(path).stem == "__init__" else ""
    found = Found((path,), folder)
    for each in module.exported:
        if not project.has_name(found, each.dotted) and not project.is_set_elsewhere(each.dotted):
            yield _issue(path, each.line, f"`__all__` lists `{each.dotted}`, which the module does not have")


def _issue(path: str, line: int, message: str) -> Issue:
    return Issue("consistency", "high", message, path, line, rule="broken-import")


def _join(folder: str, name: str) -> str:
    return name if folder in ("", ".") else f"{folder}/{name}"
