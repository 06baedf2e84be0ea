"""A first AGENTS.md from what a repository shows: made by code, from names and manifests alone."""

import json
import os
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from handrail.changes.proposal import refuse_link
from handrail.protocol.errors import PathProblem
from handrail.tools.notes.project_commands import ProjectCommand, ReadText, find_commands, read_table, table
from handrail.tools.record_lesson import notes_file, one_line
from handrail.workspace.files import Workspace
from handrail.workspace.walk import TooManyEntries, find_left_out, walk

MAX_DEPTH, MAX_ENTRIES = 6, 20_000
MAX_FILE_CHARS, MAX_LAYOUT, MAX_LANGUAGES = 200_000, 14, 4
MAX_TITLE, MAX_DESCRIPTION = 80, 300
LANGUAGES = {
    ".py": "Python",
    ".ts": "TypeScript",
    ".tsx": "TypeScript",
    ".js": "JavaScript",
    ".jsx": "JavaScript",
    ".mjs": "JavaScript",
    ".go": "Go",
    ".rs": "Rust",
    ".java": "Java",
    ".kt": "Kotlin",
    ".c": "C",
    ".h": "C",
    ".cpp": "C++",
    ".cc": "C++",
    ".hpp": "C++",
    ".cs": "C#",
    ".rb": "Ruby",
    ".php": "PHP",
    ".swift": "Swift",
    ".scala": "Scala",
    ".ex": "Elixir",
    ".exs": "Elixir",
    ".sh": "shell",
    ".sql": "SQL",
    ".html": "HTML",
    ".css": "CSS",
    ".md": "Markdown",
}
PROSE = ("Markdown", "HTML", "CSS")
OTHER_HEADINGS = {
    "Layout": re.compile(r"layout|structure|map|architecture|folder|director", re.IGNORECASE),
    "Style": re.compile(r"style|convention|format", re.IGNORECASE),
}
"""Headings under which others write the same."""
EXCERPTS = re.compile(
    r"readme(\.\w+)?|contributing\.md|(gnu)?makefile|justfile|pyproject\.toml|package\.json|cargo\.toml|go\.mod",
    re.IGNORECASE,
)
EDITOR_KEYS = re.compile(r"^\s*(indent_style|indent_size|max_line_length)\s*=\s*(\w+)", re.MULTILINE)
MAX_EXCERPTS, EXCERPT_CHARS = 5, 2_000


class Survey(NamedTuple):
    path: str
    """The notes file: an existing one, or AGENTS.md."""
    base: str
    """Hash of the existing one; empty where there is none."""
    existing: str
    text: str
    """The whole new text, or what is missing in the existing one; empty where nothing is."""
    excerpts: dict[str, str]
    """The beginnings of the files that say most about the project."""


def survey(workspace: Workspace) -> Survey:
    """What the repository shows. Ignored files are left out, and links are not followed.

    Raises PathProblem where the notes file is a link: it could lead to any file of the user's.
    """
    root = workspace.root
    files, path = _files(root), notes_file(root)
    refuse_link(workspace, path)

    def read(name: str) -> str:
        try:
            return workspace.read(name).text[:MAX_FILE_CHARS]
        except PathProblem:
            return ""

    top = [name for name in files if "/" not in name]
    commands = find_commands(top, read)
    sections = {
        "Commands": [f"- `{each.command}`: {each.purpose} ({_code(each.source)})" for each in commands],
        "Layout": list(_layout(files)),
        "Style": list(_style(set(top), read)),
    }
    described = [name for name in top if EXCERPTS.fullmatch(name)][:MAX_EXCERPTS]
    excerpts = {name: read(name)[:EXCERPT_CHARS] for name in described}
    file = workspace.read(path) if workspace.exists(path) else None
    existing = file.text if file and file.text.strip() else ""
    if existing:
        text = _missing(existing, sections, commands)
    else:
        text = "\n\n".join([_head(root.name, set(top), read), *_sections(sections)])
    return Survey(path, file.sha256 if file else "", existing, text, excerpts)


def _files(root: Path) -> list[str]:
    try:
        entries = [each.path for each in walk(root, MAX_DEPTH, MAX_ENTRIES) if each.kind == "file"]
        left_out = find_left_out(root)
    except (OSError, TooManyEntries):
        return []
    ignored = {name.rstrip("/") for name in (*left_out.ignored, *left_out.secret)}
    above = {name for name in ignored if name}
    return [path for path in entries if not above.intersection(_with_parents(path))]


def _with_parents(path: str) -> Iterator[str]:
    parts = path.split("/")
    return ("/".join(parts[:count]) for count in range(1, len(parts) + 1))


