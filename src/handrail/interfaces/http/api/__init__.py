"""What the API offers, one module for each kind of thing; `table.py` lists all of it."""
