"""The gate: facts, decision, hooks, approval, run, record."""
