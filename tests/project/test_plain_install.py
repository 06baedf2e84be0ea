"""Handrail with nothing but its own dependencies: no extra, no development tool."""

import os
import re
import subprocess
import sys
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.interfaces.cli.program import environment, script
from tests.project.source import ROOT


def _name(text: str) -> str:
    return re.sub(r"[-_.]+", "-", text).lower()


def needed() -> dict[str, Distribution]:
    """The packages that Handrail's own dependencies bring, by name."""
    found: dict[str, Distribution] = {}
    open_names = [("handrail", "")]
    while open_names:
        name, extra = open_names.pop()
        for line in distribution(name).requires or ():
            wanted = Requirement(line)
            if wanted.marker and not wanted.marker.evaluate({"extra": extra}):
                continue
            if _name(wanted.name) not in found:
                found[_name(wanted.name)] = distribution(wanted.name)
                open_names += [(wanted.name, each) for each in ("", *wanted.extras)]
    return found


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with links to the files of these packages alone."""
    folder = tmp_path_factory.mktemp("packages")
    for each in needed().values():
        for file in each.files or ():
            if ".." not in file.parts and file.suffix != ".pyc":
                link = folder / file
                link.parent.mkdir(parents=True, exist_ok=True)
                if not link.exists():
                    link.symlink_to(file.locate())
    return folder


def plain(packages: Path, *arguments: str, cwd: Path, **changes: str) -> "subprocess.CompletedProcess[str]":
    path = os.pathsep.join((str(ROOT / "src"), str(packages)))
    return subprocess.run(
        [sys.executable, "-S", "-P", "-m", "handrail", *arguments],
        cwd=cwd,
        env=environment(PYTHONPATH=path, **changes),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.promise("KB-18")
def test_plain_installation_works_and_says_what_is_missing(packages: Path, tmp_path: Path) -> None:
    for extra in ("numpy", "pypdf", "pydantic_ai", "opentelemetry/exporter", "pytest", "dbos", "psycopg"):
        assert not (packages / extra).exists()
    (tmp_path / "notes.md").write_text("# Goats\n\nThe ferry carries two goats.\n")
    model = script(tmp_path, {"text": "Hello."})
    said = {}
    for arguments in (
        ("run", "hi", "--model", model),
        ("kb", "add", "notes.md"),
        ("kb", "search", "goats"),
        ("kb", "verify"),
        ("tasks", "add", "Buy milk"),
        ("sources",),
        ("agents",),
        ("splits",),
        ("skills",),
        ("credentials",),
        ("acp", "--help"),
        ("mcp", "--help"),
    ):
        done = plain(packages, *arguments, cwd=tmp_path)
        assert done.returncode == 0, (arguments, done.stderr)
        said[arguments[-1]] = done.stdout + done.stderr
    assert "Hello." in said[model]
    assert "goats" in said["goats"]
    traced = plain(
        packages,
        *("run", "hi", "--model", model),
        cwd=tmp_path,
        OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9",
    )
    assert traced.returncode == 0, traced.stderr
    assert "Telemetry is configured, but its libraries are not installed" in traced.stderr
    worker = plain(
        packages,
        *("worker", "--workspace", "work"),
        cwd=tmp_path,
        HANDRAIL_DATABASE="postgresql://me@127.0.0.1:9/none",
    )
    assert worker.returncode == 2
    assert "Workers need more packages. Install them: " in worker.stderr
    assert "[distributed]" in worker.stderr
