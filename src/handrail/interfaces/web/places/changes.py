"""One change set with its diffs, what all changes add up to, and what a rewind would do."""

import time

from starlette.responses import HTMLResponse, JSONResponse, Response

from handrail.app.app import App
from handrail.app.history.changes import (
    FilePlan,
    RewindPreview,
    ShownChange,
    net_changes,
    preview_rewind,
    undo_of,
)
from handrail.interfaces.cli.render.change_list import change_state, remarks
from handrail.interfaces.cli.render.rewind_preview import headline, is_binary
from handrail.interfaces.cli.render.styles import count_of, format_age, format_usd, one_line
from handrail.interfaces.web.conversation.blocks import button, dot
from handrail.interfaces.web.conversation.calls import copy_path
from handrail.interfaces.web.diff import is_diff, plus_minus, render_diff
from handrail.interfaces.web.frame import place
from handrail.interfaces.web.html import Html, h, join
from handrail.interfaces.web.page_call import PageCall
from handrail.protocol.commands import Redo, Rewind
from handrail.protocol.values import to_dict, to_json

MESSAGE_PREFIX = "m_"
PARTS = {"f": "Files", "c": "Conversation", "b": "Both"}
SIGNS = {"applied": "ok", "not applied": "bad", "unfinished": "run"}


async def change_page(call: PageCall) -> Response:
    wanted, session_id = call.request.path_params["change"], call.session_id

    def look(app: App) -> tuple[ShownChange, Html]:
        shown, every = app.history.show(session_id, wanted), app.history.changes(session_id)
        return shown, _change(shown, {each.id: each.number for each in every}, app)

    def _change(shown: ShownChange, numbers: dict[str, int], app: App) -> Html:
        change, made = shown.change, shown.change.prepared
        state = change_state(change, numbers)
        facts = [f"by {made.by}", format_age(time.time() - change.at)]
        facts += [f"turn {change.turn}"] if change.turn else []
        facts += [made.model.rpartition("/")[2]] if made.model else []
        facts += [] if made.cost_usd is None else [format_usd(made.cost_usd)]
        facts += [] if change.verified is None else ["check passed" if change.verified else "check failed"]
        notes = [
            h("p", one_line(text), class_="soft")
            for text in remarks(change, numbers, app.state(session_id).todos)
        ]
        acts = None
        if change.status == "applied" and made.by != "rollback":
            acts = h(
                "div",
                button("Undo", "undo", change=change.id),
                button("Rewind to before", "rewind", change=change.id),
                class_="buttons",
            )
        files = [
            _file(each.file.destination or each.file.path, each.diff.text if each.diff else None)
            for each in shown.files
        ]
        head = h("h1", dot(SIGNS.get(change.status, "off"), state), f" Change {change.number}, {state}")
        return join(
            _back(call),
            head,
            h("p", " · ".join(facts), class_="lead"),
            *notes,
            acts,
            diff_views(call),
            *files,
        )

    shown, html = await call.app.query(look)
    return HTMLResponse(place(call.view(f"Change {shown.change.number}"), html))


async def net_page(call: PageCall) -> Response:
    """What is left of the session's changes."""
    session_id = call.session_id
    found = await call.app.query(lambda app: net_changes(app, session_id))
    files = [_file(each.path, each.diff.text if each.diff else None, each.why) for each in found]
    empty = h("p", "Nothing that this session changed is still in place.", class_="empty")
    words = f"{count_of(len(found), 'file')}, without what others changed."
    head = join(_back(call), h("h1", "What the changes add up to"), h("p", words, class_="lead"))
    return HTMLResponse(
        place(call.view("Changes"), head, diff_views(call) if files else None, *(files or [empty]))
    )


def _back(call: PageCall) -> Html:
    return h("p", h("a", "← conversation", href=f"/w/{call.workspace.name}/s/{call.session_id}"))


def diff_views(call: PageCall) -> Html:
    """The choice between unified and side by side, which counts for all differences."""
    chosen = call.view("").diff
    ways = {
        "": "Side by side where there is room",
        "unified": "Always unified",
        "split": "Always side by side",
    }
    return h(
        "div",
        *(
            h(
                "button",
                words,
                type="button",
                class_="small",
                data_act="diff-view",
                data_id=name,
                aria_pressed="true" if name == chosen else "false",
            )
            for name, words in ways.items()
        ),
        class_="buttons filters",
    )


