"""Which files are copied before a command, and what is found after it."""

import os
import time
from pathlib import Path

import pytest

from handrail.changes.command_changes import WorkspaceBefore, find_touched
from handrail.changes.saved_copies import files_to_save
from handrail.workspace.files import Workspace
from handrail.workspace.stat_index import snapshot


@pytest.mark.promise("CMD-20")
def test_new_files_do_not_take_the_place_of_copies(tmp_path: Path) -> None:
    (tmp_path / "z.db").write_bytes(b"x" * 60)
    (tmp_path / "!new").write_bytes(b"x" * 60)
    index = snapshot(tmp_path)
    assert files_to_save(index, (), room=100, saved={"z.db"}) == ["z.db"]


@pytest.mark.promise("CMD-20")
def test_what_is_gone_is_found_although_there_are_too_many_files_now(tmp_path: Path) -> None:
    for name in ("gone", "kept", "zlast"):
        (tmp_path / name).write_text(name)
    before = WorkspaceBefore(snapshot(tmp_path), {}, {}, time.time_ns())
    os.remove(tmp_path / "gone")
    for number in range(20):
        (tmp_path / f"a{number}").write_text("new")
    after = snapshot(tmp_path, most=5)
    assert after.cut
    found = find_touched(Workspace(tmp_path), before, after).paths
    assert "gone" in found
    assert not {"kept", "zlast"} & set(found)
