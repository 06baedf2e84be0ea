"""The place of tasks: the list and the week, changes by hand and with the assistant, and undo."""

import json
from datetime import datetime, timedelta
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.interfaces.web.site import Site, ready
from tests.interfaces.web.test_safety import problems

TODAY = datetime.now().astimezone().date()
MARKUP = "<img src=x onerror=window.ran=1> & <b>bold</b>"
MANY = 25


def day(number: int) -> str:
    return str(TODAY + timedelta(days=number))


def proposed(*operations: Any, answer: str = "", question: str = "") -> dict[str, Any]:
    return {"text": json.dumps({"answer": answer, "operations": operations, "question": question})}


def summarised(text: str) -> dict[str, Any]:
    return {"when": "Output of check", "text": json.dumps({"text": text})}


def seed(page: Page, site: Site, *operations: dict[str, Any]) -> None:
    """Put tasks into the list through the API."""
    for start in range(0, len(operations), 200):
        body = {"operations": operations[start : start + 200]}
        address = site.place("").replace("/w/", "/api/w/") + "llm/apply"
        assert page.request.post(address, data=body, headers=own_origin(site)).ok


def own_origin(site: Site) -> dict[str, str]:
    """A request with the cookie has to say where it comes from, as browsers do."""
    return {"origin": site.address.partition("/?")[0], "sec-fetch-site": "same-origin"}


def group(page: Page, name: str) -> Locator:
    return page.locator(f".task-group.{name}")


def row(page: Page, title: str) -> Locator:
    return page.locator(".task", has_text=title)


def open_tasks(page: Page, site: Site, *answers: dict[str, Any], tasks: Any = ()) -> None:
    site.open(page, *(answers or ({"text": "Hello."},)), HANDRAIL_AUTO_ROUTE="on")
    seed(page, site, *({"op": "create", **each} for each in tasks))
    page.goto(site.place("tasks"))
    ready(page)


def ask(page: Page, text: str) -> Locator:
    page.fill("#task-message", text)
    before = page.locator(".turn-of-tasks").count()
    page.press("#task-message", "Enter")
    return page.locator(".turn-of-tasks").nth(before)


@pytest.mark.promise("TASK-50")
def test_a_person_adds_reschedules_completes_and_deletes_without_the_assistant(
    site: Site, page: Page
) -> None:
    open_tasks(page, site)
    expect(page.locator(".empty")).to_contain_text("Nothing to do yet")
    page.fill("#new-title", "Call the dentist")
    page.fill("#new-day", day(-1))
    page.get_by_role("button", name="Add", exact=True).click()
    expect(group(page, "overdue")).to_contain_text("Call the dentist")
    expect(page.locator("#new-title")).to_be_focused()
    page.get_by_role("button", name="Actions for Call the dentist").click()
    page.get_by_role("menuitem", name="Move to today").click()
    expect(group(page, "today")).to_contain_text("Call the dentist")
    row(page, "dentist").locator(".open-task").click()
    form = page.locator("dialog form")
    form.get_by_label("Notes").fill("Bring the card")
    form.get_by_label("Time", exact=True).fill("09:30")
    form.get_by_label("Priority").select_option("high")
    form.get_by_role("button", name="Save").click()
    expect(page.locator("dialog")).to_be_hidden()
    expect(row(page, "dentist")).to_contain_text("Bring the card")
    expect(row(page, "dentist").locator(".details")).to_have_text("high09:30")
    page.get_by_role("button", name="Complete Call the dentist").click()
    page.locator("details.done summary").click()
    expect(group(page, "done")).to_contain_text("Call the dentist")
    expect(page.locator(".undo")).to_contain_text("completed “Call the dentist”")
    page.locator(".undo").click()
    expect(group(page, "today")).to_contain_text("Call the dentist")
    page.get_by_role("button", name="Actions for Call the dentist").click()
    page.get_by_role("menuitem", name="Delete").click()
    expect(page.locator(".empty")).to_be_visible()
    page.locator(".toast", has_text="Deleted").get_by_role("button", name="Undo").click()
    expect(group(page, "today")).to_contain_text("Call the dentist")


