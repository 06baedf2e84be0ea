"""The tasks: a project with its right code, and for each task how it is broken or left to be written.

A folder of `projects` holds the right module, `tests` that the agent sees, `hidden` tests that it does not,
perhaps a description in Markdown, and `tasks.toml`. The stored module is the reference solution of its tasks.
"""

import ast
import shutil
import tomllib
from pathlib import Path
from typing import Literal, NamedTuple

PROJECTS = Path(__file__).parent / "projects"
PYTEST = '[tool.pytest.ini_options]\npythonpath = ["."]\ntestpaths = ["tests"]\n'
NOT_DONE = "raise NotImplementedError"
Kind = Literal["bug", "complete", "write"]
KINDS: tuple[Kind, ...] = ("bug", "complete", "write")
PARTS = ("all", "tuned", "kept-back", "short")
"""All tasks; those of every second project, which Handrail may be tuned with; those of the other projects;
every third of these of each kind."""


class Change(NamedTuple):
    """Text of the right module, and what stands there at the start."""

    right: str
    wrong: str


class Task(NamedTuple):
    name: str
    kind: Kind
    text: str
    """What the user asks for."""
    project: Path
    module: str
    """The file to be edited."""
    changes: tuple[Change, ...] = ()
    stubs: tuple[str, ...] = ()
    """Functions without a body at the start, such as `Cart.total`; `*` for all."""

    @property
    def solution(self) -> str:
        return (self.project / self.module).read_text()

    @property
    def start(self) -> str:
        """The module that the agent gets."""
        text = self.solution
        for change in self.changes:
            if text.count(change.right) != 1:
                raise ValueError(
                    f"{self.name}: {change.right!r} is there {text.count(change.right)} times, not once"
                )
            text = text.replace(change.right, change.wrong)
        return without_bodies(text, self.stubs) if self.stubs else text

    @property
    def shown(self) -> dict[str, str]:
        """All files that the agent gets, by path."""
        files = {self.module: self.start}
        for path in sorted(self.project.rglob("*")):
            name = path.relative_to(self.project).as_posix()
            if path.is_file() and path.suffix in {".py", ".md"} and not name.startswith("hidden/"):
                files.setdefault(name, path.read_text())
        return files | {"pyproject.toml": PYTEST}

    def write_start(self, folder: Path) -> None:
        for name, text in self.shown.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)

    def restore_tests(self, folder: Path) -> None:
        """Undo what an agent did to the tests and settings, and add the hidden tests."""
        for name in ("tests", "hidden"):
            shutil.rmtree(folder / name, ignore_errors=True)
            shutil.copytree(self.project / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("conftest.py", "pytest.ini", "tox.ini", "setup.cfg", "sitecustomize.py"):
            (folder / name).unlink(missing_ok=True)
        (folder / "pyproject.toml").write_text(PYTEST)


def all_tasks() -> list[Task]:
    """Every task, by project."""
    return [task for file in sorted(PROJECTS.glob("*/tasks.toml")) for task in project_tasks(file)]


def part_of_tasks(tasks: list[Task], part: str) -> list[Task]:
    """The tasks of a part, which is the same for everybody and was chosen before any of them was measured."""
    projects = list(dict.fromkeys(task.project.name for task in tasks))
    tuned = set(projects[::2])
    kept = [task for task in tasks if task.project.name not in tuned]
    if part == "tuned":
        return [task for task in tasks if task.project.name in tuned]
    if part == "short":
        return [task for kind in KINDS for task in [each for each in kept if each.kind == kind][::3]]
    return kept if part == "kept-back" else tasks


def project_tasks(file: Path) -> list[Task]:
    content = tomllib.loads(file.read_text())
    return [
        Task(
            name=f"{file.parent.name}-{each['name']}",
            kind=each["kind"],
            text=each["text"],
            project=file.parent,
            module=content["module"],
            changes=tuple(Change(**change) for change in each.get("changes", ())),
            stubs=tuple(each.get("stubs", ())),
        )
        for each in content["tasks"]
    ]


def without_bodies(text: str, names: tuple[str, ...]) -> str:
    """The text with these functions empty except for their docstrings; `*` also drops private names."""
    lines = text.splitlines(keepends=True)
    everything = names == ("*",)
    found: set[str] = set()
    cuts: list[tuple[int, int, str]] = []

    def visit(body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            if isinstance(node, ast.ClassDef) and not (everything and node.name.startswith("_")):
                visit(node.body, f"{prefix}{node.name}.")
            elif everything and _private(node):
                cuts.append((node.lineno - 1, node.end_lineno or node.lineno, ""))
            elif isinstance(node, ast.FunctionDef) and (everything or f"{prefix}{node.name}" in names):
                found.add(f"{prefix}{node.name}")
                first = node.body[1 if ast.get_docstring(node) is not None else 0 :]
                begin = first[0].lineno - 1 if first else (node.body[0].end_lineno or 0)
                cuts.append((begin, node.end_lineno or begin, f"{' ' * node.body[0].col_offset}{NOT_DONE}\n"))

    visit(ast.parse(text).body, "")
    if missing := set(names) - found - {"*"}:
        raise ValueError(f"there is no function {', '.join(sorted(missing))}")
    for begin, end, instead in reversed(cuts):
        lines[begin:end] = [instead]
    return "".join(lines).rstrip("\n") + "\n"


def _private(node: ast.stmt) -> bool:
    """A helper of the solution: nothing that a description would name."""
    if isinstance(node, ast.Assign):
        return all(isinstance(each, ast.Name) and each.id.startswith("_") for each in node.targets)
    if not isinstance(node, ast.FunctionDef | ast.ClassDef):
        return False
    return node.name.startswith("_") and not node.name.endswith("__")
