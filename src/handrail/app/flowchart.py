"""The text of a mermaid flowchart as nodes, edges and subgraphs."""

import re
from typing import Literal, NamedTuple

from msgspec import Struct, field

Direction = Literal["TB", "BT", "LR", "RL"]
Shape = Literal[
    "box", "round", "stadium", "double", "database", "circle", "diamond", "hexagon", "flag", "slanted"
]

MAX_NODES, MAX_EDGES = 120, 240
HEADER = re.compile(r"(?:graph|flowchart)(?:\s+(TB|TD|BT|LR|RL))?\s*$")
IGNORED = re.compile(r"(?:classDef|class|style|linkStyle|click|accTitle|accDescr)\b")
NODE_ID = re.compile(r"[A-Za-z0-9_\u00c0-\uffff](?:[\w.\u00c0-\uffff]|-(?![-.]|>))*")
SUBGRAPH = re.compile(r"subgraph\s+(?:([\w-]+)\s*\[\"?(.+?)\"?\]|\"(.+?)\"|(.+?))\s*$")
DIRECTION = re.compile(r"direction\s+(TB|TD|BT|LR|RL)\s*$")
CLASS_SUFFIX = re.compile(r":::[\w-]+")
BREAK = re.compile(r"<br\s*/?>|\\n", re.IGNORECASE)
SHAPES: tuple[tuple[str, str, Shape], ...] = (
    ("(((", ")))", "circle"),
    ("((", "))", "circle"),
    ("([", "])", "stadium"),
    ("[(", ")]", "database"),
    ("[[", "]]", "double"),
    ("{{", "}}", "hexagon"),
    ("[/", "/]", "slanted"),
    ("[\\", "\\]", "slanted"),
    ("[/", "\\]", "slanted"),
    ("[\\", "/]", "slanted"),
    ("[", "]", "box"),
    ("(", ")", "round"),
    ("{", "}", "diamond"),
    (">", "]", "flag"),
)
EDGE = re.compile(
    r"\s*(?P<tail>[<xo])?"
    r"(?:(?P<line>--|==|-\.)\s*(?P<words>[^-=.|>\s][^|>]*?)\s*(?P<end>--+|==+|\.+-)(?P<head>[>xo])?"
    r"|(?P<plain>-{2,}|={2,}|-\.+-|~{3,})(?P<head2>[>xo](?=[\s|\w(\[]|$))?)"
    r"\s*(?:\|(?P<label>[^|]*)\|)?\s*"
)


class NotDrawable(Exception):
    """Not a flowchart, or one with parts that are not known here."""

    def __init__(self, what: str, line: int = 0) -> None:
        super().__init__(what)
        self.what = what
        self.line = line
        """Of the text, from 1; 0: the whole of it."""


class Node(Struct):
    id: str
    label: str
    shape: Shape = "box"
    group: str = ""


class Edge(NamedTuple):
    start: str
    end: str
    label: str = ""
    line: Literal["solid", "thick", "dotted", "hidden"] = "solid"
    head: str = ""
    """`>`, `x`, `o`, or none."""
    tail: str = ""


class Group(Struct):
    id: str
    title: str
    parent: str = ""


class Flowchart(Struct):
    direction: Direction = "TB"
    nodes: dict[str, Node] = field(default_factory=dict)
    edges: list[Edge] = field(default_factory=list)
    groups: dict[str, Group] = field(default_factory=dict)


def parse_flowchart(text: str) -> Flowchart:
    """Raises NotDrawable for anything that is not understood: half a picture would mislead."""
    numbered = enumerate(map(_without_comment, text.splitlines()), start=1)
    lines = [(number, line) for number, line in numbered if line]
    header = HEADER.match(lines[0][1].rstrip(";")) if lines else None
    if not header:
        where = lines[0][0] if lines else 1
        raise NotDrawable("it does not begin with `flowchart` or `graph` and a direction", where)
    chart = Flowchart(direction=_direction(header[1]))
    open_groups: list[str] = []
    for number, line in lines[1:]:
        for statement in _statements(line):
            try:
                _read(chart, statement, open_groups)
            except NotDrawable as problem:
                raise NotDrawable(problem.what, number) from None
    if open_groups:
        raise NotDrawable(f"the subgraph {open_groups[-1]!r} has no `end`")
    if not chart.nodes:
        raise NotDrawable("there is no node")
    if len(chart.nodes) > MAX_NODES or len(chart.edges) > MAX_EDGES:
        raise NotDrawable(f"there are more than {MAX_NODES} nodes or {MAX_EDGES} edges")
    if both := sorted(chart.groups.keys() & chart.nodes.keys()):
        raise NotDrawable(f"the subgraph {both[0]!r} is used as a node")
    return chart


