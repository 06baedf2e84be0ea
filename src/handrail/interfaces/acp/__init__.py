"""Handrail inside editors, by the Agent Client Protocol."""
