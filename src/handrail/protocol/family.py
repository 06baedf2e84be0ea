"""Values that are told apart by their `type`: read by it, so that only the kinds that are met are built."""

from functools import cached_property
from typing import Any, Generic, TypeVar, cast, get_args

from pydantic import BaseModel, TypeAdapter

Member = TypeVar("Member")
FIRST = '{"type":"'
"""How a value begins that was written here."""


class Family(Generic[Member]):
    """The members of a discriminated union. To build them all takes many times as long as to build one."""

    def __init__(self, union: Any) -> None:
        self._union = union

    def read(self, data: str) -> Member:
        """The member that this JSON stands for; raises ValidationError."""
        kind = data[len(FIRST) :].partition('"')[0] if data.startswith(FIRST) else ""
        member = self._members.get(kind)
        if member is None:
            return self.any.validate_json(data)
        return cast("Member", member.model_validate_json(data))

    @cached_property
    def any(self) -> TypeAdapter[Member]:
        """The whole union: for its schema, and for what does not begin with its type."""
        return TypeAdapter(self._union)

    @cached_property
    def _members(self) -> dict[str, type[BaseModel]]:
        members: tuple[type[BaseModel], ...] = get_args(get_args(self._union)[0])
        return {member.model_fields["type"].default: member for member in members}
