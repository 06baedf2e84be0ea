"""Sources for interfaces: what there is and how it is doing; add, test, sign in, remove."""

import shlex
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from handrail.config.files import write_atomically
from handrail.config.places import make_private
from handrail.config.ready_sources import READY_SOURCES
from handrail.config.skills import plain_line
from handrail.config.sources import NAME, NAME_RULE, SOURCE_FILE, Source, SourceFile, parse_source
from handrail.config.toml_edit import toml_value
from handrail.protocol.errors import ConfigProblem, UsageProblem
from handrail.protocol.values import Value
from handrail.tools.sources.launch import SourceFailed, stored_as

if TYPE_CHECKING:
    from handrail.app.app import App

MAX_LINE = 300


class SourceRow(Value):
    name: str
    where: str
    """`yours` or `workspace`."""
    state: str
    """`on`, `off`, `untrusted`, `changed`, `hidden` or `wrong`."""
    file: str
    kind: str = ""
    """`stdio` or `http`."""
    description: str = ""
    address: str = ""
    """Its command or its URL, as it is written: without secrets."""
    rights: tuple[str, ...] = ()
    """All that is trusted with it, in lines, as `handrail trust` shows them."""
    network: bool = False
    writes: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    """Variables without a value."""
    signed_in: bool = False
    health: str = "stopped"
    """In this process: `stopped`, `starting`, `ready` or `failed`."""
    problem: str = ""
    sha256: str = ""


class TriedTool(Value):
    name: str
    description: str
    reads_only: bool
    allowed: bool


class SourceTrial(Value):
    """What came of a test of the connection."""

    name: str
    ok: bool
    problem: str = ""
    server: str = ""
    protocol: str = ""
    seconds: float = 0.0
    tools: tuple[TriedTool, ...] = ()
    changes: str = ""
    """How the tools differ from those that the user approved."""


def source_rows(app: "App") -> list[SourceRow]:
    """Every source of the user and of the workspace."""
    found, wrong = app.sources.folders.all()
    used = app.sources.folders.used()
    rows = [_row(app, each, hidden=used[each.name].path != each.path) for each in found]
    rows += [
        SourceRow(name, "", "wrong", "", problem=str(problem))
        for name, problem in wrong.items()
        if name not in used
    ]
    return rows


def _row(app: "App", source: Source, *, hidden: bool) -> SourceRow:
    file, trust = source.file, app.sources.folders.trust(source)
    waits = trust in ("untrusted", "changed")
    state = "hidden" if hidden else trust if waits else "on" if file.enabled else "off"
    health = None if hidden else app.sources.health(source.name)
    return SourceRow(
        source.name,
        source.where,
        state,
        str(source.path),
        kind=file.kind,
        description=file.description,
        address=file.url or shlex.join(file.command),
        rights=tuple(source_rights(source)),
        network=file.network or bool(file.url),
        writes=file.writes,
        missing=tuple(missing_variables(app, source)),
        signed_in=_is_signed_in(app, source),
        health=health.state if health else "stopped",
        problem=health.problem if health else "",
        sha256=source.sha256,
    )


def _is_signed_in(app: "App", source: Source) -> bool:
    from handrail.tools.sources.oauth import has_sign_in

    try:
        return bool(source.file.url) and has_sign_in(
            app.sources.opener.launch(source), app.sources.opener.credentials
        )
    except (SourceFailed, ConfigProblem):
        return False  # reported where it is used


def source_rights(source: Source) -> Iterator[str]:
    """All that is trusted with the source, in lines: what it starts or reaches, gets and may do."""
    for line in _rights(source):
        yield line.replace("\n", "\\n")


def _rights(source: Source) -> Iterator[str]:
    file, sign_in = source.file, source.file.oauth
    yield f"{'reaches' if file.url else 'runs'}: {file.url or shlex.join(file.command)}"
    for name, text in (*file.env.items(), *file.headers.items()):
        yield f"{name} = {text}"
    if file.url:
        client = f" as {sign_in.client_id}" if sign_in.client_id else ""
        scopes = f" for {', '.join(sign_in.scopes)}" if sign_in.scopes else ""
        yield f"gets your sign-in there{client}{scopes}, once you have signed in"
    if file.variables:
        yield f"gets your variables or secrets: {', '.join(file.variables)}"
    if file.command:
        writes = ", ".join(file.writes) or "nothing"
        yield f"in the sandbox; network: {'yes' if file.network else 'no'}; writes: {writes}"
    if file.trust_annotations:
        yield "its tools run without asking where it says that they only read"
    if file.tools.unasked:
        yield f"without asking in mode auto and sandbox: {', '.join(file.tools.unasked)}"
    for program, data in source.programs.items():
        yield f"{program}: {len(data):,} bytes, run as it is now"


