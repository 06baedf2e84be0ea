"""An arranged flowchart as SVG; colours come from the style sheet."""

from collections.abc import Iterator
from itertools import pairwise
from math import hypot

from handrail.app.flowchart import Edge, Flowchart, Node
from handrail.interfaces.web.html import Html, h
from handrail.interfaces.web.mermaid.layout import LINE_HEIGHT, Box, Layout, Point, text_size

MARGIN = 8.0
HEAD = 7.0
SLANT = 11.0


def draw(chart: Flowchart, layout: Layout) -> Html:
    every = [*layout.boxes.values(), *layout.groups.values()]
    points = [point for path in layout.paths for point in path]
    width = max([box.x + box.width / 2 for box in every] + [x for x, _ in points]) + MARGIN
    height = max([box.y + box.height / 2 for box in every] + [y for _, y in points]) + MARGIN
    names = ", ".join(node.label.replace("\n", " ") for node in list(chart.nodes.values())[:12])
    loops = [edge for edge in chart.edges if edge.start == edge.end]
    width += 40 if loops else 0
    return h(
        "svg",
        [_group(chart, layout, each) for each in layout.groups],
        [_edge(edge, path, layout) for edge, path in zip(chart.edges, layout.paths, strict=True)],
        [_node(node, layout.boxes[node.id]) for node in chart.nodes.values()],
        [
            _edge_label(edge, _visible(edge, path, layout))
            for edge, path in zip(chart.edges, layout.paths, strict=True)
            if edge.label
        ],
        class_="flowchart",
        viewBox=f"{-MARGIN:g} {-MARGIN:g} {width + MARGIN:.0f} {height + MARGIN:.0f}",
        width=f"{width + MARGIN:.0f}",
        height=f"{height + MARGIN:.0f}",
        role="img",
        aria_label=f"Flowchart: {names}",
    )


def _group(chart: Flowchart, layout: Layout, name: str) -> Html:
    box = layout.groups[name]
    left, top = box.x - box.width / 2, box.y - box.height / 2
    rect = h(
        "rect", x=f"{left:.1f}", y=f"{top:.1f}", width=f"{box.width:.1f}", height=f"{box.height:.1f}", rx="8"
    )
    title = h("text", chart.groups[name].title, x=f"{left + 10:.1f}", y=f"{top + 17:.1f}", class_="title")
    return h("g", rect, title, class_="group")


def _node(node: Node, box: Box) -> Html:
    return h("g", _shape(node, box), _text(node.label, box.x, box.y), class_="node")


def _shape(node: Node, box: Box) -> Html:
    x, y, w, t = box.x - box.width / 2, box.y - box.height / 2, box.width, box.height
    right, bottom = x + w, y + t

    def rect(radius: float) -> Html:
        return h("rect", x=f"{x:.1f}", y=f"{y:.1f}", width=f"{w:.1f}", height=f"{t:.1f}", rx=f"{radius:g}")

    def polygon(*points: Point) -> Html:
        return h("polygon", points=" ".join(f"{a:.1f},{b:.1f}" for a, b in points))

    match node.shape:
        case "round":
            return rect(10)
        case "stadium":
            return rect(t / 2)
        case "circle":
            return h("circle", cx=f"{box.x:.1f}", cy=f"{box.y:.1f}", r=f"{w / 2:.1f}")
        case "diamond":
            return polygon((box.x, y), (right, box.y), (box.x, bottom), (x, box.y))
        case "hexagon":
            s = SLANT
            return polygon(
                (x + s, y), (right - s, y), (right, box.y), (right - s, bottom), (x + s, bottom), (x, box.y)
            )
        case "slanted":
            return polygon((x + SLANT, y), (right, y), (right - SLANT, bottom), (x, bottom))
        case "flag":
            return polygon((x, y), (right, y), (right, bottom), (x, bottom), (x + SLANT, box.y))
        case "database":
            arc, back = f"a{w / 2:.1f},7 0 0 1 {w:.1f},0", f"a{w / 2:.1f},7 0 0 1 {-w:.1f},0"
            curve = f"M{x:.1f},{y + 7:.1f} {arc} v{t - 14:.1f} {back} z"
            lid = f"M{x:.1f},{y + 7:.1f} a{w / 2:.1f},7 0 0 0 {w:.1f},0"
            return h("g", h("path", d=curve), h("path", d=lid))
        case "double":
            bars = [h("path", d=f"M{at:.1f},{y:.1f} v{t:.1f}") for at in (x + 7, right - 7)]
            return h("g", rect(2), *bars)
    return rect(3)


