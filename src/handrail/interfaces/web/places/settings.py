"""Settings: the model and its three doors, the look, keys, and every setting with its source."""

import json

from msgspec.json import encode
from starlette.responses import HTMLResponse, Response

from handrail.app.app import App
from handrail.app.models import SmallModel
from handrail.config.layers import LoadedSettings, load_settings, shown_settings
from handrail.config.user_commands import UserCommand
from handrail.interfaces.cli.render.styles import clean, one_line
from handrail.interfaces.http.api.own_commands import own_commands
from handrail.interfaces.http.api.settings import untrusted_files
from handrail.interfaces.web.conversation.blocks import button, dot
from handrail.interfaces.web.doors import model_doors
from handrail.interfaces.web.frame import THEMES, place
from handrail.interfaces.web.html import Html, h, join
from handrail.interfaces.web.page_call import PageCall, part
from handrail.interfaces.web.places.agents import file_shown
from handrail.interfaces.web.places.changes import diff_views
from handrail.protocol.errors import HandrailError

KEYS = {
    "n": "new session; or no, where a question waits",
    "/": "search sessions",
    "j / k": "next and previous card",
    "y / n / a": "yes, no, always: the question in focus, once it has been visible for a moment",
    "i": "write a message",
    "Enter": "send; Shift+Enter starts a new line",
    "Esc": "stop the running turn",
    "?": "this list",
}


async def settings_page(call: PageCall) -> Response:
    app = call.app
    return HTMLResponse(
        place(
            call.view("Settings", "settings"),
            h("h2", "Model", id="model"),
            await _model(app),
            model_doors(SmallModel(call.workspace.environ), app.model_pool.credentials.where()),
            h("h2", "Credentials", id="credentials"),
            _credentials(app),
            h("h2", "Look"),
            _themes(call),
            h("h2", "Differences"),
            diff_views(call),
            h("h2", "Notifications"),
            h("p", "When a turn ends or asks you, and this window is not in front.", class_="soft"),
            button("Turn on notifications", "notifications"),
            h("h2", "Sessions"),
            _sessions(call),
            h("h2", "Keys"),
            keys_list(),
            h("h2", "All settings"),
            await _all_settings(call),
            narrow=True,
        )
    )


async def _model(app: App) -> Html:
    try:
        choice = await app.chosen_model()
    except HandrailError as problem:
        return h("p", dot("bad", "no model"), f" {problem}")
    others = f" If it cannot answer: {', '.join(choice.fallbacks)}." if choice.fallbacks else ""
    return h(
        "p", dot("done", "answers"), " ", h("code", choice.reference), f" answers: {choice.why}.{others}"
    )


def _credentials(app: App) -> Html:
    """The names of what is stored, with a way to remove each, and a form for another; never a value."""
    credentials = app.model_pool.credentials
    try:
        names = credentials.names()
    except HandrailError as problem:
        return h("p", dot("bad", "cannot be used"), f" {problem}")
    rows = [
        h("li", h("code", name), " ", button("Remove", "remove-credential", class_="small", id=name))
        for name in names
    ]
    secret = h("input", type="password", name="value", autocomplete="off", required=True, aria_label="Secret")
    form = h(
        "form",
        h("input", name="name", required=True, maxlength="100", placeholder="NAME", aria_label="Name"),
        secret,
        h("button", "Store", type="submit", class_="small"),
        data_act="credential-form",
        class_="inline",
    )
    lead = h("p", f"Keys and other secrets, {credentials.where()}.", class_="soft")
    return join(lead, h("ul", *rows) if rows else h("p", "None is stored.", class_="empty"), form)


def _themes(call: PageCall) -> Html:
    chosen = call.view("").theme
    tones = [h("span", class_=f"tone-{name}") for name in ("panel", "accent", "ok", "wait", "bad")]
    swatches = [_swatch("", "As the system", chosen, [])]
    swatches += [_swatch(name, label, chosen, tones) for name, label in THEMES.items()]
    return h("div", *swatches, class_="swatches")


