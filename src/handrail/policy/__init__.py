"""Policy: what a call is allowed to do, as pure functions over frozen facts."""
