"""Titles as they stand in web addresses."""


def slug(title):
    """Lower-case words joined by single hyphens."""
    return title.strip().replace(" ", "-")
