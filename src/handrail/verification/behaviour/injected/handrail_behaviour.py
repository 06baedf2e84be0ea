"""A plugin of pytest (`-p handrail_behaviour`): what functions do for inputs near those of the tests.

Stands alone: it runs in the project's own Python. It keeps the arguments with which functions are called from
outside of their file, and calls them again after the tests, with one argument changed a little at a time.
Each result is a line of JSON: [function, arguments, result].
"""

from __future__ import annotations

import contextlib
import copy
import datetime
import functools
import itertools
import json
import os
import sys
import time
from typing import Any

import pytest

FOLDER = os.environ["HANDRAIL_BEHAVIOUR_FOLDER"]
ROOT = os.environ["HANDRAIL_BEHAVIOUR_ROOT"].rstrip("/") + "/"
FUNCTIONS = [tuple(each) for each in json.loads(os.environ["HANDRAIL_BEHAVIOUR_FUNCTIONS"])]  # (path, name)
SECONDS = 3.0
MOST_CALLS, MOST_VARIANTS, MOST_ITEMS, MOST_DEPTH, MOST_TEXT = 30, 40, 1000, 4, 600


class Watch:
    def __init__(self) -> None:
        self.calls: list[tuple[str, Any, tuple[Any, ...], dict[str, Any]]] = []
        self.counts: dict[str, int] = {}
        self.places: list[tuple[Any, str, Any]] = []

    def wrap(self, path: str, name: str) -> None:
        file = os.path.realpath(ROOT + path)
        for module in list(sys.modules.values()):
            if os.path.realpath(getattr(module, "__file__", None) or "") != file:
                continue
            *owners, last = name.split(".")
            owner: Any = module
            for each in owners:
                owner = getattr(owner, each, None)
            found = vars(owner).get(last) if owner is not None else None
            if found is None or isinstance(found, (property, classmethod)):
                continue
            is_static = isinstance(found, staticmethod)
            function = found.__func__ if is_static else found
            if not hasattr(function, "__code__"):
                continue
            recorded = self.recorder(f"{path}:{name}", function)
            setattr(owner, last, staticmethod(recorded) if is_static else recorded)
            self.places.append((owner, last, found))
            if owner is module:  # other modules may have imported the name
                for other in list(sys.modules.values()):
                    if other is not module and vars(other).get(last) is function:
                        setattr(other, last, recorded)
                        self.places.append((other, last, function))

    def recorder(self, label: str, function: Any) -> Any:
        @functools.wraps(function)
        def call(*given: Any, **named: Any) -> Any:
            caller = sys._getframe(1).f_code.co_filename
            if caller != function.__code__.co_filename and self.counts.get(label, 0) < MOST_CALLS:
                self.counts[label] = self.counts.get(label, 0) + 1
                try:
                    kept = copy.deepcopy((given, named))
                except Exception:  # noqa: BLE001 what a project's objects raise is not known
                    return function(*given, **named)
                self.calls.append((label, function, *kept))
            return function(*given, **named)

        return call

    def unwrap(self) -> None:
        for owner, name, found in reversed(self.places):
            setattr(owner, name, found)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self) -> None:
        for path, name in FUNCTIONS:
            self.wrap(path, name)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        self.unwrap()
        end = time.monotonic() + SECONDS
        order = {f"{path}:{name}": at for at, (path, name) in enumerate(FUNCTIONS)}
        self.calls.sort(key=lambda call: order[call[0]])  # time may not suffice for the last ones
        with open(os.path.join(FOLDER, f"behaviour-{os.getpid()}"), "a", encoding="utf-8") as stream:
            for label, function, given, named in self.calls:
                for arguments in itertools.islice(variants(given, function.__code__), MOST_VARIANTS):
                    if time.monotonic() > end:
                        return
                    told = f"({', '.join(plain(each) for each in arguments)}{', ' if named else ''}"
                    told += ", ".join(f"{key}={plain(value)}" for key, value in named.items()) + ")"
                    row = [label, told[:MOST_TEXT], outcome(function, arguments, named)[:MOST_TEXT]]
                    stream.write(json.dumps(row) + "\n")
                    stream.flush()


