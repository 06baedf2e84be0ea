"""Every request to a model: the raw answer beside what was understood of it."""

import json
import time
from contextlib import suppress
from urllib.parse import urlencode

from starlette.responses import HTMLResponse, Response

from handrail.app.app import App
from handrail.app.history.audit import (
    AuditedRequest,
    FoundRequest,
    RawExchange,
    audit_requests,
    audit_workspace,
    exchange_of,
    numbered_request,
)
from handrail.interfaces.cli.render.styles import (
    clean,
    count_of,
    format_duration,
    format_usd,
    one_line,
)
from handrail.interfaces.web.conversation.answers import structured
from handrail.interfaces.web.conversation.blocks import dot
from handrail.interfaces.web.frame import place
from handrail.interfaces.web.highlight import highlighted
from handrail.interfaces.web.html import Html, h, join
from handrail.interfaces.web.markdown import markdown
from handrail.interfaces.web.page_call import PageCall

NUMBERS = ("Tokens", "Cost", "Took")
MOST = 200
MAX_RAW = 200_000
GONE = "No longer stored, or never was."
GOOD = ("stop", "tool_calls", "continued")
FILTERS = ("session", "model", "purpose", "finish")


async def audit_page(call: PageCall) -> Response:
    given = {name: call.query(name) for name in FILTERS}

    def wanted(one: AuditedRequest) -> bool:
        return all(given[name] in ("", getattr(one, name)) for name in FILTERS[1:])

    def look(app: App) -> list[FoundRequest]:
        if session := given["session"]:
            return [FoundRequest(session, each) for each in reversed(audit_requests(app, session))]
        return audit_workspace(app, lambda _: True, MOST)

    every = await call.app.query(look)
    found = [each for each in every if wanted(each.request)]
    titles = {info.id: one_line(info.title) or info.id for info in call.app.sessions(deleted=True)}
    rows = [_row(call, each, titles) for each in found[:MOST]]
    names = ("When", "Session", "Model", "For", "Ended", "Tokens", "Cost", "Took")
    heads = [h("th", name, scope="col", class_="number" if name in NUMBERS else None) for name in names]
    table = h(
        "table",
        h("thead", h("tr", *heads)),
        h("tbody", *rows),
        class_="list",
    )
    failed = sum(each.request.finish not in GOOD for each in found)
    recovered = sum(each.request.recovered is not None for each in found)
    words = (
        f"{count_of(len(found), 'request')}, {failed} not answered in full, {recovered} recovered in part."
    )
    content = h("div", table, class_="scroll", tabindex="0", role="region", aria_label="Requests")
    empty = h(
        "p",
        "No request to a model yet. Each one is listed here, with the bytes that were sent and came back.",
        class_="empty",
    )
    return HTMLResponse(
        place(
            call.view("Audit", "audit"),
            h("p", words, class_="lead"),
            _filters(given, every, titles),
            content if rows else empty,
        )
    )


def _filters(given: dict[str, str], every: list[FoundRequest], titles: dict[str, str]) -> Html:
    choices = {
        "session": {info: titles[info] for info in titles},
        **{
            name: {value: value for value in sorted({getattr(each.request, name) for each in every})}
            for name in FILTERS[1:]
        },
    }
    labels = {"session": "Session", "model": "Model", "purpose": "For", "finish": "Ended"}
    fields = []
    for name in FILTERS:
        if given[name] and given[name] not in choices[name]:
            choices[name][given[name]] = given[name]
        options = [h("option", "all", value="")]
        options += [
            h("option", text[:60], value=value, selected=value == given[name])
            for value, text in choices[name].items()
        ]
        fields.append(h("label", labels[name], h("select", *options, name=name, data_act="filter")))
    return h("form", *fields, class_="filters", method="get")


def _row(call: PageCall, each: FoundRequest, titles: dict[str, str]) -> Html:
    one = each.request
    link = f"/w/{call.workspace.name}/audit/{each.session_id}/{one.number}"
    good = one.finish in GOOD
    again = f", attempt {one.attempt}" if one.attempt > 1 else ""
    when = time.strftime("%d %b %H:%M:%S", time.localtime(one.at))
    return h(
        "tr",
        h("td", h("a", when, href=link)),
        h("td", titles.get(each.session_id, each.session_id)[:48]),
        h("td", one_line(one.model).rpartition("/")[2]),
        h("td", f"{one.purpose}{again}"),
        h("td", dot("done" if good else "bad", one.finish), f" {one.finish}"),
        h("td", _tokens(one), class_="number"),
        h("td", format_usd(one.cost_usd) if one.finish != "open" else "", class_="number"),
        h("td", format_duration(one.seconds) if one.seconds else "", class_="number"),
    )


