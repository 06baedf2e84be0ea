"""Storage: event log, inbox, blobs, journal, locks; all SQL. It does not know what events mean."""
