"""Reading documents of all kinds, and cutting them into paragraphs."""
