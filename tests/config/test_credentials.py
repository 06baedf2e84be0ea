"""Keys: environment first, then a file that only the user can read."""

import os
import stat
from pathlib import Path

import pytest

from handrail.config.credentials import find_credential, save_credential
from handrail.config.places import Places, find_places
from handrail.protocol.errors import ConfigProblem


@pytest.fixture
def places(home: Path) -> Places:
    found = find_places(os.environ)
    found.credentials.parent.mkdir(parents=True)
    return found


def write(places: Places, text: str, mode: int = 0o600) -> None:
    places.credentials.write_text(text)
    places.credentials.chmod(mode)


def test_the_environment_comes_before_the_file(places: Places) -> None:
    write(places, 'openai = "from-file"\n')
    environ = {"FIRST": "  ", "SECOND": "from-env\n", "THIRD": "later"}
    found = find_credential(places, "openai", ["FIRST", "SECOND", "THIRD"], environ=environ)
    assert found is not None
    assert (found.key, found.where) == ("from-env", "SECOND")
    found = find_credential(places, "openai", ["FIRST"], environ=environ)
    assert found is not None
    assert (found.key, found.where) == ("from-file", f"{places.credentials}:1")
    assert find_credential(places, "xai", ["FIRST"], environ=environ) is None


def test_without_any_there_is_none(places: Places) -> None:
    assert find_credential(places, "openai", ["OPENAI_API_KEY"], environ={}) is None
    write(places, 'openai = ""\n')
    assert find_credential(places, "openai", [], environ={}) is None


@pytest.mark.promise("CONF-6")
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666])
def test_a_file_that_others_can_read_is_refused(places: Places, mode: int) -> None:
    write(places, 'openai = "secret"\n', mode)
    with pytest.raises(ConfigProblem, match="chmod 600"):
        find_credential(places, "openai", [], environ={})


def test_a_saved_key_is_found_and_private_and_the_others_stay(places: Places) -> None:
    write(places, '# mine\nopenai = "one"  # work\n')
    save_credential(places, "anthropic", " two \n")
    save_credential(places, "openai", "three")
    assert places.credentials.read_text() == '# mine\nopenai = "three"  # work\nanthropic = "two"\n'
    assert stat.S_IMODE(places.credentials.stat().st_mode) == 0o600
    found = find_credential(places, "anthropic", [], environ={})
    assert found is not None
    assert found.key == "two"


@pytest.mark.parametrize("key", ["two words", "ké", "a\nb", ""])
def test_what_cannot_be_a_key_is_refused_without_repeating_it(places: Places, key: str) -> None:
    with pytest.raises(ConfigProblem) as raised:
        save_credential(places, "openai", key)
    assert not key or key not in str(raised.value)
    if key:
        with pytest.raises(ConfigProblem, match="OPENAI_API_KEY"):
            find_credential(places, "openai", ["OPENAI_API_KEY"], environ={"OPENAI_API_KEY": key})


def test_a_key_that_is_no_text_is_told_by_line(places: Places) -> None:
    write(places, "\nopenai = 3\n")
    with pytest.raises(ConfigProblem, match=r"credentials\.toml:2: the key is not a string"):
        find_credential(places, "openai", [], environ={})


def test_a_key_does_not_show_in_a_repr(places: Places) -> None:
    assert "hidden" not in repr(find_credential(places, "x", ["K"], environ={"K": "hidden"}))
