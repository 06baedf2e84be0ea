"""Small tasks with tests that the agent sees and tests that it does not, on one embedded model."""
