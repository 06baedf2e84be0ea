"""The environment of the programs we start: the user's, without what looks like a secret."""

import re
from collections.abc import Mapping

SECRET_NAME = re.compile(
    r"API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|_KEY$|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|(^|_)PAT$",
    re.IGNORECASE,
)
SECRET_VALUE = re.compile(r"://[^/\s:@]*:[^/\s@]+@")
"""A URL with a password in it."""
QUIET = {"PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0"}
"""Nobody sits at the other end of these programs."""


def without_secrets(environ: Mapping[str, str]) -> dict[str, str]:
    """What a command gets of the environment."""
    kept = {
        name: value
        for name, value in environ.items()
        if not SECRET_NAME.search(name) and not SECRET_VALUE.search(value)
    }
    return kept | QUIET