def _swatch(name: str, label: str, chosen: str, tones: list[Html]) -> Html:
    return h(
        "button",
        h("span", label),
        h("span", *tones, class_="tones") if tones else None,
        type="button",
        class_="swatch",
        data_act="theme",
        data_id=name,
        data_theme=name or None,
        aria_pressed="true" if name == chosen else "false",
    )


def _sessions(call: PageCall) -> Html:
    chooser = h(
        "input", type="file", id="import", hidden=True, data_act="import-file", aria_label="Exported session"
    )
    viewer = h(
        "a", "Look at an exported session without importing it", href=f"/w/{call.workspace.name}/viewer"
    )
    return h("div", button("Import a session", "import"), chooser, viewer, class_="buttons")


async def _all_settings(call: PageCall) -> Html:
    loaded = load_settings(call.app.places, call.workspace.root, environ=call.workspace.environ)
    rows = []
    for row in shown_settings(loaded):
        value = row.value if isinstance(row.value, str) else json.dumps(row.value, ensure_ascii=False)
        field = h(
            "form",
            h("input", name="value", value=value, aria_label=row.key, size="24"),
            h("button", "Store", type="submit", class_="small"),
            data_act="setting-form",
            data_id=row.key,
            class_="inline",
        )
        where = h("div", one_line(row.where), class_="soft")
        rows.append(h("div", h("div", h("code", row.key), where), field, class_="setting"))
    lead = h("p", f"Stored in {call.app.places.settings}.", class_="soft")
    return join(
        lead,
        _untrusted(loaded),
        *map(_untrusted_command, own_commands(call.app).untrusted()),
        h("details", h("summary", f"{len(rows)} settings, with where each was set"), *rows),
    )


def _untrusted(loaded: LoadedSettings) -> Html | None:
    """Settings of the workspace without effect, the files they are in, and the button that trusts these."""
    if not loaded.ignored:
        return None
    changed = "They have changed since you trusted them. " if loaded.trust == "changed" else ""
    lead = f"{changed}These settings came with the workspace, and have no effect before you trust them."
    rows = [
        h(
            "li",
            h("code", one_line(f"{each.key} = {each.value}")),
            h("div", one_line(f"{each.file}: {each.why}"), class_="soft"),
        )
        for each in loaded.ignored
    ]
    files = untrusted_files(loaded)
    sure = button(
        "Trust these files, as shown here", "trust-settings", class_="primary", files=encode(files).decode()
    )
    text = h(
        "div",
        h("p", lead),
        h("ul", *rows),
        *map(file_shown, loaded.workspace_files),
        h("div", sure, class_="buttons"),
    )
    return h("section", dot("wait", "not trusted"), text, class_="banner wait")


def _untrusted_command(command: UserCommand) -> Html:
    """A slash command of the workspace with its whole text, and the button that trusts exactly that."""
    changed = "It has changed since you trusted it. " if command.trust == "changed" else ""
    usage = h("code", one_line(f"/{command.name} {command.arguments}"))
    means = h("p", usage, f": {one_line(command.description)}")
    lead = f"{changed}This slash command came with the workspace. It sends this as your message:"
    body = h("pre", clean(command.body, tab="\t"), class_="output whole", tabindex="0")
    sure = button(
        "Trust it, as shown here", "trust-command", class_="primary", id=command.name, hash=command.sha256
    )
    text = h("div", means, h("p", lead), body, h("div", sure, class_="buttons"))
    return h("section", dot("wait", "not trusted"), text, class_="banner wait")


def keys_list() -> Html:
    rows = [[h("dt", h("kbd", key)), h("dd", meaning)] for key, meaning in KEYS.items()]
    return h("dl", *rows, class_="keys")


async def keys_part(_call: PageCall) -> Response:
    return part(keys_list())
