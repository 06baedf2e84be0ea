"""Turns, requests to models, tools and checks as OpenTelemetry spans (the extra `telemetry`)."""
