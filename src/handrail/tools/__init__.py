"""Tools: what a model can do, each call through one gate. The only room that starts processes."""
