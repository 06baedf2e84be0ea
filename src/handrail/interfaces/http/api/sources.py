"""Sources (MCP servers): list, add, test, give secrets, remove."""

from typing import Annotated

from msgspec import Meta

from handrail.app.extensions.sources import (
    SourceRow,
    SourceTrial,
    add_source,
    keep_secret,
    ready_names,
    remove_source,
    source_rows,
    try_source,
)
from handrail.interfaces.http.endpoint import Call, Endpoint
from handrail.protocol.values import Value

Name = Annotated[str, Meta(max_length=100)]


class SourceList(Value):
    sources: tuple[SourceRow, ...]
    ready: tuple[str, ...]
    """Names of well-known servers whose definition is ready to be added."""


async def list_sources(call: Call) -> SourceList:
    """The sources, and how each is doing in this process."""
    return SourceList(tuple(source_rows(call.app)), tuple(ready_names()))


class NewSource(Value):
    name: Name
    """Of a ready definition; others are added with `handrail sources add`."""


async def add_ready_source(call: Call, body: NewSource) -> SourceList:
    """Add a well-known server by its name."""
    add_source(call.app, body.name)
    return await list_sources(call)


async def try_one(call: Call) -> SourceTrial:
    """Start or reach a source and list its tools; no tool is called."""
    return await try_source(call.app, call.names["source"])


class SourceSecret(Value):
    variable: Name
    value: Annotated[str, Meta(min_length=1, max_length=10_000)]


async def set_secret(call: Call, body: SourceSecret) -> SourceList:
    """Store the value of a variable that the source needs; it is never returned."""
    keep_secret(call.app, call.names["source"], body.variable, body.value)
    return await list_sources(call)


async def remove_one(call: Call) -> SourceList:
    """Remove a source of the user's, with its secrets, and end it."""
    remove_source(call.app, call.names["source"])
    await call.app.sources.forget(call.names["source"])
    return await list_sources(call)


SOURCE_ENDPOINTS = (
    Endpoint("GET", "/sources", list_sources),
    Endpoint("POST", "/sources", add_ready_source),
    Endpoint("POST", "/sources/{source}/test", try_one),
    Endpoint("PUT", "/sources/{source}/secret", set_secret),
    Endpoint("DELETE", "/sources/{source}", remove_one),
)
