"""One case about a path: its tree is built in a temporary folder that stands for `/`, then it is decided."""

import os
import socket
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from handrail.policy.call_facts import Allow, Ask, Deny, Facts
from handrail.policy.decide import decide
from handrail.protocol.errors import PathProblem
from handrail.tools.gate.facts import path_facts
from handrail.workspace.files import Workspace

Step = dict[str, Any]
LOOKING = ("read", "list", "search", "stat")
REAL = ("/proc", "/dev", "/sys")
"""Left as they are: what is odd about them cannot be built."""
ENDS = ("to", "dest", "destination", "target", "new_path")


def run_path(case: dict[str, Any]) -> dict[str, Any]:
    """The verdict on a case."""
    with TemporaryDirectory(prefix="corpus-") as folder:
        top = Path(os.path.realpath(folder))
        shown = top / str(case.get("workspace", "/ws")).lstrip("/")
        for step in case.get("setup", ()):
            if link := step.get("ws_is_symlink_to"):
                below(top, link).mkdir(parents=True, exist_ok=True)
                shown.symlink_to(below(top, link))
        shown.mkdir(parents=True, exist_ok=True)
        for step in case.get("setup", ()):
            build(top, shown, step)
        workspace = Workspace(shown, state_folders=(top / "home/user/.local/share/handrail",))
        paths = [case["path"], *(case[name] for name in ENDS if isinstance(case.get(name), str))]
        verdicts = [verdict(workspace, top, path, case) for path in paths]
    return next((each for each in verdicts if each["got"] == "refuse"), verdicts[0])


def verdict(workspace: Workspace, top: Path, path: str, case: dict[str, Any]) -> dict[str, Any]:
    """What the gate's own rules say, in the mode that asks least."""
    looks, scope = case.get("op", "write") in LOOKING, case.get("owned_scope")
    given = f"{top}{path}" if path.startswith("/") and not path.startswith(REAL) else path
    try:
        place = workspace.resolve(given)
    except PathProblem as problem:
        return {"got": "refuse", "reason": problem.reason}
    decision = decide(
        Facts(
            tool="corpus",
            action="look" if looks else "write",
            mode="auto",
            path=path_facts(workspace.root, place, to_change=not looks),
            scope=None if scope is None else tuple(scope),
        )
    )
    match decision:
        case Allow():
            return {"got": "allow", "reason": "ok"}
        case Ask(reason):
            return {"got": "refuse", "reason": "needs_approval", "why": reason}
        case Deny(error):
            return {"got": "refuse", "reason": error.reason, "why": error.message}


def build(top: Path, root: Path, step: dict[str, Any]) -> None:
    """One entry of a set-up; what this system cannot make is left out."""
    with suppress(OSError):
        for name, value in step.items():
            if name in MAKERS:
                MAKERS[name](at(top, root, value), step, top, root)


def make_folder(path: Path, step: Step, top: Path, root: Path) -> None:
    path.mkdir(parents=True, exist_ok=True)


def make_file(path: Path, step: Step, top: Path, root: Path) -> None:
    made(path).write_text(step.get("content") or "")


def make_link(path: Path, step: Step, top: Path, root: Path) -> None:
    target = step["target"]
    made(path).symlink_to(below(top, target) if target.startswith("/") else target)


def make_hard_link(path: Path, step: Step, top: Path, root: Path) -> None:
    source = at(top, root, step["target"])
    made(source).touch()
    os.link(source, made(path))


def make_pipe(path: Path, step: Step, top: Path, root: Path) -> None:
    os.mkfifo(made(path))


def make_socket(path: Path, step: Step, top: Path, root: Path) -> None:
    # A socket's address has at most 107 bytes, a temporary folder may have more.
    with socket.socket(socket.AF_UNIX) as server:
        folder = os.open(made(path).parent, os.O_RDONLY)
        try:
            server.bind(f"/proc/self/fd/{folder}/{path.name}")
        finally:
            os.close(folder)


MAKERS = {
    "dir": make_folder,
    "file": make_file,
    "outside_dir": make_folder,
    "outside_file": make_file,
    "symlink": make_link,
    "outside_symlink": make_link,
    "hardlink": make_hard_link,
    "hard_link": make_hard_link,
    "fifo": make_pipe,
    "socket": make_socket,
}


def at(top: Path, root: Path, path: str) -> Path:
    """Where an entry lies: absolute ones below the folder that stands for `/`."""
    return below(top, path) if path.startswith("/") else root / path


def below(top: Path, path: str) -> Path:
    return Path(f"{top}/{path.lstrip('/')}")


def made(path: Path) -> Path:
    """The path, its folder made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return path
