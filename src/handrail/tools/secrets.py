"""Secrets we know of: what is kept from commands, and hidden from models and the log."""

import os
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from handrail.protocol.record import Record
from handrail.tools.environment import is_secret, is_told_apart

SHORTEST = 8
"""Characters of a value that is hidden: a shorter one may stand in any text by chance."""


class Secret(NamedTuple):
    name: str
    value: str

    @property
    def mark(self) -> str:
        """What stands in a text in the place of the value."""
        return f"[secret {self.name}]"


class Secrets(Record):
    """The longest first, so that one which is a part of another does not leave the rest of it."""

    known: tuple[Secret, ...] = ()
    variables: frozenset[str] = frozenset()
    """Names of variables that hold a secret, whatever they look like."""

    def __repr__(self) -> str:
        return f"Secrets({len(self.known)} known)"

    def hide(self, text: str) -> str:
        """The text with marks in the place of secrets."""
        for secret in self.known:
            text = text.replace(secret.value, secret.mark)
        return text

    def hide_bytes(self, data: bytes) -> bytes:
        for secret in self.known:
            data = data.replace(secret.value.encode(errors="surrogateescape"), secret.mark.encode())
        return data

    def begun(self, text: str) -> int:
        """How many characters at the end of a text may be the beginning of a secret."""
        longest = max((len(secret.value) for secret in self.known), default=1) - 1
        ends = (text[-length:] for length in range(min(longest, len(text)), 0, -1))
        found = (end for end in ends if any(secret.value.startswith(end) for secret in self.known))
        return len(next(found, ""))

    def marks_in(self, text: str) -> list[str]:
        """The marks that stand in a text."""
        return [secret.mark for secret in self.known if secret.mark in text]


NO_SECRETS = Secrets()


def find_secrets(
    environ: Mapping[str, str], variables: Iterable[str] = (), keys: Mapping[str, str] | None = None
) -> Secrets:
    """The secrets among the variables, and the keys that are kept elsewhere, by name."""
    named = frozenset(variables)
    looks = {name: value.strip() for name, value in environ.items() if is_secret(name, value)}
    found = {name: environ[name] for name in named if name in environ}
    found |= {name: value for name, value in looks.items() if is_told_apart(name, value)}
    known = {value.strip(): name for name, value in {**(keys or {}), **found}.items()}
    hidden = (Secret(name, value) for value, name in known.items() if _is_hidden(value))
    return Secrets(tuple(sorted(hidden, key=lambda secret: -len(secret.value))), named)


def _is_hidden(value: str) -> bool:
    """A path, as in `GOOGLE_APPLICATION_CREDENTIALS`, says where the secret is and is none itself."""
    return len(value) >= SHORTEST and not (os.path.isabs(value) and os.path.exists(value))
