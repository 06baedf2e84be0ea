"""The frame of every page: sessions on the left, the place in the middle, the inspector on the right."""

import hashlib
import time
from collections.abc import Sequence
from functools import lru_cache
from importlib import resources
from typing import NamedTuple

from handrail.app.history.sessions import SessionInfo
from handrail.interfaces.cli.render.styles import one_line
from handrail.interfaces.web.conversation.blocks import button
from handrail.interfaces.web.html import Html, h, join, page

STYLES = ("themes", "base", "frame", "conversation", "cards", "bars", "places", "checks", "splits", "tasks")
LAYERS = b"@layer base, frame, parts;\n"
ENTRY = "page.js"
PLACES = (
    ("tasks", "Tasks"),
    ("intents", "Intents"),
    ("builds", "Builds"),
    ("checks", "Checks"),
    ("splits", "Splits"),
    ("agents", "Agents"),
    ("skills", "Skills"),
    ("sources", "Sources"),
    ("knowledge", "Knowledge"),
    ("audit", "Audit"),
    ("charts", "Charts"),
    ("settings", "Settings"),
)
DAY = 86_400
STATUSES = {
    "": "All but archived",
    "open": "Open",
    "in_progress": "In progress",
    "done": "Done",
    "archived": "Archived",
}
STATUS_OPTIONS = [h("option", words, value=name) for name, words in STATUSES.items()]
THEMES = {
    "light": "Paper",
    "dark": "Night",
    "sand": "Sand",
    "mist": "Mist",
    "sage": "Sage",
    "rose": "Rose",
    "lavender": "Lavender",
    "chalk": "Chalk",
    "midnight": "Midnight",
    "forest": "Forest",
    "plum": "Plum",
    "slate": "Slate",
    "ember": "Ember",
    "coal": "Coal",
}


class ListedSession(NamedTuple):
    info: SessionInfo
    asks: bool
    """It waits for the user."""


class PageView(NamedTuple):
    """What a page is about."""

    workspace: str
    workspaces: tuple[str, ...]
    title: str
    sessions: Sequence[ListedSession]
    session_id: str = ""
    place: str = ""
    theme: str = ""
    diff: str = ""

    @property
    def base(self) -> str:
        return f"/w/{self.workspace}"


@lru_cache(maxsize=1)
def static_files() -> dict[str, bytes]:
    """Scripts and styles by name; `style.css` has all style sheets in one."""
    folder = resources.files("handrail.interfaces.web") / "static"
    files = {each.name: each.read_bytes() for each in folder.iterdir() if each.is_file()}
    return files | {"style.css": LAYERS + b"".join(files[f"{name}.css"] for name in STYLES)}


@lru_cache(maxsize=1)
def static_version() -> str:
    """Changes with any of the files, so that browsers may keep them for good."""
    files = sorted(static_files().items())
    return hashlib.sha256(b"".join(name.encode() + data for name, data in files)).hexdigest()[:16]


def render_page(view: PageView, centre: Html, inspector: Html | None = None, **data: str | int) -> str:
    """The whole document; `data` is for the page's script."""
    static = f"/static/{static_version()}"
    modules = sorted(name for name in static_files() if name.endswith(".js") and name != ENTRY)
    head = h(
        "head",
        h("meta", charset="utf-8"),
        h("meta", name="viewport", content="width=device-width, initial-scale=1"),
        h("title", f"{view.title} · Handrail"),
        h("link", rel="icon", href=f"{static}/icon.svg", type="image/svg+xml"),
        h("link", rel="stylesheet", href=f"{static}/style.css"),
        [h("link", rel="modulepreload", href=f"{static}/{name}") for name in modules],
        h("script", type="module", src=f"{static}/{ENTRY}"),
    )
    values = {f"data_{name}": value for name, value in data.items()}
    frame = h(
        "div",
        _side(view),
        centre,
        inspector,
        button("Close", "close-drawers", class_="scrim"),
        class_=f"frame{' with-inspector' if inspector else ''}",
    )
    body = h(
        "body",
        h("div", class_="connection", hidden=True, role="status", id="connection"),
        frame,
        h("div", class_="toasts", id="toasts", role="status", aria_live="polite"),
        h("dialog", id="dialog", aria_labelledby="dialog-title"),
        data_base=view.base,
        data_api=f"/api/w/{view.workspace}",
        data_session=view.session_id or None,
        data_place=view.place or None,
        data_title=view.title,
        **values,
    )
    return page(h("html", head, body, lang="en", data_theme=view.theme or None, data_diff=view.diff or None))