@pytest.mark.promise("TASK-50")
def test_one_occurrence_is_completed_in_the_week_and_a_wrong_edit_is_refused_in_the_form(
    site: Site, page: Page
) -> None:
    open_tasks(page, site)
    page.fill("#new-title", "Stretch")
    page.get_by_label("Repeats", exact=True).select_option("daily")
    page.press("#new-title", "Enter")
    expect(group(page, "today").locator(".task")).to_contain_text("daily")
    page.get_by_role("button", name="Week", exact=True).click()
    page.get_by_role("button", name="Next week").click()
    expect(page.locator(".day .task")).to_have_count(7)
    first = page.locator(".day").first
    first.locator(".tick").click()
    expect(first.locator(".task")).to_have_class("task is-done fresh")
    expect(page.locator(".task.is-done")).to_have_count(1)
    page.reload()
    ready(page)
    expect(page.locator(".task.is-done")).to_have_count(1)
    page.get_by_role("button", name="This week", exact=True).click()
    expect(page.locator(".day.today")).to_contain_text("Stretch")
    page.locator(".day.today .open-task").click()
    form = page.locator("dialog form")
    form.get_by_label("Until").fill(day(-400))
    form.get_by_role("button", name="Save").click()
    expect(form.locator(".problem")).to_contain_text("It would never occur")
    form.locator("[name=repeat]").select_option("every_n_days")
    form.get_by_label("Until").fill(day(400))
    form.get_by_label("Days between").fill("3")
    form.get_by_role("button", name="Save").click()
    expect(page.locator("dialog")).to_be_hidden()
    page.go_back()
    monday = 7 - TODAY.weekday()
    expect(page.locator(".day .task")).to_have_count(
        len([n for n in range(monday, monday + 7) if n % 3 == 0])
    )


@pytest.mark.promise("TASK-51")
def test_deleting_many_done_tasks_is_asked_twice_and_undone(site: Site, page: Page) -> None:
    done = [{"title": f"Old {number}", "completed": True} for number in range(MANY)]
    open_tasks(page, site, tasks=[*done, {"title": "Still open"}])
    page.locator("details.done summary").click()
    page.get_by_role("button", name="Delete all done").click()
    expect(page.locator("dialog")).to_contain_text(f"This deletes {MANY} tasks.")
    page.get_by_role("button", name="Cancel").click()
    expect(group(page, "done").locator(".task")).to_have_count(MANY)
    page.get_by_role("button", name="Delete all done").click()
    page.get_by_role("button", name="Yes, I am sure").click()
    expect(group(page, "done")).to_have_count(0)
    expect(row(page, "Still open")).to_be_visible()
    page.locator(".undo", has_text=f"deleted {MANY} tasks").click()
    expect(group(page, "done").locator("h2")).to_contain_text(str(MANY))


PLANTS = {"title": "Water the plants", "scheduled_for": day(0)}
MILK = {"title": "Buy milk"}


@pytest.mark.promise("TASK-52")
def test_proposed_changes_are_ticked_applied_and_undone(site: Site, page: Page) -> None:
    wrong = {"op": "complete", "id": "99"}
    operations = (
        {"op": "create", "title": "Dinner with Zoë", "time": "19:00"},
        {"op": "update", "id": "1", "scheduled_for": day(7), "priority": "high"},
        {"op": "delete", "id": "2"},
        wrong,
    )
    answers = (proposed(*operations), proposed(*operations), summarised("Plans the dinner."))
    open_tasks(page, site, *answers, tasks=[PLANTS, MILK])
    turn = ask(page, "add dinner with Zoë at 7, move the plants a week and delete the milk")
    expect(turn.locator(".answer-words")).to_have_text("Plans the dinner.")
    rows = turn.locator(".operation")
    expect(rows).to_have_count(4)
    expect(rows.nth(0)).to_contain_text("Add “Dinner with Zoë”event")
    expect(rows.nth(0)).to_contain_text("Still missing: a date")
    expect(rows.nth(1).locator("del").last).to_have_text("none")
    expect(rows.nth(1).locator("ins").last).to_have_text("high")
    expect(rows.nth(3)).to_contain_text("There is no task 99")
    expect(rows.nth(3).locator("input")).to_be_disabled()
    expect(rows.nth(3).locator("input")).not_to_be_checked()
    expect(turn.get_by_role("button", name="Apply all 3")).to_be_enabled()
    rows.nth(2).locator("input").uncheck()
    expect(row(page, "Dinner")).to_have_count(0)
    turn.get_by_role("button", name="Apply 2 of 3").click()
    expect(turn.locator("footer")).to_contain_text("Applied. Added 1 task, changed 1 task.")
    expect(row(page, "Dinner with Zoë")).to_be_visible()
    expect(row(page, "Buy milk")).to_be_visible()
    expect(group(page, "later")).to_contain_text("Water the plants")
    turn.get_by_role("button", name="Undo").click()
    expect(turn.locator("footer")).to_contain_text("Undone.")
    expect(group(page, "today")).to_contain_text("Water the plants")


