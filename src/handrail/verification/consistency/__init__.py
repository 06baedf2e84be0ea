"""What a change left inconsistent: imports, names, dependencies, references to what was deleted."""
