"""Split requests: plan one, run it, and control it."""
