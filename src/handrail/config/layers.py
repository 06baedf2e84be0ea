"""Settings in layers: defaults, the user's file, the workspace's file, the environment, flags."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from handrail.config.hooks import Hook
from handrail.config.narrowing import why_not
from handrail.config.places import WORKSPACE_SETTINGS, Places
from handrail.config.settings import Settings, keys
from handrail.config.toml_file import TomlFile, parse_toml, read_toml
from handrail.config.trust import Brought, brought_by, trusted_before
from handrail.config.validation import check, from_text, nested
from handrail.protocol.errors import ConfigProblem, UsageProblem
from handrail.protocol.record import Record
from handrail.protocol.values import Value

Layer = Literal["default", "user", "workspace", "environment", "flag"]

ADD_UP = ("commands.allow", "commands.deny")
ONLY_IN_FILES = "hooks"
"""They run in the folder of the file that names them."""
NO_FLAGS: Mapping[str, Any] = MappingProxyType({})


class Source(Record):
    """Where a setting was set; `place` is `FILE:LINE` or the variable's name."""

    layer: Layer
    place: str = ""

    def __str__(self) -> str:
        return self.place or self.layer


class Ignored(Record):
    """What a workspace's file says and a workspace may not say."""

    key: str
    file: str
    """`FILE:LINE`."""
    why: str
    value: str = ""
    """What it says, for a person."""


class LoadedSettings(Record):
    """All settings, and where each was set."""

    settings: Settings
    sources: dict[str, tuple[Source, ...]]
    """Of every key; of lists that add up all that added to them."""
    ignored: tuple[Ignored, ...] = ()
    brought: tuple[Brought, ...] = ()
    """What the workspace brings that needs trust, as it was when this was loaded."""
    trust: Literal["none", "trusted", "changed"] = "none"
    """Whether the user trusted what was brought, as it is now or as it was before."""

    hooks: tuple[Hook, ...] = ()
    """Those that count, in the order in which they run."""

    def layer(self, key: str) -> Layer:
        """Which layer had the last word on a key."""
        return self.sources[key][-1].layer


class ShownSetting(NamedTuple):
    key: str
    value: Any
    where: str


class _Said(NamedTuple):
    key: str
    value: Any
    source: Source


def load_settings(
    places: Places,
    workspace: Path | None,
    *,
    environ: Mapping[str, str],
    flags: Mapping[str, Any] = NO_FLAGS,
    trusted: bool = False,
) -> LoadedSettings:
    """All settings and where each comes from. `flags` is {key: value or text}; raises ConfigProblem.

    `trusted` lets the workspace's settings count this once, whether or not the user has trusted them before.
    """
    defaults = Settings()
    values = {key: _value(defaults, key) for key in keys()}
    sources: dict[str, tuple[Source, ...]] = {key: (Source(layer="default"),) for key in values}
    ignored: list[Ignored] = []
    hooks: list[Hook] = []
    brought = brought_by(workspace) if workspace else ()
    standing = _standing(places, workspace, brought)
    trusted = trusted or standing == "trusted"
    for said in (
        *_in_file(read_toml(places.settings), "user"),
        *_in_file(_settings_of(workspace, brought), "workspace"),
        *_in_environment(environ),
        *_in_flags(flags),
    ):
        if said.source.layer == "workspace" and not trusted:
            why = why_not(said.key, said.value, values.get(said.key))
            if why:
                ignored.append(Ignored(said.key, said.source.place, why, _shown(said.value)))
                continue
        if said.key == ONLY_IN_FILES:
            hooks += _hooks(said, places, workspace, brought)
            values[said.key] += said.value
            sources[said.key] = (*(s for s in sources[said.key] if s.layer != "default"), said.source)
        elif said.key in ADD_UP:
            new = tuple(entry for entry in said.value if entry not in values[said.key])
            values[said.key] += new
            sources[said.key] = (*(s for s in sources[said.key] if s.layer != "default"), said.source)
        else:
            values[said.key] = said.value
            sources[said.key] = (said.source,)
    settings = check(_tree(values), ".".join)
    return LoadedSettings(settings, sources, tuple(ignored), brought, standing, tuple(hooks))


def default_settings() -> LoadedSettings:
    """What holds where nothing is set, for when what is set cannot be read."""
    return LoadedSettings(settings=Settings(), sources={key: (Source(layer="default"),) for key in keys()})


