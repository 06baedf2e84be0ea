"""Where messages go: sixty of them, and where they should."""
