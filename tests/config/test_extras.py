"""The line that installs an extra works as it is printed."""

import shlex
import sys
from importlib.metadata import requires
from pathlib import Path

import pytest

from handrail.config.extras import CLONE, install_command
from tests.project.source import ROOT


@pytest.mark.promise("KB-18")
def test_a_clone_is_named_by_its_path_quoted_for_a_shell(tmp_path: Path) -> None:
    clone = tmp_path / "my clone"
    clone.mkdir()
    (clone / "pyproject.toml").touch()
    words = [sys.executable, "-m", "pip", "install", "--editable", f"{clone}[providers]", "groq"]
    assert shlex.split(install_command("providers", "groq", clone=clone)) == words
    assert CLONE == ROOT


def test_without_a_clone_the_libraries_are_named_and_never_a_package_of_that_name(tmp_path: Path) -> None:
    for extra, library in (("knowledge", "numpy"), ("telemetry", "opentelemetry-sdk")):
        named = shlex.split(install_command(extra, clone=tmp_path))[4:]
        assert any(each.startswith(library) for each in named)
        assert all(any(each in known for known in requires("handrail") or ()) for each in named)
        assert not any(each.startswith("handrail") for each in named)
