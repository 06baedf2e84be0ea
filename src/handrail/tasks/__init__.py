"""The user's task list: dates, recurrence, operations, search and undo."""
