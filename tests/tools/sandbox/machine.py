"""Every sandbox that works on this machine, found as the program finds it."""

import os
from collections.abc import Iterable

import anyio
from msgspec.json import decode

from handrail.config.places import find_places
from handrail.protocol.values import to_json
from handrail.storage.scratch import write_cached
from handrail.tools.sandbox.probe import probe_bubblewrap, probe_landlock
from handrail.tools.sandbox.sandbox import Protection, machine_fingerprint

_found: list[Protection] = []


def probed() -> list[Protection]:
    """Both as found, looked for once."""

    async def both() -> list[Protection]:
        return [await probe_bubblewrap(), await probe_landlock()]

    if not _found:
        _found.extend(anyio.run(both))
    return _found


def told(found: Iterable[str]) -> None:
    """Take over what another process has found."""
    _found[:] = [decode(each, type=Protection) for each in found]


def working() -> tuple[Protection, ...]:
    return tuple(found for found in probed() if found.active)


def offer(protection: Protection) -> None:
    """Let the program find this sandbox, as if it had looked."""
    data = find_places(os.environ).data
    data.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_cached(data / "sandbox.json", machine_fingerprint(), to_json(protection))