def shown_settings(loaded: LoadedSettings) -> list[ShownSetting]:
    """Every setting, its value and where it was set, for a person; values of headers are left out."""
    rows = []
    for key, sources in loaded.sources.items():
        where = ", ".join(str(source) for source in sources)
        if not key.startswith("connections."):
            rows.append(ShownSetting(key, _plain(_value(loaded.settings, key)), where))
            continue
        name = key.removeprefix("connections.")
        said = loaded.settings.connections[name].model_dump(exclude_unset=True)
        for field, value in said.items():
            shown = dict.fromkeys(value, "...") if field == "headers" else value
            rows.append(ShownSetting(f"{key}.{field}", shown, where))
    return rows


def variable(key: str) -> str:
    """The environment variable that sets a key."""
    return "HANDRAIL_MODEL" if key == "models.main" else "HANDRAIL_" + key.upper().replace(".", "_")


def _standing(
    places: Places, workspace: Path | None, brought: tuple[Brought, ...]
) -> Literal["none", "trusted", "changed"]:
    before = trusted_before(places, workspace) if workspace and brought else {}
    if not before:
        return "none"
    return "trusted" if all(before.get(each.name) == each.sha256 for each in brought) else "changed"


def _settings_of(workspace: Path | None, brought: tuple[Brought, ...]) -> TomlFile | None:
    """The workspace's settings, from the very bytes whose hash was looked at."""
    found = next((each.data for each in brought if each.name == WORKSPACE_SETTINGS.as_posix()), None)
    return parse_toml(workspace / WORKSPACE_SETTINGS, found) if workspace and found is not None else None


def _shown(value: Any) -> str:
    return json.dumps(_plain(value), ensure_ascii=False)


def _plain(value: Any) -> Any:
    """What was written, without the values that settings make of it."""
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    return value.model_dump(mode="json", exclude_unset=True) if isinstance(value, Value) else value


def _hooks(
    said: _Said, places: Places, workspace: Path | None, brought: tuple[Brought, ...]
) -> Iterable[Hook]:
    """The hooks of one file, with what was read of the workspace when that was looked at."""
    folder, files = places.settings.parent, dict[str, str]()
    if workspace and said.source.layer == "workspace":
        folder = workspace / WORKSPACE_SETTINGS.parent
        files = {each.name: each.sha256 for each in brought}
    return (Hook(settings, folder, said.source.place, files) for settings in said.value)


def _in_file(file: TomlFile | None, layer: Layer) -> Iterable[_Said]:
    if file is None:
        return
    said = check(file.data, file.place)
    for number, hook in enumerate(said.hooks):
        place = file.place((ONLY_IN_FILES, str(number)))
        yield _Said(ONLY_IN_FILES, (hook,), Source(layer=layer, place=place))
    for key in keys():
        if _is_written(file, key) and key != ONLY_IN_FILES:
            place = file.place(tuple(key.split(".")))
            yield _Said(key, _value(said, key), Source(layer=layer, place=place))
    for name, connection in said.connections.items():
        place = file.place(("connections", name))
        yield _Said(f"connections.{name}", connection, Source(layer=layer, place=place))


def _is_written(file: TomlFile, key: str) -> bool:
    inner: Any = file.data
    for part in key.split("."):
        if part not in inner:
            return False
        inner = inner[part]
    return True


def _in_environment(environ: Mapping[str, str]) -> Iterable[_Said]:
    if environ.get("NO_COLOR"):
        yield _Said("display.color", "never", Source(layer="environment", place="NO_COLOR"))
    for key in keys():
        name = variable(key)
        text = environ.get(name)
        if text and key == ONLY_IN_FILES:
            raise ConfigProblem(f"{name} is not read: hooks are written into a settings file.")
        if text:
            yield _Said(key, from_text(key, text, name), Source(layer="environment", place=name))


def _in_flags(flags: Mapping[str, Any]) -> Iterable[_Said]:
    for key, given in flags.items():
        if key.startswith("connections") or key == ONLY_IN_FILES:
            raise UsageProblem(f"{key} cannot be given as a flag; write it into the settings file.")
        value = from_text(key, given) if isinstance(given, str) else given
        said = check(nested({key: value}), lambda _: "")
        yield _Said(key, _value(said, key), Source(layer="flag"))


def _value(settings: Settings, key: str) -> Any:
    inner: Any = settings
    for part in key.split("."):
        inner = getattr(inner, part)
    return inner


def _tree(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values by key as one document. A connection is taken whole, so that no layer can bend another's."""
    plain = {key: value for key, value in values.items() if not key.startswith("connections.")}
    connections = {
        key.removeprefix("connections."): value
        for key, value in values.items()
        if key.startswith("connections.")
    }
    return {**nested(plain), "connections": connections}
