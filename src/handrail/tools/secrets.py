"""Secrets: remove them from the environment of programs, and hide them in text shown or stored."""

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec import field

from handrail.protocol.errors import PathProblem
from handrail.protocol.values import Value

SECRET_VARIABLE = re.compile(
    r"API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|(^|_)KEY$|(?<!MAX_)TOKEN(?!IZER)|SECRET|CREDENTIAL|(^|_)PAT$|(^|_)SK$"
    r"|PASSWORD|PASSWD|PASSPHRASE|PASSFILE|(?<!ASK)(?<!BY)(?<!COM)PASS($|_)|(?<!^OLD)(?<!^)PWD$|_PW$"
    r"|(^|_)AUTH($|_CONFIG)|AUTHORIZATION|BEARER|(^|_)JWT($|_)|COOKIE|WEBHOOK|CONNECTION_?STRING|(^|_)DSN$"
    r"|^(OP|BW)_SESSION",
    re.IGNORECASE,
)
"""`PWD` and `OLDPWD` are folders; `MAX_TOKENS` and `TOKENIZERS_PARALLELISM` are settings."""
SECRET_VALUE = re.compile(
    r"://([^/\s:@]*:[^/\s@]+|[^/\s:@]{16,})@"
    r"|^(sk-|sk_live_|rk_live_|gh[oprsu]_|github_pat_|glpat-|xox[abeprs]-|AKIA|ASIA|AIza|npm_|pypi-|hf_|dckr_pat_"
    r"|SG\.|ya29\.|eyJ[\w-]+\.)[\w.-]{12,}"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY"
)
"""A URL with a password or a token in it, or a key with a known prefix."""
SECRET_SETTING = re.compile(
    r"(?<!WEBHOOK)_(URL|URI|NAME|DOMAIN|HOST|PORT|PATH|FILE|DIR|TTL|EXPIRY|EXPIRES|EXPIRES_IN|TIMEOUT|LENGTH"
    r"|SIZE|ALGORITHM|ALG|TYPE|HEADER|ENABLED|DISABLED|ISSUER|AUDIENCE|PREFIX|MODE|MAX_AGE|SAMESITE|PROVIDER"
    r"|MANAGER|BACKEND)$",
    re.IGNORECASE,
)
COMMON_VALUE = re.compile(
    r"([A-Za-z]?[a-z]{0,10}|[A-Z]{0,11})|[0-9.,:]+"
    r"|(https?://)?(localhost|127\.0\.0\.1|0\.0\.0\.0|\[?::1\]?)(:[0-9]+)?(/\S*)?"
)
"""A word, a number or this machine's address: too common in texts to be hidden."""
NON_INTERACTIVE = {"PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0"}


def without_secrets(environ: Mapping[str, str], also: Collection[str] = ()) -> dict[str, str]:
    """The environment that a command gets; `also` names further variables that are secret."""
    secret = {name for name, value in environ.items() if name in also or is_secret_variable(name, value)}
    return {name: value for name, value in environ.items() if name not in secret} | NON_INTERACTIVE


