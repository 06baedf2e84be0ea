"""Agents in folders, and their past runs."""

import time

from starlette.responses import HTMLResponse, Response

from handrail.app.agents import Agents, PastRun, find_runs
from handrail.app.app import App
from handrail.interfaces.cli.render.agent_lines import run_details
from handrail.interfaces.cli.render.styles import format_age, format_usd, one_line, shorten
from handrail.interfaces.http.api.agents import find_run
from handrail.interfaces.web.conversation.blocks import button, dot
from handrail.interfaces.web.frame import place
from handrail.interfaces.web.html import Html, h, join
from handrail.interfaces.web.inspector import render_run, run_view
from handrail.interfaces.web.markdown import markdown
from handrail.interfaces.web.page_call import PageCall
from handrail.protocol.events import RunCompleted

MAX_RUNS = 100
STATES = {"yours": "ok", "trusted": "ok", "untrusted": "wait", "changed": "wait"}
ENDS = {"finished": "done", "failed": "bad", "waiting": "wait", "open": "run"}
LEAD = "Agents are pipelines in folders: prompts, steps and checks. Start one with @name in a message."


async def agents_page(call: PageCall) -> Response:
    def look(app: App) -> Html:
        agents = Agents(app.workspace.root, call.workspace.environ)
        tiles = []
        for found in agents.all():
            one = agents.listed(found)
            head = h("h2", dot(STATES.get(one.state, "bad"), one.state), found.slug)
            where = h("p", f"{one.state} · {found.where}", class_="soft")
            use = button(f"Use @{found.slug}", "use-agent", class_="small", id=found.slug)
            usable = one.state in ("yours", "trusted")
            tiles.append(
                h(
                    "section",
                    head,
                    where,
                    h("p", one_line(one.description)),
                    use if usable else None,
                    class_="tile",
                )
            )
        runs = [_run_row(call, run) for run in find_runs(app)[:MAX_RUNS]]
        names = ("Run", "Asked", "Ended", "When", "Tokens", "Cost")
        table = h(
            "table",
            h("thead", h("tr", *(h("th", name, scope="col") for name in names))),
            h("tbody", *runs),
            class_="list",
        )
        box = h("div", table, class_="scroll", tabindex="0", role="region", aria_label="Past runs")
        empty = h(
            "p",
            "No agent yet. ",
            h("code", "handrail agents new NAME"),
            " writes a first one.",
            class_="empty",
        )
        none = h("p", "No run yet.", class_="soft")
        return join(
            h("div", *tiles, class_="grid") if tiles else empty, h("h2", "Past runs"), box if runs else none
        )

    head = join(h("h1", "Agents"), h("p", LEAD, class_="lead"))
    return HTMLResponse(place(call.view("Agents", "agents"), head, await call.app.query(look)))


def _run_row(call: PageCall, run: PastRun) -> Html:
    link = f"/w/{call.workspace.name}/agents/runs/{run.run_id}"
    return h(
        "tr",
        h("td", h("a", run.pipeline, href=link)),
        h("td", shorten(one_line(run.question), 80)),
        h("td", dot(ENDS.get(run.end, "off"), run.end), f" {run.end}"),
        h("td", format_age(time.time() - run.began)),
        h("td", f"{run.tokens:,}", class_="number"),
        h("td", format_usd(run.usd), class_="number"),
    )


async def run_page(call: PageCall) -> Response:
    run = await find_run(call.app, call.request.path_params["run"])
    base = f"/w/{call.workspace.name}"
    report = next((one.event.text for one in reversed(run.events) if isinstance(one.event, RunCompleted)), "")
    lines = "\n".join(run_details(run))
    return HTMLResponse(
        place(
            call.view(run.pipeline, "agents"),
            h(
                "p",
                h("a", "← agents", href=f"{base}/agents"),
                " ",
                h("a", "its conversation", href=f"{base}/s/{run.session_id}"),
            ),
            h("h1", f"{run.pipeline}, {run.end}"),
            h("p", one_line(run.question), class_="lead"),
            h("div", render_run(run_view(run.events), ()), class_="tile"),
            h("section", h("h2", "Report"), h("div", markdown(report), class_="prose")) if report else None,
            h("h2", "What happened"),
            h("pre", lines, class_="output", tabindex="0"),
            narrow=True,
        )
    )
