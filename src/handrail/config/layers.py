"""Load settings from defaults, user file, workspace file, environment and flags."""

import json
from collections.abc import Iterable, Mapping
from functools import reduce
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from msgspec.structs import fields

from handrail.config.places import WORKSPACE_SETTINGS, Places
from handrail.config.settings import Hook, Settings, setting_keys, without_password
from handrail.config.toml_file import TomlFile, parse_toml, read_toml
from handrail.config.trust import WorkspaceFile, files_needing_trust, trusted_hashes, why_not_allowed
from handrail.config.validation import nested, parse_value, setting_problems, validate
from handrail.protocol.errors import ConfigProblem, UsageProblem
from handrail.protocol.values import Value

Layer = Literal["default", "user", "workspace", "environment", "flag"]
TrustState = Literal["none", "trusted", "changed"]
ADDITIVE_KEYS = ("commands.allow", "commands.deny", "commands.readable_secrets", "checks.commands")
HOOKS_KEY = "hooks"
DATABASE_KEY = "database.url"
NO_FLAGS: Mapping[str, Any] = MappingProxyType({})


class Source(Value):
    """Where a setting was set; `place` is `FILE:LINE` or the variable's name."""

    layer: Layer
    place: str = ""

    def __str__(self) -> str:
        return self.place or self.layer


class IgnoredSetting(Value):
    """A setting in a workspace's file that a workspace may not set."""

    key: str
    file: str
    """`FILE:LINE`."""
    why: str
    value: str = ""
    """As a person reads it."""


class LoadedSettings(Value):
    settings: Settings
    sources: dict[str, tuple[Source, ...]]
    """For every key. Lists that add up have several sources."""
    ignored: tuple[IgnoredSetting, ...] = ()
    workspace_files: tuple[WorkspaceFile, ...] = ()
    """Files of the workspace that need trust, as they were when this was loaded."""
    trust: TrustState = "none"
    """Whether the user trusted these files; `changed`: an earlier version of them."""
    hooks: tuple[Hook, ...] = ()
    """The hooks in force, in the order in which they run."""

    def layer(self, key: str) -> Layer:
        return self.sources[key][-1].layer


class ShownSetting(NamedTuple):
    key: str
    value: Any
    where: str


class _Entry(NamedTuple):
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

    `trusted` accepts the workspace's settings this once, whether or not the user has trusted them before.
    """
    defaults = Settings()
    values = {key: _value(defaults, key) for key in setting_keys()}
    sources: dict[str, tuple[Source, ...]] = {key: (Source(layer="default"),) for key in values}
    ignored: list[IgnoredSetting] = []
    hooks: list[Hook] = []
    workspace_files = files_needing_trust(workspace) if workspace else ()
    before = trusted_hashes(places, workspace) if workspace and workspace_files else {}
    unchanged = all(before.get(each.name) == each.sha256 for each in workspace_files)
    trust: TrustState = "none" if not before else "trusted" if unchanged else "changed"
    for entry in (
        *_in_file(read_toml(places.settings), "user"),
        *_in_file(_workspace_settings(workspace, workspace_files), "workspace"),
        *_in_environment(environ),
        *_in_flags(flags),
    ):
        key, value, source = entry
        is_untrusted = source.layer == "workspace" and not trusted and trust != "trusted"
        if is_untrusted and (why := why_not_allowed(key, value, values.get(key))):
            shown = json.dumps(shown_value(key, _plain(value)), ensure_ascii=False)
            ignored.append(IgnoredSetting(key, source.place, why, shown))
            continue
        earlier = tuple(each for each in sources.get(key, ()) if each.layer != "default")
        if key == HOOKS_KEY:
            hooks += _hooks(entry, places, workspace, workspace_files)
            values[key] += value
        elif key in ADDITIVE_KEYS:
            values[key] += tuple(each for each in value if each not in values[key])
        else:
            values[key], earlier = value, ()
        sources[key] = (*earlier, source)
    settings = validate(_tree(values), ".".join)
    return LoadedSettings(settings, sources, tuple(ignored), workspace_files, trust, tuple(hooks))


class CheckedSettings(NamedTuple):
    files: list[Path]
    """The files that were checked."""
    problems: list[str]
    notes: list[str]
    """What is right and has no effect, because the workspace is not trusted."""


def check_settings(
    places: Places, workspace: Path, *, environ: Mapping[str, str], file: Path | None = None
) -> CheckedSettings:
    """Everything that is wrong in the settings files and the environment, or in `file` alone."""
    paths = [file] if file else [places.settings, workspace / WORKSPACE_SETTINGS]
    files, problems = list[Path](), list[str]()
    for path in paths:
        try:
            found = read_toml(path)
        except ConfigProblem as problem:
            files.append(path)
            problems.append(str(problem))
        else:
            files += [path] if found else []
            problems += setting_problems(found.data, found.place) if found else []
    if file or problems:
        return CheckedSettings(files, problems, [])
    try:  # what only shows when all layers come together
        loaded = load_settings(places, workspace, environ=environ)
    except ConfigProblem as problem:
        return CheckedSettings(files, [str(problem)], [])
    notes = [f"{each.file}: {each.key} is ignored: {each.why}" for each in loaded.ignored]
    return CheckedSettings(files, [], notes)


def default_settings() -> LoadedSettings:
    """The defaults alone, for when the settings cannot be read."""
    return LoadedSettings(Settings(), {key: (Source("default"),) for key in setting_keys()})


def shown_settings(loaded: LoadedSettings) -> list[ShownSetting]:
    """Every setting with its value and where it was set, for a person; values of headers are hidden."""
    rows = []
    for key, sources in loaded.sources.items():
        where = ", ".join(str(source) for source in sources)
        if not key.startswith("connections."):
            rows.append(ShownSetting(key, shown_value(key, _plain(_value(loaded.settings, key))), where))
            continue
        name = key.removeprefix("connections.")
        for field, value in loaded.settings.connections[name].set_fields.items():
            shown = dict.fromkeys(value, "...") if field == "headers" else _plain(value)
            rows.append(ShownSetting(f"{key}.{field}", shown, where))
    return rows


def shown_value(key: str, value: Any) -> Any:
    """A setting's value without the password that may be in it."""
    return without_password(value) if key == DATABASE_KEY else value


