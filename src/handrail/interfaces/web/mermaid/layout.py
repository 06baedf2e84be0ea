"""Where nodes and edges of a flowchart go: layers by the longest path, ordered to cross little."""

from collections import defaultdict
from itertools import pairwise
from typing import NamedTuple

from handrail.app.flowchart import Flowchart, Node

LINE_HEIGHT, CHAR_WIDTH = 18.0, 7.3
PADDING_X, PADDING_Y = 16.0, 10.0
NODE_GAP, LAYER_GAP = 28.0, 52.0
LABEL_GAP = 26.0
GROUP_PADDING, GROUP_TITLE = 14.0, 20.0
SWEEPS = 4

Point = tuple[float, float]


class Box(NamedTuple):
    x: float
    """Of its centre."""
    y: float
    width: float
    height: float


class Layout(NamedTuple):
    boxes: dict[str, Box]
    paths: list[list[Point]]
    """The points of each edge, from centre to centre."""
    groups: dict[str, Box]


class _Item(NamedTuple):
    """A node, or the place where a long edge passes a layer."""

    key: str
    across: float
    """Its size along the layer."""
    along: float


def text_size(label: str) -> tuple[float, float]:
    lines = label.split("\n")
    wide = max(sum(1.0 if ord(each) < 0x2E80 else 1.8 for each in line) for line in lines)
    return wide * CHAR_WIDTH, len(lines) * LINE_HEIGHT


def node_size(node: Node) -> tuple[float, float]:
    width, height = text_size(node.label)
    width, height = max(36.0, width + 2 * PADDING_X), height + 2 * PADDING_Y
    match node.shape:
        case "diamond":
            return width * 1.35 + 16, height * 1.5 + 10
        case "circle":
            side = max(width, height)
            return side, side
        case "hexagon" | "slanted" | "flag" | "double":
            return width + 22, height
        case "database":
            return width, height + 14
    return width, height


def arrange(chart: Flowchart) -> Layout:
    sideways = chart.direction in ("LR", "RL")
    sizes = {name: node_size(node) for name, node in chart.nodes.items()}
    ranks = _ranks(chart)
    layers, chains = _layers(chart, ranks, sizes, sideways=sideways)
    _order(layers, chains, chart)
    places = _places(layers, chains, wide_labels=_label_room(chart, sideways=sideways))
    turned = {key: _turned(place, chart.direction) for key, place in places.items()}
    boxes = {name: Box(*turned[name], *sizes[name]) for name in chart.nodes}
    paths = [[turned[key] for key in chain] for chain in chains]
    groups = _group_boxes(chart, boxes)
    return _shifted(boxes, paths, groups)


def _ranks(chart: Flowchart) -> dict[str, int]:
    """The layer of each node: one below its latest predecessor, edges that would close a circle left out."""
    after: dict[str, list[str]] = defaultdict(list)
    for edge in chart.edges:
        if edge.start != edge.end:
            after[edge.start].append(edge.end)
    state: dict[str, int] = {}
    order: list[str] = []
    kept: dict[str, list[str]] = defaultdict(list)
    for root in chart.nodes:
        stack = [(root, iter(after[root]))] if root not in state else []
        if stack:
            state[root] = 1
        while stack:
            name, ends = stack[-1]
            for end in ends:
                if state.get(end) == 1:
                    continue
                kept[name].append(end)
                if end not in state:
                    state[end] = 1
                    stack.append((end, iter(after[end])))
                    break
            else:
                state[name] = 2
                order.append(name)
                stack.pop()
    ranks = dict.fromkeys(chart.nodes, 0)
    for name in reversed(order):
        for end in kept[name]:
            ranks[end] = max(ranks[end], ranks[name] + 1)
    return ranks


def _layers(
    chart: Flowchart, ranks: dict[str, int], sizes: dict[str, tuple[float, float]], *, sideways: bool
) -> tuple[list[list[_Item]], list[list[str]]]:
    """The layers, and for each edge the keys that it passes."""
    layers: list[list[_Item]] = [[] for _ in range(max(ranks.values()) + 1)]
    for name in chart.nodes:
        width, height = sizes[name]
        across, along = (height, width) if sideways else (width, height)
        layers[ranks[name]].append(_Item(name, across, along))
    chains: list[list[str]] = []
    for number, edge in enumerate(chart.edges):
        start, end = ranks[edge.start], ranks[edge.end]
        step = 1 if end >= start else -1
        passed = [f"\0{number}.{rank}" for rank in range(start + step, end, step)] if start != end else []
        for key in passed:
            layers[int(key.rpartition(".")[2])].append(_Item(key, 8.0, 0.0))
        chains.append([edge.start, *passed, edge.end])
    return layers, chains


