"""all-MiniLM-L6-v2 in numpy: texts to normalised vectors of 384 numbers (mean pooling)."""

import json
import math
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from handrail.config.open_file import read_file
from handrail.protocol.errors import GiveUp

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

LAYERS, HEADS, WIDTH, INNER = 6, 12, 384, 1536
HEAD = WIDTH // HEADS
MAX_TOKENS = 256
"""What the model was trained for; the rest of a longer text does not count."""
EPSILON = 1e-12
WORD_TABLE = "embeddings.word_embeddings.weight"
BATCH_TOKENS = 4_096
MAX_TOKENIZER = 5_000_000
THREADS = min(4, os.cpu_count() or 1)
GELU_LIMIT, GELU_STEPS = 8.0, 1 << 16


class MiniLM:
    """The model, loaded from its file and the tokenizer's; about 100 MB of memory."""

    def __init__(self, weights: Path, tokenizer: Path) -> None:
        from tokenizers import Tokenizer

        try:
            self._tokenizer = Tokenizer.from_str(read_file(tokenizer, MAX_TOKENIZER).decode())
            self._weights = _load_safetensors(weights)
        except (OSError, ValueError, KeyError) as error:
            raise GiveUp(f"The embedding model in {weights.parent} cannot be loaded: {error}.") from error
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(MAX_TOKENS)
        self._gelu = _gelu_table()
        self._layers = [_Layer(self._weights, number) for number in range(LAYERS)]

    def encode(self, texts: Sequence[str]) -> "Vectors":
        """One vector for each text."""
        import numpy as np

        tokens = [each.ids for each in self._tokenizer.encode_batch(list(texts))]
        found = np.empty((len(texts), WIDTH), np.float32)
        # Texts of about the same length together: the others need no padding to theirs.
        order = sorted(range(len(tokens)), key=lambda index: len(tokens[index]))
        batches: list[list[int]] = []
        while order:
            count = max(1, BATCH_TOKENS // len(tokens[order[-1]]))
            batches.append(order[-count:])
            order = order[:-count]

        def run(batch: list[int]) -> None:
            found[batch] = self._encode([tokens[index] for index in batch], len(tokens[batch[-1]]))

        if len(batches) == 1:
            run(batches[0])
        else:
            with ThreadPoolExecutor(THREADS) as threads:
                list(threads.map(run, batches))
        return found

    def _encode(self, batch: list[list[int]], longest: int) -> "Vectors":
        import numpy as np

        ids = np.zeros((len(batch), longest), np.int64)
        mask = np.zeros((len(batch), longest), np.float32)
        for row, tokens in enumerate(batch):
            ids[row, : len(tokens)] = tokens
            mask[row, : len(tokens)] = 1
        weights = self._weights
        state = weights[WORD_TABLE][ids]
        state += weights["embeddings.position_embeddings.weight"][:longest]
        state += weights["embeddings.token_type_embeddings.weight"][0]
        state = _normalise(state.reshape(-1, WIDTH), weights, "embeddings.LayerNorm")
        hidden = (mask - 1)[:, None, None, :] * 1e9 if mask.min() == 0 else None
        for layer in self._layers:
            state = layer.run(state, len(batch), hidden, self._gelu)
        tokens_state = state.reshape(len(batch), longest, WIDTH)
        pooled: Vectors = (tokens_state * mask[:, :, None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
        pooled /= np.maximum(np.linalg.norm(pooled, axis=1, keepdims=True), 1e-12)
        return pooled


class _Layer:
    """One layer of the transformer."""

    def __init__(self, weights: "dict[str, Vectors]", number: int) -> None:
        import numpy as np

        self._weights, self._name = weights, f"encoder.layer.{number}"
        parts = [f"{self._name}.attention.self.{part}" for part in ("query", "key", "value")]
        self._attend = np.concatenate([weights[f"{part}.weight"] for part in parts]).T.copy()
        self._attend_bias = np.concatenate([weights[f"{part}.bias"] for part in parts])
        self._attend[:, :WIDTH] /= math.sqrt(HEAD)
        self._attend_bias[:WIDTH] /= math.sqrt(HEAD)

    def run(self, state: "Vectors", texts: int, hidden: "Vectors | None", gelu: "Vectors") -> "Vectors":
        import numpy as np

        mixed = state @ self._attend
        mixed += self._attend_bias
        query, key, value = mixed.reshape(texts, -1, 3, HEADS, HEAD).transpose(2, 0, 3, 1, 4)
        scores = query @ key.transpose(0, 1, 3, 2)
        if hidden is not None:
            scores += hidden
        scores -= scores.max(axis=-1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=-1, keepdims=True)
        seen = (scores @ value).transpose(0, 2, 1, 3).reshape(-1, WIDTH)
        state = self._add(state, seen, "attention.output")
        inner = self._dense(state, "intermediate.dense")
        # A table instead of the error function: exact to 0.0002, and several times as fast.
        inner += GELU_LIMIT
        inner *= (GELU_STEPS - 1) / (2 * GELU_LIMIT)
        high = inner > GELU_STEPS - 1
        large = inner[high] / ((GELU_STEPS - 1) / (2 * GELU_LIMIT)) - GELU_LIMIT if high.any() else None
        inner = gelu[np.clip(inner, 0, GELU_STEPS - 1, out=inner).astype(np.uint16)]
        if large is not None:
            inner[high] = large
        return self._add(state, inner, "output")

    def _add(self, state: "Vectors", result: "Vectors", part: str) -> "Vectors":
        total = self._dense(result, f"{part}.dense")
        total += state
        return _normalise(total, self._weights, f"{self._name}.{part}.LayerNorm")

    def _dense(self, state: "Vectors", part: str) -> "Vectors":
        result: Vectors = state @ self._weights[f"{self._name}.{part}.weight"].T
        result += self._weights[f"{self._name}.{part}.bias"]
        return result


def _normalise(state: "Vectors", weights: "dict[str, Vectors]", name: str) -> "Vectors":
    import numpy as np

    state -= state.mean(axis=1, keepdims=True)
    state /= np.sqrt(np.einsum("ij,ij->i", state, state)[:, None] / WIDTH + EPSILON)
    state *= weights[f"{name}.weight"]
    state += weights[f"{name}.bias"]
    return state


def _gelu_table() -> "Vectors":
    import numpy as np

    step = 2 * GELU_LIMIT / (GELU_STEPS - 1)
    points = [(index + 0.5) * step - GELU_LIMIT for index in range(GELU_STEPS)]
    return np.array([x * 0.5 * (1 + math.erf(x / math.sqrt(2))) for x in points], np.float32)


def _load_safetensors(path: Path) -> "dict[str, Vectors]":
    """The tensors by name, mapped from the file."""
    import numpy as np

    data = np.memmap(path, np.uint8, "r")
    length = int.from_bytes(data[:8].tobytes(), "little")
    header = json.loads(data[8 : 8 + length].tobytes())
    header.pop("__metadata__", None)
    found: dict[str, Vectors] = {}
    for name, tensor in header.items():
        if tensor["dtype"] == "F32":
            start, end = tensor["data_offsets"]
            array = np.frombuffer(data, np.float32, (end - start) // 4, 8 + length + start)
            # The file does not align its numbers, and numpy is slow with such. Of the largest tensor only the
            # rows of the words are ever used.
            aligned = array if name == WORD_TABLE else array.copy()
            found[name] = aligned.reshape(tensor["shape"])
    return found
