"""What there is of the embedded model on this machine, and what to do to have the rest."""

from collections.abc import Mapping
from importlib.util import find_spec
from typing import NamedTuple

from handrail.models.connections import EMBEDDED
from handrail.models.embedded.files import DEFAULT, ModelFile, find_file

INSTALL = "`pip install '.[embedded]'` in your clone of Handrail"
FETCH = "handrail model fetch"


class Offer(NamedTuple):
    """Whether the model can answer now; otherwise what brings that about."""

    ready: bool
    reference: str
    advice: str = ""


def find_embedded(environment: Mapping[str, str], file: ModelFile = DEFAULT) -> Offer:
    """The embedded model as it could be used here. Nothing is read but the names of files."""
    steps = [] if has_runtime() else [INSTALL]
    if find_file(file, environment) is None:
        steps.append(f"`{FETCH}` (a download of {file.size / 1e9:.1f} GB, once)")
    return Offer(ready=not steps, reference=f"{EMBEDDED}/{file.model}", advice=", then ".join(steps))


def has_runtime() -> bool:
    """Whether the library that runs the model is installed; it is imported only in the child."""
    return find_spec("xllamacpp") is not None
