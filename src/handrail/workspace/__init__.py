"""The workspace: where a path leads, what a file holds, and the one module that writes files."""
