"""The repository map: what each file defines, the most used first, built in the background."""
