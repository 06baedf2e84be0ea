"""The workspace's file of intents: reading it, changing its text, and keeping what was read."""
