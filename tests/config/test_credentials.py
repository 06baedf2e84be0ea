"""Credentials: encrypted, by name; kept through crashes, full disks and other processes; keys of models."""

import errno
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from handrail.config import credential_key
from handrail.config.credentials import Credentials, find_credential
from handrail.config.places import Places, find_places
from handrail.protocol.errors import ConfigProblem, UsageProblem
from tests.config import file_keyring

SECRET = "swordfish-0123456789"
STORE = """
import os, sys
from handrail.config.credentials import Credentials
from handrail.config.places import find_places
credentials = Credentials(find_places(os.environ), os.environ)
for number in range(int(sys.argv[2]), int(sys.argv[3])):
    credentials.set(f"{sys.argv[1]}/{number}", f"value {number} of {sys.argv[1]}")
    print(number, flush=True)
"""


@pytest.fixture
def places(home: Path) -> Places:
    found = find_places(os.environ)
    found.credentials.parent.mkdir(parents=True)
    return found


@pytest.fixture
def credentials(places: Places) -> Credentials:
    return Credentials(places, os.environ)


@pytest.fixture
def keyring_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A keyring that works; the file that it keeps its keys in."""
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", file_keyring.NAME)
    monkeypatch.setenv(file_keyring.FILE, str(tmp_path / "keyring"))
    monkeypatch.setattr("keyring.core._keyring_backend", None)
    return tmp_path / "keyring"


def again(places: Places) -> Credentials:
    """What another process would see."""
    return Credentials(places, os.environ)


def plain(places: Places, text: str, mode: int = 0o600) -> Path:
    """The file of keys from before there was encryption."""
    file = places.credentials.with_name("credentials.toml")
    file.touch(mode)
    file.write_text(text)
    file.chmod(mode)
    return file


def holding(folder: Path, secret: str) -> list[str]:
    """The files below the folder that have the secret in them."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return [path.name for path in files if secret.encode() in path.read_bytes()]


@pytest.mark.promise("CRED-1")
def test_what_is_stored_is_on_the_disk_only_encrypted_and_for_the_user_alone(
    places: Places, credentials: Credentials, home: Path
) -> None:
    credentials.set("GITHUB_TOKEN", SECRET)
    credentials.set("source/wiki", 'any text: "quotes", ümlauts\nand lines')
    assert again(places).get("GITHUB_TOKEN") == SECRET
    assert again(places).get("source/wiki") == 'any text: "quotes", ümlauts\nand lines'
    assert again(places).get("other") is None
    assert holding(home, SECRET) == []
    for file in (credentials.path, credentials.key_path):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "GITHUB_TOKEN" in credentials.path.read_text()  # names can be listed without the key
    assert str(credentials.key_path) in credentials.where()
    assert "who can read both files" in credentials.where()
    assert SECRET not in repr(credentials) + credentials.where()


@pytest.mark.promise("CRED-1")
def test_with_a_keyring_the_key_is_there_and_in_no_file(
    places: Places, keyring_file: Path, home: Path
) -> None:
    again(places).set("GITHUB_TOKEN", SECRET)
    (key,) = json.loads(keyring_file.read_text()).values()
    assert sorted(path.name for path in places.credentials.parent.iterdir()) == ["credentials.json"]
    assert holding(home, SECRET) == holding(home, key) == []
    assert again(places).get("GITHUB_TOKEN") == SECRET
    assert "keyring" in again(places).where()
    assert again(places).delete("GITHUB_TOKEN") == ["GITHUB_TOKEN"]
    assert json.loads(keyring_file.read_text()) == {}


