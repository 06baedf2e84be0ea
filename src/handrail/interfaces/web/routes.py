"""The routes of the page: documents, fragments of them, the stream of blocks, and static files."""

from collections.abc import Awaitable, Callable, Sequence

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from handrail.app.app import App
from handrail.app.history.changes import PastChange
from handrail.app.history.sessions import chosen_route, conversation_start, stage_names
from handrail.app.mentions import complete_mention
from handrail.app.models import SmallModel
from handrail.interfaces.cli.render.styles import one_line
from handrail.interfaces.http.errors import kind_of, not_found
from handrail.interfaces.http.server import Server
from handrail.interfaces.web import frame, inspector
from handrail.interfaces.web.block_stream import BlockStream
from handrail.interfaces.web.conversation.feed import SHOWN_TURNS, block_stream, show
from handrail.interfaces.web.conversation.page import conversation_page, new_session_page, top_bar
from handrail.interfaces.web.doors import model_doors
from handrail.interfaces.web.frame import PageView, render_page, session_list
from handrail.interfaces.web.html import Html, h, join
from handrail.interfaces.web.page_call import PageCall, part
from handrail.interfaces.web.places import PLACE_PAGES
from handrail.protocol.errors import HandrailError, NoModel

TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
FOREVER = "public, max-age=31536000, immutable"
MAX_COMPLETIONS = 30
MAX_EVENTS = 3_000
"""Of a longer session the list of changes is read only when the user opens it."""
Page = Callable[[PageCall], Awaitable[Response]]


def web_routes(server: Server) -> Sequence[BaseRoute]:
    """Everything that is not the API."""

    async def index(_request: Request) -> Response:
        return RedirectResponse(f"/w/{next(iter(server.workspaces))}/", 303)

    async def static(request: Request) -> Response:
        name = request.path_params["name"]
        data = frame.static_files().get(name)
        if data is None:
            return Response(status_code=404)
        headers = {"cache-control": FOREVER}
        return Response(data, media_type=TYPES.get(name.rpartition(".")[2], "text/plain"), headers=headers)

    pages: dict[str, Page] = {
        "/": new_session,
        "/s/{session}": conversation,
        "/s/{session}/feed": feed,
        "/s/{session}/earlier": earlier,
        "/s/{session}/part/{part}": session_part,
        "/sessions": sessions_part,
        "/where": where,
        "/complete": complete,
        **PLACE_PAGES,
    }
    posts = {"/viewer": ["GET", "POST"]}
    return [
        Route("/", index),
        Route("/static/{version}/{name}", static),
        *(
            Route(f"/w/{{workspace}}{path}", _endpoint(server, page), methods=posts.get(path, ["GET"]))
            for path, page in pages.items()
        ),
    ]


def _endpoint(server: Server, page: Page) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        try:
            workspace = server.workspace(request.path_params["workspace"])
            app = await workspace.app()
            session_id = request.path_params.get("session", "")
            if session_id and not app.has_session(session_id):
                raise not_found(
                    f"No session here is called {session_id!r}.", "It may be in another workspace."
                )
            return await page(PageCall(server, request, workspace, app, session_id))
        except HandrailError as error:
            return _error_page(server, request, error)

    return answer


def _error_page(server: Server, request: Request, error: HandrailError) -> Response:
    """What is wrong and what to do, in a frame without sessions: these may be what is broken."""
    kind = kind_of(error)
    if request.headers.get("x-part"):
        return JSONResponse({"error": {"message": str(error), "advice": kind.advice}}, kind.status)
    name = request.path_params["workspace"]
    theme = request.cookies.get("handrail_theme", "")
    theme = theme if theme in frame.THEMES else ""
    view = PageView(name, tuple(server.workspaces), "Something is wrong", (), theme=theme)
    words = [h("p", line) for line in str(error).splitlines()]
    advice = h("p", kind.advice, class_="soft")
    return HTMLResponse(
        frame.place(view, h("h1", "This cannot be shown"), *words, advice, narrow=True), kind.status
    )


async def _model(app: App, session_id: str = "") -> str:
    try:
        return (await app.chosen_model(session_id)).reference
    except HandrailError:
        return ""


def _routes(app: App) -> list[str]:
    names = [name for name in dict.fromkeys(app.agents.names()) if name not in ("auto", "agent", "chat")]
    return ["auto", "agent", "chat", *names]


