"""Folds: what events add up to. Only a snapshot of one, written or read, needs pydantic."""

from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar, cast, dataclass_transform, get_type_hints

from handrail.protocol.record import Fields

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, TypeAdapter
    from pydantic_core import CoreSchema


@dataclass_transform()
class Fold(Fields):
    """Fields that change. A list, dict or fold as default stands for an empty one of each object's own."""

    _own = tuple[str, ...]()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        defaults = ((name, getattr(cls, name, None)) for name in cls.__match_args__)
        cls._own = tuple(name for name, value in defaults if isinstance(value, list | dict | Fold))

    def __init__(self, *values: Any, **named: Any) -> None:
        super().__init__(*values, **named)
        for name in self._own:
            if name not in self.__dict__:
                self.__dict__[name] = type(getattr(type(self), name))()

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, handler: "GetCoreSchemaHandler") -> "CoreSchema":
        from pydantic_core import core_schema

        hints = get_type_hints(cls, include_extras=True)
        fields = {
            name: core_schema.typed_dict_field(
                handler.generate_schema(hints[name]), required=not hasattr(cls, name)
            )
            for name in cls.__match_args__
        }
        schema = core_schema.typed_dict_schema(fields)
        return core_schema.no_info_after_validator_function(
            lambda given: cls(**given),
            schema,
            serialization=core_schema.plain_serializer_function_ser_schema(_given, return_schema=schema),
        )


AnyFold = TypeVar("AnyFold", bound=Fold)


def stored(fold: Fold) -> str:
    """The fold as JSON, for a snapshot."""
    return _adapter(cast("Any", type(fold))).dump_json(fold).decode()


def restored(kind: type[AnyFold], data: str) -> AnyFold:
    """The fold that JSON stands for; raises ValidationError."""
    found: AnyFold = _adapter(cast("Any", kind)).validate_json(data)
    return found


@lru_cache
def _adapter(kind: type[Fold]) -> "TypeAdapter[Any]":
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def _given(fold: Fold) -> dict[str, Any]:
    return {name: getattr(fold, name) for name in fold.__match_args__}
