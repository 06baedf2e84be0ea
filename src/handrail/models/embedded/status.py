"""Status of the embedded model for `handrail doctor`: its file, its library, its process."""

import re
from collections.abc import Mapping
from typing import Literal, NamedTuple

from handrail.models.embedded.download import downloaded_bytes
from handrail.models.embedded.model_files import (
    DEFAULT_FILE,
    FETCH_COMMAND,
    ModelFile,
    find_model_file,
    has_runtime,
    install_runtime,
    is_verified,
    models_folder,
)
from handrail.models.embedded.server_files import RunningServer, ServerFiles
from handrail.models.embedded.server_process import fitting_window, memory_limit, process_memory, thread_count
from handrail.models.providers import EMBEDDED
from handrail.protocol.errors import ConfigProblem

RATES = {"in": "llamacpp:prompt_tokens_seconds", "out": "llamacpp:predicted_tokens_seconds"}


class EmbeddedStatus(NamedTuple):
    level: Literal["ok", "warn", "fail", "-"]
    text: str
    advice: str = ""


async def embedded_status(environment: Mapping[str, str], file: ModelFile = DEFAULT_FILE) -> EmbeddedStatus:
    """The status for the user. Nothing is loaded, and the file's bytes are not read."""
    folder, name = models_folder(environment), f"{EMBEDDED}/{file.model}"
    try:
        path = find_model_file(file, environment)
    except ConfigProblem as problem:
        return EmbeddedStatus("fail", f"{name} cannot be used", str(problem))
    size = _megabytes(file.size)
    if path is None and (some := downloaded_bytes(file, folder)):
        text = f"{name}: {_megabytes(some)} of {size} are downloaded"
        return EmbeddedStatus("warn", text, f"{FETCH_COMMAND} continues")
    if path is None:
        return EmbeddedStatus("-", f"{name} is not on this machine", f"{FETCH_COMMAND} downloads it ({size})")
    if path.stat().st_size != file.size:
        own = path.parent == folder
        advice = f"{FETCH_COMMAND} replaces it" if own else "unset HANDRAIL_LOCAL_MODEL"
        return EmbeddedStatus("fail", f"{path} is damaged and is not loaded", advice)
    if not has_runtime():
        return EmbeddedStatus("warn", f"{name} is here, but not the library that runs it", install_runtime())
    checked = "verified" if is_verified(file, path, folder) else "verified before it is loaded"
    running = ServerFiles(folder / "run" / file.model).running()
    if running:
        port, memory = running.url.rpartition(":")[2], process_memory(running.pid)
        used = f", {_megabytes(memory)} of memory" if memory else ""
        limits = _limits(running.threads, running.memory_limit)
        now = f"running at port {port}{used}{await _speed(running)}; limited to {limits}"
        return EmbeddedStatus("ok", f"{name}, {checked}; {now}")
    limits = _limits(thread_count(), memory_limit(file.size, fitting_window()))
    return EmbeddedStatus("ok", f"{name}, {checked}; not running, started when needed, with {limits}")


def _limits(threads: int, memory: int) -> str:
    limit = f"{_megabytes(memory)} of memory" if memory else "any memory"
    return f"{threads} thread{'s' * (threads != 1)} and {limit}"


async def _speed(running: RunningServer) -> str:
    """Average tokens per second of this server; empty before the first answer."""
    import httpx2

    try:
        async with httpx2.AsyncClient(trust_env=False, verify=False, timeout=1.0) as client:
            headers = {"authorization": f"Bearer {running.key}"}
            text = (await client.get(f"{running.url}/metrics", headers=headers)).text
    except httpx2.HTTPError:
        return ", but it does not answer"
    rates = {}
    for direction, metric in RATES.items():
        if (found := re.search(rf"^{metric} ([\d.]+)$", text, re.MULTILINE)) and float(found[1]):
            rates[direction] = float(found[1])
    return "".join(f", {rate:.0f} tokens/s {direction}" for direction, rate in rates.items())


def _megabytes(count: int) -> str:
    return f"{count / 1e6:,.0f} MB"
