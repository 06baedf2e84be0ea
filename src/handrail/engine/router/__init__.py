"""The router: which pipeline a message goes to."""
