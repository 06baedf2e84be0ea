"""Confine the commands a model runs, and find out what the sandbox protects."""
