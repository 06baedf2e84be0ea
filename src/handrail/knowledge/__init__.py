"""The knowledge base: documents, search in them, and checks of what is said about them."""
