"""Stages of a pipeline: work, answer, ask, code."""
