"""What interfaces ask about agents, sources, the knowledge base and other programs."""