@pytest.mark.promise("TASK-51")
def test_the_assistant_deletes_many_only_after_a_second_question(site: Site, page: Page) -> None:
    bulk = proposed({"op": "bulk_delete", "where": {"text": "old"}})
    tasks = [{"title": f"Old {number}"} for number in range(MANY)]
    open_tasks(page, site, bulk, summarised("Deletes the old ones."), tasks=[*tasks, {"title": "Gold ring"}])
    turn = ask(page, "delete all tasks that are old")
    expect(turn.locator(".operation")).to_contain_text(f"Delete {MANY} tasks")
    expect(turn.locator(".targets li:visible")).to_have_count(5)
    turn.get_by_role("button", name="Show 20 more").click()
    expect(turn.locator(".targets li:visible")).to_have_count(MANY)
    expect(turn.locator(".targets")).not_to_contain_text("Gold")
    turn.get_by_role("button", name="Apply").click()
    expect(page.locator("dialog")).to_contain_text(f"This deletes {MANY} tasks.")
    page.keyboard.press("Escape")
    expect(page.locator(".task")).to_have_count(MANY + 1)
    turn.get_by_role("button", name="Apply").click()
    page.get_by_role("button", name="Yes, I am sure").click()
    expect(page.locator(".task")).to_have_count(1)
    expect(turn.locator("footer")).to_contain_text("Applied. Deleted 25 tasks.")
    page.locator("#tasks .undo").click()
    expect(turn.locator("footer")).to_have_text("Undone.")
    expect(page.locator(".task")).to_have_count(MANY + 1)
    assert page.evaluate("document.scrollingElement.scrollHeight <= innerHeight")


@pytest.mark.promise("TASK-52")
def test_a_proposal_is_still_there_after_a_reload_and_answered_with_a_key(site: Site, page: Page) -> None:
    both = proposed({"op": "complete", "id": "1"}, {"op": "delete", "id": "2"})
    open_tasks(page, site, both, summarised("Tidies up."), tasks=[PLANTS, MILK])
    turn = ask(page, "mark the plants as done and delete the milk")
    expect(turn.get_by_role("button", name="Apply all 2")).to_be_enabled()
    page.reload()
    ready(page)
    expect(turn.locator(".answer-words")).to_have_text("Tidies up.")
    expect(page.locator(".user-words")).to_have_text("mark the plants as done and delete the milk")
    expect(page.get_by_role("navigation", name="Sessions").get_by_role("link")).to_have_count(1)
    turn.get_by_label("Delete “Buy milk”").uncheck()
    press_when_ready(page, turn, "y")
    expect(turn.locator("footer")).to_contain_text("Applied. Completed 1 task.")
    page.reload()
    ready(page)
    expect(page.locator("#task-sheet")).to_be_hidden()
    expect(row(page, "Buy milk")).to_be_visible()


def press_when_ready(page: Page, turn: Locator, key: str) -> None:
    """Press the key until it counts: it does not in the first moments that a question is in view."""
    turn.locator(".card-head").click()
    while turn.locator("[data-question]").count():
        page.keyboard.press(key)
        page.wait_for_timeout(50)


@pytest.mark.promise("TASK-52")
def test_an_unclear_message_has_chips_and_the_chosen_one_stays(site: Site, page: Page) -> None:
    unclear = {
        "decision": "clarify",
        "confidence": 0.3,
        "question": "Which one do you mean?",
        "options": [{"id": "1", "title": "Water the plants"}, {"id": "2", "title": "Buy milk"}],
    }
    done = proposed({"op": "complete", "id": "2"})
    open_tasks(
        page, site, {"text": json.dumps(unclear)}, done, summarised("Completes it."), tasks=[PLANTS, MILK]
    )
    turn = ask(page, "that one, it was the other thing I meant")
    expect(turn).to_contain_text("Which one do you mean?")
    turn.get_by_role("button", name="Buy milk").click()
    expect(turn.locator(".chip.chosen")).to_have_text("Buy milk")
    expect(turn.get_by_role("button", name="Water the plants")).to_be_disabled()
    after = page.locator(".turn-of-tasks").last
    after.get_by_role("button", name="Apply").click()
    expect(after.locator("footer")).to_contain_text("Applied. Completed 1 task.")
    expect(group(page, "done").locator("h2")).to_contain_text("1")


