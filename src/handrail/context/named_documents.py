"""Names for project documents: `.handrail/context.toml` says which files `@Name` stands for."""

from collections.abc import Mapping
from typing import Any

from handrail.config.open_file import read_file
from handrail.config.toml_file import parse_toml
from handrail.protocol.errors import ConfigProblem
from handrail.workspace.files import Workspace

CONTEXT_FILE = ".handrail/context.toml"
MAX_BYTES = 100_000
SHAPE = 'It has one table, [names], with lines such as Spec = "docs/spec.md" or Spec = ["a.md", "b.md"].'


def named_documents(workspace: Workspace) -> dict[str, tuple[str, ...]]:
    """{name: paths}; empty without the file. Raises ConfigProblem where it cannot be understood."""
    path = workspace.root / CONTEXT_FILE
    try:
        data = read_file(path, MAX_BYTES, follow=False)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigProblem(f"{path} cannot be read: {error.strerror}.") from error
    content = parse_toml(path, data).data
    names = content.get("names", {})
    if set(content) - {"names"} or not isinstance(names, dict):
        raise ConfigProblem(f"{path} is not understood. {SHAPE}")
    return {name: _paths(path.name, name, value) for name, value in _plain(names).items()}


def _plain(names: Mapping[str, Any]) -> Mapping[str, Any]:
    if wrong := next((name for name in names if not name.isidentifier()), None):
        raise ConfigProblem(f"{CONTEXT_FILE}: {wrong!r} is no name: use letters, digits and `_`.")
    return names


def _paths(file: str, name: str, value: object) -> tuple[str, ...]:
    found = [value] if isinstance(value, str) else value
    if not isinstance(found, list) or not found or not all(isinstance(each, str) and each for each in found):
        raise ConfigProblem(f"{file}: {name} names no files. {SHAPE}")
    return tuple(found)
