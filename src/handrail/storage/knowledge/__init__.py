"""The knowledge base on disk: one SQLite file, and vectors in files beside it."""
