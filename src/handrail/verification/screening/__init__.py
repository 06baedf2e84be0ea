"""Which of many edits of a file are worth a run of all tests."""
