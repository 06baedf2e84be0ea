"""Context: what the model is shown, every fragment capped, and cuts are said in place."""
