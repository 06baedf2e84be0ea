"""Requests to models: which model answers, what is sent and received, `/retry` and `/continue`."""
