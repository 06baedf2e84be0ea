"""Questions about models: the small model that can be downloaded, keys, servers, and why one was chosen."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from handrail.models.embedded import model_files
from handrail.models.embedded.model_files import DEFAULT_FILE, install_runtime
from handrail.models.model_choice import REASONS, ModelChoice
from handrail.models.providers import DEFAULT_MODELS, LOCAL_PORTS, provider_of_key

if TYPE_CHECKING:
    from handrail.engine.requests.model_pool import ModelPool
    from handrail.models.embedded.download import DownloadProgress

__all__ = ["LOCAL_PORTS", "DownloadProgress", "install_runtime", "provider_of_key"]

PROVIDERS = tuple(DEFAULT_MODELS)
"""Those that a pasted key can be for."""


class SmallModel:
    """The small model that answers without a key or a network, once its file is here."""

    name = DEFAULT_FILE.model
    size = DEFAULT_FILE.size

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._environ = environ
        self._folder = model_files.models_folder(environ)

    @property
    def has_runtime(self) -> bool:
        """Whether the library that runs it is installed; `install_runtime` says what installs it."""
        return model_files.has_runtime()

    @property
    def downloaded(self) -> int:
        """Bytes of an unfinished download."""
        from handrail.models.embedded.download import downloaded_bytes

        return downloaded_bytes(DEFAULT_FILE, self._folder)

    def path(self) -> Path | None:
        """Its file, where there is one; `download` checks one in our own folder again."""
        return model_files.find_model_file(DEFAULT_FILE, self._environ)

    def is_ours(self, path: Path) -> bool:
        return path.parent == self._folder

    async def download(self, progress: "Callable[[DownloadProgress], None]") -> Path:
        """Download and check the file, or check the one that is there."""
        from handrail.models.embedded.download import download_model

        return await download_model(DEFAULT_FILE, self._folder, progress)


def chosen_by_user(choice: ModelChoice) -> bool:
    """Whether the user named this model, so that no explanation is due."""
    return choice.why in REASONS.values()


async def structured_output(pool: "ModelPool", reference: str) -> str:
    """How this model is asked for answers in JSON, as far as is known; sends no request to it."""
    from handrail.models.structured_output import structured_text

    return structured_text((await pool.named(reference)).capabilities)
