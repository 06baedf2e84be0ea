"""The key that the credentials are encrypted with: in the keyring of the system, else in a file of mode 0600.

A keyring is a program of somebody else's: it may be missing, locked, broken or hang. It is asked in a thread,
with a deadline, and only what it could return again counts as stored.
"""

import base64
import binascii
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Literal, TypeVar

from handrail.config.files import write_atomically
from handrail.config.open_file import NotAFile, open_file
from handrail.protocol.errors import ConfigProblem

if TYPE_CHECKING:
    from keyring.backend import KeyringBackend

KeyPlace = Literal["keyring", "file"]
Answer = TypeVar("Answer")

SERVICE = "handrail"
KEYRING_SECONDS = 20.0
"""Long enough for a person to type the password of a locked keyring."""
BACKEND = "PYTHON_KEYRING_BACKEND"
OFF = ("keyring.backends.fail.Keyring", "keyring.backends.null.Keyring")
KEY_BYTES = 32
MAX_BYTES = 1_000
OTHERS_MAY_READ = 0o077


class KeyringProblem(ConfigProblem):
    """The keyring cannot be used: there is none, or it does not answer."""


def new_key() -> bytes:
    return base64.urlsafe_b64encode(os.urandom(KEY_BYTES))


def read_key_file(path: Path) -> bytes | None:
    """The key in the file, or None if there is no such file; raises ConfigProblem if it cannot be used."""
    try:
        with open_file(path, follow=False) as file:
            if file.found.st_mode & OTHERS_MAY_READ:
                raise ConfigProblem(f"{path} can be read by other users. Run: chmod 600 {path}")
            return _checked(file.read(MAX_BYTES), str(path))
    except FileNotFoundError:
        return None
    except NotAFile as error:
        raise ConfigProblem(
            f"{path} must be a file of its own, but {error.strerror}. Put the file itself there."
        ) from error
    except OSError as error:
        raise ConfigProblem(f"{path} cannot be read ({error.strerror}); check its permissions.") from error


def create_key_file(path: Path) -> bytes:
    """A new key, on the disk for this user alone; the caller has the lock."""
    key = new_key()
    try:
        write_atomically(path, key + b"\n", overwrite=False)
    except OSError as error:
        raise ConfigProblem(f"{path} cannot be written ({error.strerror or error}).") from error
    return key


def read_keyring(name: str, environ: Mapping[str, str], seconds: float = KEYRING_SECONDS) -> bytes | None:
    """The key of this name in the keyring, None if it has none; raises KeyringProblem."""

    def read(keyring: "KeyringBackend") -> bytes | None:
        found = keyring.get_password(SERVICE, name)
        return None if found is None else _checked(found.encode(), "the keyring")

    return ask_keyring(read, environ, seconds)


def create_in_keyring(name: str, environ: Mapping[str, str], seconds: float = KEYRING_SECONDS) -> bytes:
    """The key of this name, made if there is none yet; raises KeyringProblem if it is not kept."""

    def create(keyring: "KeyringBackend") -> bytes:
        if keyring.get_password(SERVICE, name) is None:
            keyring.set_password(SERVICE, name, new_key().decode())
        kept = keyring.get_password(SERVICE, name)
        if kept is None:
            raise KeyringProblem("the keyring did not keep what was stored in it")
        return _checked(kept.encode(), "the keyring")

    return ask_keyring(create, environ, seconds)


def delete_from_keyring(name: str, environ: Mapping[str, str]) -> None:
    def delete(keyring: "KeyringBackend") -> None:
        if keyring.get_password(SERVICE, name) is not None:
            keyring.delete_password(SERVICE, name)

    ask_keyring(delete, environ, KEYRING_SECONDS)


def why_no_keyring(environ: Mapping[str, str]) -> str:
    """Why there is no keyring, as far as can be known without loading anything; empty: there may be one."""
    if (chosen := environ.get(BACKEND, "")) in OFF:
        return f"{BACKEND} turns it off"
    if sys.platform.startswith("linux") and not chosen and not environ.get("DBUS_SESSION_BUS_ADDRESS"):
        return "there is no desktop session here (DBUS_SESSION_BUS_ADDRESS is not set)"
    return ""


def ask_keyring(
    ask: "Callable[[KeyringBackend], Answer]", environ: Mapping[str, str], seconds: float
) -> Answer:
    """The answer of the keyring; raises KeyringProblem if there is none within so many seconds."""
    if why := why_no_keyring(environ):
        raise KeyringProblem(why)
    answers: list[Answer] = []
    problems: list[str] = []

    def run() -> None:
        try:
            answers.append(ask(_open_keyring(environ)))
        except Exception as error:  # noqa: BLE001 any library can be a keyring, and raise anything of its own
            problems.append(str(error) or type(error).__name__)

    # Not a pool: its threads are waited for when the program ends, and this one may hang.
    thread = Thread(target=run, name="keyring", daemon=True)
    thread.start()
    thread.join(seconds)
    if answers:
        return answers[0]
    raise KeyringProblem(problems[0] if problems else f"the keyring did not answer in {seconds:.0f} seconds")


def _open_keyring(environ: Mapping[str, str]) -> "KeyringBackend":
    import keyring

    backend = keyring.get_keyring()
    # Below 1 are those that cannot be recommended: none at all, and files without encryption.
    if backend.priority < 1 and not environ.get(BACKEND):
        raise KeyringProblem("no keyring is installed, or none that can be recommended")
    return backend


def _checked(data: bytes, place: str) -> bytes:
    key = data.strip()
    try:
        right = len(base64.urlsafe_b64decode(key)) == KEY_BYTES
    except binascii.Error:
        right = False
    if not right:
        raise ConfigProblem(
            f"{place} does not hold a key of Handrail's. Restore it from a backup; without one, remove the "
            "stored credentials (`handrail credentials remove --all`) and store them again."
        )
    return key
