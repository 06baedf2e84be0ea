"""The server process: llama.cpp on the loopback, running as long as a client uses it.

`python -m handrail.models.embedded.server --model NAME --file PATH --folder FOLDER ...` takes the server's
lock, goes into the background, verifies and loads the file, and publishes its address. It ends by itself:
when no client came for the grace period, when its notice is gone, or when it hangs.
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

from handrail.config.files import try_lock
from handrail.models.embedded.model_files import KNOWN_FILES, verify_file
from handrail.models.embedded.server_files import EXIT_ANOTHER_RUNS, LOAD_SECONDS, RunningServer, ServerFiles
from handrail.models.embedded.server_process import PROMPTS_BYTES, memory_limit
from handrail.protocol.errors import HandrailError

NICENESS = 2
"""Keeps the machine responsive without starving the server."""
HANG_SECONDS = 60
WATCH_SECONDS = 0.25
LOCK_SECONDS = 1.0
LOG_BYTES = 1_000_000
BATCH = 128
"""Tokens processed between progress reports and checks for cancellation."""


def main() -> None:
    options = _options()
    files = ServerFiles(options.folder)
    limit = time.monotonic() + LOCK_SECONDS
    while (lock := try_lock(files.server_lock)) is None and time.monotonic() < limit:
        time.sleep(0.02)  # others that are no server hold it only for moments
    if lock is None:
        sys.exit(EXIT_ANOTHER_RUNS)
    files.server.unlink(missing_ok=True)
    _redirect_output(files.log)
    # The starter waits for this process, and then knows that the lock is taken; the fork leaves no zombie.
    if os.fork():
        os._exit(0)
    status = 1
    try:
        _serve(options, files)
        status = 0
    except HandrailError as problem:
        _log(f"Error: {problem}")
    except Exception:  # noqa: BLE001 the log is the only place that can tell
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)  # without waiting for the library's threads; the system frees lock and memory


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="handrail.models.embedded.server", description=__doc__)
    parser.add_argument("--model", required=True, choices=KNOWN_FILES)
    for name in ("--file", "--stamps", "--folder"):
        parser.add_argument(name, required=True, type=Path)
    for name in ("--window", "--threads"):
        parser.add_argument(name, required=True, type=int)
    parser.add_argument("--grace", required=True, type=float)
    return parser.parse_args()


def _redirect_output(log: Path) -> None:
    if log.exists():
        log.replace(log.with_suffix(".log.old"))
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    for stream in (1, 2):
        os.dup2(descriptor, stream)
    os.close(descriptor)


def _serve(options: argparse.Namespace, files: ServerFiles) -> None:
    file = KNOWN_FILES[options.model]
    with suppress(OSError):
        os.nice(NICENESS)
    limit = memory_limit(file.size, options.window)
    try:
        # Then this process fails, and not the machine.
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    except (OSError, ValueError):
        limit = 0
    # Python cannot run while the library loads: only the system's alarm ends a load that hangs.
    signal.alarm(LOAD_SECONDS)
    for _ in verify_file(file, options.file, options.stamps):
        pass
    key = secrets.token_urlsafe(32)
    server = _load(options, key)
    running = RunningServer(
        pid=os.getpid(),
        url=server.listening_address,
        key=key,
        context_window=options.window,
        threads=options.threads,
        memory_limit=limit,
    )
    files.publish(running)
    _watch(files, running, options.grace)


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
    # Edits repeat much of the prompt: after four equal tokens, the next six are guessed and tried at once.
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


def _watch(files: ServerFiles, running: RunningServer, grace: float) -> None:
    """Return when no client came for the grace period, or the notice is gone."""
    seen, left = 0, time.monotonic() + grace
    while True:
        signal.alarm(HANG_SECONDS)
        with suppress(OSError):
            if files.log.stat().st_size > LOG_BYTES:
                os.truncate(files.log, 0)
        if files.running() != running:
            _log("the notice is gone")
            return
        alone = try_lock(files.clients_lock)
        touched = files.clients_lock.stat().st_mtime_ns
        if alone is None or touched != seen:
            seen, left = touched, time.monotonic() + grace
        elif time.monotonic() > left:
            # A client that comes now waits for the lock until this process has ended, then starts another.
            files.server.unlink(missing_ok=True)
            _log(f"no client for {grace:g} s")
            return
        if alone is not None:
            alone.release()
        time.sleep(WATCH_SECONDS)


def _log(text: str) -> None:
    sys.stderr.write(f"{text}\n")


if __name__ == "__main__":
    main()
