"""Which pipeline a message goes to."""