def _without_comment(line: str) -> str:
    return line.partition("%%")[0].strip()


def _direction(text: str | None) -> Direction:
    found: dict[str | None, Direction] = {"BT": "BT", "LR": "LR", "RL": "RL"}
    return found.get(text, "TB")


def _statements(line: str) -> list[str]:
    """The line's statements: a semicolon outside of quotes and brackets ends one."""
    parts, depth, quoted, start = list[str](), 0, False, 0
    for at, character in enumerate(line):
        if character == '"':
            quoted = not quoted
        elif not quoted and character in "([{":
            depth += 1
        elif not quoted and character in ")]}":
            depth -= 1
        elif character == ";" and not quoted and depth <= 0:
            parts.append(line[start:at])
            start = at + 1
    return [part.strip() for part in (*parts, line[start:]) if part.strip()]


def _read(chart: Flowchart, statement: str, open_groups: list[str]) -> None:
    if statement == "end":
        if not open_groups:
            raise NotDrawable("`end` without a subgraph")
        open_groups.pop()
    elif found := SUBGRAPH.match(statement):
        title = found[2] or found[3] or found[4]
        group = Group(found[1] or title, _label(title), open_groups[-1] if open_groups else "")
        chart.groups[group.id] = group
        open_groups.append(group.id)
    elif found := DIRECTION.match(statement):
        if not open_groups:
            chart.direction = _direction(found[1])
    elif not IGNORED.match(statement):
        _read_chain(chart, statement, open_groups[-1] if open_groups else "")


def _read_chain(chart: Flowchart, text: str, group: str) -> None:
    """`A & B -->|yes| C --> D`"""
    starts, at = _read_nodes(chart, text, 0, group)
    while at < len(text):
        edge = EDGE.match(text, at)
        if not edge or edge.end() == at:
            raise NotDrawable(f"an arrow such as --> is expected at {text[at : at + 40]!r}")
        ends, at = _read_nodes(chart, text, edge.end(), group)
        mark = edge["line"] or edge["plain"]
        line = {"=": "thick", "~": "hidden"}.get(mark[0], "dotted" if "." in mark else "solid")
        label = _label(edge["label"] or edge["words"] or "")
        head, tail = edge["head"] or edge["head2"] or "", edge["tail"] or ""
        chart.edges += [
            Edge(start, end, label, line, head, tail and ">" if tail == "<" else tail)  # type: ignore[arg-type]
            for start in starts
            for end in ends
        ]
        starts = ends


def _read_nodes(chart: Flowchart, text: str, at: int, group: str) -> tuple[list[str], int]:
    found: list[str] = []
    while True:
        name = NODE_ID.match(text, at)
        if not name:
            raise NotDrawable(f"the name of a node is expected at {text[at : at + 40]!r}")
        at = name.end()
        node = chart.nodes.setdefault(name[0], Node(name[0], name[0], group=group))
        for opening, closing, shape in SHAPES:
            end = _closing(text, at + len(opening), closing) if text.startswith(opening, at) else -1
            if end >= 0:
                node.label, node.shape = _label(text[at + len(opening) : end]), shape
                at = end + len(closing)
                break
        if suffix := CLASS_SUFFIX.match(text, at):
            at = suffix.end()
        if group and not node.group:
            node.group = group
        found.append(node.id)
        if more := re.compile(r"\s*&\s*").match(text, at):
            at = more.end()
        else:
            return found, at


def _closing(text: str, start: int, closing: str) -> int:
    """Where the label ends; a quoted one may hold brackets."""
    if text.startswith('"', start):
        quote = text.find('"', start + 1)
        return text.find(closing, quote) if quote >= 0 and text.startswith(closing, quote + 1) else -1
    end = text.find(closing, start)
    inside = text[start:end]
    return -1 if end < 0 or any(bracket in inside for bracket in "[]{}") else end


def _label(text: str) -> str:
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] == '"':
        text = text[1:-1]
    return BREAK.sub("\n", text).strip().strip("`")
