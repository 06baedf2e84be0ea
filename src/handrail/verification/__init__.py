"""Checks of a tree by the project's own tools, and what they found."""
