"""What a command that only reads can read: programs, libraries, the workspace, and what git needs.

It was judged by the paths that it names. Should one of them become a link in the meantime, the sandbox keeps
it from what is outside, and from secret files.
"""

import os
from collections.abc import Iterator
from contextlib import suppress

from handrail.tools.sandbox.protected_paths import SandboxSetup, unreadable_places

SYSTEM_FOLDERS = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/snap", "/nix", "/gnu/store"),
    *("/run/current-system", "/sys/devices/system/cpu"),
)
SYSTEM_FILES = tuple(
    f"/etc/{name}"
    for name in (
        *("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "ld.so.preload", "alternatives", "terminfo"),
        *("passwd", "group", "nsswitch.conf", "hosts", "os-release", "localtime", "timezone"),
        *("locale.alias", "locale.conf", "default/locale", "magic"),
    )
)


def readable_places(setup: SandboxSetup) -> tuple[str, ...]:
    """Existing places outside the workspace that a reading command can read; links are among them."""
    found = [*SYSTEM_FOLDERS, *SYSTEM_FILES, *_program_places(setup), *setup.readable]
    hidden = unreadable_places(setup)
    allowed = (path for path in found if not any(_is_in(path, place) for place in hidden))
    return tuple(dict.fromkeys(path for path in allowed if os.path.lexists(path)))


def _program_places(setup: SandboxSetup) -> Iterator[str]:
    """Folders of the user's own programs, and those that their links lead to."""
    for folder in setup.environ.get("PATH", "").split(os.pathsep):
        if os.path.isabs(folder) and not any(_is_in(folder, place) for place in SYSTEM_FOLDERS):
            yield from _program_root(folder, setup)
            with suppress(OSError), os.scandir(folder) as entries:
                for target in {os.path.dirname(os.path.realpath(e.path)) for e in entries if e.is_symlink()}:
                    yield from _program_root(target, setup)
    if config := setup.environ.get("RIPGREP_CONFIG_PATH"):
        yield config


def _program_root(folder: str, setup: SandboxSetup) -> Iterator[str]:
    """The folder, and for a `bin` of its own the one above, with the libraries."""
    real = os.path.realpath(folder)
    above = os.path.dirname(real)
    home = os.path.realpath(setup.environ.get("HOME") or "/")
    if os.path.basename(real) in ("bin", "sbin") and not _is_in(home, above) and above != f"{home}/.local":
        yield above
    elif real != home and not _is_in(home, real):
        yield real


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")
