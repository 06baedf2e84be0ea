"""The task assistant over HTTP: order of events, early operations, repairs, heartbeats, resuming, errors."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from handrail.interfaces.http.api import assistant
from tests.interfaces.http.serving import DEADLINE, TOKEN, Sent, Served, parsed, serving

pytestmark = pytest.mark.anyio

ADD = {"op": "create", "title": "Pay rent", "scheduled_for": "2031-12-01", "time": "9am"}
SLOW_SUMMARY = {"when": "Output of check", "text": ["{"] + [" "] * 400, "chunk_delay_ms": 50}


@pytest.fixture(autouse=True)
def routed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HANDRAIL_AUTO_ROUTE", "on")


def proposed(*operations: Any, answer: str = "", question: str = "", **more: Any) -> dict[str, Any]:
    return {"text": json.dumps({"answer": answer, "operations": operations, "question": question}), **more}


def summarised(text: str, **more: Any) -> dict[str, Any]:
    return {"when": "Output of check", "text": json.dumps({"text": text}), **more}


@asynccontextmanager
async def stream(served: Served, last_id: str = "", **query: str) -> AsyncIterator[AsyncIterator[Sent]]:
    headers = {"last-event-id": last_id} if last_id else {}
    path = "/api/assistant/message/stream"
    with anyio.fail_after(DEADLINE):
        async with served.client.stream("GET", path, params=query, headers=headers) as response:
            assert response.status_code == 200, await response.aread()
            assert response.headers["content-type"] == "text/event-stream"
            yield parsed(response.aiter_lines())


async def whole(served: Served, last_id: str = "", **query: str) -> list[Sent]:
    async with stream(served, last_id, **query) as events:
        return [each async for each in events]


def shape(found: list[Sent]) -> list[str]:
    return [each.data["stage"] if each.name == "stage" else each.name for each in found]


async def titles(served: Served) -> list[str]:
    groups = (await served.get("/tasks"))["groups"]
    return [each["task"]["title"] for each in groups[0]["tasks"]]


@pytest.mark.promise("TASK-16")
async def test_answer_is_streamed_in_order_and_applied_only_by_apply(tmp_path: Path) -> None:
    async with serving(tmp_path, proposed(ADD), summarised("Adds the rent.")) as served:
        found = await whole(served, message="remind me to pay the rent on 1 december 2031", request_id="r-1")
        order = ["routing", "proposing", "validating", "ops", "summarizing", "summary", "result", "done"]
        assert shape(found) == order
        assert [each.id for each in found] == [f"r-1:{number}" for number in range(1, 9)]
        by_name = {each.name: each.data for each in found}
        ops = by_name["ops"]
        assert (ops["version"], ops["validCount"], ops["invalidCount"]) == (1, 1, 0)
        assert (ops["operations"][0]["kind"], ops["operations"][0]["errors"]) == ("event", [])
        assert by_name["summary"] == {"text": "Adds the rent."}
        assert by_name["result"]["text"] == "Adds the rent."
        assert by_name["result"]["operations"] == ops["operations"]
        assert await titles(served) == []
        session = await served.get(f"/sessions/{by_name['result']['session']}")
        assert (session["running"], session["waits"]) == (False, False)
        await served.post("/llm/apply", {"operations": by_name["result"]["operations"]})
        assert await titles(served) == ["Pay rent"]


@pytest.mark.promise("TASK-16")
async def test_operations_come_before_the_summary_is_written(tmp_path: Path) -> None:
    async with serving(tmp_path, proposed(ADD), SLOW_SUMMARY) as served:
        seen: list[Sent] = []
        async with stream(served, message="remind me to pay the rent", request_id="r") as events:
            async for each in events:
                seen.append(each)
                if each.name == "ops":
                    break
        session = (await served.get("/sessions"))["sessions"][0]["id"]
        assert (await served.get(f"/sessions/{session}"))["running"]
        await served.post(f"/sessions/{session}/cancel", status=202)
        rest = await whole(served, seen[-1].id, message="remind me to pay the rent", request_id="r")
        assert shape(rest)[-2:] == ["error", "done"]
        assert rest[-2].data["error"] == "assistant_failure"


@pytest.mark.promise("TASK-16")
async def test_wrong_operations_are_repaired_once_and_come_as_version_two(tmp_path: Path) -> None:
    wrong = {"op": "update", "id": "99", "title": "x"}
    script = (proposed(ADD, wrong), proposed(ADD, wrong, when="99"), summarised("Adds the rent."))
    async with serving(tmp_path, *script) as served:
        found = await whole(served, message="remind me to pay the rent, and rename 99 to x")
        assert shape(found) == [
            *("routing", "proposing", "validating", "ops", "repairing", "validating", "ops"),
            *("summarizing", "summary", "result", "done"),
        ]
        ops = [each.data for each in found if each.name == "ops"]
        assert [each["version"] for each in ops] == [1, 2]
        assert (ops[1]["validCount"], ops[1]["invalidCount"]) == (1, 1)
        assert "99" in ops[1]["operations"][1]["errors"][0]


@pytest.mark.promise("TASK-17")
async def test_cut_stream_resumes_with_the_rest_exactly_once_and_starts_nothing(tmp_path: Path) -> None:
    slow = summarised("Adds the rent.")
    script = (proposed(ADD), slow | {"text": [*slow["text"]], "chunk_delay_ms": 5})
    message = {"message": "remind me to pay the rent", "request_id": "again"}
    async with serving(tmp_path, *script) as served:
        found: list[Sent] = []
        last = ""
        while not found or found[-1].name != "done":
            async with stream(served, last, **message) as events:
                async for each in events:  # one event on each connection, which is then closed
                    if each.name != "heartbeat":
                        found.append(each)
                        last = each.id
                        break
        assert [each.id for each in found] == [f"again:{number}" for number in range(1, 9)]
        assert await whole(served, **message) == found
        assert await whole(served, "again:7", message=message["message"]) == found[7:]
        answer = await served.post("/assistant/message", message)
        assert answer == found[6].data
        sessions = (await served.get("/sessions"))["sessions"]
        assert len(sessions) == 1
        other = await served.post("/assistant/message", message | {"message": "something else"}, 409)
        assert other["error"] == "idempotency_conflict"
    async with serving(tmp_path) as restarted:
        assert await whole(restarted, **message) == found


@pytest.mark.promise("TASK-17")
async def test_killed_connection_does_not_stop_the_answer_or_leave_a_reader(tmp_path: Path) -> None:
    async with serving(tmp_path, proposed(ADD, chunk_delay_ms=5), summarised("Adds the rent.")) as served:
        port = served.server.access.port
        path = "/api/assistant/message/stream?message=remind%20me%20to%20pay&request_id=r"
        async with await anyio.connect_tcp("127.0.0.1", port) as dying:
            head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
            await dying.send(head.encode())
            await dying.receive(1)
        again = {"message": "remind me to pay", "request_id": "r"}
        assert (await served.post("/assistant/message", again))["text"] == "Adds the rent."
        assert len((await served.get("/sessions"))["sessions"]) == 1


@pytest.mark.promise("TASK-17")
async def test_same_request_sent_twenty_times_at_once_is_answered_once(tmp_path: Path) -> None:
    answers: list[Any] = []
    async with serving(tmp_path, proposed(ADD), summarised("Adds the rent.")) as served:

        async def send() -> None:
            body = {"message": "remind me to pay the rent", "request_id": "one"}
            answers.append(await served.post("/assistant/message", body))

        async with anyio.create_task_group() as group:
            for _ in range(20):
                group.start_soon(send)
        assert len(answers) == 20
        assert all(each == answers[0] for each in answers)
        session = await served.get(f"/sessions/{answers[0]['session']}")
        assert session["turns"] == 1


@pytest.mark.promise("TASK-16")
async def test_silence_of_the_model_is_filled_with_heartbeats(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assistant, "HEARTBEAT_SECONDS", 0.02)
    async with serving(tmp_path, proposed(ADD), SLOW_SUMMARY) as served:
        beats = 0
        async with stream(served, message="remind me to pay the rent") as events:
            async for each in events:
                beats += each.name == "heartbeat" and each.id == ""
                if beats == 3:
                    break


@pytest.mark.promise("TASK-16")
async def test_unclear_message_is_asked_about_and_a_selection_goes_straight_to_tasks(tmp_path: Path) -> None:
    question = {
        "decision": "clarify",
        "confidence": 0.9,
        "question": "Which one?",
        "options": [{"id": "1", "title": "Milk"}, {"id": "2", "title": "Bread"}],
    }
    done = proposed({"op": "complete", "id": "2"}, when="complete it")
    script = ({"text": json.dumps(question)}, done, summarised("Completes Bread."))
    async with serving(tmp_path, *script) as served:
        for title in ("Milk", "Bread"):
            await served.post("/tasks", {"title": title}, 201)
        unclear = {"message": "that thing from before"}
        asked = await served.post("/assistant/message", unclear)
        assert (asked["requiresClarification"], asked["question"]) == (True, "Which one?")
        assert [each["id"] for each in asked["options"]] == ["1", "2"]
        selection = {"ids": ["2"], "date": None, "priority": None}
        clarify = {"question": "Which one?", "selection": selection}
        body = {"message": "complete it", "options": {"clarify": clarify}, "session": asked["session"]}
        answer = await served.post("/assistant/message", body)
        assert answer["session"] == asked["session"]
        assert [each["op"] for each in answer["operations"]] == [{"op": "complete", "id": "2"}]
        events = (await served.get(f"/sessions/{asked['session']}/log"))["events"]
        picked = [each["event"] for each in events if each["event"]["type"] == "routed"][-1]
        assert (picked["by"], picked["decision"]["where"]["ids"]) == ("answer", ["2"])


@pytest.mark.promise("TASK-16")
async def test_question_of_the_assistant_comes_as_clarify(tmp_path: Path) -> None:
    async with serving(tmp_path, proposed(question="Which day?")) as served:
        found = await whole(served, message="remind me to pay the rent", mode="tasks", request_id="r")
        assert shape(found)[-2:] == ["clarify", "done"]
        session = (await served.get("/sessions"))["sessions"][0]["id"]
        ids = {"session": session, "request_id": "r"}
        assert found[-2].data == {"question": "Which day?", "options": [], **ids}


@pytest.mark.promise("TASK-16")
async def test_mixed_message_is_answered_in_both_parts(tmp_path: Path) -> None:
    script = (proposed(ADD, answer="Nothing is due."), summarised("Adds the rent."))
    async with serving(tmp_path, *script) as served:
        body = {"message": "What is due today? And add a task to pay the rent", "options": {"mode": "tasks"}}
        answer = await served.post("/assistant/message", body)
        expected = "**Answer**\n\nNothing is due.\n\n**Proposed changes**\n\nAdds the rent."
        assert answer["text"] == expected
        assert len(answer["operations"]) == 1


@pytest.mark.promise("TASK-16")
async def test_request_for_work_on_files_is_answered_and_changes_none(tmp_path: Path) -> None:
    async with serving(tmp_path, {"text": "I only keep your list."}) as served:
        answer = await served.post("/assistant/message", {"message": "fix the bug in main.py"})
        assert (answer["text"], answer["operations"]) == ("I only keep your list.", [])
        events = (await served.get(f"/sessions/{answer['session']}/log"))["events"]
        run = next(each["event"] for each in events if each["event"]["type"] == "run_started")
        assert (run["pipeline"], run["reads_only"]) == ("chat", True)


async def test_later_message_of_a_session_and_a_transcript_are_understood(tmp_path: Path) -> None:
    friday = {**ADD, "scheduled_for": "2031-12-05"}
    script = (proposed(ADD), summarised("Adds it."), proposed(friday, when="Pay rent"), summarised("Friday."))
    async with serving(tmp_path, *script) as served:
        first = await served.post("/assistant/message", {"message": "remind me to pay the rent"})
        body = {"message": "make it the 5th", "session": first["session"], "options": {"mode": "tasks"}}
        second = await served.post("/assistant/message", body)
        assert second["operations"][0]["after"]["scheduled_for"] == "2031-12-05"
    (tmp_path / "other").mkdir()
    said = [{"role": "user", "text": "the zebra report"}, {"role": "assistant", "text": "When?"}]
    async with serving(tmp_path / "other", proposed(ADD, when="zebra report"), summarised("Ok.")) as served:
        body = {"message": "on 1 december", "transcript": said, "options": {"mode": "tasks"}}
        assert (await served.post("/assistant/message", body))["text"] == "Ok."
        query = {"message": "on 2 december", "mode": "tasks"}
        for told in (json.dumps(said), "user: the zebra report"):
            found = await whole(served, **query, transcript=told)
            assert found[-2].data["text"] == "Ok."
        body["transcript"] = "user: the zebra report"
        assert (await served.post("/assistant/message", body))["text"] == "Ok."


@pytest.mark.promise("TASK-14")
@pytest.mark.parametrize(
    "body",
    [
        {},
        [],
        {"message": ""},
        {"message": "  \n"},
        {"message": 7},
        {"message": "x" * 20_001},
        {"message": "x", "request_id": "no spaces please"},
        {"message": "x", "options": {"mode": "root"}},
        {"message": "x", "options": {"clarify": {"selection": {"date": "soon"}}}},
        {"message": "x", "transcript": [{"role": "root", "text": "all of it"}]},
    ],
)
async def test_message_that_cannot_be_read_is_refused_in_both_forms(tmp_path: Path, body: Any) -> None:
    async with serving(tmp_path) as served:
        refused = await served.post("/assistant/message", body, 400)
        assert refused["error"] == "invalid_message"
        given = body if isinstance(body, dict) and body.get("message") != 7 else {}
        query = {**given, **given.get("options", {})}
        query.pop("options", None)
        texts = {name: each if isinstance(each, str) else json.dumps(each) for name, each in query.items()}
        answer = await served.client.get("/api/assistant/message/stream", params=texts)
        assert (answer.status_code, answer.json()["error"]) == (400, "invalid_message")
        assert (await served.get("/sessions"))["sessions"] == []


@pytest.mark.promise("TASK-14")
async def test_failing_model_gives_502_and_an_error_event_without_a_stack_trace(tmp_path: Path) -> None:
    async with serving(tmp_path, model="scripted/nowhere.json") as served:
        response = await served.client.post("/api/assistant/message", json={"message": "remind me to pay"})
        assert response.status_code == 502, response.text
        assert response.json()["error"] == "assistant_failure"
        assert response.json()["detail"]
        assert "Traceback" not in response.text
        found = await whole(served, message="remind me to pay")
        assert shape(found)[-2:] == ["error", "done"]
        assert found[-2].data["error"] == "assistant_failure"


async def test_unknown_and_busy_sessions_and_foreign_places_are_refused(tmp_path: Path) -> None:
    async with serving(tmp_path, proposed(ADD), SLOW_SUMMARY) as served:
        body = {"message": "remind me to pay"}
        unknown = await served.post("/assistant/message", body | {"session": "s_none"}, 404)
        assert unknown["error"] == "not_found"
        async with stream(served, **body, request_id="r") as events:
            async for each in events:
                if each.name == "ops":
                    break
        session = (await served.get("/sessions"))["sessions"][0]["id"]
        busy = await served.post("/assistant/message", body | {"session": session}, 409)
        assert busy["error"] == "usage"
        for wrong in ("7", "other:1", "r:x", "r:-1"):
            response = await served.client.get(
                "/api/assistant/message/stream",
                params=body | {"request_id": "r"},
                headers={"last-event-id": wrong},
            )
            assert response.status_code == 400