def _text(label: str, x: float, y: float) -> Html:
    lines = label.split("\n")
    first = y - (len(lines) - 1) * LINE_HEIGHT / 2 + 4.5
    spans = [
        h("tspan", line, x=f"{x:.1f}", y=f"{first + at * LINE_HEIGHT:.1f}") for at, line in enumerate(lines)
    ]
    return h("text", *spans, text_anchor="middle")


def _edge(edge: Edge, path: list[Point], layout: Layout) -> Html | None:
    if edge.line == "hidden":
        return None
    start = layout.boxes[edge.start]
    if edge.start == edge.end:
        right, y = start.x + start.width / 2, start.y
        loop = f"M{right:.1f},{y - 8:.1f} c34,-18 34,34 0,16"
        return h(
            "g",
            h("path", d=loop),
            _head((right, y + 8), (right + 8, y + 12), ">"),
            class_=f"edge {edge.line}",
        )
    points = _visible(edge, path, layout)
    heads = [_head(points[-1], points[-2], edge.head), _head(points[0], points[1], edge.tail)]
    return h("g", h("path", d=_curve(points)), *heads, class_=f"edge {edge.line}")


def _visible(edge: Edge, path: list[Point], layout: Layout) -> list[Point]:
    """The points of an edge between the borders of its nodes."""
    start, end = layout.boxes[edge.start], layout.boxes[edge.end]
    return [_border(start, path[1]), *path[1:-1], _border(end, path[-2])]


def _border(box: Box, towards: Point) -> Point:
    """Where a line from the centre of the box leaves it."""
    dx, dy = towards[0] - box.x, towards[1] - box.y
    if not dx and not dy:
        return box.x, box.y
    scale = min(box.width / 2 / abs(dx) if dx else 1e9, box.height / 2 / abs(dy) if dy else 1e9)
    return box.x + dx * scale, box.y + dy * scale


def _curve(points: list[Point]) -> str:
    """Straight between two points, smooth through more."""
    if len(points) == 2:
        return "M{:.1f},{:.1f} L{:.1f},{:.1f}".format(*points[0], *points[1])
    parts = ["M{:.1f},{:.1f}".format(*points[0])]
    for (ax, ay), (bx, by) in pairwise(points[1:]):
        parts.append(f"Q{ax:.1f},{ay:.1f} {(ax + bx) / 2:.1f},{(ay + by) / 2:.1f}")
    return " ".join([*parts, "L{:.1f},{:.1f}".format(*points[-1])])


def _head(tip: Point, before: Point, kind: str) -> Html | None:
    if not kind:
        return None
    dx, dy = tip[0] - before[0], tip[1] - before[1]
    length = hypot(dx, dy) or 1.0
    ux, uy = dx / length, dy / length
    if kind == "o":
        return h("circle", cx=f"{tip[0] - ux * 4:.1f}", cy=f"{tip[1] - uy * 4:.1f}", r="4", class_="head")
    if kind == "x":
        strokes = "".join(
            f"M{tip[0] - 4:.1f},{tip[1] + a:.1f} L{tip[0] + 4:.1f},{tip[1] - a:.1f} " for a in (-4.0, 4.0)
        )
        return h("path", d=strokes.strip())
    base = tip[0] - ux * HEAD, tip[1] - uy * HEAD
    left, right = (base[0] - uy * 4, base[1] + ux * 4), (base[0] + uy * 4, base[1] - ux * 4)
    return h("polygon", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in (tip, left, right)), class_="head")


def _edge_label(edge: Edge, path: list[Point]) -> Html:
    x, y = _middle(path)
    width, height = text_size(edge.label)
    box = h(
        "rect",
        x=f"{x - width / 2 - 4:.1f}",
        y=f"{y - height / 2 - 1:.1f}",
        width=f"{width + 8:.1f}",
        height=f"{height + 2:.1f}",
        rx="4",
    )
    return h("g", box, _text(edge.label, x, y), class_="label")


def _middle(path: list[Point]) -> Point:
    def steps() -> Iterator[tuple[Point, Point, float]]:
        for one, other in pairwise(path):
            yield one, other, hypot(other[0] - one[0], other[1] - one[1])

    left = sum(length for _, _, length in steps()) / 2
    for one, other, length in steps():
        if length >= left and length:
            part = left / length
            return one[0] + (other[0] - one[0]) * part, one[1] + (other[1] - one[1]) * part
        left -= length
    return path[0]
