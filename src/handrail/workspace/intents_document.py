"""Parse the intents file: YAML with positions, and the intents in it.

Anchors, aliases, tags and several documents are refused: people would not read them as the parser does.
"""

import re
import textwrap
from collections.abc import Iterator
from typing import Any, NoReturn

from handrail.protocol.errors import IntentsProblem
from handrail.protocol.intent import Intent
from handrail.protocol.values import Value
from handrail.workspace.files import encode

MAX_DEPTH = 12
MAX_CHARACTERS = 1_000_000


class YamlText(Value):
    """A scalar, always as text."""

    value: str
    start: int  # positions in the source
    end: int
    line: int  # from 1
    block: bool = False  # written as `|` or `>`, over several lines
    empty: bool = False  # null, or nothing at all


class YamlList(Value):
    values: "tuple[YamlNode, ...]"
    start: int
    end: int  # where its last value ends, without comments after it
    line: int
    column: int
    flow: bool


class YamlMap(Value):
    values: "tuple[tuple[YamlText, YamlNode], ...]"
    start: int
    end: int
    line: int
    column: int
    flow: bool

    def get(self, key: str) -> "YamlNode | None":
        return next((value for name, value in self.values if name.value == key), None)


YamlNode = YamlText | YamlList | YamlMap
NULL_WORDS = frozenset({"", "~", "null", "Null", "NULL"})


def fail_at(line: int, what: str, next_step: str) -> NoReturn:
    where = f"line {line}: " if line else ""
    raise IntentsProblem(f"{where}{what}. {next_step}", line)


class _YamlReader:
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
            fail_at(mark.line + 1 if mark else 0, f"this is not YAML ({what})", "Correct it.")
        except yaml.YAMLError as error:
            fail_at(0, f"this is not YAML ({' '.join(str(error).split())[:120]})", "Correct it.")

    def document(self) -> YamlNode | None:
        found: YamlNode | None = None
        for event in self._events:
            kind = type(event).__name__
            if kind in ("StreamStartEvent", "StreamEndEvent", "DocumentStartEvent", "DocumentEndEvent"):
                continue
            if found is not None:
                fail_at(_line_of(event), "a second document begins", "Keep all intents in one.")
            found = self._node(event, depth=1)
        return None if isinstance(found, YamlText) and found.empty else found

    def _node(self, event: Any, depth: int) -> YamlNode:
        kind, line = type(event).__name__, _line_of(event)
        if kind == "AliasEvent" or getattr(event, "anchor", None):
            fail_at(line, "anchors (&) and aliases (*) are not supported", "Repeat the value instead.")
        if getattr(event, "tag", None):
            fail_at(line, f"the tag {str(event.tag)[:60]} is not supported", "Use text, lists and maps.")
        if depth > MAX_DEPTH:
            fail_at(line, f"it is nested more than {MAX_DEPTH} deep", "Make it flatter.")
        match kind:
            case "ScalarEvent":
                empty = event.implicit[0] and event.style in (None, "") and event.value in NULL_WORDS
                start, end = event.start_mark.index, event.end_mark.index
                return YamlText(event.value, start, end, line, block=event.style in ("|", ">"), empty=empty)
            case "SequenceStartEvent":
                return self._list(event, line, depth)
            case _:
                return self._map(event, line, depth)

    def _list(self, event: Any, line: int, depth: int) -> YamlList:
        values: list[YamlNode] = []
        while type(each := next(self._events)).__name__ != "SequenceEndEvent":
            values.append(self._node(each, depth + 1))
        mark, end = event.start_mark, _end_of(each, event, values)
        return YamlList(tuple(values), mark.index, end, line, mark.column, bool(event.flow_style))

    def _map(self, event: Any, line: int, depth: int) -> YamlMap:
        values: dict[str, tuple[YamlText, YamlNode]] = {}
        while type(each := next(self._events)).__name__ != "MappingEndEvent":
            key = self._node(each, depth + 1)
            if not isinstance(key, YamlText):
                fail_at(key.line, "a key is a list or a map", "Use a word as the key.")
            if key.value in values:
                first = values[key.value][0].line
                fail_at(key.line, f"`{key.value[:60]}` is already in line {first}", "Remove one of the two.")
            values[key.value] = key, self._node(next(self._events), depth + 1)
        mark, end = event.start_mark, _end_of(each, event, [value for _, value in values.values()])
        return YamlMap(tuple(values.values()), mark.index, end, line, mark.column, bool(event.flow_style))


def _end_of(event: Any, begun: Any, values: list[YamlNode]) -> int:
    if begun.flow_style or not values:
        return int(event.end_mark.index)
    return values[-1].end


def _line_of(event: Any) -> int:
    return int(event.start_mark.line) + 1


CONTAINER_KEYS = ("active_intents", "intents")
ID_PATTERN = re.compile(r"\w[\w.:/@+-]{0,63}")
ID_RULE = "An id is one word of at most 64 letters, digits and . : / @ + - signs."
MAX_INTENTS = 1_000


class LocatedIntent(Value):
    intent: Intent
    node: YamlMap
    start: int
    end: int
    line: int


