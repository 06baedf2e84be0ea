"""Models: one Protocol, adapters for two wire protocols, and all reading of model output."""
