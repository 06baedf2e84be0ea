"""The log, and the queue of subtasks, in PostgreSQL; imported only where a database is set."""
