"""Sources (MCP servers): what each is and may do, how it is doing, and the buttons to test and trust it."""

from starlette.responses import HTMLResponse, Response

from handrail.app.app import App
from handrail.app.extensions.sources import SourceRow, ready_names, source_rows
from handrail.interfaces.cli.render.styles import one_line
from handrail.interfaces.web.conversation.blocks import button, dot
from handrail.interfaces.web.frame import place
from handrail.interfaces.web.html import Html, h
from handrail.interfaces.web.page_call import PageCall

LEAD = (
    "Sources are MCP servers whose tools the model can use. Programs run in the sandbox; each call of a tool "
    "is decided and asked about like a command."
)
STATES = {"on": "ok", "off": "off", "hidden": "off", "untrusted": "wait", "changed": "wait", "wrong": "bad"}
HEALTH_WORDS = {"stopped": "not running"}
HEALTH = {"ready": "ok", "starting": "wait", "failed": "bad", "stopped": "off"}


async def sources_page(call: PageCall) -> Response:
    def look(app: App) -> Html:
        rows = source_rows(app)
        tiles = [_tile(row) for row in rows]
        names = {row.name for row in rows}
        ready = [name for name in ready_names() if name not in names]
        return h("div", *tiles, _ready(ready) if ready else None, class_="tiles")

    head = h("p", LEAD, class_="lead")
    return HTMLResponse(place(call.view("Sources", "sources"), head, await call.app.query(look), narrow=True))


def _tile(row: SourceRow) -> Html:
    head = h("h2", dot(STATES.get(row.state, "bad"), row.state), one_line(row.name))
    where = " · ".join(filter(None, [row.state, row.where, row.kind, "signed in" if row.signed_in else ""]))
    health = HEALTH_WORDS.get(row.health, row.health)
    sign = dot(HEALTH.get(row.health, "off"), health)
    lines: list[Html] = [h("p", where, " · ", h("span", sign, " ", health, class_="health"), class_="soft")]
    if row.description:
        lines.append(h("p", one_line(row.description)))
    if row.rights:
        lines.append(h("ul", *(h("li", one_line(each)) for each in row.rights), class_="rights"))
    if row.problem:
        lines.append(h("p", one_line(row.problem), class_="bad"))
    lines += [_secret_form(row.name, variable) for variable in row.missing]
    if row.state in ("untrusted", "changed"):
        sure = button(
            "Trust it, as shown here", "trust-source", class_="primary", id=row.name, hash=row.sha256
        )
        lines.append(h("div", sure, class_="buttons"))
    elif row.state in ("on", "off"):
        tries = button("Test connection", "test-source", id=row.name)
        removes = button("Remove", "remove-source", id=row.name) if row.where == "yours" else None
        lines.append(h("div", tries, removes, class_="buttons"))
        lines.append(h("div", class_="trial", role="status"))
    return h("section", head, *lines, class_="tile")


def _secret_form(source: str, variable: str) -> Html:
    field = h("input", type="password", name="value", required=True, autocomplete="off", aria_label=variable)
    return h(
        "form",
        h("label", h("code", variable), " ", field),
        h("button", "Store", type="submit"),
        class_="inline",
        data_act="source-secret",
        data_id=source,
        data_variable=variable,
    )


def _ready(names: list[str]) -> Html:
    chips = [button(name, "add-source", class_="chip", id=name) for name in names]
    return h("section", h("h2", "Well-known servers"), h("div", *chips, class_="buttons"), class_="tile")
