"""Mermaid flowcharts as SVG: `draw_flowchart` gives the picture, or None for what it cannot draw."""

from handrail.app.flowchart import NotDrawable, parse_flowchart
from handrail.interfaces.web.html import Html
from handrail.interfaces.web.mermaid.drawing import draw
from handrail.interfaces.web.mermaid.layout import arrange

MAX_CHARS = 20_000


def draw_flowchart(text: str) -> Html | None:
    if len(text) > MAX_CHARS:
        return None
    try:
        chart = parse_flowchart(text)
    except NotDrawable:
        return None
    return draw(chart, arrange(chart))
