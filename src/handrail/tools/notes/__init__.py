"""Notes for agents: what a repository shows about itself, and writing it to AGENTS.md."""
