"""Find the lines that are most likely the reason why a test fails."""
