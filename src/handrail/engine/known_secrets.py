"""The secrets that Handrail itself uses or finds: keys of models, and what looks like a secret around it."""

from collections.abc import Mapping
from contextlib import suppress

from handrail.config.connections import ConnectionSettings
from handrail.config.places import Places
from handrail.config.toml_file import read_toml
from handrail.models.connections import connections
from handrail.protocol.errors import ConfigProblem
from handrail.tools.secrets import Secrets, find_secrets


def known_secrets(
    places: Places, environ: Mapping[str, str], settings: Mapping[str, ConnectionSettings]
) -> Secrets:
    """Those of the environment, and the keys of connections wherever they are kept."""
    variables = (name for each in connections(settings).values() for name in each.key_env)
    keys = {}
    with suppress(ConfigProblem):  # who asks a model is told of it
        file = read_toml(places.credentials, private=True)
        keys = {f"key of {name}": key for name, key in (file.data if file else {}).items()}
    return find_secrets(environ, variables, {name: key for name, key in keys.items() if isinstance(key, str)})