@pytest.mark.promise("TASK-52")
def test_a_question_without_chips_is_answered_in_the_same_conversation(site: Site, page: Page) -> None:
    dinner = proposed({"op": "create", "title": "Dinner", "time": "19:00"})
    open_tasks(
        page,
        site,
        proposed(question="At what time?"),
        {**dinner, "when": "At what time?"},
        summarised("Adds it."),
    )
    expect(ask(page, "remind me of the dinner")).to_contain_text("At what time?")
    expect(page.locator(".chip:visible")).to_have_count(0)
    expect(ask(page, "at seven").locator(".operation")).to_contain_text("Add “Dinner”")
    expect(page.get_by_role("navigation", name="Sessions").get_by_role("link")).to_have_count(1)


@pytest.mark.promise("TASK-52")
def test_a_question_is_answered_in_words_that_are_text(site: Site, page: Page) -> None:
    open_tasks(page, site, proposed(answer=f"Two tasks. {MARKUP}"), tasks=[PLANTS])
    turn = ask(page, "what is due this week?")
    expect(turn.locator(".answer-words")).to_contain_text("Two tasks. <img src=x")
    assert page.evaluate("window.ran") is None
    expect(turn.locator(".operation")).to_have_count(0)
    page.get_by_role("button", name="Close the assistant's answer").click()
    expect(page.locator("#task-sheet")).to_be_hidden()


@pytest.mark.promise("TASK-52")
def test_where_nothing_can_be_done_there_is_nothing_to_decide(site: Site, page: Page) -> None:
    wrong = proposed({"op": "delete", "id": "99"})
    open_tasks(page, site, wrong, wrong, tasks=[PLANTS])
    turn = ask(page, "delete task 99 from my list")
    expect(turn.locator(".answer-words")).to_contain_text("There is no task 99")
    expect(turn.locator(".operation input")).to_be_disabled()
    expect(turn.locator("footer")).to_be_hidden()
    expect(turn.locator(".waiting, [data-question]")).to_have_count(0)


@pytest.mark.promise("TASK-52")
def test_a_question_with_a_request_is_answered_in_two_sections(site: Site, page: Page) -> None:
    mixed = proposed({"op": "complete", "id": "1"}, answer="Only the plants.")
    open_tasks(page, site, mixed, summarised("Completes the plants."), tasks=[PLANTS])
    turn = ask(page, "What is due today? And mark the plants as done")
    expect(turn.locator(".answer-words strong")).to_have_text(["Answer", "Proposed changes"])
    expect(turn.locator(".answer-words")).to_contain_text("Only the plants.")
    expect(turn.locator(".answer-words")).to_contain_text("Completes the plants.")
    expect(turn.locator(".operation")).to_have_count(1)
    expect(turn.locator(".card-head")).to_have_count(0)  # the second section has this heading already


@pytest.mark.promise("TASK-17")
def test_an_answer_comes_without_a_stream_too(site: Site, page: Page) -> None:
    open_tasks(
        page, site, proposed({"op": "complete", "id": "1"}), summarised("Completes it."), tasks=[PLANTS]
    )
    page.route("**/assistant/message/stream**", lambda route: route.fulfill(status=503))
    turn = ask(page, "mark the plants as done")
    expect(turn.locator(".answer-words")).to_have_text("Completes it.")
    turn.get_by_role("button", name="Apply").click()
    expect(turn.locator("footer")).to_contain_text("Applied. Completed 1 task.")


@pytest.mark.promise("TASK-17")
def test_an_answer_goes_on_where_the_server_is_killed_and_started_again(site: Site, page: Page) -> None:
    done = proposed({"op": "complete", "id": "1"})
    slow = {"when": "Output of check", "text": ["{"] + [" "] * 1_000, "chunk_delay_ms": 50}
    open_tasks(page, site, done, slow, tasks=[PLANTS])
    turn = ask(page, "mark the plants as done")
    expect(turn.locator(".operation")).to_have_count(1)
    expect(turn.get_by_role("button", name="Apply")).to_be_disabled()
    site.kill()
    expect(turn.locator(".working")).to_contain_text("Connection lost. Trying again, attempt 1.")
    site.start(summarised("Completes it."), HANDRAIL_AUTO_ROUTE="on")
    expect(turn.locator(".answer-words")).to_have_text("Completes it.")
    expect(turn.locator(".operation")).to_have_count(1)
    turn.get_by_role("button", name="Apply").click()
    expect(turn.locator("footer")).to_contain_text("Applied. Completed 1 task.")


