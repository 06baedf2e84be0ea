"""Where Handrail keeps things, and what it was told: places, layered settings, credentials."""
