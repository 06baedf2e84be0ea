"""Cost, tokens, corrections and decisions over time, as charts."""

from collections.abc import Sequence
from typing import NamedTuple

from starlette.responses import HTMLResponse, Response

from handrail.app.history.stats import DayCount, daily_counts
from handrail.interfaces.cli.render.styles import count_of, format_usd
from handrail.interfaces.web.frame import place
from handrail.interfaces.web.html import Html, h
from handrail.interfaces.web.page_call import PageCall

WIDTH, HEIGHT = 480, 170
LEFT, BOTTOM, TOP = 52, 24, 10
DAYS = 30


class Bar(NamedTuple):
    """One day: parts of a bar from below, each with a class."""

    day: str
    parts: tuple[tuple[float, str], ...]
    words: str


async def charts_page(call: PageCall) -> Response:
    days = (await call.app.query(daily_counts))[-DAYS:]
    if not days:
        content: list[Html | None] = [h("p", "Figures appear here after the first turn.", class_="empty")]
    else:
        content = [_figures(days), h("div", *map(_tile, _charts(days)), class_="grid"), _models(days)]
    lead = (
        h("p", f"{count_of(len(days), 'day')} with activity, as measured.", class_="lead") if days else None
    )
    return HTMLResponse(place(call.view("Charts", "charts"), lead, *content))


def _figures(days: Sequence[DayCount]) -> Html:
    unpriced = sum(day.unpriced for day in days)
    cost = format_usd(sum(day.cost_usd for day in days))
    figures = {
        "Turns": f"{sum(day.turns for day in days):,}",
        "Requests": f"{sum(day.requests for day in days):,}",
        "Cost": f"{cost}{f', {unpriced:,} requests not priced' if unpriced else ''}",
        "Tokens in": f"{sum(day.input_tokens for day in days):,}",
        "Tokens out": f"{sum(day.output_tokens for day in days):,}",
        "Corrections": f"{sum(day.corrections for day in days):,}",
    }
    tiles = [
        h("div", h("span", name, class_="soft"), h("strong", value), class_="figure")
        for name, value in figures.items()
    ]
    return h("div", *tiles, class_="figures")


class Chart(NamedTuple):
    title: str
    bars: list[Bar]
    unit: str
    """How a value on the axis is written: `$`, or empty."""
    legend: tuple[tuple[str, str], ...] = ()


def _charts(days: Sequence[DayCount]) -> list[Chart]:
    yes, no = ("once", "always", "allow"), ("reject",)

    def approvals(day: DayCount, kinds: tuple[str, ...]) -> int:
        return sum(day.approvals.get(kind, 0) for kind in kinds)

    return [
        Chart("Cost", [Bar(day.day, ((day.cost_usd, ""),), format_usd(day.cost_usd)) for day in days], "$"),
        Chart(
            "Tokens",
            [
                Bar(
                    day.day,
                    ((day.input_tokens, ""), (day.output_tokens, "two")),
                    f"{day.input_tokens:,} in, {day.output_tokens:,} out",
                )
                for day in days
            ],
            "",
            (("", "in"), ("two", "out")),
        ),
        Chart(
            "Correction rounds and broken answers",
            [
                Bar(
                    day.day,
                    ((day.corrections, ""), (day.failed_requests, "bad"), (day.recovered, "two")),
                    f"{day.corrections} corrections, {day.failed_requests} failed, {day.recovered} recovered",
                )
                for day in days
            ],
            "",
            (("", "corrections"), ("bad", "failed requests"), ("two", "recovered")),
        ),
        Chart(
            "Approval decisions",
            [
                Bar(
                    day.day,
                    ((approvals(day, yes), ""), (approvals(day, no), "bad")),
                    f"{approvals(day, yes)} allowed, {approvals(day, no)} rejected",
                )
                for day in days
            ],
            "",
            (("", "allowed"), ("bad", "rejected")),
        ),
    ]


def _tile(chart: Chart) -> Html:
    legend = [
        h(
            "span",
            h(
                "svg",
                h("rect", width="10", height="10", class_=f"bar {class_}".rstrip()),
                class_="plot-key",
                width="10",
                height="10",
                aria_hidden="true",
            ),
            f" {words}",
        )
        for class_, words in chart.legend
    ]
    if not any(value for bar in chart.bars for value, _ in bar.parts):
        return h("section", h("h2", chart.title), h("p", "None on these days.", class_="soft"), class_="tile")
    return h(
        "section",
        h("h2", chart.title),
        bar_chart(chart),
        h("div", *legend, class_="facts soft") if legend else None,
        class_="tile",
    )


def bar_chart(chart: Chart) -> Html:
    """Bars by day as SVG; each says its values when pointed at, and a table has them for screen readers."""
    top = max(sum(value for value, _ in bar.parts) for bar in chart.bars)
    if not chart.unit:
        top += top % 2  # the line in the middle has a whole number too
    scale = (HEIGHT - BOTTOM - TOP) / top
    step = (WIDTH - LEFT) / max(len(chart.bars), 7)
    drawn: list[Html] = []
    for at, bar in enumerate(chart.bars):
        y = float(HEIGHT - BOTTOM)
        rects = []
        for value, class_ in bar.parts:
            height = value * scale
            y -= height
            rects.append(
                h(
                    "rect",
                    x=f"{LEFT + at * step + 2:.1f}",
                    y=f"{y:.1f}",
                    width=f"{max(2.0, min(step - 4, 34)):.1f}",
                    height=f"{height:.1f}",
                    class_=f"bar {class_}".rstrip(),
                )
            )
        drawn.append(h("g", h("title", f"{bar.day}: {bar.words}"), *rects))
    every = max(1, len(chart.bars) // 5)
    labels = [
        h("text", bar.day[5:], x=f"{LEFT + at * step + 2:.1f}", y=str(HEIGHT - 8))
        for at, bar in enumerate(chart.bars)
        if at % every == 0
    ]
    lines = []
    for part in (0.0, 0.5, 1.0):
        y = HEIGHT - BOTTOM - part * (HEIGHT - BOTTOM - TOP)
        lines.append(h("line", x1=str(LEFT), x2=str(WIDTH), y1=f"{y:.1f}", y2=f"{y:.1f}"))
        number = _axis(top * part, chart.unit)
        lines.append(h("text", number, x=str(LEFT - 6), y=f"{y + 4:.1f}", text_anchor="end"))
    words = "; ".join(f"{bar.day}: {bar.words}" for bar in chart.bars[-7:])
    return h(
        "svg",
        *lines,
        *drawn,
        *labels,
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        class_="plot",
        role="img",
        aria_label=f"{chart.title}. {words}",
    )


def _axis(value: float, unit: str) -> str:
    if unit:
        return f"{unit}{value:.2f}" if value < 10 else f"{unit}{value:,.0f}"
    if value >= 1_000_000:
        return f"{value / 1_000_000:.1f}M"
    return f"{value / 1000:.0f}k" if value >= 10_000 else f"{value:,.0f}"


def _models(days: Sequence[DayCount]) -> Html | None:
    costs: dict[str, float] = {}
    for day in days:
        for model, cost in day.models.items():
            costs[model] = costs.get(model, 0.0) + cost
    rows = [
        h("tr", h("td", model), h("td", format_usd(cost), class_="number"))
        for model, cost in sorted(costs.items(), key=lambda each: -each[1])
    ]
    head = h("thead", h("tr", h("th", "Model", scope="col"), h("th", "Cost", scope="col", class_="number")))
    return (
        h("section", h("h2", "By model"), h("table", head, h("tbody", *rows), class_="list"))
        if rows
        else None
    )