@pytest.mark.promise("TASK-52")
def test_a_model_that_fails_says_so_and_the_message_can_be_sent_again(site: Site, page: Page) -> None:
    busy = {"kind": "give_up", "message": "The model is out of order.", "times": 1}
    answer = {**proposed({"op": "complete", "id": "1"}), "error": busy}
    open_tasks(page, site, answer, summarised("Completes it."), tasks=[PLANTS])
    turn = ask(page, "mark the plants as done")
    expect(turn.locator(".banner.bad")).to_contain_text("out of order")
    expect(page.locator("#task-message")).to_be_enabled()
    turn.get_by_role("button", name="Try again").click()
    again = page.locator(".turn-of-tasks").last
    expect(again.locator(".operation")).to_contain_text("Complete “Water the plants”")
    again.get_by_role("button", name="Apply").click()
    expect(again.locator("footer")).to_contain_text("Applied. Completed 1 task.")


UNTICKS_FIRST_VERSION = """() => {
  const seen = new MutationObserver(() => {
    const rows = [...document.querySelectorAll(".operation")];
    const box = rows.find((each) => each.textContent.includes("Buy milk"))?.querySelector("input");
    if (!box) return;
    seen.disconnect();
    window.unticked = rows.length;
    box.click();
  });
  seen.observe(document.getElementById("task-talk"), { childList: true, subtree: true });
}"""
"""Acts before the next event of the stream, so that no timing matters."""


@pytest.mark.promise("TASK-52")
def test_a_newer_version_keeps_what_was_unticked(site: Site, page: Page) -> None:
    milk, plants = {"op": "delete", "id": "2"}, {"op": "complete", "id": "1"}
    first = proposed(plants, milk, {"op": "complete", "id": "99"})
    second = {**proposed(milk, plants), "when": "There is no task 99"}
    open_tasks(page, site, first, second, summarised("Tidies up."), tasks=[PLANTS, MILK])
    page.evaluate(UNTICKS_FIRST_VERSION)
    turn = ask(page, "mark the plants as done and delete the milk")
    expect(turn.locator(".answer-words")).to_have_text("Tidies up.")
    assert page.evaluate("window.unticked") == 3
    expect(turn.locator(".operation")).to_have_count(2)
    expect(turn.get_by_label("Delete “Buy milk”")).not_to_be_checked()
    expect(turn.get_by_label("Complete “Water the plants”")).to_be_checked()
    turn.get_by_role("button", name="Apply 1 of 2").click()
    expect(turn.locator("footer")).to_contain_text("Applied. Completed 1 task.")
    expect(row(page, "Buy milk")).to_be_visible()


@pytest.mark.promise("TASK-53")
def test_ten_thousand_tasks_are_rendered_a_page_at_a_time_and_found_by_words(site: Site, page: Page) -> None:
    count = 10_000
    tasks = [{"title": f"Task number {each}", "scheduled_for": day(30 + each % 300)} for each in range(count)]
    open_tasks(page, site, tasks=tasks)
    later = group(page, "later")
    expect(later.locator("h2")).to_contain_text("10,000")
    expect(later.locator(".task")).to_have_count(50)
    later.get_by_role("button", name="Show 200 more").click()
    expect(later.locator(".task")).to_have_count(250)
    later.locator(".tick").nth(200).click()
    expect(later.locator("h2")).to_contain_text("9,999")
    expect(later.locator(".task")).to_have_count(250)
    page.fill("#task-search", "number 1234")
    expect(page.locator(".task").first).to_contain_text("Task number 1234")
    page.fill("#task-search", "no such words")
    expect(page.locator(".empty")).to_contain_text("No task has the words")


