"""What a workspace brings counts once the user has trusted exactly these bytes."""

import os
from pathlib import Path

import pytest

from handrail.config.layers import LoadedSettings, load_settings
from handrail.config.places import WORKSPACE_SETTINGS, Places, find_places, workspace_path
from handrail.config.trust import files_needing_trust, revoke, trust, trusted_hashes
from handrail.protocol.errors import ConfigProblem

WIDENING = 'mode = "auto"\n[commands]\nallow = ["curl"]\n[limits]\nusd = 1\n'


@pytest.fixture
def places(home: Path) -> Places:
    return find_places(os.environ)


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    (folder / ".handrail").mkdir(parents=True)
    (folder / ".handrail" / "config.toml").write_text(WIDENING)
    return folder


def load(places: Places, shop: Path, *, trusted: bool = False) -> LoadedSettings:
    return load_settings(places, shop, environ={}, trusted=trusted)


@pytest.mark.promise("CONF-7")
def test_settings_count_in_full_once_they_are_trusted(places: Places, shop: Path) -> None:
    before = load(places, shop)
    assert (before.settings.mode, before.settings.commands.allow, before.settings.limits.usd) == (
        "ask",
        (),
        1,
    )
    assert (before.trust, [each.key for each in before.ignored]) == ("none", ["mode", "commands.allow"])
    trust(places, shop, before.workspace_files)
    after = load(places, shop)
    assert (after.settings.mode, after.settings.commands.allow) == ("auto", ("curl",))
    assert (after.trust, after.ignored) == ("trusted", ())


@pytest.mark.promise("CONF-7")
def test_a_change_ends_the_trust_until_the_old_bytes_are_back(places: Places, shop: Path) -> None:
    trust(places, shop, files_needing_trust(shop))
    file = shop / ".handrail" / "config.toml"
    file.write_text(WIDENING + "\n")
    changed = load(places, shop)
    assert (changed.trust, changed.settings.mode) == ("changed", "ask")
    file.write_text(WIDENING)
    assert load(places, shop).settings.mode == "auto"


@pytest.mark.promise("CONF-7")
def test_what_is_trusted_is_what_was_shown_not_what_is_there_by_then(places: Places, shop: Path) -> None:
    shown = load(places, shop)
    (shop / ".handrail" / "config.toml").write_text('[commands]\nallow = ["rm"]\n')
    trust(places, shop, shown.workspace_files)
    assert load(places, shop).settings.commands.allow == ()


def test_trust_can_be_taken_back(places: Places, shop: Path) -> None:
    assert not revoke(places, shop)
    trust(places, shop, files_needing_trust(shop))
    assert revoke(places, shop)
    assert load(places, shop).settings.mode == "ask"


def test_trusted_for_once_is_not_kept(places: Places, shop: Path) -> None:
    assert load(places, shop, trusted=True).settings.mode == "auto"
    assert load(places, shop).settings.mode == "ask"


def test_another_folder_with_the_same_content_is_not_trusted(places: Places, shop: Path) -> None:
    trust(places, shop, files_needing_trust(shop))
    other = shop.with_name("other")
    shop.rename(other)
    assert load(places, other).settings.mode == "ask"


def test_looking_makes_no_folder(places: Places, shop: Path) -> None:
    load(places, shop)
    assert not places.data.exists()


@pytest.mark.promise("CONF-2")
def test_what_is_trusted_is_kept_for_the_user_alone(places: Places, shop: Path) -> None:
    trust(places, shop, files_needing_trust(shop))
    folder = workspace_path(places, shop)
    assert [file.name for file in folder.iterdir()] == ["trust.json"]
    assert (folder / "trust.json").stat().st_mode & 0o077 == 0
    assert folder.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("text", ["", "[]", "{", '{".handrail/config.toml": 1}', "[" * 100_000])
def test_a_record_that_makes_no_sense_trusts_nothing(places: Places, shop: Path, text: str) -> None:
    trust(places, shop, files_needing_trust(shop))
    (workspace_path(places, shop) / "trust.json").write_text(text)
    assert trusted_hashes(places, shop) == {}
    assert load(places, shop).settings.mode == "ask"


def test_a_pipe_in_place_of_the_settings_is_refused_at_once(places: Places, shop: Path) -> None:
    (shop / WORKSPACE_SETTINGS).unlink()
    os.mkfifo(shop / WORKSPACE_SETTINGS)
    with pytest.raises(ConfigProblem, match="is not a file"):
        load(places, shop)


@pytest.mark.promise("WORK-8")
def test_settings_that_name_very_many_files_are_refused_before_the_files_are_read(shop: Path) -> None:
    words = []
    for number in range(101):
        (shop / f"hook{number}.sh").write_text("x")
        words.append(f'"../hook{number}.sh"')
    text = f'[[hooks]]\non = "before_end"\nrun = [{", ".join(words)}]\n'
    (shop / ".handrail" / "config.toml").write_text(text)
    with pytest.raises(ConfigProblem, match="101 files of the workspace; 100 are allowed"):
        files_needing_trust(shop)


@pytest.mark.promise("POL-46")
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('mode = "sandbox"\n', "which allows more"),
        ('[commands]\nreadable_secrets = [".env"]\n', "read your secrets"),
    ],
)
def test_no_repository_opens_secrets_or_chooses_mode_sandbox(
    places: Places, shop: Path, text: str, why: str
) -> None:
    (shop / WORKSPACE_SETTINGS).write_text(text)
    for current in ("ask", "edit", "auto"):
        loaded = load_settings(places, shop, environ={"HANDRAIL_MODE": current})
        assert loaded.settings.mode == current
        assert loaded.settings.commands.readable_secrets == ()
        assert why in loaded.ignored[0].why
    trust(places, shop, files_needing_trust(shop))
    assert not load(places, shop).ignored
