"""Scratch copies of a workspace: commands see one at the path of the workspace itself."""
