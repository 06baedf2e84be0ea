"""A witness inside of a test run: proof that the run reached its end and that a failing test still fails."""
