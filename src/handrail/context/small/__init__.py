"""Everything special to small models: their strategy, their prompts, and how their answers are read."""
