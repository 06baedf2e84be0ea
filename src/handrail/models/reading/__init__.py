"""Reading what models write: answers, JSON, tool calls, structured answers."""
