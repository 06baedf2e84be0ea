"""Layers of installed packages: what changed in them, and how it is repeated in the workspace."""

import os
from pathlib import Path

import pytest

from handrail.changes.packages import STAGING, repeat_in_workspace
from handrail.protocol.errors import PathProblem, StorageProblem
from handrail.verification.package_rules import package_problems
from handrail.workspace.scratch_copy.copies import COPIES
from handrail.workspace.scratch_copy.layers import LayerChanges, Layers, package_folder, remove_layers

FOLDER = "node_modules"
FILES = {"a/index.js": "1", "a/lib/b.js": "2", ".bin/a": "#!", "gone/x.js": "3"}


def write(root: Path, files: dict[str, str]) -> Path:
    for path, text in files.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return root


def contents(root: Path) -> dict[str, str]:
    return {str(path.relative_to(root)): path.read_text() for path in root.rglob("*") if path.is_file()}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path / "work" / FOLDER, FILES)
    os.symlink("../a/index.js", tmp_path / "work" / FOLDER / ".bin/link")
    return tmp_path / "work"


@pytest.fixture
def layers(root: Path, tmp_path: Path) -> Layers:
    made = Layers(root, tmp_path / COPIES, "build")
    made.make([FOLDER])
    return made


def change(layers: Layers) -> None:
    """What a command could do."""
    tree = layers.tree(FOLDER)
    write(tree, {"new/deep/index.js": "4", "a/index.js": "1.1", "a/__pycache__/x.pyc": "", ".cache/x": ""})
    (tree / "gone/x.js").unlink()
    os.symlink("/etc/passwd", tree / "new/outside")


@pytest.mark.promise("BUILD-13")
def test_layer_is_a_copy_whose_changes_are_repeated_in_the_workspace(root: Path, layers: Layers) -> None:
    assert contents(layers.tree(FOLDER)) == contents(root / FOLDER)
    change(layers)
    (found,) = layers.finish()
    assert (found.added, set(found.changed), set(found.removed)) == (
        ("new/deep/index.js", "new/outside"),
        {"a/index.js"},
        {"gone/x.js"},
    )
    assert contents(root / FOLDER) == {**FILES, ".bin/link": "1"}  # not touched so far
    repeat_in_workspace(root, layers)
    repeat_in_workspace(root, layers)  # as after a crash: the same again
    inside = root / FOLDER
    assert (inside / "a/index.js").read_text() == "1.1"
    assert (inside / "new/deep/index.js").read_text() == "4"
    assert os.readlink(inside / "new/outside") == "/etc/passwd"
    assert not (inside / "gone/x.js").exists()
    assert not (inside / STAGING).exists()
    assert not (inside / "a/__pycache__").exists()


@pytest.mark.promise("BUILD-13")
def test_what_somebody_else_changed_meanwhile_is_not_overwritten(root: Path, layers: Layers) -> None:
    change(layers)
    layers.finish()
    write(root / FOLDER, {"new/deep/index.js": "mine"})
    before = contents(root / FOLDER)
    with pytest.raises(PathProblem, match="changed by somebody else"):
        repeat_in_workspace(root, layers)
    assert contents(root / FOLDER) == before


@pytest.mark.promise("BUILD-13")
def test_link_in_the_workspace_is_not_followed(root: Path, layers: Layers, tmp_path: Path) -> None:
    change(layers)
    layers.finish()
    outside = tmp_path / "outside"
    outside.mkdir()
    os.symlink(outside, root / FOLDER / "new")
    with pytest.raises(StorageProblem):
        repeat_in_workspace(root, layers)
    assert list(outside.iterdir()) == []
    assert contents(root / FOLDER) == {**FILES, ".bin/link": "1"}


def test_change_of_a_file_that_the_user_changed_first_is_refused(root: Path, layers: Layers) -> None:
    change(layers)
    write(root / FOLDER, {"a/index.js": "mine"})
    with pytest.raises(StorageProblem, match="changed by somebody else"):
        layers.finish()


def test_layers_that_are_gone_are_an_error_and_old_ones_are_removed(
    root: Path, layers: Layers, tmp_path: Path
) -> None:
    layers.finish()
    remove_layers(tmp_path / COPIES, 3600)
    assert layers.changes()[0].path == FOLDER
    remove_layers(tmp_path / COPIES, -1)
    with pytest.raises(StorageProblem, match="Start the build again"):
        layers.changes()
    with pytest.raises(StorageProblem, match="Start the build again"):
        layers.mounted(writable=False)


@pytest.mark.parametrize(
    ("target", "is_one"),
    [
        ("node_modules/", True),
        (".venv/", True),  # not there yet
        ("vendor/", False),  # git does not ignore it
        ("../node_modules/", False),
        ("/usr/lib/node_modules/", False),
        ("linked/", False),
        ("src/", False),
        ("", False),
    ],
)
def test_only_folders_of_installed_packages_get_a_layer(root: Path, target: str, *, is_one: bool) -> None:
    write(root, {"vendor/x.go": "", "src/a.js": ""})
    os.symlink(root / FOLDER, root / "linked")
    assert bool(package_folder(root, target)) == is_one


@pytest.mark.parametrize(
    ("path", "task", "words"),
    [
        ("left-pad/index.js", "", ""),
        (".bin/left-pad", "", ""),
        ("jest/index.js", "Install jest", "jest checks the project"),
        ("@vitest/runner/index.js", "", "checks the project"),
        ("lib/python3/site-packages/_pytest/main.py", "", "checks the project"),
        ("lib/python3/site-packages/coverage-7.0.dist-info/RECORD", "", "checks the project"),
        ("lib/python3/site-packages/sitecustomize.py", "", "by itself"),
        ("lib/python3/site-packages/requests/api.py", "", ""),
    ],
)
def test_added_packages_may_not_be_what_checks_the_project(
    tmp_path: Path, path: str, task: str, words: str
) -> None:
    problems = package_problems(LayerChanges("folder", added=(path,)), tmp_path, task)
    assert bool(problems) == bool(words)
    assert words in " ".join(problems)


@pytest.mark.parametrize(
    ("path", "task", "allowed"),
    [
        ("lib/python3/site-packages/requests/api.py", "Upgrade requests to 2.32", True),
        ("lib/python3/site-packages/requests-2.31.dist-info/RECORD", "Upgrade requests", True),
        ("lib/python3/site-packages/charset_normalizer/api.py", "Upgrade charset-normalizer", True),
        ("lib/python3/site-packages/urllib3/x.py", "Upgrade requests", False),
        ("@scope/left-pad/index.js", "upgrade @scope/left-pad", True),
        ("pad/index.js", "upgrade left-pad", False),
        (".package-lock.json", "", True),
        (".bin/a", "upgrade a", False),
    ],
)
def test_installed_package_may_change_only_if_the_task_names_it(
    tmp_path: Path, path: str, task: str, *, allowed: bool
) -> None:
    assert (not package_problems(LayerChanges("folder", changed={path: "old"}), tmp_path, task)) == allowed
