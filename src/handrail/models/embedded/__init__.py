"""The embedded model: its file is downloaded and checked, a child process answers from it."""
