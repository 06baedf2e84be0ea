"""Tools that read, search and change workspace files."""
