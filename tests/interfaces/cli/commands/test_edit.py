"""`handrail edit --proposal`: all or none, through the same checks as a model's edits."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from tests.interfaces.cli.program import run, terminal

LONG = "".join(f"line {number}\n" for number in range(30))


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "cart.py").write_text("def total():\n    return 1\n")
    (folder / "long.txt").write_text(LONG)
    return folder


def digits(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()[:12]


def proposal(workspace: Path, *changes: dict[str, Any]) -> str:
    path = workspace.parent / "proposal.json"
    path.write_text(json.dumps({"changes": changes}))
    return str(path)


def edit(workspace: Path) -> dict[str, Any]:
    edits = [{"search": "return 1", "replace": "return 2"}]
    return {
        "form": "replace",
        "path": "cart.py",
        "base_hash": digits(workspace / "cart.py"),
        "edits": edits,
    }


NEW = {"form": "create", "path": "new/file.py", "text": "x = 1\n"}


def test_a_dry_run_shows_the_diff_and_writes_nothing(workspace: Path) -> None:
    done = run("edit", "--proposal", proposal(workspace, edit(workspace), NEW), "--dry-run", cwd=workspace)
    assert done.returncode == 0
    assert "-    return 1\n+    return 2" in done.stdout
    assert "+x = 1" in done.stdout
    assert "return 1" in (workspace / "cart.py").read_text()
    assert not (workspace / "new").exists()


@pytest.mark.promise("CHG-36")
def test_all_changes_of_a_proposal_are_made_or_none(workspace: Path) -> None:
    missing = {"form": "delete", "path": "none.py", "base_hash": "0" * 12}
    done = run("edit", "--proposal", proposal(workspace, edit(workspace), NEW, missing), cwd=workspace)
    assert done.returncode == 1
    assert "none.py does not exist" in done.stderr
    assert "return 1" in (workspace / "cart.py").read_text()
    assert not (workspace / "new").exists()
    done = run("edit", "--proposal", proposal(workspace, edit(workspace), NEW), cwd=workspace)
    assert done.returncode == 0
    assert "2 files, +2 -1" in done.stderr
    assert "return 2" in (workspace / "cart.py").read_text()
    assert (workspace / "new" / "file.py").read_text() == "x = 1\n"


def test_a_version_that_is_not_the_files_is_refused(workspace: Path) -> None:
    given = edit(workspace)
    (workspace / "cart.py").write_text("def total():\n    return 1  # cents\n")
    done = run("edit", "--proposal", proposal(workspace, given), cwd=workspace)
    assert done.returncode == 1
    assert "not the version that was shown" in done.stderr
    nameless = given | {"base_hash": ""}
    done = run("edit", "--proposal", proposal(workspace, nameless), cwd=workspace)
    assert "base_hash must say which version" in done.stderr


@pytest.mark.parametrize("path", ["../out.py", ".git/config", ".env"])
def test_protected_places_are_not_written(workspace: Path, path: str) -> None:
    done = run("edit", "--proposal", proposal(workspace, NEW | {"path": path}), cwd=workspace)
    assert done.returncode == 1
    assert not (workspace / path).exists()


def test_a_document_that_is_none_is_refused_with_the_place(workspace: Path) -> None:
    bad = {"form": "lines", "path": "cart.py", "edits": [{"op": "delete", "start": True, "end": 2}]}
    done = run("edit", "--proposal", proposal(workspace, bad), cwd=workspace)
    assert done.returncode == 2
    assert "changes.0.edits.0.start" in done.stderr
    assert run("edit", "--proposal", "none.json", cwd=workspace).returncode == 2


def rewrite(workspace: Path) -> str:
    change = {"form": "rewrite", "path": "long.txt", "text": "line 1\n"}
    return proposal(workspace, change | {"base_hash": digits(workspace / "long.txt")})


def test_a_large_loss_is_refused_without_a_terminal(workspace: Path) -> None:
    done = run("edit", "--proposal", rewrite(workspace), cwd=workspace)
    assert done.returncode == 3
    assert "29 of its 30 lines" in done.stderr
    assert (workspace / "long.txt").read_text() == LONG


def test_a_large_loss_is_asked_about_at_a_terminal(workspace: Path) -> None:
    with terminal("edit", "--proposal", rewrite(workspace), cwd=workspace) as talk:
        talk.expect("29 of its 30 lines. Apply it?")
        talk.type("y\r")
        assert talk.end() == 0
    assert (workspace / "long.txt").read_text() == "line 1\n"


@pytest.mark.promise("CHG-62")
def test_a_proposal_moves_and_edits_one_file(workspace: Path) -> None:
    move = {"form": "move", "path": "cart.py", "to": "Cart.py", "base_hash": digits(workspace / "cart.py")}
    changed = {**edit(workspace), "path": "Cart.py"}
    done = run("edit", "--proposal", proposal(workspace, move, changed), cwd=workspace)
    assert done.returncode == 0, done.stderr
    assert "return 2" in (workspace / "Cart.py").read_text()
    assert not (workspace / "cart.py").exists()


@pytest.mark.promise("CHG-63")
def test_a_proposal_creates_no_file_that_differs_only_in_case(workspace: Path) -> None:
    new = {"form": "create", "path": "CART.py", "text": "x = 1\n"}
    done = run("edit", "--proposal", proposal(workspace, new), cwd=workspace)
    assert done.returncode == 1
    assert "differs from cart.py only in case" in done.stderr
    assert not (workspace / "CART.py").exists()
