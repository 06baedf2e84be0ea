"""Temporary folders of Handrail's own."""

import os
from pathlib import Path

import pytest

from handrail.config.remove_tree import remove_tree
from handrail.storage.scratch import make_scratch


@pytest.mark.promise("SAND-8")
def test_folders_in_folders_thousands_of_levels_deep_are_removed(tmp_path: Path) -> None:
    folder = make_scratch()
    here = os.open(folder, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    remove_tree(folder)
    assert not folder.exists()
