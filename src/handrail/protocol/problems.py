"""All errors in data for a type, each with its path and a sentence.

msgspec stops at the first error. Whoever has to correct the data wants all of them.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, TypeGuard, Union, get_args, get_origin

from msgspec import Struct, ValidationError, convert
from msgspec.structs import fields

Path = tuple[str | int, ...]
Kind = Literal["missing", "unknown", "object", "length", "pattern", "other"]
KINDS = {
    "int": "a valid integer",
    "float": "a valid number",
    "str": "a valid string",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
}
LIMITS = {
    ">=": "greater than or equal to",
    ">": "greater than",
    "<=": "less than or equal to",
    "<": "less than",
}
EXPECTED = re.compile(
    r"Expected `(?P<kind>\w+)(?: \| null)?`(?:, got .*| (?P<limit>[<>]=?) (?P<number>\S+))?"
)
LENGTH = re.compile(r"Expected `(?P<kind>str|array)` of length (?P<limit>[<>]=?) (?P<number>\d+)")


class WrongField(ValueError):
    """Raised in `__post_init__`: names the field, where msgspec would only name the struct."""

    def __init__(self, field: str, should: str) -> None:
        super().__init__(should)
        self.field = field


class Problem(NamedTuple):
    path: Path
    kind: Kind
    should: str
    """What it should be: `should be a valid integer`."""
    given: Any
    known: tuple[str, ...] = ()
    """For an unknown key: the known ones."""

    @property
    def where(self) -> str:
        return ".".join(map(str, self.path))


def problems_in(data: Any, kind: Any, *, strict: bool = True) -> list[Problem]:
    """What `convert` rejects, in the order of the type's fields; empty if the data is valid."""
    return list(_Search(strict).at((), data, kind))


class _Search(NamedTuple):
    strict: bool

    def at(self, path: Path, data: Any, kind: Any) -> Iterator[Problem]:
        bare = _without_none(kind) if data is not None else kind
        inner = get_args(bare)[0] if get_origin(bare) is Annotated else bare
        if data is not None and get_origin(inner) in (Union, UnionType):
            bare = _member(data, get_args(inner)) or inner
            inner = get_args(bare)[0] if get_origin(bare) is Annotated else bare
        parts: Iterable[tuple[str | int, Any]] = ()
        part_kind: Any = None
        if get_origin(inner) is dict and isinstance(data, Mapping):
            parts, part_kind = data.items(), get_args(inner)[1]
        elif get_origin(inner) is tuple and isinstance(data, list | tuple):
            parts, part_kind = enumerate(data), get_args(inner)[0]
        found = [problem for key, part in parts for problem in self.at((*path, key), part, part_kind)]
        if _is_struct(inner) and isinstance(data, Mapping):
            found = list(self._in_struct(path, data, inner))
        yield from found or self._here(path, data, bare)

    def _in_struct(self, path: Path, data: Mapping[str, Any], kind: type[Struct]) -> Iterator[Problem]:
        known = {field.encode_name: field for field in fields(kind)}
        for name, field in known.items():
            if name in data:
                yield from self.at((*path, name), data[name], field.type)
            elif field.required:
                yield Problem((*path, name), "missing", "is missing", None)
        config = kind.__struct_config__
        if config.forbid_unknown_fields:
            for name in data:
                if name not in known and name != config.tag_field:
                    yield Problem((*path, name), "unknown", "is not known", data[name], tuple(known))

    def _here(self, path: Path, data: Any, kind: Any) -> Iterator[Problem]:
        """msgspec's error for this value itself, when nothing inside it is wrong."""
        try:
            convert(data, kind, strict=self.strict)
        except ValidationError as error:
            if isinstance(cause := error.__cause__, WrongField):
                given = data.get(cause.field) if isinstance(data, Mapping) else None
                yield Problem((*path, cause.field), "other", str(cause), given)
            else:
                yield Problem(path, *_worded(str(error), data, kind), data)


def _worded(message: str, data: Any, kind: Any) -> tuple[Kind, str]:
    if get_origin(kind) is Literal:
        return "other", f"should be {_one_of(get_args(kind))}"
    if isinstance(data, float) and not math.isfinite(data):
        return "other", "should be a finite number"
    if found := LENGTH.match(message):
        number, unit = int(found["number"]), "character" if found["kind"] == "str" else "item"
        bound = "least" if found["limit"] == ">=" else "most"
        return "length", f"should have at {bound} {number} {unit}{'s' * (number != 1)}"
    if "matching regex" in message:
        return "pattern", "has characters that are not allowed, or is empty"
    if found := EXPECTED.match(message):
        if found["limit"]:
            return "other", f"should be {LIMITS[found['limit']]} {found['number'].removesuffix('.0')}"
        return "object" if found["kind"] == "object" else "other", f"should be {KINDS[found['kind']]}"
    return "other", message.partition(" - at `$")[0]


def _one_of(choices: tuple[Any, ...]) -> str:
    shown = [repr(choice) for choice in choices]
    return f"{', '.join(shown[:-1])} or {shown[-1]}" if shown[1:] else shown[0]


def _is_struct(kind: Any) -> TypeGuard[type[Struct]]:
    return isinstance(kind, type) and issubclass(kind, Struct)


def _without_none(kind: Any) -> Any:
    """`X` of `X | None`, and of `X | UnsetType`."""
    if get_origin(kind) not in (Union, UnionType):
        return kind
    rest = [each for each in get_args(kind) if each is not NoneType and each.__name__ != "UnsetType"]
    return rest[0] if len(rest) == 1 else kind


def _member(data: Any, members: tuple[Any, ...]) -> Any:
    """The member of a union that the data is meant to be: a struct by its tag, else the first non-struct."""
    structs = [member for member in members if _is_struct(member)]
    if not isinstance(data, Mapping):
        return next((member for member in members if not _is_struct(member) and member is not NoneType), None)
    for member in structs:
        config = member.__struct_config__
        if config.tag_field and data.get(config.tag_field) == config.tag:
            return member
    return structs[0] if len(structs) == 1 else None
