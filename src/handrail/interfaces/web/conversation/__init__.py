"""A session's events as the blocks of a conversation."""
