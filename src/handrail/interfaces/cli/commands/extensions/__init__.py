"""Commands for agents, skills, sources and the knowledge base."""
