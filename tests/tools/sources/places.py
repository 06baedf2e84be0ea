"""Sources for tests: definitions in the user's folder or the workspace, and calls to them."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from handrail.config.places import find_places
from handrail.config.toml_edit import toml_value

SERVER = Path(__file__).parent / "server.py"
PYTHON = str(Path(sys.executable))


def words(how: str = "good", *more: object) -> list[str]:
    """The command of the test server."""
    return [PYTHON, "-I", "-S", str(SERVER), how, *map(str, more)]


def own(environ: Mapping[str, str], name: str = "plain", **keys: Any) -> Path:
    """A source of the user's; by default the good test server."""
    return define(find_places(environ).settings.parent, name, **keys)


def define(folder: Path, name: str = "plain", **keys: Any) -> Path:
    keys = keys if "url" in keys else {"command": words(), **keys}
    path = folder / "sources" / name / "source.toml"
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.write_text("".join(f"{key} = {toml_value(value)}\n" for key, value in keys.items()))
    return path


def shared(workspace: Path, **servers: Any) -> Path:
    """A `.mcp.json` in the workspace."""
    path = workspace / ".mcp.json"
    path.write_text(json.dumps({"mcpServers": servers}))
    return path
