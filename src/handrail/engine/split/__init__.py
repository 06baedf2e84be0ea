"""Split requests: graphs of subtasks, planned, run in parallel, merged, verified and applied as one."""
