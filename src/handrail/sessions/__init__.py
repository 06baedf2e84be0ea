"""Sessions: a handle on one conversation's log, and what is folded from it. Appends and folds, no more."""
