"""Handrail: AI development you can hold on to."""

__version__ = "0.1.0"
