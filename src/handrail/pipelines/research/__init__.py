"""The steps of the research agent: what it finds, what supports a sentence, and the report."""
