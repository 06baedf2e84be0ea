"""`handrail verify`: what it adds to the tools, whether it agrees with them, and which defects it finds."""
