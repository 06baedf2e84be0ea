"""Confining the commands that a model wants to run, and saying what that gives."""
