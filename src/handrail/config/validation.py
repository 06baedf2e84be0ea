"""Check settings; errors name the file, the line and the closest valid key."""

import tomllib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec import ValidationError, convert

from handrail.config.settings import CheckCommand, ConnectionSettings, HookSettings, Settings, setting_keys
from handrail.config.toml_file import KeyPath
from handrail.protocol.errors import ConfigProblem
from handrail.protocol.problems import Problem, problems_in

BOOLEAN_WORDS = {"on": (True,), "yes": (True,), "off": (False,), "no": (False,)}
"""Words for true and false in the environment and on the command line."""

CHECK_COMMANDS = ("checks", "commands")


def validate(data: Mapping[str, Any], place: Callable[[KeyPath], str]) -> Settings:
    """The settings in `data`, the rest at their defaults; `place` gives the file and line of a key."""
    try:
        return convert(data, Settings)
    except ValidationError as error:
        raise ConfigProblem(setting_problems(data, place)[0]) from error


def setting_problems(data: Mapping[str, Any], place: Callable[[KeyPath], str]) -> list[str]:
    """Everything that is wrong with the settings in `data`; the most telling problem first."""
    found = problems_in(data, Settings)
    # A missing key is most often there under a misspelled name.
    return [_message(each, place) for each in sorted(found, key=lambda each: each.kind != "unknown")]


def _message(problem: Problem, place: Callable[[KeyPath], str]) -> str:
    path = tuple(part for part in problem.path if isinstance(part, str))
    # Each hook and each check has its own section, which is found by its number.
    numbered = problem.path[:1] == ("hooks",) or problem.path[:2] == CHECK_COMMANDS
    at = place(tuple(str(part) for part in problem.path if isinstance(part, str) or numbered))
    if problem.kind == "unknown":
        value = problem.given
        while isinstance(value, Mapping) and len(value) == 1:  # name its only key too: `limit.usd`
            [(name, value)] = value.items()
            path = (*path, name)
        message = f"unknown key {'.'.join(path)!r}; {_suggestion(path)}"
    elif problem.kind == "object":
        message = f"{path[-1]!r} should be a section: write [{'.'.join(path)}] and its keys below"
    else:
        message = f"{'.'.join(path)} {problem.should}{_shown(path, problem)}"
    return f"{at}: {message}" if at else message


def parse_value(key: str, text: str, place: str = "") -> Any:
    """The value that a person means by `text` for this key: `3` is a number where the key takes one."""
    parts = tuple(part.strip() for part in text.split(",") if part.strip())
    readings = [text, *_as_toml(text), *BOOLEAN_WORDS.get(text.strip().lower(), ()), parts]
    for reading in readings:
        try:
            validate(nested({key: reading}), lambda _: place)
        except ConfigProblem:
            continue
        return as_tuples(reading)
    # None fits: the reading as TOML, if there is one, gives the clearest error.
    validate(nested({key: (*_as_toml(text), text)[0]}), lambda _: place)
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


def as_tuples(value: Any) -> Any:
    """The same with lists as tuples, as settings have them."""
    if isinstance(value, Mapping):
        return {name: as_tuples(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return tuple(as_tuples(inner) for inner in value)
    return value


def _as_toml(text: str) -> list[Any]:
    try:
        read = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return []
    return [read["value"]] if set(read) == {"value"} else []


def _shown(path: KeyPath, problem: Problem) -> str:
    """The wrong value for the message, except for what may hold secrets."""
    if (
        path[0] in ("connections", "database")
        or problem.kind == "missing"
        or isinstance(problem.given, Mapping)
    ):
        return ""
    text = f"{problem.given!r}"
    return f"; it is {text if len(text) <= 60 else text[:60] + '...'}"


def _suggestion(path: KeyPath) -> str:
    key = ".".join(path)
    ranked = sorted(_known_keys(path), key=lambda known: _similarity(key, known), reverse=True)
    if ranked and _similarity(key, ranked[0]) >= 0.7:
        return f"did you mean {ranked[0]!r}?"
    siblings = [known for known in ranked if known.split(".")[:-1] == list(path[:-1])]
    return f"known here: {', '.join(sorted(set(siblings or ranked)))}"


def _known_keys(path: KeyPath) -> Iterable[str]:
    if path[0] == "connections" and len(path) > 2:
        return [f"connections.{path[1]}.{name}" for name in ConnectionSettings.__struct_fields__]
    if path[0] == "hooks" and len(path) > 1:
        return [f"hooks.{name}" for name in HookSettings.__struct_fields__]
    if path[:2] == CHECK_COMMANDS and len(path) > 2:
        return [f"checks.commands.{name}" for name in CheckCommand.__struct_fields__]
    if len(path) == 1:
        return [*Settings.__struct_fields__, *setting_keys()]
    return setting_keys()


def _similarity(wrong: str, known: str) -> float:
    """From 0 to 1; a key in the wrong section is close too."""
    from difflib import SequenceMatcher

    whole = SequenceMatcher(a=wrong, b=known).ratio()
    last = SequenceMatcher(a=wrong.rpartition(".")[2], b=known.rpartition(".")[2]).ratio()
    return max(whole, last - 0.05)
