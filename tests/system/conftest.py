"""The real small models are here as they are for the tests of their own room."""

from tests.models.embedded.conftest import alone, models, qwen, smollm2

__all__ = ["alone", "models", "qwen", "smollm2"]
