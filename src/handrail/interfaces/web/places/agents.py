"""Agents in folders, and their past runs."""

import time
from urllib.parse import quote

from starlette.responses import HTMLResponse, Response

from handrail.app.app import App
from handrail.app.extensions.agents import Agent, Agents, PastRun, find_runs
from handrail.config.trust import WorkspaceFile
from handrail.interfaces.cli.render.agent_lines import agent_details, run_details
from handrail.interfaces.cli.render.styles import clean, format_age, format_usd, one_line, shorten
from handrail.interfaces.http.api.agents import find_run
from handrail.interfaces.http.errors import not_found
from handrail.interfaces.web.conversation.blocks import button, dot
from handrail.interfaces.web.frame import place
from handrail.interfaces.web.highlight import highlighted
from handrail.interfaces.web.html import Html, h, join
from handrail.interfaces.web.inspector import render_run, run_view
from handrail.interfaces.web.markdown import report_html
from handrail.interfaces.web.page_call import PageCall
from handrail.protocol.errors import ConfigProblem
from handrail.protocol.events import RunCompleted

MAX_RUNS = 100
BUILD = "build"
BUILDS_LEAD = (
    "A verified build does a task in a copy of the workspace, corrects itself, and keeps the result only if "
    "the project's own checks agree."
)
STATES = {"built in": "ok", "yours": "ok", "trusted": "ok", "untrusted": "wait", "changed": "wait"}
UNTRUSTED = ("untrusted", "changed")
ENDS = {"finished": "done", "failed": "bad", "waiting": "wait", "open": "run"}
LEAD = "Agents are pipelines in folders: prompts, steps and checks. Start one with @name in a message."


async def agents_page(call: PageCall) -> Response:
    def look(app: App) -> Html:
        agents = Agents(app.workspace.root, call.workspace.environ)
        tiles = []
        for found in agents.all():
            one = agents.listed(found)
            page = f"/w/{call.workspace.name}/agents/{quote(found.slug)}"
            head = h("h2", dot(STATES.get(one.state, "bad"), one.state), h("a", found.slug, href=page))
            where = h("p", " · ".join(dict.fromkeys((one.state, found.where))), class_="soft")
            way = None
            if STATES.get(one.state) == "ok":
                way = button(f"Use @{found.slug}", "use-agent", class_="small", id=found.slug)
            elif one.state in UNTRUSTED:
                way = h("p", h("a", "Look at it, then trust it", href=page))
            tiles.append(h("section", head, where, h("p", one_line(one.description)), way, class_="tile"))
        empty = h(
            "p",
            "No agent yet. ",
            h("code", "handrail agents new NAME"),
            " writes a first one.",
            class_="empty",
        )
        return join(h("div", *tiles, class_="grid") if tiles else empty, _runs(call, find_runs(app)))

    head = h("p", LEAD, class_="lead")
    return HTMLResponse(place(call.view("Agents", "agents"), head, await call.app.query(look)))


async def agent_page(call: PageCall) -> Response:
    """What an agent consists of, down to every file; and the button that trusts exactly that."""
    wanted = call.request.path_params["agent"]

    def look(app: App) -> Html:
        agents = Agents(app.workspace.root, call.workspace.environ)
        if (found := agents.find(wanted)) is None:
            raise not_found(f"There is no agent {wanted!r}.", "The list of agents has all of them.")
        try:
            agent = agents.load(found)
        except ConfigProblem as problem:
            return h("pre", clean(str(problem)), class_="output", tabindex="0")
        trust = agents.trust(agent)
        asks = _trust_question(agent, trust) if trust in UNTRUSTED else None
        facts = "\n".join(agent_details(agent, trust, agents))
        files = [file_shown(WorkspaceFile(*each)) for each in sorted(agent.files.files.items())]
        names = h("h2", f"Its files, {len(files)}")
        parts = h("pre", facts, class_="output whole lines", tabindex="0")
        return join(asks, parts, names, *files, _runs(call, find_runs(app, found.slug)))

    shown = await call.app.query(look)
    title = one_line(wanted)
    return HTMLResponse(place(call.view(title, "agents"), h("h1", title), shown, narrow=True))


def _trust_question(agent: Agent, trust: str) -> Html:
    changed = "It has changed since you trusted it. " if trust == "changed" else ""
    words = (
        f"{changed}It came with the workspace, and chooses prompts, models and steps. It cannot be used "
        "before you trust it. Below is all of it; when any of that changes, you are asked again."
    )
    sure = button(
        "Trust it, as shown here", "trust-agent", class_="primary", id=agent.slug, hash=agent.pipeline.sha256
    )
    text = h("div", h("p", words), h("div", sure, class_="buttons"))
    return h("section", dot("wait", "not trusted"), text, class_="banner wait")


def file_shown(file: WorkspaceFile) -> Html:
    """All of a file, with what is invisible in it made visible."""
    name, data = file
    text = clean(data.decode(errors="backslashreplace"), tab="\t").rstrip("\n")
    head = h("summary", h("code", one_line(name)), " ", h("span", f"{len(data):,} bytes", class_="soft"))
    return h(
        "details",
        head,
        h("pre", highlighted(text, path=name), class_="output whole", tabindex="0"),
        open=True,
    )


async def builds_page(call: PageCall) -> Response:
    found = await call.app.query(lambda app: find_runs(app, BUILD))
    lead = h("p", BUILDS_LEAD, class_="lead")
    start = button("Start a build", "start-build", class_="primary")
    content = (lead, h("div", start, class_="buttons"), _runs(call, found))
    return HTMLResponse(place(call.view("Builds", "builds"), *content))


def _runs(call: PageCall, found: list[PastRun]) -> Html:
    """Past runs as a list, the latest first."""
    head = h("h2", "Past runs")
    if not found:
        return join(head, h("p", "No run yet.", class_="soft"))
    names = ("Run", "Asked", "Ended", "When", "Tokens", "Cost")
    table = h(
        "table",
        h("thead", h("tr", *(h("th", name, scope="col") for name in names))),
        h("tbody", *(_run_row(call, run) for run in found[:MAX_RUNS])),
        class_="list",
    )
    return join(head, h("div", table, class_="scroll", tabindex="0", role="region", aria_label="Past runs"))


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
    report = next((one.event.text for one in reversed(run.events) if isinstance(one.event, RunCompleted)), "")
    lines = "\n".join(run_details(run))
    return HTMLResponse(
        place(
            call.view(run.pipeline, "builds" if run.pipeline == BUILD else "agents"),
            h("h1", f"{run.pipeline}, {run.end}"),
            h("p", one_line(run.question), class_="lead"),
            h("p", h("a", "Its conversation", href=f"/w/{call.workspace.name}/s/{run.session_id}")),
            h("div", render_run(run_view(run.events), ()), class_="tile"),
            h("section", h("h2", "Report"), h("div", report_html(report, call.knowledge), class_="prose"))
            if report
            else None,
            h("h2", "What happened"),
            h("pre", lines, class_="output", tabindex="0"),
            narrow=True,
        )
    )
