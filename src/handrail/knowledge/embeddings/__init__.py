"""Vectors for texts: the model, and how it is downloaded."""
