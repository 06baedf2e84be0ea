"""The embedded model: a file that is fetched and checked, a child process that answers from it."""
