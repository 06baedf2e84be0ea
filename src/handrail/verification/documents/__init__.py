"""Changelogs and checklists: written by code, and checked that nothing in them was lost."""
