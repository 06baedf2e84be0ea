"""The intents in a text: a list of maps, or a map of them by id, at the top or under one key."""

import re
import textwrap
from collections.abc import Iterator

from handrail.protocol.intent import Intent
from handrail.protocol.record import Record
from handrail.workspace.intents.yaml_tree import Fields, Items, Node, Text, read_tree, refuse
from handrail.workspace.text import encode

WRAPPERS = ("active_intents", "intents")
ID = re.compile(r"\w[\w.:/@+-]{0,63}")
ID_TOLD = "An id is one word of at most 64 letters, digits and . : / @ + - signs."
MOST = 1_000


class Placed(Record):
    """An intent with where it stands."""

    intent: Intent
    node: Fields
    start: int
    end: int
    line: int


class IntentsDocument(Record):
    """A text with its intents."""

    source: str
    placed: tuple[Placed, ...] = ()
    container: Items | Fields | None = None
    """The list or map that holds them."""
    wrapper: Text | None = None
    """The key that the container stands under."""

    @property
    def intents(self) -> tuple[Intent, ...]:
        return tuple(each.intent for each in self.placed)

    def encoded(self, *, bom: bool) -> bytes:
        """The text as bytes."""
        return encode(self.source, bom=bom)

    def find(self, intent_id: str) -> Placed | None:
        return next((each for each in self.placed if each.intent.id == intent_id), None)


def read_intents(source: str) -> IntentsDocument:
    """The intents of a text; raises IntentsProblem, which names the line and what to do."""
    top = read_tree(source)
    container, wrapper = _container(top)
    if container is None:
        return IntentsDocument(source, wrapper=wrapper)
    placed = tuple(_placed(source, container))
    if len(placed) > MOST:
        refuse(placed[MOST].line, f"there are more than {MOST:,} intents", "Remove those that are done.")
    seen: dict[str, int] = {}
    for each in placed:
        if first := seen.get(each.intent.id):
            refuse(
                each.line,
                f"{each.intent.id} is there already, in line {first}",
                "Give each intent an id of its own.",
            )
        seen[each.intent.id] = each.line
    return IntentsDocument(source, placed, container, wrapper)


def _container(top: Node | None) -> tuple[Items | Fields | None, Text | None]:
    if top is None:
        return None, None
    if isinstance(top, Text):
        refuse(top.line, "this is a text, not a list or map of intents", "Write a list under `intents:`.")
    if isinstance(top, Items):
        return top, None
    for key, value in top.values:
        if key.value in WRAPPERS:
            if isinstance(value, Text):
                if not value.empty:
                    refuse(value.line, f"`{key.value}` holds a text", "Write a list of intents there.")
                return None, key
            return value, key
    return top, None


def _placed(source: str, container: Items | Fields) -> Iterator[Placed]:
    if isinstance(container, Items):
        for node in container.values:
            if not isinstance(node, Fields):
                refuse(node.line, "this is no intent", "Each one is a map with an `id`.")
            key = node.get("id")
            if not isinstance(key, Text) or key.empty:
                refuse(node.line, "this intent has no id", "Give it one, such as `id: INT-1`.")
            yield _one(source, node, key, _start(source, node.start))
        return
    for name, node in container.values:
        if not isinstance(node, Fields):
            refuse(
                name.line,
                f"`{name.value[:60]}` is no intent: it has no fields",
                "Keep what is no intent out of the map, or put the intents under `intents:`.",
            )
        own = node.get("id")
        if own is not None and not (isinstance(own, Text) and own.value == name.value):
            refuse(own.line, f"the id differs from its key `{name.value[:60]}`", "Leave the `id` out.")
        yield _one(source, node, name, _start(source, name.start))


def _one(source: str, node: Fields, key: Text, start: int) -> Placed:
    if not ID.fullmatch(key.value):
        refuse(key.line, f"{key.value[:60]!r} is no id", ID_TOLD)
    end = len(source[: node.end].rstrip())
    intent = Intent(
        key.value,
        name=_word(node, "name", source),
        status=_word(node, "status", source),
        scope=_list(node, "owned_scope", source, strict=True),
        constraints=_list(node, "constraints", source),
        criteria=_list(node, "acceptance_criteria", source),
        depends_on=_list(node, "depends_on", source, strict=True),
        text=textwrap.dedent(source[start:end].replace("\r\n", "\n")) + "\n",
    )
    return Placed(intent, node, start, end, key.line)


def _start(source: str, at: int) -> int:
    """Where an intent begins: with its line, where only blanks and a dash stand before it there."""
    begins = source.rfind("\n", 0, at) + 1
    return begins if not source[begins:at].strip(" -") else at


def _word(node: Fields, key: str, source: str) -> str:
    value = node.get(key)
    if value is None:
        return ""
    if not isinstance(value, Text):
        refuse(value.line, f"`{key}` is a list or a map", "Write one line of text.")
    return "" if value.empty else " ".join(value.value.split())


def _list(node: Fields, key: str, source: str, *, strict: bool = False) -> tuple[str, ...]:
    """Texts of a list; a single text is a list of one, and one of several lines a list of these."""
    value = node.get(key)
    if value is None or (isinstance(value, Text) and value.empty):
        return ()
    if isinstance(value, Text):
        lines = value.value.splitlines() if value.block else [value.value]
        return tuple(line.strip() for line in lines if line.strip())
    if strict and isinstance(value, Fields):
        refuse(value.line, f"`{key}` is a map", "Write a list of texts.")
    nodes = value.values if isinstance(value, Items) else (value,)
    return tuple(filter(None, (_entry(each, key, source, strict=strict) for each in nodes)))


def _entry(node: Node, key: str, source: str, *, strict: bool) -> str:
    if isinstance(node, Text):
        return "" if node.empty else node.value.strip()
    if strict:
        refuse(node.line, f"an entry of `{key}` is a list or a map", "Write one text an entry.")
    return " ".join(source[node.start : node.end].split())
