"""How small models try: where they are asked, what about, and which of their answers is kept."""
