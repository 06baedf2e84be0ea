"""Entries of the list of allowed commands, as they are written: words, or words with what they carry."""

from typing import Annotated, Any

from pydantic import PlainValidator
from pydantic_core import PydanticCustomError

from handrail.protocol.values import AllowedCommand, Entry


def read_entry(given: Any) -> Entry:
    """`"npm run"`, or `{command = "npm publish", network = true}`."""
    if isinstance(given, AllowedCommand):
        return given
    if isinstance(given, dict):
        return AllowedCommand.model_validate(given, strict=True)
    if not isinstance(given, str):
        raise PydanticCustomError("string_type", "Input should be a valid string")
    if not given.strip():
        raise PydanticCustomError("string_too_short", "String should have at least 1 character")
    return given


WrittenEntry = Annotated[Entry, PlainValidator(read_entry)]
