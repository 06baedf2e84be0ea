"""The MCP server: Handrail's powers for other agents."""
