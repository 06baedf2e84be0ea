"""Keys of model providers: from the environment, else from a file that only the user can read."""

from collections.abc import Mapping, Sequence

from handrail.config.edit import set_in_file
from handrail.config.places import Places
from handrail.config.toml_file import read_toml
from handrail.protocol.errors import ConfigProblem
from handrail.protocol.record import Record


class Credential(Record):
    """A key and where it was found; the key is not part of its repr."""

    key: str
    where: str

    def __repr__(self) -> str:
        return f"Credential(where={self.where!r})"


def find_credential(
    places: Places, connection: str, variables: Sequence[str], *, environ: Mapping[str, str]
) -> Credential | None:
    """The key for a connection: the first of its variables that is set, else its line in the file."""
    for name in variables:
        if text := environ.get(name, "").strip():
            return Credential(_usable(text, name), name)
    file = read_toml(places.credentials, private=True)
    if file is None or connection not in file.data:
        return None
    text = file.data[connection]
    place = file.place((connection,))
    if not isinstance(text, str):
        raise ConfigProblem(f'{place}: the key is not text; write {connection} = "KEY".')
    return Credential(_usable(text.strip(), place), place) if text.strip() else None


def save_credential(places: Places, connection: str, key: str) -> None:
    """Keeps a key for a connection in the user's file, mode 0600."""
    set_in_file(places.credentials, (connection,), _usable(key.strip(), "the key given"))


def _usable(key: str, place: str) -> str:
    if not key or not all("!" <= character <= "~" for character in key):
        raise ConfigProblem(f"{place}: a key has no spaces, line breaks or accents; paste it again.")
    return key
