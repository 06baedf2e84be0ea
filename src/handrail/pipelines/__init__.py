"""Pipelines: what becomes of a message, as data."""
