"""Changes: how a file is allowed to change. Nothing else writes the user's files."""