@pytest.mark.promise("TASK-54")
def test_markup_in_titles_and_notes_is_text(site: Site, page: Page) -> None:
    open_tasks(page, site, tasks=[{"title": MARKUP, "notes": MARKUP, "scheduled_for": day(0)}])
    expect(page.locator(".task .title")).to_have_text(MARKUP)
    page.locator(".task .more").click()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Week", exact=True).click()
    expect(page.locator(".day .title")).to_have_text(MARKUP)
    page.locator(".day .open-task").click()
    expect(page.locator("dialog").get_by_label("Title")).to_have_value(MARKUP)
    page.keyboard.press("Escape")
    page.locator(".day .tick").click()
    expect(page.locator(".toast")).to_contain_text(MARKUP)
    assert page.evaluate("window.ran") is None


@pytest.mark.promise("TASK-54")
def test_a_title_of_300_characters_without_a_blank_stays_inside_the_page(site: Site, page: Page) -> None:
    long = {"title": "x" * 300, "notes": "y" * 500, "scheduled_for": day(0), "priority": "high"}
    rename = proposed({"op": "update", "id": "1", "title": "z" * 300, "notes": "n" * 3_000})
    open_tasks(page, site, rename, summarised("w" * 300), tasks=[long])
    page.set_viewport_size({"width": 390, "height": 844})
    turn = ask(page, "rename my task " + "v" * 300)
    expect(turn.locator(".operation")).to_have_count(1)
    expect(turn.get_by_role("button", name="Apply")).to_be_enabled()
    inside = "document.getElementById('tasks').scrollWidth <= innerWidth"
    fits = f"document.scrollingElement.scrollWidth <= innerWidth && {inside}"
    assert page.evaluate(fits)
    assert page.evaluate("document.getElementById('task-talk').scrollWidth <= innerWidth")
    turn.get_by_role("button", name="Apply").click()
    expect(turn.locator("footer")).to_contain_text("Applied.")
    row(page, "z" * 300).locator(".tick").click()
    expect(page.locator(".toast").last).to_contain_text("Done: ")
    assert page.evaluate(fits)
    page.get_by_role("button", name="Week", exact=True).click()
    expect(page.locator(".day .title")).to_be_visible()
    assert page.evaluate(fits)


def test_another_process_changes_the_list_and_the_page_follows(site: Site, page: Page) -> None:
    open_tasks(page, site)
    expect(page.locator(".empty")).to_be_visible()
    assert site.run("tasks", "add", "From the terminal").returncode == 0
    expect(row(page, "From the terminal")).to_be_visible()


@pytest.mark.promise("TASK-54")
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_on_the_place_of_tasks(site: Site, page: Page, theme: str) -> None:
    page.emulate_media(reduced_motion="reduce")
    repeating = {"title": "Stretch", "scheduled_for": day(-3), "time": "07:00", "recurrence": "daily"}
    tasks = [
        {"title": "Late", "scheduled_for": day(-2), "priority": "high", "notes": "Since long"},
        {"title": "Soon", "scheduled_for": day(1), "priority": "medium"},
        {"title": "Some day", "priority": "low"},
        {"title": "Done", "completed": True},
        {**repeating, "until": day(400)},
    ]
    wrong = {"op": "complete", "id": "99"}
    operations = ({"op": "create", "title": "Dinner", "time": "19:00"}, {"op": "delete", "id": "1"}, wrong)
    answers = (proposed(*operations), proposed(*operations), summarised("Plans the dinner."))
    open_tasks(page, site, *answers, tasks=tasks)
    page.context.add_cookies([{"name": "handrail_theme", "value": theme, "url": site.place("")}])
    page.reload()
    ready(page)
    page.locator("details.done summary").click()
    found = problems(page, "list")
    row(page, "Late").locator(".open-task").click()
    expect(page.locator("dialog form")).to_be_visible()
    found += problems(page, "form")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Week", exact=True).click()
    expect(page.locator(".week")).to_be_visible()
    found += problems(page, "week")
    turn = ask(page, "add dinner at 7 and delete the late one")
    expect(turn.locator(".answer-words")).to_have_text("Plans the dinner.")
    found += problems(page, "proposal")
    turn.get_by_role("button", name="Apply all 2").click()
    expect(turn.locator("footer")).to_contain_text("Applied.")
    found += problems(page, "applied")
    page.set_viewport_size({"width": 390, "height": 844})
    found += problems(page, "narrow")
    assert not found, "\n".join(found)
    assert page.evaluate("document.querySelector('.place').scrollWidth <= innerWidth")
