"""Pipelines: definitions of what happens to a message, as data."""
