"""The terminal: commands for the shell and the conversation."""