def _languages(files: Sequence[str]) -> list[str]:
    counts = Counter(LANGUAGES.get(os.path.splitext(path)[1].lower(), "") for path in files)
    del counts[""]
    code = {name: count for name, count in counts.most_common() if name not in PROSE} or dict(counts)
    return [f"{name} ({count} file{'s' * (count != 1)})" for name, count in code.items()][:MAX_LANGUAGES]


def _layout(files: Sequence[str]) -> Iterator[str]:
    if languages := _languages(files):
        yield f"- Languages: {', '.join(languages)}"
    folders = Counter(path.split("/", maxsplit=1)[0] for path in files if "/" in path)
    for name, count in sorted(folders.items())[:MAX_LAYOUT]:
        inside = [path for path in files if path.startswith(f"{name}/")]
        # `src/shop/` says more than `src/` where there is nothing else in it.
        inner = {path.split("/")[1] for path in inside}
        shown = f"{name}/{next(iter(inner))}" if len(inner) == 1 and inside[0].count("/") > 1 else name
        what = ", ".join(_languages(inside)[:2]) or f"{count} file{'s' * (count != 1)}"
        yield f"- `{_code(shown)}/`: {what}"
    if len(folders) > MAX_LAYOUT:
        yield f"- {len(folders) - MAX_LAYOUT} more folders"


def _style(top: set[str], read: ReadText) -> Iterator[str]:
    project = read_table(read, "pyproject.toml", tomllib.loads) if "pyproject.toml" in top else {}
    tools = table(project, "tool")
    for tool in ("ruff", "black"):
        length = table(tools, tool).get("line-length")
        if isinstance(length, int):
            yield f"- {tool}: lines of at most {length} characters (pyproject.toml)"
    if table(tools, "mypy").get("strict") is True:
        yield "- mypy is strict (pyproject.toml)"
    if "tsconfig.json" in top and re.search(r'"strict"\s*:\s*true', read("tsconfig.json")):
        yield "- TypeScript is strict (tsconfig.json)"
    if ".editorconfig" in top:
        first = dict(reversed(EDITOR_KEYS.findall(read(".editorconfig"))))
        shown = ", ".join(f"{key} {first[key]}" for key in sorted(first))
        yield f"- .editorconfig: {shown or 'see the file'}"
    settings = (".clang-format", "rustfmt.toml", ".golangci.yml", ".rubocop.yml", "biome.json")
    found = [name for name in settings if name in top]
    found += sorted(
        name for name in top if re.match(r"(\.prettierrc|\.eslintrc|eslint\.config\.|\.flake8$)", name)
    )
    yield from (f"- `{_code(name)}` sets the style; follow it" for name in found)
    if ".pre-commit-config.yaml" in top:
        yield "- `pre-commit run --all-files` runs the checks of .pre-commit-config.yaml"


def _head(folder: str, top: set[str], read: ReadText) -> str:
    """Title and first sentence, from a manifest, else from the folder's name and the README."""
    python = read_table(read, "pyproject.toml", tomllib.loads) if "pyproject.toml" in top else {}
    node = read_table(read, "package.json", json.loads) if "package.json" in top else {}
    manifests = (table(python, "project"), node)
    readme = next((name for name in sorted(top) if name.lower() in ("readme.md", "readme.rst", "readme")), "")
    plain = (
        [part for part in re.split(r"\n\s*\n", read(readme)) if re.match(r"[A-Z]", part)] if readme else []
    )
    names = (each.get("name") for each in manifests)
    title = next((name for name in names if isinstance(name, str) and name.strip()), folder)
    texts = (*(each.get("description") for each in manifests), *plain)
    found = next((text for text in texts if isinstance(text, str) and text.strip()), "")
    sentence = re.match(r".*?[.!?](?=\s|\Z)", one_line(found))
    about = (sentence[0] if sentence else one_line(found))[:MAX_DESCRIPTION]
    return f"# {_code(title)[:MAX_TITLE] or 'Project'}\n\n{about}".rstrip()


def _code(name: str) -> str:
    """A name that cannot end its code span."""
    return one_line(name).replace("`", "'")


def _sections(sections: dict[str, list[str]]) -> list[str]:
    return [f"## {title}\n" + "\n".join(lines) for title, lines in sections.items() if lines]


def _missing(text: str, sections: dict[str, list[str]], commands: Sequence[ProjectCommand]) -> str:
    """The commands and sections that the text does not have."""
    headings = [line.lstrip("# ") for line in text.splitlines() if line.startswith("#")]
    lines = dict(zip(commands, sections["Commands"], strict=True))
    wanted = {"Commands": [line for each, line in lines.items() if each.command not in text]}
    for title, others in OTHER_HEADINGS.items():
        known = any(others.search(heading) for heading in headings)
        wanted[title] = [] if known else sections[title]
    return "\n\n".join(_sections(wanted))
