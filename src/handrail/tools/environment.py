"""The environment of the programs we start: the user's, without what looks like a secret."""

import os
import re
import shutil
from collections.abc import Collection, Mapping
from pathlib import Path

SECRET_NAME = re.compile(
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
"""A URL with a password or a token in it, or what is known by its beginning to be a key."""
ABOUT_SECRETS = re.compile(
    r"(?<!WEBHOOK)_(URL|URI|NAME|DOMAIN|HOST|PORT|PATH|FILE|DIR|TTL|EXPIRY|EXPIRES|EXPIRES_IN|TIMEOUT|LENGTH"
    r"|SIZE|ALGORITHM|ALG|TYPE|HEADER|ENABLED|DISABLED|ISSUER|AUDIENCE|PREFIX|MODE|MAX_AGE|SAMESITE|PROVIDER"
    r"|MANAGER|BACKEND)$",
    re.IGNORECASE,
)
"""Names of settings that say something about a secret, such as `COOKIE_DOMAIN` and `TOKEN_URL`."""
COMMON_VALUE = re.compile(
    r"([A-Za-z]?[a-z]{0,10}|[A-Z]{0,11})|[0-9.,:]+"
    r"|(https?://)?(localhost|127\.0\.0\.1|0\.0\.0\.0|\[?::1\]?)(:[0-9]+)?(/\S*)?"
)
"""A word, a number or this machine's address: they stand in texts whatever the secret is."""
SYSTEM = ("/usr/bin", "/bin", "/usr/local/bin", "/opt/homebrew/bin", "/run/current-system/sw/bin")
QUIET = {"PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0"}
"""Nobody sits at the other end of these programs."""


def without_secrets(environ: Mapping[str, str], also: Collection[str] = ()) -> dict[str, str]:
    """What a command gets of the environment; `also` are names of variables that are secret too."""
    kept = {name: value for name, value in environ.items() if name not in also and not is_secret(name, value)}
    return kept | QUIET


def without_folders_of(root: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """The environment in which no file of the workspace is what the name of a program means."""
    inside = os.path.realpath(root)
    kept = [
        folder for folder in environ.get("PATH", os.defpath).split(os.pathsep) if _elsewhere(folder, inside)
    ]
    # An empty one would mean the folder in which a program is started.
    return {**environ, "PATH": os.pathsep.join(kept) or os.devnull}


def find_program(name: str) -> str | None:
    """A program that we need ourselves: the system's. What else the PATH names may be the workspace's."""
    return shutil.which(name, path=os.pathsep.join(SYSTEM))


def _elsewhere(folder: str, root: str) -> bool:
    # An empty one, `.` and any other that is not absolute mean the folder in which a program is started.
    return os.path.isabs(folder) and not Path(os.path.realpath(folder)).is_relative_to(root)


def is_told_apart(name: str, value: str) -> bool:
    """Whether a secret variable's value, found in a text, is likely to be the secret and nothing else."""
    if SECRET_VALUE.search(value):
        return True
    return not ABOUT_SECRETS.search(name) and not COMMON_VALUE.fullmatch(value)


def is_secret(name: str, value: str) -> bool:
    """Whether a variable looks like one that holds a secret."""
    return bool(SECRET_NAME.search(name) or SECRET_VALUE.search(value))
