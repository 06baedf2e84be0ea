"""Where and when subtasks run: here, or on other machines."""
