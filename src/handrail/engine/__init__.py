"""The engine: the turn, and the runner that gives commands of the inbox to it."""
