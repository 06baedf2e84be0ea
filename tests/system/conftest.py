"""The real small model is here as it is for the tests of its own room."""

from tests.models.embedded.conftest import models, smollm2

__all__ = ["models", "smollm2"]
