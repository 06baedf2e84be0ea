"""The words that start a command under the launcher: confined by Landlock, or only ended completely."""

import binascii
import marshal
import os
import sys
import zlib
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from typing import Any

from handrail.tools.sandbox import protected_paths
from handrail.tools.sandbox.limits import FILE_BYTES, OPEN_FILES, PROCESSES
from handrail.tools.sandbox.protected_paths import SandboxSetup

LAUNCHER_MODULES = ("syscall_filter", "syscall_supervisor", "landlock_launcher", "fork_server")
LAUNCH_CODE = """
import binascii, marshal, sys, zlib
for name, code in marshal.loads(zlib.decompress(binascii.a2b_base64({code!r}))):
    module = sys.modules[name] = type(sys)(name)
    exec(code, vars(module))
module.main(sys.argv[1:])
"""
"""Runs without the user's and site packages, which take time to import."""


@cache
def launch_code() -> str:
    """The launcher as program text: read once, so that no later change of its files counts."""
    found = []
    for name in (f"{__package__}.{module}" for module in LAUNCHER_MODULES):
        loader: Any = getattr(find_spec(name), "loader", None)
        found.append((name, loader.get_code(name)))
    packed = binascii.b2a_base64(zlib.compress(marshal.dumps(found)), newline=False)
    return LAUNCH_CODE.strip().format(code=packed)


def landlock_command(
    words: Sequence[str], setup: SandboxSetup, temp: str, *, network: bool, processes: int
) -> list[str]:
    """The command confined by Landlock; `temp` is a folder that it may write."""
    return launcher_command(landlock_options(setup, temp, network=network, processes=processes), words)


def landlock_options(setup: SandboxSetup, temp: str, *, network: bool, processes: int) -> list[str]:
    """The launcher's options for a command in this setup."""
    hidden = protected_paths.unreadable_places(setup)
    paths = {"--write": [temp], "--hide": list(hidden), "--keep": list(protected_paths.own_ways(setup))}
    if setup.reads:
        from handrail.tools.sandbox.readable_paths import readable_places

        paths["--look"] = [str(setup.workspace)]
        paths["--run"] = list(readable_places(setup))
        paths["--hide"] += protected_paths.unreadable_files(setup)
    else:
        own = () if setup.closed else (str(setup.workspace),)
        paths["--write"] = [*own, temp, *setup.writable]
    return [
        "--landlock",
        *("--file-bytes", str(FILE_BYTES), "--open-files", str(OPEN_FILES), "--processes", str(processes)),
        *(("--network",) if network else ()),
        *(() if setup.local_sockets else ("--no-local-sockets",)),
        *(word for option, given in paths.items() for path in given for word in (option, path)),
    ]


def guarded_command(words: Sequence[str], processes: int = PROCESSES) -> list[str]:
    """The command unconfined, under a launcher that ends everything it leaves behind."""
    return launcher_command(["--processes", str(processes)], words)


def launcher_command(options: Sequence[str], words: Sequence[str]) -> list[str]:
    return [*launcher_program(), "--parent", str(os.getpid()), *options, "--", *words]


def launcher_program() -> tuple[str, ...]:
    # Not the link to the interpreter in a virtual environment, whose settings name the libraries.
    return (os.path.realpath(sys.executable), "-I", "-S", "-c", launch_code())