async def new_session(call: PageCall) -> Response:
    app = call.app
    doors = None
    try:
        await app.chosen_model()
    except NoModel:
        doors = join(
            h("h2", "There is no model to answer yet"),
            h(
                "p",
                "No key was found, and no server on this machine. There are three ways to get one.",
                class_="soft",
            ),
            model_doors(SmallModel(call.workspace.environ), app.model_pool.credentials.where()),
        )
    except HandrailError as problem:
        doors = join(h("h2", "The chosen model cannot be used"), h("p", str(problem)))
    centre = new_session_page(app.settings.mode, _routes(app), chosen_route(app, ""), app.notices, doors)
    return HTMLResponse(render_page(call.view("New session"), centre))


async def conversation(call: PageCall) -> Response:
    app, session_id = call.app, call.session_id
    app.attach(session_id)
    shown = await show(app, session_id, call.knowledge)
    state = app.state(session_id)
    model = await _model(app, session_id)
    centre = conversation_page(state, shown, model, _routes(app), chosen_route(app, session_id))
    changes = await _changes(call)
    side = inspector.render_inspector(_counts(call, changes), _overview(call, shown.start, changes))
    title = one_line(state.title) or "New session"
    running = int(shown.timeline.running)
    document = render_page(call.view(title), centre, side, seq=shown.seq, start=shown.start, running=running)
    return HTMLResponse(document)


async def _changes(call: PageCall) -> list[PastChange]:
    """The change sets of the session; none while it is so long that a page would wait for them."""
    if call.app.last_seq(call.session_id) > MAX_EVENTS:
        return []
    return await _all_changes(call)


async def _all_changes(call: PageCall) -> list[PastChange]:
    return await call.app.query(lambda app: app.history.changes(call.session_id))


def _counts(call: PageCall, changes: list[PastChange]) -> dict[str, int]:
    state = call.app.state(call.session_id)
    return {"changes": len(changes), "todos": len(state.todos), "files": len(state.files.files)}


def _overview(call: PageCall, start: int, changes: list[PastChange]) -> Html:
    app, session_id = call.app, call.session_id
    last = app.last_seq(session_id)
    run = inspector.run_view(app.read_events(session_id, min(start, last), max(0, last - start)))
    stages = stage_names(app, run.pipeline) if run.pipeline else ()
    return inspector.overview(run, stages, app.state(session_id), changes)


async def session_part(call: PageCall) -> Response:
    app, session_id = call.app, call.session_id
    match call.request.path_params["part"]:
        case "run":
            return part(_overview(call, call.number("start"), await _changes(call)))
        case "changes":
            return part(inspector.render_changes(await _all_changes(call), app.state(session_id)))
        case "todos":
            return part(inspector.render_todos(app.state(session_id)))
        case "files":
            return part(inspector.render_files(app.state(session_id)))
        case "head":
            return part(top_bar(app.state(session_id), await _model(app, session_id)))
        case "counts":
            return JSONResponse(_counts(call, await _changes(call)))
        case name:
            raise not_found(f"There is no part {name!r} of a session.", "Reload the page.")


async def sessions_part(call: PageCall) -> Response:
    query = call.request.query_params.get("q", "")[:200]
    current = call.request.query_params.get("current", "")
    view = call._replace(session_id=current).view("", query=query, status=call.query("status"))
    return part(session_list(view, query))


async def where(call: PageCall) -> Response:
    """The workspace, its branch, and how many files are changed."""
    state = await call.app.git_state()
    words = ""
    if state is not None:
        words = f" · {one_line(state.branch) or 'no branch'}"
        words += f" · {state.changed} changed" if state.changed else ""
    return part(h("strong", call.workspace.name), join(words))


async def earlier(call: PageCall) -> Response:
    """The turns before those that the page has."""
    before = min(call.number("before"), call.app.last_seq(call.session_id))
    start = conversation_start(call.app, call.session_id, before, SHOWN_TURNS)
    found = await show(call.app, call.session_id, call.knowledge, start=start, upto=before)
    return JSONResponse({"html": found.timeline.html(), "start": start})


async def complete(call: PageCall) -> Response:
    """Completions of a mention: agents, paths, names and symbols."""
    typed = call.request.query_params.get("q", "")[:1000]
    first = call.request.query_params.get("first") == "1"
    found = await call.app.query(lambda app: complete_mention(app, typed, first=first))
    return JSONResponse([each._asdict() for each in found[:MAX_COMPLETIONS]])


async def feed(call: PageCall) -> Response:
    """The stream of blocks after `after`, or after the last one that the browser has got."""
    last = call.app.last_seq(call.session_id)
    given = call.request.headers.get("last-event-id", "")
    known = given.isascii() and given.isdecimal() and len(given) < 16
    after, start = int(given) if known else call.number("after"), call.number("start")
    if after > last or start > after:
        raise not_found("This page is about events that are not here.", "Reload the page.")
    call.app.attach(call.session_id)
    stream = block_stream(call.app, call.session_id, call.knowledge, start, after)
    return BlockStream(call.workspace, stream)
