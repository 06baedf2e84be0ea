"""The workspace: resolve paths, list and read files, and the one module that writes them."""
