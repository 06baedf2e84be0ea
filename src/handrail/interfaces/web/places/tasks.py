"""The user's task list: by when things are due or as a week, and what is found by words."""

from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any, NamedTuple

from msgspec import DecodeError
from msgspec.json import decode
from starlette.responses import HTMLResponse, Response

from handrail.app.tasks import Agenda, DatedTask, TaskList, agenda, dated, last_change, week
from handrail.interfaces.cli.render.styles import one_line
from handrail.interfaces.cli.render.task_lines import day_text, repeat_text
from handrail.interfaces.http.errors import ApiError, not_found
from handrail.interfaces.web.conversation.blocks import button
from handrail.interfaces.web.frame import drawer_buttons, render_page
from handrail.interfaces.web.html import Html, h, join
from handrail.interfaces.web.page_call import PageCall, part
from handrail.interfaces.web.places.task_forms import assistant, quick_add, task_form
from handrail.protocol.values import is_deeper

FIRST_ROWS, MORE_ROWS, MOST_ROWS = 50, 200, 2_000
"""Rows of a group: at first, with each click, and at most; words find the others."""
DAY_ROWS, MAX_DEPTH = 100, 8
WEEK = timedelta(days=7)
FOUND = "Found"
NONE_YET = "Nothing to do yet. Add your first task above, or tell the assistant below what you have in mind."


class Shown(NamedTuple):
    """What of the list the page shows, as its address says."""

    day: date | None
    """A day of the week that is shown; None: the list."""
    query: str
    rows: dict[str, int]
    """{group: rows of it}, where it is not the usual number"""

    @classmethod
    def of(cls, call: PageCall, today: date) -> "Shown":
        """Read from the request; what makes no sense counts as not given."""
        day = None
        if call.query("view") == "week":
            try:
                day = date.fromisoformat(call.query("day"))
            except ValueError:
                day = today
            day = min(max(day, date(1900, 1, 8)), date(2199, 12, 20))
        pairs = (each.partition(":") for each in call.query("rows").split(","))
        rows = {name: min(int(count), MOST_ROWS) for name, _, count in pairs if count.isdecimal()}
        return cls(day, call.query("q").strip()[:200], rows)


async def tasks_page(call: PageCall) -> Response:
    """The whole place; its script replaces the parts that change."""

    tasks = call.app.tasks
    today = tasks.clock.today
    content = _content(tasks, Shown.of(call, today))
    left, _ = drawer_buttons()
    search = h(
        "div",
        h("label", "Search tasks", for_="task-search", class_="hidden-label"),
        h(
            "input",
            id="task-search",
            type="search",
            placeholder="Search tasks",
            autocomplete="off",
            value=call.query("q").strip()[:200],
        ),
        class_="task-search",
    )
    bar = h("header", left, h("h1", "Tasks"), h("span", class_="space"), search, class_="topbar tasks-bar")
    said = h("p", id="tasks-said", class_="hidden-label", role="status")
    live = h("div", content, id="tasks", class_="tasks")
    column = h("div", quick_add(today), live, said, class_="column")
    centre = h(
        "main",
        bar,
        h("div", column, class_="place", id="task-scroller", tabindex="-1"),
        assistant(),
        class_="centre",
        id="main",
    )
    return HTMLResponse(render_page(call.view("Tasks", "tasks"), centre))


async def tasks_part(call: PageCall) -> Response:
    """What changes with the list; without content where the page has it already."""

    tasks = call.app.tasks
    today = tasks.clock.today
    if call.query("known") == f"{tasks.load().seq} {today}":
        return Response(status_code=204)
    return part(_content(tasks, Shown.of(call, today)))


async def task_rows(call: PageCall) -> Response:
    """The next rows of a group that is too long to be shown at once."""

    tasks = call.app.tasks
    today = tasks.clock.today
    groups = _groups(tasks, Shown.of(call, today), today)
    name, start = call.query("group"), call.number("from")
    found = next((each.tasks for each in groups if slug(each.heading) == name), ())
    rows = [_row(each, today, dates=name != "today") for each in found[start : start + MORE_ROWS]]
    return part(join(rows, _more(name, start + len(rows), len(found))))


