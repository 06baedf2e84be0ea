"""Commands that serve a browser, an editor or another agent."""
