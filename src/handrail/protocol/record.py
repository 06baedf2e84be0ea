"""Frozen values that stay inside the process, as cheap to define as a plain class.

`dataclasses` writes and compiles six methods for each class, half a millisecond at every start of Handrail.
"""

from inspect import get_annotations
from typing import Any, ClassVar, NoReturn, Self, dataclass_transform


class Fields:  # noqa: PLW1641
    """A class whose annotations are its fields, in their order; what stands behind them are defaults."""

    __match_args__: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        own = [name for name in get_annotations(cls) if name not in cls.__match_args__]
        if reserved := [name for name in own if any(hasattr(base, name) for base in cls.__bases__)]:
            raise TypeError(f"{cls.__name__} cannot have fields that all of its kind have: {reserved}")
        cls.__match_args__ = (*cls.__match_args__, *own)  # type: ignore[misc]

    def __init__(self, *values: Any, **named: Any) -> None:
        fields, kind = self.__match_args__, type(self)
        given = dict(zip(fields, values, strict=False)) | named
        missing = [name for name in fields if name not in given and not hasattr(kind, name)]
        if missing or len(given) != len(values) + len(named) or not given.keys() <= set(fields):
            raise TypeError(f"{kind.__name__} has the fields {', '.join(fields)}; missing: {missing}")
        self.__dict__.update(given)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._values() == other._values()

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__match_args__)
        return f"{type(self).__name__}({shown})"

    def _values(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in self.__match_args__)


@dataclass_transform(frozen_default=True)
class Record(Fields):
    """Fields that stay as they were given."""

    def changed(self, **changes: Any) -> Self:
        """The same with other values in some fields."""
        return type(self)(**{name: getattr(self, name) for name in self.__match_args__} | changes)

    def __hash__(self) -> int:
        return hash((type(self), self._values()))

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is frozen: make another with `changed`.")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is frozen: make another with `changed`.")
