"""Stored keys and other secrets: their names, never their values."""

from typing import Annotated

from msgspec import Meta

from handrail.config.credentials import MAX_CHARACTERS
from handrail.interfaces.http.endpoint import Call, Endpoint
from handrail.protocol.values import Value


class CredentialList(Value):
    names: tuple[str, ...]
    where: str
    """How and where they are stored, or would be."""


class NewCredential(Value):
    name: Annotated[str, Meta(min_length=1, max_length=100)]
    """`model/NAME` is the key of a connection."""
    value: Annotated[str, Meta(min_length=1, max_length=MAX_CHARACTERS)]


class RemovedCredentials(Value):
    names: Annotated[tuple[str, ...], Meta(max_length=1_000)]


async def list_credentials(call: Call) -> CredentialList:
    """The names of what is stored."""
    stored = call.app.model_pool.credentials
    return CredentialList(tuple(stored.names()), stored.where())


async def store_credential(call: Call, body: NewCredential) -> CredentialList:
    """Store a secret under a name, encrypted; it is never sent back."""
    call.app.model_pool.credentials.set(body.name, body.value)
    await call.server.reopen_all()
    return await list_credentials(call._replace(app=await call.workspace.app()))


async def remove_credentials(call: Call, body: RemovedCredentials) -> CredentialList:
    """Remove what is stored under these names."""
    call.app.model_pool.credentials.delete(*body.names)
    await call.server.reopen_all()
    return await list_credentials(call._replace(app=await call.workspace.app()))


CREDENTIAL_ENDPOINTS = (
    Endpoint("GET", "/credentials", list_credentials),
    Endpoint("POST", "/credentials", store_credential),
    Endpoint("POST", "/credentials/remove", remove_credentials),
)
