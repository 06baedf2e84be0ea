"""The board of intents, one intent with its timeline, and who wrote each line of a file."""

import time
from urllib.parse import quote

from starlette.responses import HTMLResponse, Response

from handrail.app.app import App
from handrail.app.history.changes import BlamedLine
from handrail.app.intents import IntentProblems, intent_changes
from handrail.interfaces.cli.render.change_list import files_summary
from handrail.interfaces.cli.render.styles import count_of, format_age, one_line
from handrail.interfaces.web.conversation.blocks import dot
from handrail.interfaces.web.frame import place
from handrail.interfaces.web.highlight import code_lines, piece
from handrail.interfaces.web.html import Html, h, join
from handrail.interfaces.web.page_call import PageCall
from handrail.protocol.errors import IntentsProblem
from handrail.protocol.events import IntentEdited
from handrail.protocol.intent import Intent

MAX_LINES = 5_000
LEAD = "Pieces of work that changes belong to. Each owns files; nothing outside of them is changed for it."


def _blame_form(call: PageCall, path: str = "") -> Html:
    return h(
        "form",
        h(
            "label",
            "Who wrote the lines of",
            h("input", name="path", value=path, required=True, placeholder="src/cart.py", size="34"),
        ),
        h("button", "Show", type="submit"),
        class_="filters",
        action=f"/w/{call.workspace.name}/blame",
        method="get",
    )


async def intents_page(call: PageCall) -> Response:
    def look(app: App) -> Html:
        if not app.intents.bound:
            return h(
                "div",
                h("p", "Intents are not in use here."),
                h("p", h("code", "handrail intents init"), " turns them on: then every change needs one."),
                class_="empty",
            )
        found, problems = app.intents.now(), app.intents.problems()
        tiles = [
            _tile(call, each, len(intent_changes(app, each.id)), problems, ignored=each.id in found.ignored)
            for each in found.intents
        ]
        wrong = [h("p", text, class_="t-bad") for text in problems.wrong]
        wrong += [h("p", each.message, class_="t-wait") for each in problems.conflicts]
        return join(
            *wrong, h("div", *tiles, class_="grid") if tiles else h("p", "No intent yet.", class_="empty")
        )

    try:
        board = await call.app.query(look)
    except IntentsProblem as problem:
        board = h("p", str(problem), class_="t-bad")
    head = join(h("p", LEAD, class_="lead"), _blame_form(call))
    return HTMLResponse(place(call.view("Intents", "intents"), head, board))


def _tile(call: PageCall, intent: Intent, changes: int, problems: IntentProblems, *, ignored: bool) -> Html:
    state = "ignored" if ignored else intent.status or "active"
    waits = [text for text in problems.waiting if text.startswith(f"{intent.id} ")]
    clash = any(intent.id in (each.one, each.other) for each in problems.conflicts)
    sign = dot("ok", "done") if intent.done else dot("wait", "overlaps") if clash else dot("run", state)
    link = h(
        "a",
        one_line(intent.name) or intent.id,
        href=f"/w/{call.workspace.name}/intents/{quote(intent.id, safe='')}",
    )
    return h(
        "section",
        h("h2", sign, link),
        h("p", f"{intent.id} · {state} · {count_of(changes, 'change')}", class_="soft"),
        h("div", *(h("code", one_line(each), class_="chip") for each in intent.scope[:8]), class_="chips"),
        *(h("p", text, class_="t-wait") for text in waits),
        class_="tile",
    )


async def intent_page(call: PageCall) -> Response:
    wanted = call.request.path_params["intent"]

    def look(app: App) -> Html:
        intent, problems = app.intents.find(wanted), app.intents.problems()
        made, edits = intent_changes(app, wanted), app.intents.versions(wanted)
        base = f"/w/{call.workspace.name}"
        notes = [each for each in (*problems.wrong, *problems.waiting) if each.startswith(f"{wanted} ")]
        notes += [each.message for each in problems.conflicts if wanted in (each.one, each.other)]
        touched = dict.fromkeys(file.destination or file.path for each in made for file in each.change.files)
        rows = [
            (
                each.at,
                h(
                    "div",
                    dot("ok", "changed"),
                    h(
                        "a",
                        files_summary(each.change.files),
                        href=f"{base}/s/{each.session_id}/changes/{each.change.change_id}",
                    ),
                    h(
                        "span",
                        f"{format_age(time.time() - each.at)}, turn {each.turn}, by {each.change.by}",
                        class_="soft",
                    ),
                    class_="change-row",
                ),
            )
            for each in made
        ]
        for one in edits:
            if isinstance(one.event, IntentEdited):
                words = f"intent edited by {one.event.by}{f': {one.event.why}' if one.event.why else ''}"
                when = h("span", format_age(time.time() - one.at), class_="soft")
                rows.append((one.at, h("div", dot("run", "edited"), words, when, class_="change-row")))
        timeline = [row for _, row in sorted(rows, key=lambda each: each[0], reverse=True)]
        files = [h("li", h("a", path, href=f"{base}/blame?path={quote(path)}")) for path in touched]
        return join(
            h("h1", f"{intent.id} {one_line(intent.name)}"),
            h("p", intent.status or "active", class_="lead"),
            *(h("p", text, class_="t-wait") for text in notes),
            h("h2", "As it is written"),
            h("pre", intent.text.rstrip(), class_="output", tabindex="0"),
            h("h2", f"Files touched, {len(touched)}"),
            h("ul", *files) if files else h("p", "None yet.", class_="soft"),
            h("h2", "Timeline"),
            *(timeline or [h("p", "Nothing yet.", class_="soft")]),
        )

    return HTMLResponse(place(call.view(wanted, "intents"), await call.app.query(look), narrow=True))


async def blame_page(call: PageCall) -> Response:
    path = call.query("path")
    lines = await call.app.query(lambda app: app.trace.blame(path))
    code = code_lines(
        "\n".join(each.text.decode(errors="replace").rstrip("\r\n") for each in lines), path=path
    )
    rows = [_blame_row(call, each, code[at]) for at, each in enumerate(lines[:MAX_LINES])]
    table = h("table", h("tbody", *rows), class_="blame", aria_label=f"lines of {path} and who wrote them")
    head = join(
        h("h1", f"Who wrote {path}"),
        h("p", "Lines without a name were written by people or other programs.", class_="lead"),
    )
    box = h("div", table, class_="scroll", tabindex="0", role="region", aria_label="lines")
    more = h("p", f"{len(lines) - MAX_LINES:,} more lines", class_="soft") if len(lines) > MAX_LINES else None
    return HTMLResponse(place(call.view(path, "intents"), head, _blame_form(call, path), box, more))


def _blame_row(call: PageCall, line: BlamedLine, code: list[tuple[str, str]]) -> Html:
    author, who = line.author, h("td", class_="who")
    if author:
        words = " ".join(
            filter(
                None,
                (
                    author.intent_id,
                    author.model.rpartition("/")[2] or author.by,
                    f"turn {author.turn}" if author.turn else "",
                ),
            )
        )
        link = f"/w/{call.workspace.name}/s/{author.session_id}/changes/{author.change_id}"
        who = h("td", h("a", words, href=link) if author.session_id else words, class_="who", title=author.at)
    return h("tr", who, h("td", str(line.number), class_="soft"), h("td", *(piece(*each) for each in code)))
