"""What this machine can give to a model: cores, memory, and the window that fits."""

import os
from contextlib import suppress
from pathlib import Path

MOST_THREADS = 8
"""Beyond this, reading from memory is what takes the time."""
WINDOW = 8192
SMALL_WINDOW = 4096
SPACIOUS = 3_000_000_000
"""Bytes of free memory from which on the whole window is offered."""
PROMPTS_BYTES = 256 << 20
"""Memory for prompts read earlier, so that sessions taking turns do not read theirs again."""
KV_BYTES = 32_768
"""Memory for a token of context, generously."""
SPARE_BYTES = 1_500_000_000


def threads() -> int:
    """How many threads calculate: one a real core, within what this process may use."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(usable, _real_cores() or usable, _quota() or usable, MOST_THREADS))


def window() -> int:
    """Tokens of context that fit into the free memory."""
    free = free_memory()
    return WINDOW if free is None or free >= SPACIOUS else SMALL_WINDOW


def memory_limit(file_size: int, window: int) -> int:
    """Bytes that a child may have of its own: it may copy its file, and must hold prompts and a window."""
    return file_size + PROMPTS_BYTES + window * KV_BYTES + SPARE_BYTES


def free_memory() -> int | None:
    """Bytes that programs can still have; None where the system does not tell."""
    kilobytes = _field(Path("/proc/meminfo"), "MemAvailable")
    return kilobytes * 1024 if kilobytes is not None else None


def memory_of(pid: int) -> int | None:
    """Bytes that a process has in memory, its file included; None where the system does not tell."""
    kilobytes = _field(Path(f"/proc/{pid}/status"), "VmRSS")
    return kilobytes * 1024 if kilobytes is not None else None


def _field(path: Path, name: str) -> int | None:
    with suppress(OSError, ValueError):
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1])
    return None


def _real_cores() -> int:
    """Cores without their second threads, which share the same arithmetic; 0 where not known."""
    cores = set()
    for core in Path("/sys/devices/system/cpu").glob("cpu[0-9]*/topology"):
        with suppress(OSError):
            ids = [(core / name).read_text(encoding="utf-8") for name in ("physical_package_id", "core_id")]
            cores.add(tuple(ids))
    return len(cores)


def _quota() -> int:
    """Cores that a container is allowed; 0 without such a limit."""
    with suppress(OSError, ValueError):
        limit, period = Path("/sys/fs/cgroup/cpu.max").read_text(encoding="utf-8").split()
        return max(1, int(limit) // int(period))
    return 0
