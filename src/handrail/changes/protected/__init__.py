"""Git's settings and Handrail's files: saved before a command, compared and restored after it."""
