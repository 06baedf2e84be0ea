"""The wire: HTTP, server-sent events, and the OpenAI and Anthropic protocols."""
