"""Tools: what a model can do; every call passes the gate. The only room that starts processes."""
