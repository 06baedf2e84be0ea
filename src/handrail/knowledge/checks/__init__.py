"""Checks by code of what is said about documents: quotes, entities, relations, contradictions."""