def missing_variables(app: "App", source: Source) -> list[str]:
    """The variables of the source that have no value."""
    environ = app.sources.opener.environ
    return [name for name in source.file.required if not (_stored(app, source, name) or environ.get(name))]


def _stored(app: "App", source: Source, name: str) -> str | None:
    try:
        return app.sources.opener.credentials.get(stored_as(source, name))
    except ConfigProblem:
        return None  # reported where it is used


async def try_source(app: "App", name: str) -> SourceTrial:
    """Start or reach the source, and list its tools; it need not be switched on. Nothing is called."""
    source = app.sources.folders.find_usable(name, needed=(name,))
    began = time.monotonic()
    try:
        (await app.sources.connection(source)).try_now()
        offered = await app.sources.offered(source, again=True)
    except (SourceFailed, ConfigProblem) as problem:
        return SourceTrial(name, ok=False, problem=str(problem), seconds=time.monotonic() - began)
    health = offered.connection.health
    tools = tuple(
        TriedTool(tool, plain_line(each.description, MAX_LINE), each.reads_only, tool in offered.tools)
        for tool, each in offered.connection.tools.items()
    )
    seconds = time.monotonic() - began
    return SourceTrial(
        name,
        ok=True,
        server=health.server,
        protocol=health.protocol,
        seconds=seconds,
        tools=tools,
        changes=offered.changes,
    )


def ready_names() -> list[str]:
    return sorted(READY_SOURCES)


def definition_text(
    words: Sequence[str], *, description: str = "", network: bool = False, writes: Sequence[str] = ()
) -> str:
    """The text of a new `source.toml`, for a command or a URL."""
    is_url = len(words) == 1 and words[0].startswith(("https://", "http://"))
    keys: dict[str, object] = {"description": description} if description else {}
    keys |= {"url": words[0]} if is_url else {"command": list(words)}
    keys |= ({"network": True} if network and not is_url else {}) | (
        {"writes": list(writes)} if writes else {}
    )
    return "".join(f"{key} = {toml_value(value)}\n" for key, value in keys.items())


def add_source(app: "App", name: str, text: str = "") -> SourceFile:
    """Write a source of the user's: this definition, or the ready one of its name."""
    if not NAME.fullmatch(name):
        raise UsageProblem(f"{name[:80]!r} cannot be a source's name: {NAME_RULE}.")
    if not text and name not in READY_SOURCES:
        known = ", ".join(ready_names())
        raise UsageProblem(
            f"There is no ready definition of {name}. Ready are {known}; for others, give the command or the "
            f"URL: `handrail sources add {name} -- COMMAND ARGUMENTS`."
        )
    path = app.sources.folders.folder("yours") / name / SOURCE_FILE
    data = (text or READY_SOURCES[name]).encode()
    file = parse_source(path, data)
    make_private(path.parent)
    try:
        write_atomically(path, data, overwrite=False)
    except FileExistsError as error:
        raise UsageProblem(f"{path} exists already. Edit it, or choose another name.") from error
    except OSError as error:
        raise ConfigProblem(f"{path} cannot be written ({error.strerror}); check its permissions.") from error
    return file


def remove_source(app: "App", name: str) -> None:
    """Remove a source of the user's, with its secrets and its sign-in; of a workspace's, these alone."""
    source = app.sources.folders.named(name)
    if source.where == "yours":
        app.sources.folders.remove(source)
    credentials, prefix = app.model_pool.credentials, stored_as(source, "")
    credentials.delete(*(each for each in credentials.names() if each.startswith(prefix)))
    if source.where != "yours":
        raise UsageProblem(
            f"{name} comes with this workspace: its secrets are removed; remove it from {source.path}."
        )


def keep_secret(app: "App", name: str, variable: str, value: str) -> None:
    """Store the value of a variable of the source."""
    source = app.sources.folders.named(name)
    if variable not in source.file.variables:
        known = ", ".join(source.file.variables) or "none"
        raise UsageProblem(f"{name} has no variable {variable}. It has: {known}.")
    app.sources.opener.credentials.set(stored_as(source, variable), value)


async def sign_in(app: "App", name: str, show: Callable[[str], Awaitable[None]]) -> SourceTrial:
    """Sign in at an HTTP source: `show` gets the address that the user opens; returns when they came back."""
    from handrail.tools.sources.oauth import sign_in as signing_in

    source = app.sources.folders.find_usable(name, needed=(name,))
    if not source.file.url:
        raise UsageProblem(f"{name} is a program: there is nothing to sign in at.")
    opener = app.sources.opener
    launch, failed = opener.launch(source), ""
    async with signing_in(launch, opener.credentials, show) as auth:
        connection = await app.sources.signing_in(source, launch, auth)
        try:
            await connection.list_tools(again=True)
        except SourceFailed as problem:
            failed = str(problem)
        finally:
            await app.sources.forget(name)
    if failed:
        raise UsageProblem(failed)
    return await try_source(app, name)
