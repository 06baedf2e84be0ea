"""The read-only viewer: an exported session, shown without importing it."""

import anyio.to_thread
from starlette.responses import HTMLResponse, Response

from handrail.app.history.sessions import exported_events
from handrail.interfaces.http.endpoint import whole_body
from handrail.interfaces.web.conversation.timeline import Timeline
from handrail.interfaces.web.frame import place
from handrail.interfaces.web.html import Html, h, join
from handrail.interfaces.web.page_call import PageCall, part

MAX_BYTES = 100_000_000
MAX_EVENTS = 20_000
LEAD = "Choose a file that was made by exporting a session. It is only shown: nothing is imported or run."


async def viewer_page(call: PageCall) -> Response:
    if call.request.method == "POST":
        return part(await anyio.to_thread.run_sync(_shown, await whole_body(call.request, MAX_BYTES)))
    chooser = h("input", type="file", id="viewed", data_act="view-file")
    field = h("div", h("label", "Exported session", for_="viewed"), chooser, class_="field")
    shown = h("div", id="viewer", class_="log")
    return HTMLResponse(
        place(
            call.view("Viewer", "viewer"),
            h("p", LEAD, class_="lead"),
            field,
            shown,
            narrow=True,
        )
    )


def _shown(data: bytes) -> Html:
    found = exported_events(data.decode(errors="replace").splitlines())
    timeline = Timeline()
    for one in found[:MAX_EVENTS]:
        timeline.apply(one)
    more = len(found) - MAX_EVENTS
    cut = h("p", f"{more:,} later events are not shown.", class_="soft") if more > 0 else None
    # The buttons of a conversation would speak to a session that is not there: the style sheet hides them.
    return h("div", join(timeline.html()), cut, class_="log read-only")
