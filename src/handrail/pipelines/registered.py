"""What a definition in a folder may name: functions with options, which are checked like the rest of it."""

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Annotated, Any, Generic, NamedTuple, TypeVar

from pydantic import Field

from handrail.engine.pipeline.definition import Output, Outputs
from handrail.protocol.values import Value

Made = TypeVar("Made")


class Refers:
    """Marks an option that names an output: `elsewhere`, of another stage, or of the stage itself.

    It has to lead to values of one of the `types`, or to objects with these `fields`, which are texts;
    where neither is said, to anything. `told` says that in words.
    """

    def __init__(
        self, told: str = "", *, elsewhere: bool, types: tuple[str, ...] = (), fields: tuple[str, ...] = ()
    ) -> None:
        self.elsewhere = elsewhere
        self.types = types
        self.fields = fields
        self.told = told


NAME = r"[A-Za-z_][A-Za-z0-9_]{0,39}"
Reference = Annotated[str, Field(pattern=rf"^{NAME}(\.{NAME}){{1,3}}$")]
"""`stage.field`: the output of an earlier stage; of each item where it is a list."""
OfField = Annotated[str, Field(pattern=rf"^{NAME}(\.{NAME}){{0,2}}$")]
"""`field`: the output of the stage that the check is of."""
TEXTS = "texts"
CLAIMS = "items with the texts claim and quote"
Texts = Annotated[Reference, Refers(TEXTS, elsewhere=True, types=("string",))]
Findings = Annotated[Reference, Refers(CLAIMS, elsewhere=True, fields=("claim", "quote"))]
Passages = Annotated[
    Reference, Refers("texts, or items with a text", elsewhere=True, types=("string",), fields=("text",))
]
Sources = Annotated[
    Reference,
    Refers("items with the texts path, lines and text", elsewhere=True, fields=("path", "lines", "text")),
]
Own = Annotated[OfField, Refers(elsewhere=False)]
OwnTexts = Annotated[OfField, Refers(TEXTS, elsewhere=False, types=("string",))]
OwnFindings = Annotated[OfField, Refers(CLAIMS, elsewhere=False, fields=("claim", "quote"))]
OwnFlag = Annotated[OfField, Refers("true or false", elsewhere=False, types=("boolean",))]


class Registered(NamedTuple, Generic[Made]):
    """A function that can be named."""

    options: type[Value]
    make: Callable[[Any], Made]
    told: str
    """What it does, in a line."""
    gives: Mapping[str, Any] = MappingProxyType({})
    """The fields of a step's output, each with its JSON Schema."""


class Referred(NamedTuple):
    option: str
    text: str
    mark: Refers


def references(options: Value) -> Iterator[Referred]:
    """The outputs that options name."""
    for name, field in type(options).model_fields.items():
        text = getattr(options, name, "")
        for mark in field.metadata:
            if isinstance(mark, Refers) and text:
                yield Referred(name, text, mark)


def looked_up(outputs: Outputs, reference: str) -> list[Any]:
    """What a reference leads to: the items of a list, or the one value; nothing where there is none."""
    stage, *path = reference.split(".")
    return within(outputs.get(stage, {}), path)


def within(output: Output, path: list[str]) -> list[Any]:
    """The values at the end of a path, lists on the way taken apart."""
    found: list[Any] = [output]
    for name in path:
        found = [each[name] for each in found if isinstance(each, dict) and name in each]
        found = [item for each in found for item in (each if isinstance(each, list) else [each])]
    return found
