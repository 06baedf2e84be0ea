"""Search quality and speed of the knowledge base."""
