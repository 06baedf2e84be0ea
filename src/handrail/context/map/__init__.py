"""The repository map: what is defined where, most referred to first, made in the background."""
