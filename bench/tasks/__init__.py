"""The task assistant on the embedded model."""