async def task_targets(call: PageCall) -> Response:
    """The titles and dates of the tasks that an operation would change now."""

    tasks = call.app.tasks
    try:
        operation = decode(call.query("op"), type=dict[str, Any])
    except DecodeError as error:
        raise ApiError(400, "invalid_request", "The operation cannot be read.", "Send it as JSON.") from error
    if is_deeper(operation, MAX_DEPTH):
        raise ApiError(400, "invalid_request", "The operation is nested too deeply.", "Send a plain one.")
    (result,) = tasks.preview([operation]).results
    today, known = tasks.clock.today, tasks.load().tasks
    found = [dated(known[each], today) for each in result.ids[:MOST_ROWS]]
    rows = [
        h(
            "li",
            one_line(each.task.title),
            h("span", day_text(each.day, today) if each.day else "", class_="soft"),
        )
        for each in found
    ]
    return part(join(*rows))


async def task_form_part(call: PageCall) -> Response:
    """The form that edits a task."""

    tasks = call.app.tasks
    task = tasks.get(call.request.path_params["task"])
    if task is None:
        raise not_found("This task is no longer there.", "It was deleted meanwhile; undo brings it back.")
    return part(task_form(task, tasks.clock.today))


# The list


def slug(heading: str) -> str:
    return heading.lower().replace(" ", "-")


def _groups(tasks: TaskList, shown: Shown, today: date) -> list[Agenda]:
    if not shown.query:
        return agenda(tasks.all(), today)
    found = tuple(dated(task, today) for task in tasks.search(shown.query))
    return [Agenda(FOUND, found)] if found else []


def _content(tasks: TaskList, shown: Shown) -> Html:
    today = tasks.clock.today
    state = tasks.load()
    if shown.day and not shown.query:
        body = _week(tasks, shown.day, today)
    else:
        groups = _groups(tasks, shown, today)
        body = join(*(_group(each, today, shown.rows) for each in groups))
        if not groups:
            words = f"No task has the words “{shown.query}”." if shown.query else NONE_YET
            body = h("p", words, class_="empty")
    known = h("span", id="tasks-known", data_known=f"{state.seq} {today}", data_today=today.isoformat())
    return join(known, _toolbar(tasks, shown, today), body)


def _toolbar(tasks: TaskList, shown: Shown, today: date) -> Html:
    views = h(
        "div",
        _view_button("List", "list", chosen=shown.day is None),
        _view_button("Week", "week", chosen=shown.day is not None),
        class_="segments",
        role="group",
        aria_label="View",
    )
    moves: list[Html] = []
    if shown.day and not shown.query:
        monday = shown.day - timedelta(days=shown.day.weekday())
        moves = [
            button("‹", "task-week", class_="quiet", label="Previous week", id=str(monday - WEEK)),  # noqa: RUF001
            h("h2", _week_title(monday, today), class_="week-title"),
            button("›", "task-week", class_="quiet", label="Next week", id=str(monday + WEEK)),  # noqa: RUF001
        ]
        if not monday <= today < monday + WEEK:
            moves.append(button("This week", "task-week", class_="small", id=str(today)))
    return h("div", views, *moves, h("span", class_="space"), _undo(tasks), class_="task-tools")


def _view_button(words: str, name: str, *, chosen: bool) -> Html:
    return h(
        "button",
        words,
        type="button",
        data_act="task-view",
        data_id=name,
        aria_pressed="true" if chosen else "false",
    )


def _week_title(monday: date, today: date) -> str:
    sunday = monday + timedelta(days=6)
    start = f"{monday.day}" if monday.month == sunday.month else f"{monday.day} {monday:%b}"
    year = f" {sunday.year}" if sunday.year != today.year else ""
    return f"{start} – {sunday.day} {sunday:%b}{year}"


def _undo(tasks: TaskList) -> Html | None:
    """Says what it undoes: the last change, whoever made it."""
    last = last_change(tasks)
    if last is None:
        return None
    label = f"Undo: {one_line(last.text)}"
    words = join(h("span", "↶", aria_hidden="true"), h("span", label, class_="words"))
    return h(
        "button",
        words,
        type="button",
        class_="quiet undo",
        data_act="task-undo",
        data_id=last.change_id,
        aria_label=label,
        title=label,
    )


def _group(group: Agenda, today: date, rows: dict[str, int]) -> Html:
    name = slug(group.heading)
    count = rows.get(name, FIRST_ROWS)
    shown = [_row(each, today, dates=name != "today") for each in group.tasks[:count]]
    title = h("h2", group.heading, " ", h("span", f"{len(group.tasks):,}", class_="soft"))
    body = h("ul", *shown, _more(name, len(shown), len(group.tasks)), class_="task-rows", id=f"rows-{name}")
    act = None
    if name == "overdue" and not all(each.task.repeats for each in group.tasks):
        act = button("Move all to today", "task-overdue", class_="quiet small")
    if name == "done":
        summary = h("summary", title)
        act = button("Delete all done", "task-clear", class_="quiet small danger")
        return h(
            "details",
            summary,
            h("div", act, class_="group-act"),
            body,
            class_="task-group done",
            data_id=name,
        )
    head = h("div", title, h("span", class_="space"), act, class_="group-head")
    return h("section", head, body, class_=f"task-group {name}")


