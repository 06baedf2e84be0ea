"""Split requests for interfaces: plan, run, control and report."""
