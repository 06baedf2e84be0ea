"""The rules, one file a family of commands."""
