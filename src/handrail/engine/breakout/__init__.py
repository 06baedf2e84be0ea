"""Breakout: whether a message to a paused run answers it or leaves it."""
