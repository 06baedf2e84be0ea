"""The trace: one line for each write, chained, checked against the log, and asked who wrote what."""