def env_variable(key: str) -> str:
    short = {"models.main": "HANDRAIL_MODEL", DATABASE_KEY: "HANDRAIL_DATABASE"}
    return short.get(key) or "HANDRAIL_" + key.upper().replace(".", "_")


def _workspace_settings(workspace: Path | None, files: tuple[WorkspaceFile, ...]) -> TomlFile | None:
    """The workspace's settings, from exactly the bytes whose hash was checked."""
    found = next((each.data for each in files if each.name == WORKSPACE_SETTINGS.as_posix()), None)
    return parse_toml(workspace / WORKSPACE_SETTINGS, found) if workspace and found is not None else None


def _plain(value: Any) -> Any:
    """The value as it was written, without defaults."""
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    if not isinstance(value, Value):
        return value
    found = ((each, getattr(value, each.name)) for each in fields(value))
    return {each.name: one for each, one in found if one != each.default}


def _hooks(
    entry: _Entry, places: Places, workspace: Path | None, workspace_files: tuple[WorkspaceFile, ...]
) -> Iterable[Hook]:
    """The hooks of one file, with the hashes of the workspace's files as they were checked."""
    folder, files = places.settings.parent, dict[str, str]()
    if workspace and entry.source.layer == "workspace":
        folder = workspace / WORKSPACE_SETTINGS.parent
        files = {each.name: each.sha256 for each in workspace_files}
    return (Hook(settings, folder, entry.source.place, files) for settings in entry.value)


def _in_file(file: TomlFile | None, layer: Layer) -> Iterable[_Entry]:
    if file is None:
        return
    settings = validate(file.data, file.place)
    for number, hook in enumerate(settings.hooks):
        yield _Entry(HOOKS_KEY, (hook,), Source(layer, file.place((HOOKS_KEY, str(number)))))
    for key in setting_keys():
        if _is_written(file, key) and key != HOOKS_KEY:
            yield _Entry(key, _value(settings, key), Source(layer, file.place(tuple(key.split(".")))))
    for name, connection in settings.connections.items():
        yield _Entry(f"connections.{name}", connection, Source(layer, file.place(("connections", name))))


def _is_written(file: TomlFile, key: str) -> bool:
    inner: Any = file.data
    for part in key.split("."):
        if part not in inner:
            return False
        inner = inner[part]
    return True


def _in_environment(environ: Mapping[str, str]) -> Iterable[_Entry]:
    if environ.get("NO_COLOR"):
        yield _Entry("display.color", "never", Source(layer="environment", place="NO_COLOR"))
    for key in setting_keys():
        name = env_variable(key)
        text = environ.get(name)
        if text and key == HOOKS_KEY:
            raise ConfigProblem(f"{name} has no effect: write hooks into a settings file.")
        if text:
            yield _Entry(key, parse_value(key, text, name), Source(layer="environment", place=name))


def _in_flags(flags: Mapping[str, Any]) -> Iterable[_Entry]:
    for key, flag in flags.items():
        if key.startswith("connections") or key == HOOKS_KEY:
            raise UsageProblem(f"{key} cannot be given as a flag; write it into the settings file.")
        value = parse_value(key, flag) if isinstance(flag, str) else flag
        settings = validate(nested({key: value}), lambda _: "")
        yield _Entry(key, _value(settings, key), Source("flag"))


def _value(settings: Settings, key: str) -> Any:
    return reduce(getattr, key.split("."), settings)


def _tree(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values by key as one document. A connection stays whole, so no layer can alter another's."""
    prefix = "connections."
    plain = {key: value for key, value in values.items() if not key.startswith(prefix)}
    whole = {key.removeprefix(prefix): value for key, value in values.items() if key.startswith(prefix)}
    return {**nested(plain), "connections": whole}
