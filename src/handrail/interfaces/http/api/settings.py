"""Settings of the user, and trust in what came with the workspace."""

from typing import Annotated, Any

from msgspec import Meta, field

from handrail.config.layers import IgnoredSetting, LoadedSettings, load_settings, shown_settings, shown_value
from handrail.config.skills import SkillFolders
from handrail.config.sources import SourceFolders
from handrail.config.toml_edit import save_setting
from handrail.config.trust import (
    revoke,
    trust,
    trust_agents,
    trust_commands,
    trust_skills,
    trust_sources,
)
from handrail.interfaces.http.api.own_commands import own_commands
from handrail.interfaces.http.endpoint import Call, Endpoint
from handrail.interfaces.http.errors import ApiError, not_found
from handrail.protocol.values import Value


class Setting(Value):
    key: str
    value: Any
    where: str
    """Where it was set: `default`, a file with its line, or a variable."""


class SettingList(Value):
    settings: tuple[Setting, ...]
    ignored: tuple[IgnoredSetting, ...]
    """Settings of the workspace that have no effect before they are trusted."""
    file: str
    """The user's settings file."""


def _load(call: Call) -> LoadedSettings:
    return load_settings(call.app.places, call.workspace.root, environ=call.workspace.environ)


async def list_settings(call: Call) -> SettingList:
    """Every setting, its value and where it was set."""
    loaded = _load(call)
    rows = tuple(Setting(each.key, each.value, each.where) for each in shown_settings(loaded))
    return SettingList(rows, loaded.ignored, str(call.app.places.settings))


class NewValue(Value):
    value: Annotated[str, Meta(max_length=10_000)]
    """As it would be typed: `on`, `12`, `pytest -q`; lists in brackets."""


class SavedSetting(Value):
    key: str
    value: Any
    file: str
    applied: bool
    """False while a turn runs: it counts after that."""


async def set_setting(call: Call, body: NewValue) -> SavedSetting:
    """Set one key in the user's settings file."""
    key = call.names["key"]
    if key not in {row.key for row in shown_settings(_load(call))}:
        raise not_found(f"There is no setting {key!r}.", "GET settings lists them.")
    value = save_setting(call.app.places, key, body.value)
    applied = await call.server.reopen_all()
    return SavedSetting(key, shown_value(key, value), str(call.app.places.settings), applied)


class UntrustedFile(Value):
    name: str
    sha256: str


class UntrustedAgent(Value):
    name: str
    sha256: str
    changed: bool


class UntrustedCommand(Value):
    name: str
    sha256: str
    changed: bool
    text: str
    """The message that it sends."""


class UntrustedSource(Value):
    name: str
    sha256: str
    changed: bool
    rights: tuple[str, ...]
    """All that is trusted with it, in lines."""


class TrustReport(Value):
    """What came with the workspace and has no effect before it is trusted."""

    settings: tuple[IgnoredSetting, ...]
    files: tuple[UntrustedFile, ...]
    agents: tuple[UntrustedAgent, ...]
    commands: tuple[UntrustedCommand, ...]
    wrong: dict[str, str]
    """Agents, skills and sources whose files are wrong, and why."""
    skills: tuple[UntrustedAgent, ...]
    sources: tuple[UntrustedSource, ...]


async def show_trust(call: Call) -> TrustReport:
    """What in the workspace waits for trust."""
    return _report(call, _load(call))


def _report(call: Call, loaded: LoadedSettings) -> TrustReport:
    from handrail.app.extensions.agents import Agents
    from handrail.app.extensions.sources import source_rights

    untrusted, wrong = Agents(call.workspace.root, call.workspace.environ).untrusted()
    commands = own_commands(call.app).untrusted()
    skills, broken = SkillFolders(call.app.places, call.workspace.root).untrusted()
    sources, unreadable = SourceFolders(call.app.places, call.workspace.root).untrusted()
    return TrustReport(
        loaded.ignored,
        untrusted_files(loaded),
        tuple(UntrustedAgent(a.slug, a.pipeline.sha256, state == "changed") for a, state in untrusted),
        tuple(
            UntrustedCommand(each.name, each.sha256, each.trust == "changed", each.body) for each in commands
        ),
        {name: str(problem) for name, problem in (*wrong.items(), *broken.items(), *unreadable.items())},
        tuple(UntrustedAgent(skill.name, skill.sha256, state == "changed") for skill, state in skills),
        tuple(
            UntrustedSource(each.name, each.sha256, state == "changed", tuple(source_rights(each)))
            for each, state in sources
        ),
    )


def untrusted_files(loaded: LoadedSettings) -> tuple[UntrustedFile, ...]:
    files = loaded.workspace_files if loaded.ignored else ()
    return tuple(UntrustedFile(each.name, each.sha256) for each in files)


class Trusted(Value):
    files: tuple[UntrustedFile, ...] = ()
    agents: dict[str, str] = field(default_factory=dict)
    """{name: sha256}"""
    commands: dict[str, str] = field(default_factory=dict)
    skills: dict[str, str] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)


async def give_trust(call: Call, body: Trusted) -> TrustReport:
    """Trust exactly what was shown, by the hashes in `GET trust`."""
    loaded = _load(call)
    shown = _report(call, loaded)
    agents = {each.name: each.sha256 for each in shown.agents}
    commands = {each.name: each.sha256 for each in shown.commands}
    skills = {each.name: each.sha256 for each in shown.skills}
    sources = {each.name: each.sha256 for each in shown.sources}
    as_shown = (
        body.agents.items() <= agents.items()
        and body.commands.items() <= commands.items()
        and body.skills.items() <= skills.items()
        and body.sources.items() <= sources.items()
    )
    if (body.files and body.files != shown.files) or not as_shown:
        raise ApiError(409, "changed", "This is not what is there now.", "Look at it again, then try again.")
    if body.files:  # the bytes that were compared, whatever is there by now
        trust(call.app.places, call.workspace.root, loaded.workspace_files)
    if body.agents:
        trust_agents(call.app.places, call.workspace.root, body.agents)
    if body.commands:
        trust_commands(call.app.places, call.workspace.root, body.commands)
    if body.skills:
        trust_skills(call.app.places, call.workspace.root, body.skills)
    if body.sources:
        trust_sources(call.app.places, call.workspace.root, body.sources)
    await call.workspace.reopen()
    return await show_trust(call)


async def end_trust(call: Call) -> TrustReport:
    """Stop trusting anything that came with the workspace."""
    revoke(call.app.places, call.workspace.root)
    await call.workspace.reopen()
    return await show_trust(call)


SETTING_ENDPOINTS = (
    Endpoint("GET", "/settings", list_settings),
    Endpoint("PUT", "/settings/{key}", set_setting),
    Endpoint("GET", "/trust", show_trust),
    Endpoint("POST", "/trust", give_trust),
    Endpoint("DELETE", "/trust", end_trust),
)
