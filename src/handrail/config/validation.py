"""Saying what is wrong with a setting, and which one was probably meant."""

import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any

from pydantic import ValidationError

from handrail.config.connections import ConnectionSettings
from handrail.config.hooks import HookSettings
from handrail.config.settings import Settings, keys
from handrail.config.toml_lines import KeyPath
from handrail.protocol.errors import ConfigProblem

SWITCHES = {"on": (True,), "yes": (True,), "off": (False,), "no": (False,)}
"""Words for true and false in the environment and on the command line."""


def check(data: Mapping[str, Any], place: Callable[[KeyPath], str]) -> Settings:
    """The settings that `data` says, the rest at their defaults; `place` tells where a key is written."""
    try:
        return Settings.model_validate(frozen(data), strict=True)
    except ValidationError as error:
        found = error.errors()
        # A key that is missing is most often there by another name.
        first = next((each for each in found if each["type"] == "extra_forbidden"), found[0])
        path = tuple(part for part in first["loc"] if isinstance(part, str))
        at = place(_address(first["loc"]))
        if first["type"] == "extra_forbidden":
            path = _with_only_key(path, first["input"])
            said = f"unknown key {'.'.join(path)!r}; {_suggestion(path)}"
        elif first["type"] in ("model_type", "dict_type"):
            said = f"{path[-1]!r} should be a section: write [{'.'.join(path)}] and its keys below"
        else:
            should = first["msg"].replace("Input should", "should").replace("valid tuple", "list")
            should = should.replace("Field required", "is missing")
            said = f"{'.'.join(path)} {should}{_shown(path, first['input'])}"
        raise ConfigProblem(f"{at}: {said}" if at else said) from error


def from_text(key: str, text: str, place: str = "") -> Any:
    """The value that a person means by `text` for this key: `3` is a number where one is wanted."""
    parts = tuple(part.strip() for part in text.split(",") if part.strip())
    readings = [text, *_as_toml(text), *SWITCHES.get(text.strip().lower(), ()), parts]
    for reading in readings:
        try:
            check(nested({key: reading}), lambda _: place)
        except ConfigProblem:
            continue
        return frozen(reading)
    # None fits: the reading as TOML, where there is one, gives the most telling error.
    check(nested({key: (*_as_toml(text), text)[0]}), lambda _: place)
    raise AssertionError(f"{key} was refused and then accepted")


def nested(flat: Mapping[str, Any]) -> dict[str, Any]:
    """`{"a.b": 1}` as `{"a": {"b": 1}}`."""
    result: dict[str, Any] = {}
    for key, value in flat.items():
        *parents, last = key.split(".")
        inner = result
        for parent in parents:
            inner = inner.setdefault(parent, {})
        inner[last] = value
    return result


def frozen(value: Any) -> Any:
    """The same with lists as tuples, the form that settings have."""
    if isinstance(value, Mapping):
        return {name: frozen(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return tuple(frozen(inner) for inner in value)
    return value


def _address(location: Sequence[int | str]) -> KeyPath:
    """Where a value is written: of a hook with its number, since each has a section of its own."""
    return tuple(str(part) for part in location if isinstance(part, str) or location[0] == "hooks")


def _as_toml(text: str) -> list[Any]:
    try:
        read = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return []
    return [read["value"]] if set(read) == {"value"} else []


def _shown(path: KeyPath, value: Any) -> str:
    """The wrong value for the message; what is said about a connection may be secret and is left out."""
    if path[0] == "connections" or isinstance(value, Mapping):
        return ""
    text = f"{value!r}"
    return f"; it is {text if len(text) <= 60 else text[:60] + '...'}"


def _with_only_key(path: KeyPath, value: Any) -> KeyPath:
    """An unknown section with one key is named by that key: `limit.usd`."""
    while isinstance(value, Mapping) and len(value) == 1:
        [(name, value)] = value.items()
        path = (*path, name)
    return path


def _suggestion(path: KeyPath) -> str:
    key = ".".join(path)
    ranked = sorted(_known(path), key=lambda known: _likeness(key, known), reverse=True)
    if ranked and _likeness(key, ranked[0]) >= 0.7:
        return f"did you mean {ranked[0]!r}?"
    siblings = [known for known in ranked if known.split(".")[:-1] == list(path[:-1])]
    return f"known here: {', '.join(sorted(set(siblings or ranked)))}"


def _known(path: KeyPath) -> Iterable[str]:
    if path[0] == "connections" and len(path) > 2:
        return [f"connections.{path[1]}.{name}" for name in ConnectionSettings.model_fields]
    if path[0] == "hooks" and len(path) > 1:
        return [f"hooks.{name}" for name in HookSettings.model_fields]
    if len(path) == 1:
        return [*Settings.model_fields, *keys()]
    return keys()


def _likeness(wrong: str, known: str) -> float:
    """From 0 to 1; a key that was only put into the wrong section is close too."""
    whole = SequenceMatcher(a=wrong, b=known).ratio()
    last = SequenceMatcher(a=wrong.rpartition(".")[2], b=known.rpartition(".")[2]).ratio()
    return max(whole, last - 0.05)
