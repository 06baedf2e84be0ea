"""The task list over HTTP: views, changes, operations, idempotency keys, and what hostile requests get."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.interfaces.http.serving import Served, serving

pytestmark = pytest.mark.anyio

TODAY_AND_LATER = [
    {"op": "create", "title": "Old", "scheduled_for": "2020-01-06"},
    {"op": "create", "title": "Now", "scheduled_for": "today", "priority": "high"},
    {"op": "create", "title": "Far", "scheduled_for": "2099-01-01"},
    {"op": "create", "title": "Some day"},
    {"op": "create", "title": "Stand-up", "scheduled_for": "2099-06-01", "recurrence": "weekdays"},
]


async def apply(served: Served, *operations: Any, key: str = "", status: int = 200) -> Any:
    headers = {"idempotency-key": key} if key else {}
    response = await served.client.post("/api/llm/apply", json={"operations": operations}, headers=headers)
    assert response.status_code == status, response.text
    return response.json()


def create(title: str, **fields: Any) -> dict[str, Any]:
    return {"op": "create", "title": title, **fields}


async def titles(served: Served) -> list[str]:
    found = await served.get("/tasks", limit="500")
    return [each["task"]["title"] for each in found["groups"][0]["tasks"]]


@pytest.mark.promise("TASK-11")
async def test_task_is_added_changed_found_deleted_and_given_back(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        added = await served.post("/tasks", {"title": "Call Zoë", "scheduled_for": "2099-05-01"}, 201)
        assert added["task"]["scheduled_for"] == "2099-05-01"
        path = f"/tasks/{added['task']['id']}"
        changed = await served.patch(path, {"time": "7pm", "recurrence": "weekly"})
        assert (changed["task"]["time"], changed["task"]["recurrence"]["type"]) == ("19:00", "weekly")
        later = await served.patch(path, {"until": "2099-08-01"})
        assert later["task"]["recurrence"] == {"type": "weekly", "days": 1, "until": "2099-08-01"}
        found = await served.get("/tasks/search", text="zoe")
        assert (found["total"], found["tasks"][0]["day"]) == (1, "2099-05-01")
        assert (await served.delete(path))["task"] is None
        assert (await served.get(path, 404))["error"] == "not_found"
        undone = await served.post("/tasks/undo")
        assert undone["changes"][0]["after"] == later["task"]
        assert (await served.get(path))["task"] == later["task"]
        refused = await served.post("/tasks/undo", {"change_id": added["change_id"]}, 409)
        assert refused["error"] == "usage"


@pytest.mark.promise("TASK-11")
async def test_agenda_and_week_come_in_groups_and_pages(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        await apply(served, *TODAY_AND_LATER)
        found = await served.get("/tasks", view="agenda")
        headings = [(each["heading"], each["count"]) for each in found["groups"]]
        assert headings == [("Overdue", 1), ("Today", 1), ("Later", 2), ("No date", 1)]
        assert (found["total"], found["next"], found["undoable"]) == (5, None, True)
        shown: list[str] = []
        offset: int | None = 0
        while offset is not None:
            page = await served.get("/tasks", view="agenda", limit="2", offset=str(offset))
            shown += [each["task"]["title"] for group in page["groups"] for each in group["tasks"]]
            offset = page["next"]
        assert shown == ["Old", "Now", "Far", "Stand-up", "Some day"]
        week = await served.get("/tasks", view="week", week="2099-06-03")
        assert [each["day"] for each in week["groups"]] == [f"2099-06-0{day}" for day in range(1, 8)]
        assert [each["count"] for each in week["groups"]] == [1, 1, 1, 1, 1, 0, 0]
        day = await served.get("/tasks", on="2099-06-03")
        assert [(each["day"], each["count"]) for each in day["groups"]] == [("2099-06-03", 1)]
        assert day["groups"][0]["tasks"][0]["day"] == "2099-06-03"
        high = await served.get("/tasks", priority="high", completed="false")
        assert [each["task"]["title"] for each in high["groups"][0]["tasks"]] == ["Now"]
        assert (await served.get("/tasks", 400, week="soonish", view="week"))["error"] == "invalid_request"


@pytest.mark.promise("TASK-12")
async def test_dry_run_changes_nothing_and_predicts_what_apply_does(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        await apply(served, *TODAY_AND_LATER, *(create(f"Errand {number}") for number in range(25)))
        operations = [
            create("Read", recurrence="daily", scheduled_for="2099-01-01", kind="habit"),
            create("Party", kind="event"),
            {"op": "complete", "id": "2"},
            {"op": "complete", "id": "999"},
            {"op": "bulk_delete", "where": {"text": "errand"}},
        ]
        before = await titles(served)
        planned = await served.post("/llm/dryrun", {"operations": operations})
        assert await titles(served) == before
        assert [each["valid"] for each in planned["results"]] == [True, True, True, False, True]
        assert planned["results"][0]["kind"] == "habit"
        assert planned["results"][1]["missing"] == ["a date", "a time"]
        assert "999" in planned["results"][3]["errors"][0]
        assert (planned["results"][4]["count"], len(planned["results"][4]["ids"])) == (25, 10)
        assert planned["warnings"] == ["This deletes 25 tasks."]
        done = await apply(served, *operations)
        assert (done["summary"], done["warnings"]) == (planned["summary"], planned["warnings"])
        assert done["summary"] == {"created": 2, "updated": 0, "deleted": 25, "completed": 1}
        assert len(done["results"][4]["ids"]) == 25
        for told, did in zip(planned["results"], done["results"], strict=True):
            assert {**told, "ids": 0} == {**did, "ids": 0}
        await served.post("/tasks/undo", {"change_id": done["change_id"]})
        assert await titles(served) == before


@pytest.mark.promise("TASK-12")
async def test_operation_is_not_applied_to_a_task_that_changed_since_it_was_shown(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        await apply(served, create("One"), create("Two"))
        operations = [{"op": "delete", "id": "1"}, {"op": "bulk_complete", "where": {"text": "two"}}]
        shown = (await served.post("/llm/dryrun", {"operations": operations}))["results"]
        await served.patch("/tasks/1", {"title": "Important"})
        refused = await apply(served, *shown, status=409)
        assert refused["error"] == "changed"
        assert await titles(served) == ["Important", "Two"]
        done = await apply(served, shown[1])
        assert done["summary"]["completed"] == 1


@pytest.mark.promise("TASK-13")
async def test_same_key_sent_fifty_times_at_once_applies_once_also_after_a_restart(tmp_path: Path) -> None:
    answers: list[Any] = []

    async def send(served: Served) -> None:
        answers.append(await apply(served, create("Once"), key="key-1"))

    async with serving(tmp_path) as served, anyio.create_task_group() as group:
        for _ in range(50):
            group.start_soon(send, served)
    async with serving(tmp_path) as served:
        await send(served)
        assert await titles(served) == ["Once"]
        assert all(each == answers[0] for each in answers)
        conflict = await apply(served, create("Other"), key="key-1", status=409)
        assert conflict["error"] == "idempotency_conflict"
        assert (await apply(served, create("x"), key="k" * 201, status=400))["error"] == "invalid_request"
        assert await titles(served) == ["Once"]


@pytest.mark.promise("TASK-13")
async def test_two_servers_of_one_folder_apply_a_key_once(tmp_path: Path) -> None:
    async with serving(tmp_path) as one, serving(tmp_path) as two, anyio.create_task_group() as group:
        for number in range(20):
            group.start_soon(lambda served: apply(served, create("Once"), key="k"), (one, two)[number % 2])
    async with serving(tmp_path) as served:
        assert await titles(served) == ["Once"]


@pytest.mark.parametrize(
    "body",
    [
        "",
        "[]",
        "null",
        '{"operations": []}',
        '{"operations": "all"}',
        '{"operations": [1, null]}',
        '{"operations": [{"op": "explode"}]}',
        '{"operations": [{"op": "create", "title": ""}]}',
        '{"operations": [{"op": "create", "title": ["a"], "scheduled_for": {"x": 1}}]}',
        '{"operations": [{"op": "create", "title": "\\ud800"}]}',
        '{"operations": [{"op": "delete", "id": {"$ne": 1}}]}',
        '{"operations": [{"op": "bulk_delete", "where": {}}]}',
        '{"operations": [' + ",".join(['{"op":"create","title":"x"}'] * 5_000) + "]}",
        '{"operations": [' + '{"task":' * 400 + "1" + "}" * 400 + "]}",
        '{"operations": [{"op": "create", "title": "%s"}]}' % ("x" * 100_000),
    ],
)
@pytest.mark.promise("TASK-14")
async def test_operations_that_make_no_sense_are_refused_and_change_nothing(
    tmp_path: Path, body: str
) -> None:
    async with serving(tmp_path) as served:
        response = await served.client.post(
            "/api/llm/apply", content=body.encode(), headers={"content-type": "application/json"}
        )
        assert response.status_code == 400, response.text
        refused = response.json()
        assert refused["error"] == "invalid_operations"
        assert refused["detail"]
        assert "Traceback" not in response.text
        assert await titles(served) == []


@pytest.mark.promise("TASK-14")
async def test_body_of_ten_megabytes_is_refused_and_markup_stays_text(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        huge = {"operations": [create("x", notes="y" * 10_000_000)]}
        assert (await apply(served, *huge["operations"], status=413))["error"] == "too_large"
        title = '<script>alert(1)</script> "ünï" \u202e🦄'
        added = await served.post("/tasks", {"title": title}, 201)
        assert added["task"]["title"] == title
        assert (await served.get("/tasks/search", text="ALERT"))["total"] == 1


@pytest.mark.promise("TASK-15")
async def test_paths_without_a_workspace_name_the_paths_to_use_where_there_are_several(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path, names=("shop", "garden")) as served:
        await served.post("/w/garden/tasks", {"title": "Weed"}, 201)
        assert (await served.get("/w/garden/tasks"))["total"] == 1
        assert (await served.get("/w/shop/tasks"))["total"] == 0
        for path in ("/tasks", "/tasks/search", "/assistant/message/stream"):
            query = {"/tasks/search": {"text": "x"}, "/assistant/message/stream": {"message": "x"}}
            refused = await served.get(path, 404, **query.get(path, {}))
            assert refused["error"] == "not_found"
            assert "shop, garden" in refused["advice"]
        for path in ("/llm/dryrun", "/llm/apply"):
            assert (await served.post(path, {"operations": [create("x")]}, 404))["error"] == "not_found"
        assert (await served.post("/assistant/message", {"message": "x"}, 404))["error"] == "not_found"


@pytest.mark.promise("TASK-9")
async def test_task_is_promoted_to_a_checklist_and_to_an_intent(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        await served.post("/tasks", {"title": "Sort the shed", "notes": "first the tools"}, 201)
        done = await served.post("/tasks/1/promote", {"checklist": "PLAN.md"})
        assert done["change_id"]
        assert "- [ ] Sort the shed\n" in (served.folder / "PLAN.md").read_text()
        await served.post("/tasks/1/promote", {"checklist": "PLAN.md"}, 409)
        await served.post("/tasks/1/promote", {}, 409)
        await served.post("/intents", {"id": "INT-1", "scope": ["other/**"]}, 201)
        await served.post("/tasks/1/promote", {"intent": "INT-7", "scope": ["shed/**"]})
        intents = (await served.get("/intents"))["intents"]
        assert any(each["intent"]["name"] == "Sort the shed" for each in intents)


async def test_ten_thousand_tasks_are_listed_in_pages(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        app = await served.server.workspace().app()
        app.tasks.apply([create(f"Task {number}") for number in range(10_000)])
        page = await served.get("/tasks", limit="500", offset="9800")
        assert (page["total"], page["next"], len(page["groups"][0]["tasks"])) == (10_000, None, 200)
        assert len((await served.get("/tasks/search", text="task 99"))["tasks"]) == 50
