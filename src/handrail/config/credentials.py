"""Secrets of the user: encrypted in one file, by name; keys of models come from the environment first.

The file has the names in plain text and each value encrypted, so that names can be listed, and credentials
removed, without the key. The key is in the keyring of the system where one works, else in a file beside it
(`credential_key.py`). All writes are made under one lock, and each replaces the whole file.
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import DecodeError, json

from handrail.config.credential_key import (
    KeyPlace,
    KeyringProblem,
    create_in_keyring,
    create_key_file,
    delete_from_keyring,
    read_key_file,
    read_keyring,
    why_no_keyring,
)
from handrail.config.files import sync, write_atomically
from handrail.config.open_file import FileTooLarge, NotAFile, open_file
from handrail.config.places import Places
from handrail.config.toml_edit import locked
from handrail.config.toml_file import read_toml
from handrail.protocol.errors import ConfigProblem, UsageProblem
from handrail.protocol.values import Value

if TYPE_CHECKING:
    from cryptography.fernet import Fernet

Version = tuple[int, int, int]
"""Time, inode and size of the file."""
ABSENT: Version = (0, 0, 0)
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./:@-]{0,99}")
MAX_CHARACTERS = 32_000
MAX_BYTES = 4_000_000
MODEL = "model/"
"""Before the name of a connection: its key."""


class Credential(Value):
    """A key and where it was found; the key is not part of its repr."""

    key: str
    where: str

    def __repr__(self) -> str:
        return f"Credential(where={self.where!r})"


class _File(Value):
    """What the file holds."""

    key: KeyPlace
    values: dict[str, str]
    """{name: the value, encrypted together with its name}"""


class Unreadable(ConfigProblem):
    """One value cannot be decrypted, or is that of another name."""


class Credentials:
    """The stored credentials of this user; several processes may use them at once."""

    def __init__(self, places: Places, environ: Mapping[str, str]) -> None:
        self.path = places.credentials
        self.key_path = places.credentials.with_suffix(".key")
        self._old = places.credentials.with_suffix(".toml")
        self._environ = environ
        self._version = ABSENT
        self._fernet: Fernet | None = None
        self._read = dict[str, str]()
        """What was decrypted of this version of the file."""
        self._from_keyring: bytes | None = None
        self._keyring_problem = ""

    def get(self, name: str) -> str | None:
        """The value of this name; raises ConfigProblem if it is stored and cannot be read."""
        self._move_old()
        file, version = self._load()
        return self._value(file, version, name) if file and name in file.values else None

    def names(self) -> list[str]:
        """All names; needs no key."""
        self._move_old()
        file, _ = self._load()
        return sorted(file.values) if file else []

    def values(self) -> dict[str, str]:
        """All values that can be read, by name; raises ConfigProblem where there is no key to do so."""
        self._move_old()
        file, version = self._load()
        found = dict[str, str]()
        if file:
            for name in file.values:
                with suppress(Unreadable):  # `get` reports it
                    found[name] = self._value(file, version, name)
        return found

    def set(self, name: str, value: str) -> None:
        """Store the value under this name: on the disk when this returns, or unchanged."""
        self.set_all({name: value})

    def set_all(self, values: Mapping[str, str]) -> None:
        """Store these values, all or none."""
        for name, value in values.items():
            _check(name, value)
        self._move_old()
        with locked(self.path):
            self._add(values)

    def delete(self, *names: str) -> list[str]:
        """Remove these; returns those that were there. The key goes with the last one."""
        self._move_old()
        with locked(self.path):
            file, _ = self._load()
            removed = [name for name in dict.fromkeys(names) if file and name in file.values]
            if file and removed:
                left = {name: value for name, value in file.values.items() if name not in removed}
                if left:
                    self._write(_File(file.key, left))
                else:
                    self._unlink(self.path)
                    self._unlink(self.key_path)
                    if file.key == "keyring":
                        with suppress(KeyringProblem):  # a key without anything to decrypt does no harm
                            delete_from_keyring(str(self.path), self._environ)
                    self._from_keyring = None
        return removed

    def where(self) -> str:
        """How and where credentials are stored, or would be, in one sentence."""
        file, _ = self._load()
        if file and file.values:
            place: KeyPlace = file.key
        else:
            place = "file" if why_no_keyring(self._environ) else "keyring"
        if place == "keyring":
            return f"encrypted in {self.path}, with a key that the keyring of this system keeps"
        why = why_no_keyring(self._environ) or "no keyring could be used when it was made"
        return (
            f"encrypted in {self.path}, with a key in {self.key_path} that only you can read, because {why}; "
            "who can read both files can read the credentials"
        )

    # The file

    def _load(self) -> tuple[_File | None, Version]:
        try:
            with open_file(self.path, follow=False) as file:
                found = file.found
                data = b"".join(file.chunks(MAX_BYTES))
        except FileNotFoundError:
            return None, ABSENT
        except (NotAFile, FileTooLarge) as error:
            raise ConfigProblem(
                f"{self.path} is not the file that Handrail wrote: {error.strerror}. Move it out of the way."
            ) from error
        except OSError as error:
            text = f"{self.path} cannot be read ({error.strerror}); check its permissions."
            raise ConfigProblem(text) from error
        try:
            return json.decode(data, type=_File), (found.st_mtime_ns, found.st_ino, found.st_size)
        except DecodeError as error:
            raise ConfigProblem(
                f"{self.path} is damaged. Restore it from a backup, or move it out of the way and store the "
                "credentials again."
            ) from error

    def _add(self, values: Mapping[str, str]) -> None:
        """Add to the file; the caller has the lock."""
        file, _ = self._load()
        place, key = (file.key, self._existing_key(file.key)) if file and file.values else self._first_key()
        fernet = _fernet(key)
        added = {name: fernet.encrypt(json.encode([name, value])).decode() for name, value in values.items()}
        self._write(_File(place, {**(file.values if file else {}), **added}))

    def _write(self, file: _File) -> None:
        for left in self.path.parent.glob(f".{self.path.stem}.*.*"):
            self._unlink(left)  # of a process that was killed
        try:
            write_atomically(self.path, json.format(json.encode(file), indent=1) + b"\n")
        except OSError as error:
            why = error.strerror or error
            raise ConfigProblem(
                f"{self.path} cannot be written ({why}) and is as it was; make space or check permissions."
            ) from error

    def _unlink(self, path: Path) -> None:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise ConfigProblem(f"{path} cannot be removed ({error.strerror}).") from error

    # The key

    def _first_key(self) -> tuple[KeyPlace, bytes]:
        """A key for a file without values: of the keyring if it works, else of a file of its own."""
        try:
            self._from_keyring = create_in_keyring(str(self.path), self._environ)
        except KeyringProblem:
            return "file", read_key_file(self.key_path) or create_key_file(self.key_path)
        self._keyring_problem = ""
        return "keyring", self._from_keyring

    def _existing_key(self, place: KeyPlace) -> bytes:
        """The key that the stored values were encrypted with."""
        if place == "file":
            if key := read_key_file(self.key_path):
                return key
            raise ConfigProblem(
                f"{self.key_path} is missing, so {self.path} cannot be decrypted. Restore the key from a "
                "backup; or `handrail credentials remove --all`, and store the credentials again."
            )
        if self._from_keyring is None:
            self._from_keyring = self._ask_keyring()
        return self._from_keyring

    def _ask_keyring(self) -> bytes:
        # A keyring that did not answer is not asked again: each time would be as long a wait.
        problem, key = self._keyring_problem, None
        if not problem:
            try:
                key = read_keyring(str(self.path), self._environ)
                problem = "" if key else "it has no key for this file"
            except KeyringProblem as error:
                problem = str(error).rstrip(".")
        if key:
            return key
        self._keyring_problem = problem
        raise ConfigProblem(
            f"The key of {self.path} is in the keyring of this system, and cannot be had: {problem}. Unlock "
            "the keyring or start Handrail in your desktop session; keys of models can also come from the "
            "environment. `handrail credentials remove --all` gives up what is stored."
        )

    def _value(self, file: _File, version: Version, name: str) -> str:
        """The decrypted value of a name that the file has."""
        if version != self._version:
            self._version, self._fernet, self._read = version, None, {}
        if name not in self._read:
            self._fernet = self._fernet or _fernet(self._existing_key(file.key))
            self._read[name] = self._decrypt(self._fernet, name, file)
        return self._read[name]

    def _decrypt(self, fernet: "Fernet", name: str, file: _File) -> str:
        from cryptography.fernet import InvalidToken

        try:
            owner, value = json.decode(fernet.decrypt(file.values[name]), type=tuple[str, str])
        except (InvalidToken, DecodeError) as error:
            kept = self.key_path if file.key == "file" else "the keyring"
            raise Unreadable(
                f"{name} in {self.path} cannot be decrypted with the key in {kept}: one of them was changed. "
                f"Restore it, or store {name} again after `handrail credentials remove {name}`."
            ) from error
        if owner != name:
            text = f"{name} in {self.path} is the value of {owner}: the file was changed by hand."
            raise Unreadable(f"{text} Store {name} again after `handrail credentials remove {name}`.")
        return value

    # Keys from before there was encryption

    def _move_old(self) -> None:
        """Move what is in `credentials.toml`, in plain text, to the encrypted file; a crash loses nothing."""
        if self._old_keys() is None:
            return
        with locked(self.path):
            if keys := self._old_keys():
                self._add({f"{MODEL}{name}": key for name, key in keys.items()})
            # A link may lead to it; what holds the keys is removed as well.
            for path in (self._old.resolve(), self._old):
                self._unlink(path)
            sync(self._old.parent)

    def _old_keys(self) -> dict[str, str] | None:
        file = read_toml(self._old, private=True)
        if file is None:
            return None
        keys = dict[str, str]()
        for name, key in file.data.items():
            place = file.place((name,))
            if not isinstance(key, str):
                raise ConfigProblem(f'{place}: the key is not a string; write {name} = "KEY".')
            if key.strip():
                keys[name] = check_key(key.strip(), place)
        return keys


def find_credential(
    credentials: Credentials, connection: str, variables: Sequence[str], environ: Mapping[str, str]
) -> Credential | None:
    """The key for a connection: from the first of its variables that is set, else the stored one."""
    for name in variables:
        if text := environ.get(name, "").strip():
            return Credential(check_key(text, name), name)
    if key := credentials.get(f"{MODEL}{connection}"):
        return Credential(key, str(credentials.path))
    return None


def _fernet(key: bytes) -> "Fernet":
    from cryptography.fernet import Fernet

    return Fernet(key)


def check_key(key: str, place: str) -> str:
    """The key of a model; raises ConfigProblem if it cannot be one."""
    if not key or not all("!" <= character <= "~" for character in key):
        raise ConfigProblem(f"{place}: a key has no spaces, line breaks or accents; paste it again.")
    return key


def _check(name: str, value: str) -> None:
    if not NAME.fullmatch(name):
        raise UsageProblem(
            f"{name[:100]!r} cannot be the name of a credential: use up to 100 letters, digits and `_./:@-`."
        )
    if not value or len(value) > MAX_CHARACTERS or "\x00" in value:
        raise UsageProblem(f"The value of {name} is empty, or longer than {MAX_CHARACTERS:,} characters.")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise UsageProblem(f"The value of {name} is not valid text; paste it again.") from error
    if name.startswith(MODEL):
        check_key(value, name)
