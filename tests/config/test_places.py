"""Where things are kept."""

import os
import stat
from pathlib import Path

import pytest

from handrail.config.places import Places, find_places, make_private, workspace_folder
from handrail.protocol.errors import ConfigProblem


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.promise("CONF-1")
def test_handrail_home_moves_everything(tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere"
    environ = {"HANDRAIL_HOME": str(moved), "HOME": "/nobody", "XDG_DATA_HOME": "/x", "XDG_CONFIG_HOME": "/y"}
    assert find_places(environ) == Places(moved, moved / "config.toml", moved / "credentials.json")


def test_without_handrail_home_the_xdg_folders_are_used() -> None:
    usual = find_places({"HOME": "/me"})
    assert usual.data == Path("/me/.local/share/handrail")
    assert usual.settings == Path("/me/.config/handrail/config.toml")
    assert usual.credentials == Path("/me/.config/handrail/credentials.json")
    chosen = find_places({"HOME": "/me", "XDG_DATA_HOME": "/d", "XDG_CONFIG_HOME": "relative/is/ignored"})
    assert chosen.data == Path("/d/handrail")
    assert chosen.settings == usual.settings


def test_handrail_home_may_begin_with_a_tilde_or_be_relative() -> None:
    assert find_places({"HANDRAIL_HOME": "~/h", "HOME": "/me"}).data == Path("/me/h")
    assert find_places({"HANDRAIL_HOME": "h", "HOME": "/me"}).data == Path.cwd() / "h"


def test_every_path_to_a_workspace_leads_to_the_same_folder(tmp_path: Path) -> None:
    places = find_places({"HANDRAIL_HOME": str(tmp_path / "home")})
    shop = tmp_path / "shop"
    shop.mkdir()
    (tmp_path / "link").symlink_to(shop)
    folder = workspace_folder(places, shop)
    assert (
        folder
        == workspace_folder(places, tmp_path / "link")
        == workspace_folder(places, shop / ".." / "shop")
    )
    assert folder.name.startswith("shop-")
    assert len(folder.name) == len("shop-") + 12
    other = tmp_path / "other" / "shop"
    other.mkdir(parents=True)
    assert workspace_folder(places, other) != folder


@pytest.mark.parametrize("name", ["a b\nc", "é" * 120, os.fsdecode(b"caf\xe9"), "-", "x" * 255])
def test_any_folder_name_gives_a_usable_one(tmp_path: Path, name: str) -> None:
    places = find_places({"HANDRAIL_HOME": str(tmp_path / "home")})
    workspace = tmp_path / name
    workspace.mkdir()
    folder = workspace_folder(places, workspace)
    assert folder.is_dir()
    assert folder.name.isprintable()


def test_the_root_folder_can_be_a_workspace(tmp_path: Path) -> None:
    places = find_places({"HANDRAIL_HOME": str(tmp_path / "home")})
    assert workspace_folder(places, Path("/")).name.startswith("root-")


@pytest.mark.promise("CONF-2")
def test_folders_are_made_for_the_user_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        made = make_private(tmp_path / "a" / "b" / "c")
    finally:
        os.umask(before)
    assert [mode(folder) for folder in (made, made.parent, made.parent.parent)] == [0o700] * 3


def test_a_file_in_the_way_is_told_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("I am a file")
    with pytest.raises(ConfigProblem, match="HANDRAIL_HOME"):
        make_private(tmp_path / "home" / "workspaces")
    with pytest.raises(ConfigProblem, match="is a file"):
        make_private(tmp_path / "home")