def _file(path: str, diff: str | None, why: str = "") -> Html:
    if diff is None:
        body: Html = h("p", why or "Its contents are no longer kept.", class_="soft")
    elif is_diff(diff):
        body = render_diff(diff, path, fold=False)
    else:
        body = h("p", "binary" if diff.startswith("Binary") else "no line differs", class_="soft")
    note = h("p", why, class_="t-bad") if why and diff is not None else None
    copy = copy_path(path, diff) if diff is not None else None
    head = h("header", h("code", one_line(path), class_="path"), h("span", class_="space"), copy)
    return h("section", head, note, body, class_="preview-file")


async def rewind_preview(call: PageCall) -> Response:
    """What an undo, rewind or redo would do: the command itself where nothing has to be asked."""
    to, session_id = call.query("to"), call.session_id

    def look(app: App) -> RewindPreview:
        command: Rewind | Redo
        if call.query("redo"):
            command = Redo()
        elif to.startswith(MESSAGE_PREFIX):
            command = Rewind(to=to, conversation=True)
        elif call.query("only"):
            command = undo_of(app, session_id, to)
        else:
            command = Rewind(to=app.history.find(session_id, to).id, conversation=True)
        return preview_rewind(app, session_id, command)

    found = await call.app.query(look)
    simple = isinstance(found.command, Redo) or found.command.only
    if simple and found.files and not found.of_kind("merge", "conflict", "lost") and not found.waits:
        return JSONResponse({"command": to_dict(found.command)})
    titles = "Redo" if isinstance(found.command, Redo) else "Undo" if simple else "Rewind"
    return JSONResponse({"title": titles, "html": str(_preview(found))})


def _preview(found: RewindPreview) -> Html:
    redo = isinstance(found.command, Redo)
    parts: list[Html] = [h("p", headline(found, would=True))]
    parts += [_planned(file, redo=redo) for file in found.files]
    if found.not_undone:
        parts.append(h("p", f"Not undone: {found.not_undone}", class_="soft"))
    if found.conversation:
        kept = count_of(found.turns - found.conversation, "turn")
        parts.append(h("p", f"Conversation: {count_of(found.conversation, 'turn')} set aside, {kept} kept."))
    elif found.restores_conversation:
        parts.append(h("p", "Conversation: what was set aside comes back."))
    if found.waits:
        parts.append(h("p", "A turn waits for your answer. Answer it first, or stop it.", class_="t-wait"))
    elif not found.ways and not redo:
        parts.append(h("p", "There is nothing that could be undone.", class_="soft"))
    else:
        parts.append(_confirm(found))
    return h("div", *parts)


def _confirm(found: RewindPreview) -> Html:
    """A button for each part that could go back; the command of each is complete."""
    simple = isinstance(found.command, Redo) or found.command.only
    keys = "f" if simple else found.ways
    buttons = [
        button(
            "Do it" if simple else f"Rewind {PARTS[key].lower()}",
            "rewind-confirm",
            class_="primary" if key == keys[-1] else "",
            command=to_json(
                found.command
                if simple and not found.files
                else found.confirmed(found.command, "" if simple else key)
            ),
        )
        for key in keys
    ]
    return h("div", *buttons, button("Cancel", "dialog-close", class_="quiet"), class_="buttons")


def _planned(file: FilePlan, *, redo: bool) -> Html:
    if file.kind in ("conflict", "lost"):
        clashes = []
        for clash in file.clashes[:3]:
            ours, theirs = (side.decode(errors="replace").rstrip() for side in (clash.ours, clash.theirs))
            clashes += [
                h("p", f"line {clash.line}: it is now", class_="soft"),
                h("pre", ours, class_="output"),
                h("p", "and would become", class_="soft"),
                h("pre", theirs, class_="output"),
            ]
        head = h(
            "header",
            dot("bad", "conflict"),
            h("code", file.path),
            h("span", "stays as it is", class_="t-bad"),
        )
        return h("section", head, h("p", file.why), *clashes, class_="preview-file")
    state = None
    if file.kind == "merge":
        words = "changed since by you or another program: merged, no overlap"
        state = h("span", words, class_="t-wait")
    elif file.then is None:
        state = h("span", "the file is deleted", class_="soft")
    elif file.now.data is None:
        state = h("span", "the file is restored", class_="soft")
    if is_binary(file):
        return h("section", h("header", h("code", file.path), state, "binary"), class_="preview-file")
    text, added, removed = file.diff
    counts = plus_minus(added, removed) if redo else plus_minus(removed, added)
    body = render_diff(text, file.path) if is_diff(text) else None
    details = h("details", h("summary", "Show the difference"), body) if body else None
    sign = dot("wait", "merge") if file.kind == "merge" else dot("off", "goes back")
    return h(
        "section", h("header", sign, h("code", file.path), counts, state), details, class_="preview-file"
    )