@pytest.mark.promise("CRED-2")
@pytest.mark.parametrize("fault", ["locked", "forgets", "hangs"])
def test_a_keyring_that_does_not_work_is_not_used_for_a_first_key(
    fault: str, places: Places, keyring_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(file_keyring.FAULT, fault)
    monkeypatch.setattr(credential_key.create_in_keyring, "__defaults__", (0.05,))
    again(places).set("A", SECRET)
    assert again(places).get("A") == SECRET
    assert places.credentials.with_suffix(".key").exists()
    assert not keyring_file.exists()


@pytest.mark.promise("CRED-2")
@pytest.mark.parametrize(("fault", "why"), [("locked", "closed the question"), ("hangs", "did not answer")])
def test_a_keyring_that_stops_working_is_an_error_at_once_the_second_time(
    fault: str, why: str, places: Places, keyring_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    again(places).set("A", SECRET)
    before = places.credentials.read_bytes()
    monkeypatch.setenv(file_keyring.FAULT, fault)
    monkeypatch.setattr(credential_key.read_keyring, "__defaults__", (0.05,))
    late = again(places)
    with pytest.raises(ConfigProblem, match=why):
        late.get("A")
    monkeypatch.setattr(credential_key.read_keyring, "__defaults__", (3600.0,))
    for use in (late.values, lambda: late.get("A"), lambda: late.set("B", "more")):
        with pytest.raises(ConfigProblem, match=why):
            use()
    assert late.names() == ["A"]
    assert places.credentials.read_bytes() == before
    monkeypatch.delenv(file_keyring.FAULT)
    assert again(places).get("A") == SECRET


def test_without_a_desktop_session_no_keyring_is_looked_for() -> None:
    assert "desktop session" in credential_key.why_no_keyring({}) or sys.platform != "linux"
    assert credential_key.why_no_keyring({"DBUS_SESSION_BUS_ADDRESS": "unix:path=/run/bus"}) == ""


@pytest.mark.promise("CRED-3")
def test_what_was_stored_survives_being_killed_at_any_moment(places: Places) -> None:
    stored = 0
    for lines in (1, 3, 2, 5, 4):
        command = [sys.executable, "-c", STORE, "p", str(stored), str(stored + 1_000)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            for _ in range(lines):
                stored = int(writer.stdout.readline()) + 1
            os.kill(writer.pid, signal.SIGKILL)
        values = again(places).values()
        assert {f"p/{number}": f"value {number} of p" for number in range(stored)}.items() <= values.items()
    again(places).set("last", SECRET)
    left = sorted(path.name for path in places.credentials.parent.iterdir())
    assert left == ["credentials.json", "credentials.key"]


@pytest.mark.promise("CRED-3")
def test_processes_that_store_at_the_same_time_lose_nothing_of_each_other(places: Places) -> None:
    commands = [[sys.executable, "-c", STORE, name, "0", "15"] for name in "abc"]
    writers = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for command in commands]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    values = again(places).values()
    assert values == {
        f"{name}/{number}": f"value {number} of {name}" for name in "abc" for number in range(15)
    }


@pytest.mark.promise("CRED-3")
@pytest.mark.parametrize("first", [True, False])
def test_on_a_full_disk_storing_is_an_error_and_nothing_changes(
    first: bool, places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not first:
        again(places).set("A", SECRET)

    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(ConfigProblem, match="No space left"):
            again(places).set("B", "more")
    assert again(places).values() == ({} if first else {"A": SECRET})
    again(places).set("B", "more")
    assert again(places).get("B") == "more"


@pytest.mark.promise("CONF-6")
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666])
def test_a_key_that_others_can_read_is_refused(mode: int, places: Places, credentials: Credentials) -> None:
    credentials.set("A", SECRET)
    credentials.key_path.chmod(mode)
    with pytest.raises(ConfigProblem, match=f"chmod 600 {credentials.key_path}"):
        again(places).get("A")
    credentials.key_path.chmod(0o600)
    assert again(places).get("A") == SECRET


@pytest.mark.promise("CRED-4")
def test_a_key_or_file_that_is_not_as_it_was_written_is_an_error_and_stays(
    places: Places, credentials: Credentials, tmp_path: Path
) -> None:
    credentials.set("A", SECRET)
    key, file = credentials.key_path, credentials.path
    shutil.copy2(key, tmp_path / "key")
    shutil.copy2(file, tmp_path / "file")

    def fails(match: str) -> None:
        with pytest.raises(ConfigProblem, match=match):
            again(places).get("A")
        with pytest.raises(ConfigProblem, match=match):
            again(places).set("B", "more")

    key.unlink()
    fails("is missing")
    assert again(places).names() == ["A"]
    key.symlink_to(tmp_path / "key")
    fails("must be a file of its own, but it is a link")
    key.unlink()
    key.mkdir()
    fails("it is a folder")
    key.rmdir()
    key.touch(0o600)
    fails("does not hold a key")
    key.write_bytes(credential_key.new_key())
    with pytest.raises(ConfigProblem, match="cannot be decrypted"):
        again(places).get("A")
    shutil.copy2(tmp_path / "key", key)
    file.write_text(file.read_text()[:-20])
    fails("is damaged")
    file.unlink()
    file.symlink_to(tmp_path / "file")
    fails("it is a link")
    file.unlink()
    shutil.copy2(tmp_path / "file", file)
    assert again(places).get("A") == SECRET


def test_a_value_that_was_moved_to_another_name_is_not_used(places: Places, credentials: Credentials) -> None:
    credentials.set_all({"A": SECRET, "B": "of b"})
    written = json.loads(credentials.path.read_text())
    written["values"] = {"A": written["values"]["B"], "B": written["values"]["B"]}
    credentials.path.write_text(json.dumps(written))
    with pytest.raises(ConfigProblem, match=r"A in .* is the value of B"):
        again(places).get("A")
    assert again(places).values() == {"B": "of b"}  # one bad value hides no other


def test_with_the_last_credential_its_key_goes_too(credentials: Credentials) -> None:
    credentials.set_all({"A": SECRET, "B": "of b"})
    assert credentials.delete("A", "A", "none") == ["A"]
    assert credentials.values() == {"B": "of b"}
    credentials.key_path.unlink()
    assert credentials.delete("B") == ["B"]  # also where it could not be decrypted
    assert not credentials.path.exists()
    credentials.set("C", "new")
    assert credentials.values() == {"C": "new"}


@pytest.mark.parametrize("name", ["", "-x", "../x\n", "a b", "é", "a" * 101])
def test_a_name_that_could_not_be_typed_or_shown_is_refused(name: str, credentials: Credentials) -> None:
    with pytest.raises(UsageProblem, match="name of a credential"):
        credentials.set(name, SECRET)


@pytest.mark.parametrize("value", ["", "a\x00b", "a" * 32_001, "\udcff" * 9])
def test_a_value_that_cannot_be_passed_on_is_refused_without_repeating_it(
    value: str, credentials: Credentials
) -> None:
    with pytest.raises(UsageProblem) as raised:
        credentials.set("A", value)
    assert not value or value not in str(raised.value)
    assert not credentials.path.exists()


# Keys of models


def test_the_environment_comes_before_what_is_stored(credentials: Credentials) -> None:
    credentials.set("model/openai", "stored")
    environ = {"FIRST": "  ", "SECOND": "from-env\n", "THIRD": "later"}
    found = find_credential(credentials, "openai", ["FIRST", "SECOND", "THIRD"], environ)
    assert found is not None
    assert (found.key, found.where) == ("from-env", "SECOND")
    found = find_credential(credentials, "openai", ["FIRST"], environ)
    assert found is not None
    assert (found.key, found.where) == ("stored", str(credentials.path))
    assert find_credential(credentials, "xai", ["FIRST"], environ) is None


@pytest.mark.parametrize("key", ["two words", "ké", "a\nb"])
def test_what_cannot_be_a_key_is_refused_without_repeating_it(key: str, credentials: Credentials) -> None:
    with pytest.raises(ConfigProblem) as raised:
        credentials.set("model/openai", key)
    assert key not in str(raised.value)
    with pytest.raises(ConfigProblem, match="OPENAI_API_KEY"):
        find_credential(credentials, "openai", ["OPENAI_API_KEY"], {"OPENAI_API_KEY": key})


def test_a_key_does_not_show_in_a_repr(credentials: Credentials) -> None:
    assert "hidden" not in repr(find_credential(credentials, "x", ["K"], {"K": "hidden"}))


# Keys that were stored in plain text before


@pytest.mark.promise("CRED-5")
def test_keys_in_plain_text_are_encrypted_and_the_plain_copy_removed(places: Places, home: Path) -> None:
    again(places).set("model/openai", "older")
    old = plain(places, f'# mine\nopenai = "{SECRET}"  # work\nanthropic = "two"\nempty = ""\n')
    assert again(places).values() == {"model/openai": SECRET, "model/anthropic": "two"}
    assert not old.exists()
    assert holding(home, SECRET) == []


@pytest.mark.promise("CRED-5")
@pytest.mark.parametrize("mode", [0o640, 0o604])
def test_keys_in_plain_text_that_others_can_read_or_that_are_wrong_stay_and_are_told(
    mode: int, places: Places
) -> None:
    old = plain(places, f'openai = "{SECRET}"\n', mode)
    with pytest.raises(ConfigProblem, match="chmod 600"):
        again(places).get("model/openai")
    plain(places, "\nopenai = 3\n")
    with pytest.raises(ConfigProblem, match=r"credentials\.toml:2: the key is not a string"):
        again(places).get("model/openai")
    assert old.exists()
    assert not places.credentials.exists()


@pytest.mark.promise("CRED-5")
def test_a_crash_while_keys_are_moved_loses_none(
    places: Places, monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    target = home / "dotfiles.toml"
    target.touch(0o600)
    target.write_text(f'openai = "{SECRET}"\n')
    old = places.credentials.with_name("credentials.toml")
    old.symlink_to(target)

    class Killed(BaseException): ...

    def killed(*_: object, **__: object) -> None:
        raise Killed

    for step in ("os.replace", "pathlib.Path.unlink"):
        with monkeypatch.context() as patched:
            patched.setattr(step, killed)
            with pytest.raises(Killed):
                again(places).get("model/openai")
        assert old.exists()
    assert again(places).get("model/openai") == SECRET
    assert not old.is_symlink()
    assert not target.exists()
