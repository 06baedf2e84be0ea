"""The HTTP API: the application for other programs and for the web page."""