def _side(view: PageView) -> Html:
    brand = h("a", _logo(), "Handrail", class_="brand", href=f"{view.base}/")
    where = h("div", h("strong", view.workspace), id="where", class_="where", data_part="where")
    if len(view.workspaces) > 1:
        options = [h("option", each, value=each, selected=each == view.workspace) for each in view.workspaces]
        label = h("label", "Workspace", for_="workspace", class_="hidden-label")
        where = join(label, h("select", *options, id="workspace", data_act="workspace"), where)
    places = [
        h("a", label, href=f"{view.base}/{name}", aria_current="page" if view.place == name else None)
        for name, label in PLACES
    ]
    return h(
        "aside",
        brand,
        where,
        h("a", "New session", h("kbd", "n"), class_="new", href=f"{view.base}/"),
        h(
            "div",
            h("label", "Search sessions", for_="search", class_="hidden-label"),
            h("input", id="search", type="search", placeholder="Search sessions", autocomplete="off"),
            h("kbd", "/"),
            class_="search",
        ),
        h("label", "Status", for_="status-filter", class_="hidden-label"),
        h("select", *STATUS_OPTIONS, id="status-filter", data_act="status-filter"),
        h("nav", session_list(view), class_="session-list", id="sessions", aria_label="Sessions"),
        h("nav", *places, class_="places", aria_label="Places"),
        class_="side",
        id="side",
        aria_label="Sessions and places",
    )


def session_list(view: PageView, query: str = "") -> Html:
    """The sessions by age; those that run or wait come first."""
    if not view.sessions:
        words = (
            f"No session matches “{query}”." if query else "No session yet. Your first message starts one."
        )
        return h("p", words, class_="soft")
    now = time.time()
    groups: dict[str, list[ListedSession]] = {}
    for each in view.sessions:
        groups.setdefault(_age_group(each, now), []).append(each)
    order = ("Now", "Today", "This week", "Older", "Deleted")
    return join(
        *(
            [h("h2", name), *(_session_row(view, each, now) for each in groups[name])]
            for name in order
            if name in groups
        )
    )


def _age_group(each: ListedSession, now: float) -> str:
    if each.info.deleted:
        return "Deleted"
    if each.asks or each.info.running:
        return "Now"
    age = now - each.info.touched
    today = now - time.mktime((*time.localtime(now)[:3], 0, 0, 0, 0, 0, -1))
    return "Today" if age < today else "This week" if age < 7 * DAY else "Older"


def _session_row(view: PageView, each: ListedSession, now: float) -> Html:
    info = each.info
    state, words = ("", _when(info.touched, now))
    if each.asks:
        state, words = "wait", "asks you"
    elif info.running:
        state, words = "run", "running"
    elif info.status in ("in_progress", "done"):
        words = info.status.replace("_", " ")
    current = info.id == view.session_id
    title = one_line(info.title) or "New session"
    return h(
        "div",
        h(
            "a",
            h("span", class_=f"bullet {state}".rstrip(), aria_hidden="true"),
            h("span", title, class_="title"),
            [h("span", each, class_="label") for each in info.labels[:2]],
            h("span", words, class_=f"when t-{state}" if state else "when"),
            href=f"{view.base}/s/{info.id}",
            aria_current="page" if current else None,
            title=title,
        ),
        h(
            "button",
            "⋯",
            type="button",
            class_="quiet more",
            data_act="session-menu",
            data_id=info.id,
            data_title=title,
            data_deleted=info.deleted,
            data_status=info.status,
            data_labels=" ".join(info.labels),
            aria_label=f"Actions for {title}",
            aria_haspopup="menu",
        ),
        class_=f"session{' current' if current else ''}",
    )


def _when(at: float, now: float) -> str:
    local, today = time.localtime(at), time.localtime(now)
    if local[:3] == today[:3]:
        return time.strftime("%H:%M", local)
    return time.strftime("%a", local) if now - at < 7 * DAY else time.strftime("%d %b", local)


def _logo() -> Html:
    rail = h(
        "path",
        d="M1 3h16M3 3c0 6-1 8-2 11M15 3c0 6 1 8 2 11M7 3v11M11 3v11",
        fill="none",
        stroke="currentColor",
    )
    return h("svg", rail, viewBox="0 0 18 16", stroke_width="1.8", aria_hidden="true")


def drawer_buttons() -> tuple[Html, Html]:
    """The buttons that open the lists on narrow screens."""
    label = "Sessions and places"
    left = h(
        "button",
        "☰",
        type="button",
        class_="drawer-button left quiet",
        data_act="drawer",
        data_id="side",
        aria_label=label,
        aria_expanded="false",
    )
    right = h(
        "button",
        "Details",
        type="button",
        class_="drawer-button right small",
        data_act="drawer",
        data_id="inspector",
        aria_expanded="false",
    )
    return left, right


def place(view: PageView, *content: Html | None, narrow: bool = False) -> str:
    """A page without a conversation."""
    left, _ = drawer_buttons()
    title, label = h("strong", view.title), dict(PLACES).get(view.place)
    if view.title == label or view.place == "viewer":
        title = h("h1", view.title)
    elif label:  # a page below the place, with a heading of its own
        title = h("a", label, href=f"{view.base}/{view.place}")
    bar = h("header", left, title, class_="topbar")
    column = h("div", *content, class_=f"column{' narrow' if narrow else ''}")
    centre = h("main", bar, h("div", column, class_="place", tabindex="-1"), class_="centre", id="main")
    return render_page(view, centre)