def _more(name: str, shown: int, total: int) -> Html | None:
    left = total - shown
    if left <= 0:
        return None
    if shown >= MOST_ROWS:
        return h("li", f"and {left:,} more; search finds them", class_="more-rows soft")
    words = f"Show {min(left, MORE_ROWS):,} more"
    rest = h("span", f"{left:,} are not shown", class_="soft") if left > MORE_ROWS else None
    return h("li", button(words, "task-more", class_="small", id=name, at=shown), rest, class_="more-rows")


def _row(each: DatedTask, today: date, *, dates: bool) -> Html:
    task = each.task
    notes = one_line(task.notes)
    return h(
        "li",
        _tick(each, today),
        h(
            "button",
            h("span", one_line(task.title), class_="title"),
            h("span", notes[:160], class_="memo") if notes else None,
            type="button",
            class_="open-task",
            data_act="task-edit",
            data_id=task.id,
        ),
        h("span", *_details(each, today, dates=dates), class_="details"),
        _menu_button(each),
        class_=f"task{' is-done' if each.done else ''}",
        data_task=task.id,
    )


def _details(each: DatedTask, today: date, *, dates: bool) -> list[Html]:
    task, found = each.task, list[Html]()
    if task.priority:
        found.append(h("span", task.priority, class_=f"priority {task.priority}"))
    if task.repeats:
        found.append(h("span", f"↻ {repeat_text(task.recurrence)}", class_="soft"))
    when = " ".join(filter(None, (day_text(each.day, today) if each.day and dates else "", task.time)))
    if when:
        late = each.day is not None and each.day < today and not each.done
        found.append(h("span", when, class_=f"due{' t-wait' if late else ' soft'}"))
    return found


def _tick(each: DatedTask, today: date) -> Html:
    day = f" for {day_text(each.day, today)}" if each.task.repeats and each.day else ""
    title = one_line(each.task.title)
    words = f"Reopen {title}{day}" if each.done else f"Complete {title}{day}"
    return h(
        "button",
        "✓",
        type="button",
        class_="tick",
        data_act="task-tick",
        data_id=each.task.id,
        data_day=each.day.isoformat() if each.task.repeats and each.day else None,
        data_done=each.done,
        aria_label=words,
        title="Reopen" if each.done else "Complete",
    )


def _menu_button(each: DatedTask) -> Html:
    task = each.task
    return h(
        "button",
        "⋯",
        type="button",
        class_="quiet more",
        data_act="task-menu",
        data_id=task.id,
        data_title=one_line(task.title),
        data_repeats=task.repeats,
        data_done=task.completed,
        aria_label=f"Actions for {one_line(task.title)}",
        aria_haspopup="menu",
    )


# The week


def _week(tasks: TaskList, day: date, today: date) -> Html:
    days = [_day(each, found, today) for each, found in week(tasks.all(), day)]
    return h("div", h("div", *days, class_="week-grid"), class_="week")


def _day(day: date, tasks: Sequence[DatedTask], today: date) -> Html:
    rows = [_day_row(each, today) for each in tasks[:DAY_ROWS]]
    more = len(tasks) - len(rows)
    rows += [h("li", f"and {more:,} more", class_="more-rows soft")] if more > 0 else []
    head = h(
        "header",
        h("h3", h("span", f"{day:%a}"), " ", h("span", f"{day.day}", class_="number")),
        button("+", "task-add-on", class_="quiet small", label=f"Add a task on {day:%A}", id=str(day)),
    )
    names = ["day", *(["today"] if day == today else []), *(["past"] if day < today else [])]
    return h(
        "section", head, h("ul", *rows, class_="task-rows"), class_=" ".join(names), data_day=day.isoformat()
    )


def _day_row(each: DatedTask, today: date) -> Html:
    task = each.task
    again = h("span", " ↻", class_="soft", role="img", aria_label="repeats") if task.repeats else None
    words = h(
        "button",
        h("span", task.time, class_="at") if task.time else None,
        h("span", one_line(task.title), class_="title"),
        again,
        type="button",
        class_="open-task",
        data_act="task-edit",
        data_id=task.id,
    )
    names = ["task", *(["is-done"] if each.done else []), *(["high"] if task.priority == "high" else [])]
    return h("li", _tick(each, today), words, class_=" ".join(names), data_task=task.id)
