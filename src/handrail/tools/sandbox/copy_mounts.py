"""Commands that run in a scratch copy: the sandbox mounts it at the path of the workspace.

What is protected in the workspace (`.git`, Handrail's files) is mounted over the copy, as it is there.
"""

import os
from typing import Literal

from handrail.tools.sandbox.protected_paths import SandboxSetup, is_inside

Mount = tuple[str, ...]
INSTALL = "Install bubblewrap to check in a copy (apt install bubblewrap, or dnf install bubblewrap)"
REASONS = {
    "bubblewrap": "",
    "Landlock": f"Landlock cannot show a copy in its place. {INSTALL}",
    "none": f"there is no sandbox here that could show a copy in its place. On Linux: {INSTALL.lower()}",
}


def no_copy_reason(sandbox: Literal["bubblewrap", "Landlock", "none"]) -> str:
    """Why commands cannot run in a scratch copy under this sandbox, to be shown; empty if they can."""
    why = REASONS[sandbox]
    return f"checked in the workspace itself, because {why}." if why else ""


def bind_source(path: str, setup: SandboxSetup) -> str:
    """What is mounted at a path of the workspace: the same path of the copy, if there is one."""
    workspace = str(setup.workspace)
    if setup.copy is None or (path != workspace and not is_inside(path, workspace)):
        return path
    return str(setup.copy.root) + path[len(workspace.rstrip("/")) :]


def copy_mounts(setup: SandboxSetup) -> list[Mount]:
    """What commands in a copy see of the workspace: installed packages, ignored secrets; and their cache."""
    if setup.copy is None:
        return []
    hidden = set(setup.secrets)
    root = setup.workspace
    pairs = ((f"{root}/{path}", f"{root}/{at}") for path, at in setup.copy.read_only if path not in hidden)
    shown = [("--ro-bind", path, at) for path, at in pairs if os.path.exists(path)]
    for layer in setup.copy.layers:
        bind = "--bind" if layer.writable and not setup.reads else "--ro-bind"
        shown.append((bind, layer.folder, f"{root}/{layer.path}"))
    cache = str(setup.copy.cache)
    return [*shown, ("--ro-bind" if setup.reads else "--bind", cache, cache)]
