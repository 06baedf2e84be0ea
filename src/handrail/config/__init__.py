"""Configuration: where files are, layered settings, credentials."""
