"""How the embedded model is, for the doctor: its file, its library, its child."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, NamedTuple

from handrail.models.connections import EMBEDDED
from handrail.models.embedded.checking import is_checked
from handrail.models.embedded.files import DEFAULT, ModelFile, find_file, models_folder
from handrail.models.embedded.machine import memory_limit, memory_of, threads, window
from handrail.models.embedded.notice import Notices, Running
from handrail.models.embedded.offer import FETCH, INSTALL, has_runtime
from handrail.models.embedded.partial import bytes_so_far
from handrail.protocol.errors import ConfigProblem

METRICS_SECONDS = 1.0
RATES = {"in": "llamacpp:prompt_tokens_seconds", "out": "llamacpp:predicted_tokens_seconds"}


class Report(NamedTuple):
    level: Literal["ok", "warn", "fail", "-"]
    text: str
    advice: str = ""


async def report(environment: Mapping[str, str], file: ModelFile = DEFAULT) -> Report:
    """What a user should know of it. Nothing is loaded, and the file's bytes are not read."""
    folder, name = models_folder(environment), f"{EMBEDDED}/{file.model}"
    try:
        path = find_file(file, environment)
    except ConfigProblem as problem:
        return Report("fail", f"{name} cannot be used", str(problem))
    if path is None:
        some = bytes_so_far(file, folder)
        if some:
            return Report("warn", f"{name}: {_mb(some)} of {_mb(file.size)} are here", f"{FETCH} goes on")
        return Report("-", f"{name} is not on this machine", f"{FETCH} brings it ({_mb(file.size)})")
    if path.stat().st_size != file.size:
        return Report("fail", f"{path} is damaged and is not loaded", _replace(path, folder))
    if not has_runtime():
        return Report("warn", f"{name} is here, the library that runs it is not", INSTALL)
    checked = "checked" if is_checked(file, path, folder) else "checked before it is loaded"
    running = Notices(folder / "run" / file.model).running()
    return Report("ok", f"{name}, {checked}; {await _child(running) if running else _planned(file)}")


def _planned(file: ModelFile) -> str:
    limits = _limits(threads(), memory_limit(file.size, window()))
    return f"not running, started when it is asked, with {limits}"


async def _child(running: Running) -> str:
    port = running.url.rpartition(":")[2]
    memory = memory_of(running.pid)
    used = f", {_mb(memory)} of memory" if memory else ""
    limits = _limits(running.threads, running.memory_limit)
    return f"running at port {port}{used}{await _speed(running)}; limited to {limits}"


def _limits(threads: int, memory: int) -> str:
    most = f"{_mb(memory)} of its own" if memory else "any memory"
    return f"{threads} thread{'s' * (threads != 1)} and {most}"


async def _speed(running: Running) -> str:
    """Tokens a second over all answers of this child; empty before the first."""
    import httpx2

    try:
        async with httpx2.AsyncClient(trust_env=False, verify=False, timeout=METRICS_SECONDS) as client:
            headers = {"authorization": f"Bearer {running.key}"}
            text = (await client.get(f"{running.url}/metrics", headers=headers)).text
    except httpx2.HTTPError:
        return ", but it does not answer"
    rates = {}
    for word, metric in RATES.items():
        if (found := re.search(rf"^{metric} ([\d.]+)$", text, re.MULTILINE)) and float(found[1]):
            rates[word] = float(found[1])
    return f", {', '.join(f'{rate:.0f} tokens/s {word}' for word, rate in rates.items())}" if rates else ""


def _replace(path: Path, folder: Path) -> str:
    return f"{FETCH} replaces it" if path.parent == folder else "unset HANDRAIL_LOCAL_MODEL"


def _mb(count: int) -> str:
    return f"{count / 1e6:,.0f} MB"
