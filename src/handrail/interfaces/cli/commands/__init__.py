"""The commands of the shell, one file each; `catalogue.py` lists them."""
