"""Whether two versions of a function do the same."""
