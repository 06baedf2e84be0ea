"""Model providers' keys, from the environment or a file that only the user can read."""

from collections.abc import Mapping, Sequence

from handrail.config.places import Places
from handrail.config.toml_edit import set_in_file
from handrail.config.toml_file import read_toml
from handrail.protocol.errors import ConfigProblem
from handrail.protocol.values import Value


class Credential(Value):
    """A key and where it was found; the key is not part of its repr."""

    key: str
    where: str

    def __repr__(self) -> str:
        return f"Credential(where={self.where!r})"


def find_credential(
    places: Places, connection: str, variables: Sequence[str], *, environ: Mapping[str, str]
) -> Credential | None:
    """The key for a connection: from the first of its variables that is set, else from the file."""
    for name in variables:
        if text := environ.get(name, "").strip():
            return Credential(_check_key(text, name), name)
    file = read_toml(places.credentials, private=True)
    if file is None or connection not in file.data:
        return None
    text = file.data[connection]
    place = file.place((connection,))
    if not isinstance(text, str):
        raise ConfigProblem(f'{place}: the key is not a string; write {connection} = "KEY".')
    return Credential(_check_key(text.strip(), place), place) if text.strip() else None


def save_credential(places: Places, connection: str, key: str) -> None:
    set_in_file(places.credentials, (connection,), _check_key(key.strip(), "this key"))


def _check_key(key: str, place: str) -> str:
    if not key or not all("!" <= character <= "~" for character in key):
        raise ConfigProblem(f"{place}: a key has no spaces, line breaks or accents; paste it again.")
    return key
