"""Forms of the place of tasks: a new task, a task in full, and what the user says to the assistant."""

from datetime import date

from handrail.interfaces.cli.render.styles import one_line
from handrail.interfaces.cli.render.task_lines import day_text
from handrail.interfaces.web.conversation.blocks import button
from handrail.interfaces.web.html import Html, h
from handrail.protocol.task import MAX_EVERY_DAYS, MAX_NOTES, MAX_TITLE, Task

REPEATS = {
    "none": "Does not repeat",
    "daily": "Every day",
    "weekdays": "Monday to Friday",
    "weekly": "Every week",
    "monthly": "Every month",
    "every_n_days": "Every few days",
}
SIMPLE_REPEATS = {name: words for name, words in REPEATS.items() if name != "every_n_days"}
PRIORITIES = {"": "No priority", "low": "Low priority", "medium": "Medium priority", "high": "High priority"}
EXAMPLES = (
    "What is due this week?",
    "Remind me to pay the rent on the 1st of every month",
    "Move everything that is overdue to tomorrow",
)
FIRST_DAY, LAST_DAY = "1900-01-01", "2199-12-31"
LATEST_SHOWN = 5


def _options(names: dict[str, str], chosen: str) -> list[Html]:
    return [h("option", words, value=name, selected=name == chosen) for name, words in names.items()]


def _day_input(name: str, value: str = "", **attributes: str) -> Html:
    return h("input", type="date", name=name, value=value, min=FIRST_DAY, max=LAST_DAY, **attributes)


def quick_add(today: date) -> Html:
    """A new task: its title, and when."""
    return h(
        "form",
        h("label", "New task", for_="new-title", class_="hidden-label"),
        h(
            "input",
            id="new-title",
            name="title",
            placeholder="Add a task",
            autocomplete="off",
            maxlength=MAX_TITLE,
            required=True,
        ),
        h(
            "div",
            _day_input("scheduled_for", id="new-day", aria_label="Date", title="Date"),
            h("input", type="time", name="time", aria_label="Time", title="Time"),
            h("select", *_options(SIMPLE_REPEATS, "none"), name="repeat", aria_label="Repeats"),
            h("select", *_options(PRIORITIES, ""), name="priority", aria_label="Priority"),
            h("button", "Add", type="submit", class_="primary"),
            class_="when",
        ),
        class_="quick-add",
        id="quick-add",
        data_act="task-add",
        data_today=today.isoformat(),
    )


def task_form(task: Task, today: date) -> Html:
    """Everything about a task that can be changed."""
    rule = task.recurrence
    begins = "Repeats from" if task.repeats else "Date"
    done = [day_text(date.fromisoformat(each), today) for each in task.completed_occurrences]
    past = h(
        "p",
        f"Completed {len(done):,} times; last on {', '.join(reversed(done[-LATEST_SHOWN:]))}.",
        class_="soft",
    )
    return h(
        "form",
        _field("Title", h("input", name="title", value=task.title, maxlength=MAX_TITLE, required=True)),
        _field("Notes", h("textarea", task.notes, name="notes", rows="4", maxlength=MAX_NOTES)),
        h(
            "div",
            _field(begins, _day_input("scheduled_for", task.scheduled_for)),
            _field("Time", h("input", type="time", name="time", value=task.time)),
            _field("Priority", h("select", *_options(PRIORITIES, task.priority), name="priority")),
            class_="fields",
        ),
        h(
            "div",
            _field("Repeats", h("select", *_options(REPEATS, rule.type), name="repeat")),
            _field(
                "Days between",
                h("input", type="number", name="days", value=rule.days, min="1", max=MAX_EVERY_DAYS),
                class_="for-days",
            ),
            _field("Until", _day_input("until", rule.until), class_="for-repeats"),
            class_="fields repeats",
        ),
        past if done else None,
        h("p", class_="t-bad problem", role="alert"),
        h(
            "div",
            h("button", "Save", type="submit", class_="primary"),
            button("Cancel", "dialog-close"),
            h("span", class_="space"),
            button("Delete", "task-delete", class_="danger", id=task.id, title=one_line(task.title)),
            class_="buttons",
        ),
        class_="task-form",
        data_act="task-save",
        data_id=task.id,
        data_title=one_line(task.title),
    )


def _field(words: str, control: Html, class_: str = "") -> Html:
    return h("label", h("span", words), control, class_=f"field {class_}".strip())


def assistant() -> Html:
    """What the user says to the assistant, and above it what comes of that."""
    chips = [button(each, "task-example", class_="chip", text=each) for each in EXAMPLES]
    talk = h(
        "section",
        h(
            "header",
            h("span", "Assistant"),
            button("×", "task-talk-close", class_="quiet", label="Close the assistant's answer"),  # noqa: RUF001
        ),
        h("div", id="task-talk", class_="talk", role="log", aria_label="Task assistant", tabindex="0"),
        id="task-sheet",
        class_="sheet",
        hidden=True,
    )
    form = h(
        "form",
        h("label", "Ask about or change your tasks", for_="task-message", class_="hidden-label"),
        h(
            "textarea",
            id="task-message",
            name="message",
            rows="1",
            maxlength=MAX_NOTES,
            placeholder="Ask about or change your tasks…",
            autocomplete="off",
        ),
        h("button", "Stop", type="button", class_="small", data_act="task-stop", hidden=True),
        h("button", "Ask", type="submit", class_="primary"),
        class_="composer task-ask",
        data_act="task-ask",
    )
    return h("div", talk, h("div", *chips, class_="examples"), form, class_="bottom task-assistant")
