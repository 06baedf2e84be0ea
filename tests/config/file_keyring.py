"""A keyring for tests, as another library would bring one: in a file, broken on demand."""

import json
import os
import threading
from pathlib import Path

from keyring.backend import KeyringBackend

NAME = f"{__name__}.FileKeyring"
FILE = "TEST_KEYRING_FILE"
FAULT = "TEST_KEYRING_FAULT"
"""`locked`: it raises; `hangs`: it never answers; `forgets`: it takes everything and keeps nothing."""


class FileKeyring(KeyringBackend):
    priority = 5

    def get_password(self, service: str, username: str) -> str | None:
        self._fail()
        return self._load().get(f"{service} {username}")

    def set_password(self, service: str, username: str, password: str) -> None:
        self._fail()
        if os.environ.get(FAULT) != "forgets":
            self._save({**self._load(), f"{service} {username}": password})

    def delete_password(self, service: str, username: str) -> None:
        self._save({name: key for name, key in self._load().items() if name != f"{service} {username}"})

    def _fail(self) -> None:
        if os.environ.get(FAULT) == "locked":
            raise LookupError("the user closed the question for the password")
        if os.environ.get(FAULT) == "hangs":
            threading.Event().wait()

    def _load(self) -> dict[str, str]:
        path = Path(os.environ[FILE])
        found: dict[str, str] = json.loads(path.read_text()) if path.exists() else {}
        return found

    def _save(self, keys: dict[str, str]) -> None:
        Path(os.environ[FILE]).write_text(json.dumps(keys))
