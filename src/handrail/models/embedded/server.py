"""The child: a llama.cpp server on the loopback that lives as long as somebody uses it.

`python -m handrail.models.embedded.server --model NAME --file PATH --folder FOLDER ...` takes the lock that
there is one child of, goes into the background, checks the file, loads it, tells where it answers, and ends:
when no client has been there for the grace, when its notice is gone, or when it hangs. Nobody has to stop it.
"""

import argparse
import os
import resource
import secrets
import signal
import sys
import time
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any

from handrail.models.embedded.checking import check
from handrail.models.embedded.files import KNOWN
from handrail.models.embedded.locks import Lock, try_lock
from handrail.models.embedded.machine import PROMPTS_BYTES, memory_limit
from handrail.models.embedded.notice import ANOTHER_RUNS, LOAD_SECONDS, Notices, Running
from handrail.protocol.errors import HandrailError

NICENESS = 2
"""Enough for the rest of the machine to stay quick, and little enough not to be starved by it."""
HANG_SECONDS = 60
WATCH_SECONDS = 0.25
LOCK_SECONDS = 1.0
LOG_BYTES = 1_000_000
BATCH = 128
"""Tokens read between two reports of progress, and before a cancel is noticed."""


def main() -> None:
    options = _options()
    notices = Notices(options.folder)
    lock = _only_one(notices)
    if lock is None:
        sys.exit(ANOTHER_RUNS)
    notices.server.unlink(missing_ok=True)
    _write_to(notices.log)
    # The starter waits for this process and then knows that the lock is taken; the child is nobody's zombie.
    if os.fork():
        os._exit(0)
    status = 1
    try:
        _serve(options, notices)
        status = 0
    except HandrailError as problem:
        _say(f"Error: {problem}")
    except Exception:  # noqa: BLE001 the log is the only place that can tell
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(
            status
        )  # the library's threads need no goodbye, and lock and memory are the system's to free


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="handrail.models.embedded.server", description=__doc__)
    parser.add_argument("--model", required=True, choices=KNOWN)
    parser.add_argument("--file", required=True, type=Path)
    parser.add_argument("--stamps", required=True, type=Path)
    parser.add_argument("--folder", required=True, type=Path)
    parser.add_argument("--window", required=True, type=int)
    parser.add_argument("--threads", required=True, type=int)
    parser.add_argument("--grace", required=True, type=float)
    return parser.parse_args()


def _only_one(notices: Notices) -> Lock | None:
    """The lock of the one child; None where another has it. A look at it by others lasts no time."""
    limit = time.monotonic() + LOCK_SECONDS
    while (lock := try_lock(notices.server_lock)) is None and time.monotonic() < limit:
        time.sleep(0.02)
    return lock


def _write_to(log: Path) -> None:
    if log.exists():
        log.replace(log.with_suffix(".log.old"))
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    for stream in (1, 2):
        os.dup2(descriptor, stream)
    os.close(descriptor)


def _serve(options: argparse.Namespace, notices: Notices) -> None:
    file = KNOWN[options.model]
    with suppress(OSError):
        os.nice(NICENESS)
    limit = _limited(memory_limit(file.size, options.window))
    # The library keeps Python waiting while it loads: only the system's own alarm ends a load that hangs.
    signal.alarm(LOAD_SECONDS)
    for _ in check(file, options.file, options.stamps):
        pass
    key = secrets.token_urlsafe(32)
    server = _load(options, key)
    running = Running(
        pid=os.getpid(),
        url=server.listening_address,
        key=key,
        context_window=options.window,
        threads=options.threads,
        memory_limit=limit,
    )
    notices.publish(running)
    _watch(notices, running, options.grace)


def _limited(limit: int) -> int:
    """Have no more memory of our own: beyond it this process ends, not the machine. 0: it is not limited."""
    try:
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    except (OSError, ValueError):
        return 0
    return limit


def _load(options: argparse.Namespace, key: str) -> Any:
    import xllamacpp  # type: ignore[import-untyped]

    params = xllamacpp.CommonParams()
    params.model.path = str(options.file)
    params.model_alias = {options.model}
    params.n_ctx = options.window
    params.n_parallel = 1
    params.n_batch = params.n_ubatch = BATCH
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = options.threads
    params.fit_params = False
    # Edits repeat much of what was read: after four equal tokens the next six are guessed and tried at once.
    params.speculative.types = [xllamacpp.common_speculative_type.COMMON_SPECULATIVE_TYPE_NGRAM_SIMPLE]
    params.speculative.ngram_simple.size_n = 4
    params.speculative.ngram_simple.size_m = 6
    params.cache_ram_mib = PROMPTS_BYTES >> 20
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [key]
    params.use_jinja = True
    params.endpoint_metrics = True
    params.ui = False
    params.offline = True
    return xllamacpp.Server(params)


def _watch(notices: Notices, running: Running, grace: float) -> None:
    """Until nobody has been there for the grace, or the notice is gone."""
    seen, left = 0, time.monotonic() + grace
    while True:
        signal.alarm(HANG_SECONDS)
        _bound(notices.log)
        if notices.running() != running:
            _say("the notice is gone")
            return
        alone = try_lock(notices.clients_lock)
        touched = notices.clients_lock.stat().st_mtime_ns
        if alone is None or touched != seen:
            seen, left = touched, time.monotonic() + grace
        elif time.monotonic() > left:
            # Whoever comes now waits for the lock until this process is gone, and then starts another.
            notices.server.unlink(missing_ok=True)
            _say(f"nobody for {grace:g} s")
            return
        if alone is not None:
            alone.release()
        time.sleep(WATCH_SECONDS)


def _bound(log: Path) -> None:
    with suppress(OSError):
        if log.stat().st_size > LOG_BYTES:
            os.truncate(log, 0)


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


if __name__ == "__main__":
    main()