def outcome(function: Any, given: Any, named: Any) -> str:
    """The result, and what became of the arguments."""
    try:
        given, named = copy.deepcopy((given, named))
        result = function(*given, **named)
        if hasattr(result, "__next__"):
            result = list(itertools.islice(result, MOST_ITEMS))
        return f"{plain(result)} {', '.join(plain(each) for each in given)}"
    except Exception as error:  # noqa: BLE001 what it raises is its result
        return f"raises {type(error).__name__}"


def variants(given: tuple[Any, ...], code: Any) -> Any:
    """The arguments as they were, then with one of them changed: to a constant of the code, or a little."""
    yield given
    numbers = [each for each in code.co_consts if type(each) in (int, float)]
    for at, value in enumerate(given):
        if type(value) in (int, float):
            for near in dict.fromkeys(each + more for each in numbers for more in (0, 1, -1)):
                yield (*given[:at], near, *given[at + 1 :])
    for at, value in reversed(list(enumerate(given))):  # what a method is called on comes last
        for other in nearby(value, 0):
            yield (*given[:at], other, *given[at + 1 :])


def nearby(value: Any, depth: int) -> Any:
    """Values of the same kind that differ a little."""
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield from dict.fromkeys((value + 1, value - 1, value + 10, -value, 0))
    elif isinstance(value, float):
        yield from (value + 1.0, value - 1.0, value / 3)
    elif isinstance(value, str):
        yield from dict.fromkeys((value[:-1], value[1:], value + value, value.upper(), value[::-1]))
    elif isinstance(value, (datetime.date, datetime.datetime)):
        for days in (1, -1, 31, -31, 366):
            yield value + datetime.timedelta(days=days)
    elif isinstance(value, datetime.timedelta):
        yield from (value * 2, -value)
    elif depth < MOST_DEPTH:
        yield from nearby_parts(value, depth)


def nearby_parts(value: Any, depth: int) -> Any:
    """The same for what holds other values."""
    if type(value) in (list, tuple):
        yield from (value[:-1], value[1:], value[::-1], type(value)([*value, *value[:1]]))
        for at, each in enumerate(value[:3]):
            for other in itertools.islice(nearby(each, depth + 1), 3):
                yield type(value)([*value[:at], other, *value[at + 1 :]])
    elif isinstance(value, tuple):
        for name in getattr(value, "_fields", ())[:6]:  # a named one
            for other in itertools.islice(nearby(getattr(value, name), depth + 1), 4):
                yield value._replace(**{name: other})  # type: ignore[attr-defined]
    elif type(value) in (set, frozenset):
        for each in sorted(value, key=plain)[:2]:
            yield value - {each}
    elif isinstance(value, dict):
        for key in list(value)[:3]:
            yield _changed(value, lambda new, key=key: new.pop(key))
            for other in itertools.islice(nearby(value[key], depth + 1), 3):
                yield _changed(value, lambda new, key=key, other=other: new.__setitem__(key, other))
    elif hasattr(value, "__dict__") and not callable(value):
        for name, each in list(vars(value).items())[:6]:
            for other in itertools.islice(nearby(each, depth + 1), 4):
                field = {name: other}  # not by setattr, which a frozen object refuses
                yield _changed(value, lambda new, field=field: new.__dict__.update(field))


def _changed(value: Any, change: Any) -> Any:
    new = copy.deepcopy(value)
    with contextlib.suppress(Exception):  # an object that cannot be changed
        change(new)
    return new


def plain(value: Any, depth: int = 0) -> str:
    """The value in words that are the same in every run."""
    if depth > MOST_DEPTH:
        return "..."
    if isinstance(value, dict):
        return (
            "{" + ", ".join(f"{plain(k, depth + 1)}: {plain(v, depth + 1)}" for k, v in value.items()) + "}"
        )
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(plain(each, depth + 1) for each in value) + "]"
    if isinstance(value, (set, frozenset)):
        return "{" + ", ".join(sorted(plain(each, depth + 1) for each in value)) + "}"
    if isinstance(value, float):
        return f"{value:.9g}"
    if value is None or isinstance(value, (bool, int, str, bytes, datetime.date, datetime.timedelta)):
        return repr(value)
    if hasattr(value, "__dict__") and not callable(value):
        return f"{type(value).__name__}({plain(vars(value), depth + 1)})"
    return type(value).__name__ if "object at 0x" in repr(value) else repr(value)


def pytest_configure(config: Any) -> None:
    config.pluginmanager.register(Watch(), "handrail_behaviour_watch")