class IntentsDocument(Value):
    source: str
    located: tuple[LocatedIntent, ...] = ()
    container: YamlList | YamlMap | None = None
    wrapper: YamlText | None = None  # the key of the container

    @property
    def intents(self) -> tuple[Intent, ...]:
        return tuple(each.intent for each in self.located)

    def encoded(self, *, bom: bool) -> bytes:
        return encode(self.source, bom=bom)

    def find(self, intent_id: str) -> LocatedIntent | None:
        return next((each for each in self.located if each.intent.id == intent_id), None)


def parse_intents(source: str) -> IntentsDocument:
    """The intents of a text; raises IntentsProblem with the line and what to do."""
    if len(source) > MAX_CHARACTERS:
        fail_at(0, f"it has {len(source):,} characters; the limit is {MAX_CHARACTERS:,}", "Make it smaller.")
    container, wrapper = _container(_YamlReader(source).document())
    if container is None:
        return IntentsDocument(source, wrapper=wrapper)
    located = tuple(_located_intents(source, container))
    if len(located) > MAX_INTENTS:
        line = located[MAX_INTENTS].line
        fail_at(line, f"there are more than {MAX_INTENTS:,} intents", "Remove those that are done.")
    seen: dict[str, int] = {}
    for each in located:
        if first := seen.get(each.intent.id):
            fail_at(each.line, f"{each.intent.id} is already in line {first}", "Give each intent its own id.")
        seen[each.intent.id] = each.line
    return IntentsDocument(source, located, container, wrapper)


def _container(top: YamlNode | None) -> tuple[YamlList | YamlMap | None, YamlText | None]:
    if top is None:
        return None, None
    if isinstance(top, YamlText):
        fail_at(top.line, "this is text, not a list or map of intents", "Write a list under `intents:`.")
    if isinstance(top, YamlList):
        return top, None
    for key, value in top.values:
        if key.value in CONTAINER_KEYS:
            if isinstance(value, YamlText):
                if not value.empty:
                    fail_at(value.line, f"`{key.value}` is a text", "Write a list of intents there.")
                return None, key
            return value, key
    return top, None


def _located_intents(source: str, container: YamlList | YamlMap) -> Iterator[LocatedIntent]:
    if isinstance(container, YamlList):
        for node in container.values:
            if not isinstance(node, YamlMap):
                fail_at(node.line, "this is not an intent", "Each one is a map with an `id`.")
            key = node.get("id")
            if not isinstance(key, YamlText) or key.empty:
                fail_at(node.line, "this intent has no id", "Give it one, such as `id: INT-1`.")
            yield _located_intent(source, node, key, node.start)
        return
    for name, node in container.values:
        if not isinstance(node, YamlMap):
            advice = "Keep other things out of the map, or put the intents under `intents:`."
            fail_at(name.line, f"`{name.value[:60]}` is not an intent: it has no fields", advice)
        own = node.get("id")
        if own is not None and not (isinstance(own, YamlText) and own.value == name.value):
            fail_at(own.line, f"the id differs from its key `{name.value[:60]}`", "Leave the `id` out.")
        yield _located_intent(source, node, name, name.start)


def _located_intent(source: str, node: YamlMap, key: YamlText, at: int) -> LocatedIntent:
    if not ID_PATTERN.fullmatch(key.value):
        fail_at(key.line, f"{key.value[:60]!r} is not an id", ID_RULE)
    # It begins with its line, if only blanks and a dash come before it there.
    begins = source.rfind("\n", 0, at) + 1
    start = begins if not source[begins:at].strip(" -") else at
    end = len(source[: node.end].rstrip())
    intent = Intent(
        key.value,
        name=_text_value(node, "name"),
        status=_text_value(node, "status"),
        scope=_list_value(node, "owned_scope", source, strict=True),
        constraints=_list_value(node, "constraints", source),
        criteria=_list_value(node, "acceptance_criteria", source),
        depends_on=_list_value(node, "depends_on", source, strict=True),
        text=textwrap.dedent(source[start:end].replace("\r\n", "\n")) + "\n",
    )
    return LocatedIntent(intent, node, start, end, key.line)


def _text_value(node: YamlMap, key: str) -> str:
    value = node.get(key)
    if value is None:
        return ""
    if not isinstance(value, YamlText):
        fail_at(value.line, f"`{key}` is a list or a map", "Write one line of text.")
    return "" if value.empty else " ".join(value.value.split())


def _list_value(node: YamlMap, key: str, source: str, *, strict: bool = False) -> tuple[str, ...]:
    """The texts of a list; a single text counts as a list of its lines."""
    value = node.get(key)
    if value is None or (isinstance(value, YamlText) and value.empty):
        return ()
    if isinstance(value, YamlText):
        lines = value.value.splitlines() if value.block else [value.value]
        return tuple(line.strip() for line in lines if line.strip())
    if strict and isinstance(value, YamlMap):
        fail_at(value.line, f"`{key}` is a map", "Write a list of texts.")
    nodes = value.values if isinstance(value, YamlList) else (value,)
    return tuple(filter(None, (_entry_text(each, key, source, strict=strict) for each in nodes)))


def _entry_text(node: YamlNode, key: str, source: str, *, strict: bool) -> str:
    if isinstance(node, YamlText):
        return "" if node.empty else node.value.strip()
    if strict:
        fail_at(node.line, f"an entry of `{key}` is a list or a map", "Write one text per entry.")
    return " ".join(source[node.start : node.end].split())
