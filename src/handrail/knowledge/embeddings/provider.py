"""Vectors from a provider's model, over its OpenAI-compatible endpoint for embeddings."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import anyio
from msgspec import Struct, ValidationError, convert

from handrail.config.credentials import Credentials, find_credential
from handrail.config.places import Places
from handrail.config.settings import Settings
from handrail.knowledge.base import EmbeddingModel, Encoder
from handrail.knowledge.embeddings.model import missing_numpy
from handrail.models.connect import needs_key
from handrail.models.prices import listed_cost
from handrail.models.providers import Connection, all_connections, resolve_model
from handrail.models.wire.transport import Transport
from handrail.protocol.errors import Authenticate, ConfigProblem, GiveUp
from handrail.protocol.values import Usage

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

BATCH = 64
"""Texts in one request."""
SECONDS = 60.0
MAX_CHARACTERS = 8_000
"""Of one text; the rest does not count."""
CHARACTERS_A_TOKEN = 4


class _Row(Struct):
    index: int
    embedding: list[float]


class _Answer(Struct):
    data: list[_Row]


class ProviderEncoder:
    """Sends texts to a provider, and nothing but texts."""

    def __init__(self, connection: Connection, model: str, key: str) -> None:
        self._connection = connection
        self._model = model
        self._key = key

    def encode(self, texts: Sequence[str]) -> "Vectors":
        """One vector for each text, of as many numbers as the model gives; raises ModelProblem."""
        return anyio.run(self._encode, [text[:MAX_CHARACTERS] or " " for text in texts])

    async def _encode(self, texts: list[str]) -> "Vectors":
        import numpy as np

        rows: list[list[float]] = []
        wire = Transport(self._connection, self._key)
        try:
            for start in range(0, len(texts), BATCH):
                rows += await self._ask(wire, texts[start : start + BATCH])
        finally:
            await wire.aclose()
        if len({len(row) for row in rows}) != 1 or not rows[0]:
            raise GiveUp(f"{self._model} gave vectors of different lengths. Choose another model.")
        found = np.array(rows, np.float32)
        found /= np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-12)
        if not np.isfinite(found).all():
            raise GiveUp(f"{self._model} gave a vector with something that is no number.")
        return found

    async def _ask(self, wire: Transport, texts: list[str]) -> list[list[float]]:
        url = f"{self._connection.base_url}/embeddings"
        answer = await wire.get_json(url, SECONDS, {"model": self._model, "input": texts})
        try:
            rows = {row.index: row.embedding for row in convert(answer, _Answer).data}
        except ValidationError as error:
            raise GiveUp(f"{url} did not answer with embeddings ({error}).") from error
        if sorted(rows) != list(range(len(texts))):
            raise GiveUp(f"{url} answered with {len(rows)} embeddings for {len(texts)} texts.")
        return [rows[index] for index in range(len(texts))]


def provider_model(settings: Settings, places: Places, environ: Mapping[str, str]) -> EmbeddingModel:
    """The model that `knowledge.embeddings` names; nothing is sent yet. May raise ConfigProblem."""
    connection, model = resolve_model(settings.knowledge.embeddings, all_connections(settings.connections))
    if connection.provider or connection.protocol != "openai":
        raise ConfigProblem(
            f"{connection.name} has no endpoint for embeddings that is known here. Set knowledge.embeddings "
            "to a model of another connection, or to nothing."
        )

    def load() -> Encoder:
        found = find_credential(Credentials(places, environ), connection.name, connection.key_env, environ)
        if not found and needs_key(connection):
            keys = " or ".join(connection.key_env)
            raise Authenticate(f"There is no key for {connection.name}. Put one into {keys}.")
        return ProviderEncoder(connection, model, found.key if found else "")

    def told(characters: int) -> str:
        tokens = characters // CHARACTERS_A_TOKEN
        usd = 0.0 if connection.local else listed_cost(Usage(input_tokens=tokens), connection.name, model)
        price = "its price is not known" if usd is None else f"about {usd:.4f} USD"
        return f"{name} gets the texts: about {tokens:,} tokens, {price}."

    name = f"{connection.name}/{model}"
    return EmbeddingModel(name, load, missing_numpy(), told)
