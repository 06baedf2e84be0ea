"""Walking pipelines: lists of stages with gates, pauses, repairs and budgets."""
