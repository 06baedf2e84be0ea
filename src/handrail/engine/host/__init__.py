"""Hosting sessions: the runner, takeover after a crash, wake-ups, the stream of events."""
