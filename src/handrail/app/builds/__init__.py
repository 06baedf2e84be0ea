"""Builds, checks and checklists for interfaces."""
