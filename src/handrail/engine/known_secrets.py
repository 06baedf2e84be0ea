"""The secrets that Handrail itself uses or finds: keys of models, and what looks like a secret around it."""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path

from handrail.config.connections import ConnectionSettings
from handrail.config.places import Places
from handrail.config.toml_file import read_toml
from handrail.models.connections import connections
from handrail.protocol.errors import ConfigProblem
from handrail.tools.environment import is_secret, is_told_apart
from handrail.tools.secrets import Secrets, find_secrets
from handrail.workspace import names

ENV_FILE = re.compile(r"\.env(\..+)?|.+\.env", re.IGNORECASE)
ASSIGNMENT = re.compile(
    r"^[ \t]*(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_]*)[ \t]*=[ \t]*"
    r"(?:\"([^\"\n]*)\"|'([^'\n]*)'|(.*?))(?:[ \t]+#.*)?[ \t\r]*$",
    re.MULTILINE,
)
"""The value stands in quotes of either kind or in none, and a comment may follow it."""
MOST_FILES = 20
MOST_BYTES = 64_000


def known_secrets(
    places: Places,
    environ: Mapping[str, str],
    settings: Mapping[str, ConnectionSettings],
    workspace: Path | None = None,
) -> Secrets:
    """Those of the environment and of the workspace's `.env` files, and the keys of connections."""
    variables = (name for each in connections(settings).values() for name in each.key_env)
    keys: dict[str, object] = dict(_in_env_files(workspace)) if workspace else {}
    with suppress(ConfigProblem):  # who asks a model is told of it
        file = read_toml(places.credentials, private=True)
        keys |= {f"key of {name}": key for name, key in (file.data if file else {}).items()}
    return find_secrets(environ, variables, {name: key for name, key in keys.items() if isinstance(key, str)})


def _in_env_files(workspace: Path) -> Iterator[tuple[str, str]]:
    """Values that look like secrets, in files that programs take their environment from."""
    with suppress(OSError), os.scandir(workspace) as entries:
        found = (entry for entry in entries if ENV_FILE.fullmatch(entry.name) and names.is_secret(entry.name))
        for entry in islice(found, MOST_FILES):
            for name, *values in ASSIGNMENT.findall(_text(entry)):
                value = "".join(values)
                if is_secret(name, value) and is_told_apart(name, value):
                    yield f"{name} in {entry.name}", value


def _text(entry: os.DirEntry[str]) -> str:
    with suppress(OSError):
        if entry.is_file(follow_symlinks=False):
            with open(entry.path, "rb") as file:
                return file.read(MOST_BYTES).decode(errors="replace")
    return ""
