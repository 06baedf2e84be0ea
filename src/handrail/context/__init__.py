"""Context: what the model is shown, every fragment capped, and what was cut said in the fragment itself."""