def _order(layers: list[list[_Item]], chains: list[list[str]], chart: Flowchart) -> None:
    """Sort each layer by where its neighbours are, down and up again; members of a subgraph stay together."""
    near: dict[str, list[str]] = defaultdict(list)
    for chain in chains:
        for one, other in pairwise(chain):
            near[one].append(other)
            near[other].append(one)

    def sort(layer: list[_Item], beside: list[_Item]) -> None:
        position = {item.key: at for at, item in enumerate(beside)}
        own = {item.key: float(at) for at, item in enumerate(layer)}

        def centre(item: _Item) -> float:
            found = [position[key] for key in near[item.key] if key in position]
            return sum(found) / len(found) if found else own[item.key]

        centres = {item.key: centre(item) for item in layer}
        by_group: dict[str, list[float]] = defaultdict(list)
        for item in layer:
            if group := _group_of(chart, item.key):
                by_group[group].append(centres[item.key])

        def key(item: _Item) -> tuple[float, str, float]:
            group = _group_of(chart, item.key)
            middle = sum(by_group[group]) / len(by_group[group]) if group else centres[item.key]
            return middle, group, centres[item.key]

        layer.sort(key=key)

    for _ in range(SWEEPS):
        for upper, lower in pairwise(layers):
            sort(lower, upper)
        for upper, lower in zip(reversed(layers[:-1]), reversed(layers[1:]), strict=False):
            sort(upper, lower)


def _group_of(chart: Flowchart, key: str) -> str:
    return chart.nodes[key].group if key in chart.nodes else ""


def _label_room(chart: Flowchart, *, sideways: bool) -> float:
    labels = [text_size(edge.label) for edge in chart.edges if edge.label]
    if not labels:
        return 0.0
    return max(width for width, _ in labels) if sideways else LABEL_GAP


def _places(layers: list[list[_Item]], chains: list[list[str]], wide_labels: float) -> dict[str, Point]:
    """(across, along) of each key: layers are centred, then moved towards their neighbours."""
    near: dict[str, list[str]] = defaultdict(list)
    for chain in chains:
        for one, other in pairwise(chain):
            near[one].append(other)
            near[other].append(one)
    across: dict[str, float] = {}
    for layer in layers:
        total = sum(item.across for item in layer) + NODE_GAP * (len(layer) - 1)
        at = -total / 2
        for item in layer:
            across[item.key] = at + item.across / 2
            at += item.across + NODE_GAP
    for _ in range(SWEEPS):
        for layer in (*layers, *reversed(layers)):
            _pull(layer, near, across)
    places: dict[str, Point] = {}
    at = 0.0
    for layer in layers:
        height = max((item.along for item in layer), default=0.0)
        for item in layer:
            places[item.key] = (across[item.key], at + height / 2)
        at += height + LAYER_GAP + wide_labels
    return places


def _pull(layer: list[_Item], near: dict[str, list[str]], across: dict[str, float]) -> None:
    """Move the items of a layer towards their neighbours, without changing their order or overlapping."""
    wanted = [
        sum(across[key] for key in near[item.key]) / len(near[item.key])
        if near[item.key]
        else across[item.key]
        for item in layer
    ]
    right = list(wanted)
    for at in range(1, len(layer)):
        gap = (layer[at - 1].across + layer[at].across) / 2 + NODE_GAP
        right[at] = max(right[at], right[at - 1] + gap)
    left = list(wanted)
    for at in range(len(layer) - 2, -1, -1):
        gap = (layer[at].across + layer[at + 1].across) / 2 + NODE_GAP
        left[at] = min(left[at], left[at + 1] - gap)
    middle = [(one + other) / 2 for one, other in zip(left, right, strict=True)]
    for at in range(1, len(layer)):
        gap = (layer[at - 1].across + layer[at].across) / 2 + NODE_GAP
        middle[at] = max(middle[at], middle[at - 1] + gap)
    for item, place in zip(layer, middle, strict=True):
        across[item.key] = place


def _turned(place: Point, direction: str) -> Point:
    across, along = place
    turned = {"BT": (across, -along), "LR": (along, across), "RL": (-along, across)}
    return turned.get(direction, (across, along))


def _group_boxes(chart: Flowchart, boxes: dict[str, Box]) -> dict[str, Box]:
    """Around the members of each subgraph, inner ones first."""
    found: dict[str, Box] = {}
    for group in reversed(list(chart.groups.values())):
        inner = [boxes[node.id] for node in chart.nodes.values() if node.group == group.id]
        inner += [
            found[each.id] for each in chart.groups.values() if each.parent == group.id and each.id in found
        ]
        if inner:
            left = min(box.x - box.width / 2 for box in inner) - GROUP_PADDING
            right = max(box.x + box.width / 2 for box in inner) + GROUP_PADDING
            top = min(box.y - box.height / 2 for box in inner) - GROUP_PADDING - GROUP_TITLE
            bottom = max(box.y + box.height / 2 for box in inner) + GROUP_PADDING
            width = max(right - left, text_size(group.title)[0] + 2 * GROUP_PADDING)
            found[group.id] = Box((left + right) / 2, (top + bottom) / 2, width, bottom - top)
    return found


def _shifted(boxes: dict[str, Box], paths: list[list[Point]], groups: dict[str, Box]) -> Layout:
    """The same with all coordinates from zero on."""
    every = [*boxes.values(), *groups.values()]
    left = min(box.x - box.width / 2 for box in every)
    top = min(box.y - box.height / 2 for box in every)

    def moved(box: Box) -> Box:
        return box._replace(x=box.x - left, y=box.y - top)

    return Layout(
        {key: moved(box) for key, box in boxes.items()},
        [[(x - left, y - top) for x, y in path] for path in paths],
        {key: moved(box) for key, box in groups.items()},
    )
