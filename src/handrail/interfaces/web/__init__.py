"""The web page: server-rendered HTML over the same application that the terminal uses."""
