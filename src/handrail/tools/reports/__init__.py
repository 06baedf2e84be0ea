"""What linters, type checkers, test runners and compilers report, read as issues."""
