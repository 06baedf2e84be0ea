"""What is wrong with a definition, in words that say where it stands and what to do."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple

from pydantic import ValidationError

from handrail.config.toml_file import TomlFile

Location = Sequence[int | str]
SHOWN = 60
MOST, LONGEST = 20, 400
"""Problems that are told, and characters of each."""
LOOKED_AT = 100
"""Of what validation found: enough for what is told."""
ENDS = {
    "too_long": "has too many items or characters",
    "string_pattern_mismatch": "holds characters that it may not, or none",
}


class Problems:
    """Gathers what is wrong with one file, to be told all at once; of very much the first."""

    def __init__(self, file: TomlFile) -> None:
        self._file = file
        self.found: list[str] = []

    def add(self, at: Location, said: str) -> None:
        """Note a problem with what stands there; on one line, whatever names the file has given."""
        if self._is_full:
            return
        place = self._file.place(tuple(map(str, at)))
        said = " ".join(said.split())
        text = f"{place}: {said.rstrip('.')[:LONGEST]}."
        if text not in self.found:
            self.found.append(text)
        if self._is_full:
            self.found[-1] += " There may be more; correct these first."

    @property
    def _is_full(self) -> bool:
        return len(self.found) >= MOST

    def add_all(self, error: ValidationError, at: Location = (), known: Iterable[str] = ()) -> None:
        """Note what validation found; `known` are the keys there could be."""
        found = error.errors(include_url=False)[:LOOKED_AT]
        for each in found:
            inner = [other for other in found if other["loc"][: len(each["loc"])] == each["loc"]]
            if each["type"] == "too_short" and len(inner) > 1:
                continue  # it is short only of what was told to be wrong
            location = (*at, *each["loc"])
            self.add(location, _worded(each, [*known]))


class Named(NamedTuple):
    """A choice among names."""

    what: str
    known: Iterable[str]

    def unknown(self, name: str) -> str:
        """That there is none of this name, and which was probably meant."""
        return f"there is no {self.what} {name[:SHOWN]!r}; {_meant(name, [*self.known])}"


def _worded(error: Any, known: Sequence[str]) -> str:
    names = [str(part) for part in error["loc"] if isinstance(part, str)]
    name = names[-1] if names else "it"
    match error["type"]:
        case "extra_forbidden":
            return f"unknown key {name[:SHOWN]!r}; {_meant(name, known)}"
        case "missing" if name == "budget" and len(names) == 1:
            return "budget is missing: write [budget] and below it tokens = 50_000, the most a run may use"
        case "missing":
            return f"{name} is missing; add it"
        case "model_type" | "dict_type":
            return f"{name} should be a table of keys"
        case kind if kind in ENDS:
            return f"{name} {ENDS[kind]}{_shown(error['input'])}"
    should = error["msg"].replace("Input should", "should").replace("valid tuple", "list")
    should = should.removeprefix("Value error, ")
    return f"{name} {should}{_shown(error['input'])}"


def _meant(name: str, known: Sequence[str]) -> str:
    near = get_close_matches(name[:SHOWN], known, n=1, cutoff=0.6)
    return f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(sorted(known)) or 'none'}"


def _shown(value: Any) -> str:
    if isinstance(value, dict | list | tuple):
        return ""
    text = repr(value)
    return f"; it is {text if len(text) <= SHOWN else text[:SHOWN] + '...'}"
