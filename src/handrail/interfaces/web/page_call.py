"""A request of the page, with the application that it is about."""

from typing import NamedTuple, get_args

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from handrail.app.app import App
from handrail.interfaces.http.server import Server
from handrail.interfaces.http.workspaces import OpenWorkspace
from handrail.interfaces.web.frame import THEMES, ListedSession, PageView
from handrail.interfaces.web.html import Html, join
from handrail.protocol.values import SessionStatus

MAX_SESSIONS = 200


class PageCall(NamedTuple):
    server: Server
    request: Request
    workspace: OpenWorkspace
    app: App
    session_id: str = ""

    @property
    def knowledge(self) -> str:
        """The address of the place Knowledge."""
        return f"/w/{self.workspace.name}/knowledge"

    def number(self, name: str, otherwise: int = 0) -> int:
        """A number of the query; `otherwise` where it has none."""
        text = self.query(name)
        return int(text) if text.isascii() and text.isdecimal() and len(text) < 16 else otherwise

    def query(self, name: str) -> str:
        return self.request.query_params.get(name, "")[:2000]

    def view(self, title: str, place: str = "", query: str = "", status: str = "") -> PageView:
        cookies = self.request.cookies
        theme, diff = cookies.get("handrail_theme", ""), cookies.get("handrail_diff", "")
        return PageView(
            workspace=self.workspace.name,
            workspaces=tuple(self.server.workspaces),
            title=title,
            sessions=listed_sessions(self.app, query, status),
            session_id=self.session_id,
            place=place,
            theme=theme if theme in THEMES else "",
            diff=diff if diff in ("unified", "split") else "",
        )


def listed_sessions(app: App, query: str = "", status: str = "") -> list[ListedSession]:
    """Sessions of this status with all words in title and labels; without a status, all but archived."""
    words = query.lower().split()
    wanted = next((each for each in get_args(SessionStatus) if each == status), None)
    found = [
        info
        for info in app.sessions(status=wanted)
        if all(word in " ".join((info.title, *info.labels)).lower() for word in words)
    ]
    return [
        ListedSession(info, _asks(app, info.id) if info.running else info.waiting)
        for info in found[:MAX_SESSIONS]
    ]


def _asks(app: App, session_id: str) -> bool:
    state = app.state(session_id)
    return bool(state.approvals or state.questions)


def part(*content: Html | None) -> Response:
    """A fragment, without the frame."""
    return HTMLResponse(str(join(*content)))
