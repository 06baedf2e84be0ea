"""YAML as a tree that knows where each part stands; nothing in it is anything but text, lists and maps.

Anchors, aliases, tags and several documents are refused: what they stand for is not what is read.
"""

from collections.abc import Iterator
from typing import Any, NoReturn

from handrail.protocol.errors import IntentsProblem
from handrail.protocol.record import Record

DEEPEST = 12
LARGEST = 1_000_000
"""Characters."""


class Text(Record):
    """A scalar, whatever another reader would make of it."""

    value: str
    start: int
    end: int
    """Positions in the source."""
    line: int
    """From 1."""
    block: bool = False
    """Written as `|` or `>`, over several lines."""
    empty: bool = False
    """Nothing is written, or what stands for nothing."""


class Items(Record):
    """A list."""

    values: "tuple[Node, ...]"
    start: int
    end: int
    """Where the last part of it ends, without the comments behind it."""
    line: int
    column: int
    flow: bool


class Fields(Record):
    """A map; its keys are text, each once."""

    values: "tuple[tuple[Text, Node], ...]"
    start: int
    end: int
    line: int
    column: int
    flow: bool

    def get(self, key: str) -> "Node | None":
        return next((value for name, value in self.values if name.value == key), None)


Node = Text | Items | Fields
NOTHING = frozenset({"", "~", "null", "Null", "NULL"})


def read_tree(source: str) -> Node | None:
    """The one document that there is, None where there is none; raises IntentsProblem with the line."""
    if len(source) > LARGEST:
        refuse(0, f"it has {len(source):,} characters, and {LARGEST:,} are read", "Make it smaller.")
    return _Reading(source).document()


def refuse(line: int, what: str, next_step: str) -> NoReturn:
    """Say what is wrong in which line, and what to do."""
    where = f"line {line}: " if line else ""
    raise IntentsProblem(f"{where}{what}. {next_step}", line)


class _Reading:
    def __init__(self, source: str) -> None:
        self._source = source
        self._events = self._parsed()

    def _parsed(self) -> Iterator[Any]:
        import yaml  # type: ignore[import-untyped]

        try:
            yield from yaml.parse(self._source, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            what = " ".join(filter(None, (error.problem, error.context)))
            refuse(mark.line + 1 if mark else 0, f"this is no YAML ({what})", "Correct it.")
        except yaml.YAMLError as error:
            refuse(0, f"this is no YAML ({' '.join(str(error).split())[:120]})", "Correct it.")

    def document(self) -> Node | None:
        found: Node | None = None
        for event in self._events:
            kind = type(event).__name__
            if kind in ("StreamStartEvent", "StreamEndEvent", "DocumentStartEvent", "DocumentEndEvent"):
                continue
            if found is not None:
                refuse(_line(event), "a second document begins", "Keep all intents in one.")
            found = self._node(event, depth=1)
        return None if isinstance(found, Text) and found.empty else found

    def _node(self, event: Any, depth: int) -> Node:
        kind, line = type(event).__name__, _line(event)
        if kind == "AliasEvent" or getattr(event, "anchor", None):
            refuse(line, "anchors (&) and aliases (*) are not read", "Write the value where it is needed.")
        if getattr(event, "tag", None):
            refuse(line, f"the tag {str(event.tag)[:60]} is not read", "Write plain text, lists and maps.")
        if depth > DEEPEST:
            refuse(line, f"it is nested more than {DEEPEST} deep", "Make it flatter.")
        match kind:
            case "ScalarEvent":
                return _text(event, line)
            case "SequenceStartEvent":
                return self._items(event, line, depth)
            case _:
                return self._fields(event, line, depth)

    def _items(self, event: Any, line: int, depth: int) -> Items:
        values: list[Node] = []
        for each in self._events:
            if type(each).__name__ == "SequenceEndEvent":
                end = _end(each, event, values)
                mark = event.start_mark
                return Items(tuple(values), mark.index, end, line, mark.column, bool(event.flow_style))
            values.append(self._node(each, depth + 1))
        raise AssertionError("the parser ends every list")

    def _fields(self, event: Any, line: int, depth: int) -> Fields:
        values: dict[str, tuple[Text, Node]] = {}
        for each in self._events:
            if type(each).__name__ == "MappingEndEvent":
                end = _end(each, event, [value for _, value in values.values()])
                mark = event.start_mark
                return Fields(
                    tuple(values.values()), mark.index, end, line, mark.column, bool(event.flow_style)
                )
            key = self._node(each, depth + 1)
            if not isinstance(key, Text):
                refuse(key.line, "a key is a list or a map", "Use a word as key.")
            if key.value in values:
                first = values[key.value][0].line
                refuse(
                    key.line, f"`{key.value[:60]}` is there already, in line {first}", "Remove one of both."
                )
            values[key.value] = key, self._node(next(self._events), depth + 1)
        raise AssertionError("the parser ends every map")


def _text(event: Any, line: int) -> Text:
    plain = event.implicit[0] and event.style in (None, "")
    return Text(
        event.value,
        event.start_mark.index,
        event.end_mark.index,
        line,
        block=event.style in ("|", ">"),
        empty=plain and event.value in NOTHING,
    )


def _end(event: Any, begun: Any, values: list[Node]) -> int:
    if begun.flow_style or not values:
        return int(event.end_mark.index)
    return values[-1].end


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1
