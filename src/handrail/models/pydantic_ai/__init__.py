"""Models whose own client library speaks their protocol, through pydantic-ai (the extra `providers`)."""
