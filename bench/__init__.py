"""Measurements: ratios against primitives of the same run, never a verdict by the clock alone."""
