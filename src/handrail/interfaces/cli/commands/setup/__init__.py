"""Shell commands that set Handrail up: settings, models, trust, rules, storage."""