def _tokens(one: AuditedRequest) -> str:
    cached = f" ({one.usage.cache_read_tokens:,} cached)" if one.usage.cache_read_tokens else ""
    return f"{one.usage.input_tokens:,} in{cached} · {one.usage.output_tokens:,} out"


async def request_page(call: PageCall) -> Response:
    number = call.request.path_params["number"]

    def look(app: App) -> tuple[AuditedRequest, RawExchange, int]:
        found = audit_requests(app, call.session_id)
        request = numbered_request(found, int(number) if number.isdecimal() and len(number) < 9 else 0)
        return request, exchange_of(app, request), len(found)

    one, raw, count = await call.app.query(look)
    base = f"/w/{call.workspace.name}"
    facts = [
        f"turn {one.turn}",
        one.purpose,
        one.model,
        f"ended: {one.finish}",
        _tokens(one),
        format_usd(one.cost_usd) if one.finish != "open" else "open",
        format_duration(one.seconds) if one.seconds else "time not measured",
    ]
    steps = []
    if one.number > 1:
        steps.append(h("a", "← earlier", href=f"{base}/audit/{call.session_id}/{one.number - 1}"))
    if one.number < count:
        steps.append(h("a", "later →", href=f"{base}/audit/{call.session_id}/{one.number + 1}"))
    query = urlencode({"session": call.session_id})
    sides = h(
        "div",
        h("section", h("h2", "The answer as it came"), _raw(raw.answer)),
        h("section", h("h2", "What was understood"), *_understood(one)),
        class_="sides",
    )
    return HTMLResponse(
        place(
            call.view(f"Request {one.number}", "audit"),
            h("p", h("a", "← audit of this session", href=f"{base}/audit?{query}"), *steps, class_="facts"),
            h("h1", f"Request {one.number} of {count}"),
            h("p", " · ".join(facts), class_="lead"),
            sides,
            h("details", h("summary", "The prompt as it was sent"), _raw(raw.request)),
        )
    )


def _raw(data: bytes | None) -> Html:
    if data is None:
        return h("p", GONE, class_="soft")
    text = data.decode(errors="backslashreplace")
    with suppress(ValueError, RecursionError):  # what is not JSON is shown as it is
        text = json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    more = f"\n… {len(text) - MAX_RAW:,} more characters" if len(text) > MAX_RAW else ""
    return h(
        "pre", h("code", highlighted(clean(text[:MAX_RAW]), "json"), more), class_="output", tabindex="0"
    )


def _understood(one: AuditedRequest) -> list[Html]:
    parts: list[Html] = []
    if one.problem:
        parts.append(h("p", dot("bad", "failed"), f" {one.problem}", class_="t-bad"))
    if one.structured:
        parts.append(structured(one.structured))
    elif one.text.strip():
        parts.append(h("div", markdown(one.text), class_="prose"))
    for call in one.calls.values():
        sign = dot("ok" if call.status == "ok" else "bad" if call.status != "not run" else "off", call.status)
        head = h("p", sign, h("code", f" {call.name}"), f" {call.status}")
        arguments = json.dumps(call.arguments, indent=2, ensure_ascii=False)
        parts += [head, h("pre", highlighted(clean(arguments), "json"), class_="output", tabindex="0")]
        parts += [h("p", call.refusal, class_="t-bad")] if call.refusal else []
    if one.recovered:
        parts += [h("p", h("strong", "Recovered of a broken answer:")), structured(one.recovered)]
    lists = {
        "Not run": one.blocked,
        "Not read": one.unread,
        "Read": one.read,
        "Edited": dict.fromkeys(one.edits),
        "Refused": one.refusals,
        "Pruned": one.pruned,
    }
    for name, values in lists.items():
        if values:
            parts.append(
                h("p", h("span", f"{name}: ", class_="soft"), join(", ".join(map(one_line, values))))
            )
    return parts or [h("p", "Nothing: the answer says nothing and calls nothing.", class_="soft")]
