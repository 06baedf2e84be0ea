"""Sessions: a handle on one conversation's log, and projections of its events."""