def without_workspace_programs(root: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """The environment with a PATH on which no program of the workspace is found."""
    # An empty PATH would mean the current folder.
    return {**environ, "PATH": path_outside(root, environ) or os.devnull}


def path_outside(root: Path, environ: Mapping[str, str]) -> str:
    """The PATH without folders in the workspace."""
    inside = os.path.realpath(root)
    folders = environ.get("PATH", os.defpath).split(os.pathsep)
    # An empty entry, `.` and any other relative one depend on the folder in which a program starts.
    absolute = [folder for folder in folders if os.path.isabs(folder)]
    kept = [
        each for each in absolute if not f"{os.path.realpath(each)}/".startswith(f"{inside.rstrip('/')}/")
    ]
    return os.pathsep.join(kept)


def is_distinctive_secret(name: str, value: str) -> bool:
    """Whether a secret variable's value, when it appears in a text, is likely to be the secret."""
    if SECRET_VALUE.search(value):
        return True
    return not SECRET_SETTING.search(name) and not COMMON_VALUE.fullmatch(value)


def is_secret_variable(name: str, value: str) -> bool:
    return bool(SECRET_VARIABLE.search(name) or SECRET_VALUE.search(value))


MIN_LENGTH = 8  # shorter values are not hidden: they may appear in any text by chance


class Secret(NamedTuple):
    name: str
    value: str

    @property
    def mark(self) -> str:
        """The text shown instead of the value."""
        return f"[secret {self.name}]"


class Secrets(Value):
    """The known secrets, longest first: one may be a part of another."""

    known: tuple[Secret, ...] = ()
    variables: frozenset[str] = frozenset()
    learned: list[Secret] = field(default_factory=list)
    """Those that were stored since, while a turn works with the others; shared by all of the process."""

    def __repr__(self) -> str:
        return f"Secrets({len(self._all)} known)"

    def learn(self, name: str, value: str) -> None:
        """Hide this value too, from now on."""
        secret = Secret(name, value)
        if len(value) >= MIN_LENGTH and secret not in self._all:
            self.learned.append(secret)

    def learn_all(self, others: "Secrets") -> None:
        for secret in others._all:
            self.learn(*secret)

    @property
    def _all(self) -> Sequence[Secret]:
        if not self.learned:
            return self.known
        return sorted({*self.known, *self.learned}, key=lambda secret: (-len(secret.value), secret.name))

    def hide(self, text: str) -> str:
        """The text with a mark instead of each secret."""
        for secret in self._all:
            text = text.replace(secret.value, secret.mark)
        return text

    def hide_bytes(self, data: bytes) -> bytes:
        for secret in self._all:
            data = data.replace(secret.value.encode(errors="surrogateescape"), secret.mark.encode())
        return data

    def partial_match_length(self, text: str) -> int:
        """How many characters at the end of a text may be the start of a secret."""
        longest = max((len(secret.value) for secret in self._all), default=1) - 1
        ends = (text[-length:] for length in range(min(longest, len(text)), 0, -1))
        found = (end for end in ends if any(secret.value.startswith(end) for secret in self._all))
        return len(next(found, ""))

    def refuse_new_marks(self, path: str, old: str, new: str) -> None:
        """Raise PathProblem if the new text of a file has more marks than the old one."""
        for mark in [secret.mark for secret in self._all]:
            if new.count(mark) > old.count(mark):
                told = f"{mark} stands for a secret that you cannot see, so it cannot be written to {path}."
                hint = "Change other lines, or ask the user to do it."
                raise PathProblem(f"{told} {hint}", "protected_path", path)


NO_SECRETS = Secrets()


SIGN_IN_PARTS = ("access_token", "refresh_token", "id_token", "client_secret", "registration_access_token")


def sign_in_secrets(stored: object) -> Iterator[Secret]:
    """The tokens in a stored sign-in, which is one credential with many parts; each can appear by itself."""
    if isinstance(stored, dict):
        for key, value in stored.items():
            if key in SIGN_IN_PARTS and isinstance(value, str):
                yield Secret(key, value)
            yield from sign_in_secrets(value)


def find_secrets(
    environ: Mapping[str, str],
    variables: Iterable[str] = (),
    keys: Mapping[str, str] | None = None,
    learned: list[Secret] | None = None,
) -> Secrets:
    """The secrets in the environment, plus `keys` that are stored elsewhere, by name.

    `learned` gets those that are learned later.
    """
    named = frozenset(variables)
    found = {name: environ[name] for name in named if name in environ}
    looks = {name: value.strip() for name, value in environ.items() if is_secret_variable(name, value)}
    found |= {name: value for name, value in looks.items() if is_distinctive_secret(name, value)}
    known = {value.strip(): name for name, value in {**(keys or {}), **found}.items()}
    # A path, as in `GOOGLE_APPLICATION_CREDENTIALS`, is not a secret itself.
    hidden = (
        Secret(name, value)
        for value, name in known.items()
        if len(value) >= MIN_LENGTH and not (os.path.isabs(value) and os.path.exists(value))
    )
    return Secrets(
        tuple(sorted(hidden, key=lambda secret: -len(secret.value))),
        named,
        [] if learned is None else learned,
    )
