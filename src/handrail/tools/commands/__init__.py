"""Running shell commands: parsing, running, background commands, output, changed files."""
