"""What the user sees: events, diffs, lists and previews as styled lines."""
