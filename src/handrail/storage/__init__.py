"""Storage: the event log, the inbox, blobs, and all SQL. Knows rows, not what an event means."""
