"""A conversation over HTTP: messages, approvals, questions, cancel, images, and every other command."""

from pathlib import Path

import anyio
import pytest

from tests.interfaces.http.serving import DEADLINE, events, serving
from tests.pictures import png

pytestmark = pytest.mark.anyio

WRITE = {"calls": [{"name": "write", "arguments": {"path": "new.txt", "text": "made\n"}}]}
ENDLESS = {"text": [f"word{number} " for number in range(100_000)], "chunk_delay_ms": 5}


async def test_rejected_approval_tells_the_model_why_and_changes_nothing(tmp_path: Path) -> None:
    async with serving(tmp_path, WRITE, {"text": "Then not."}) as served:
        session = await served.session(route="agent")
        sent = await served.post(f"/sessions/{session}/messages", {"text": "make it"}, 202)
        asked = (await served.until(session, "approval_asked", after=sent["seq"]))[-1].data["event"]
        detail = await served.get(f"/sessions/{session}")
        assert (detail["waits"], detail["running"]) == (True, True)
        path = f"/sessions/{session}/approvals/{asked['approval_id']}"
        await served.post(path, {"decision": "perhaps"}, 400)
        await served.post(path, {"decision": "reject", "note": "wrong place"}, 202)
        found = await served.until(session, "turn_finished", after=sent["seq"])
        refused = next(each for each in found if each.type == "tool_finished").data["event"]
        assert refused["status"] == "refused"
        assert "wrong place" in refused["content"]
        assert not (served.folder / "new.txt").exists()


async def test_question_of_the_model_is_answered(tmp_path: Path) -> None:
    ask = {"calls": [{"name": "ask_user", "arguments": {"question": "Red or blue?"}}]}
    async with serving(tmp_path, ask, {"when": "blue", "text": "Blue it is."}) as served:
        session = await served.session(route="agent")
        sent = await served.post(f"/sessions/{session}/messages", {"text": "paint it"}, 202)
        asked = (await served.until(session, "question_asked", after=sent["seq"]))[-1].data["event"]
        path = f"/sessions/{session}/questions/{asked['question_id']}"
        await served.post(path, {"answer": "blue"}, 202)
        found = await served.until(session, "turn_finished", after=sent["seq"])
        assert [each.data["event"]["text"] for each in found if each.type == "answered"][-1] == "Blue it is."
        await served.post(path, {"answer": "red"}, 404)


@pytest.mark.promise("CRED-8")
async def test_a_secret_is_taken_by_its_own_endpoint_alone(tmp_path: Path) -> None:
    ask = {"calls": [{"name": "credential_prompt", "arguments": {"name": "SHOP_TOKEN", "why": "orders"}}]}
    async with serving(tmp_path, ask, {"when": "stored", "text": "Good."}) as served:
        session = await served.session(route="agent")
        sent = await served.post(f"/sessions/{session}/messages", {"text": "list them"}, 202)
        asked = (await served.until(session, "question_asked", after=sent["seq"]))[-1].data["event"]
        path = f"/sessions/{session}/questions/{asked['question_id']}"
        secret = "swordfish-0123456789"
        assert "secret" in (await served.post(path, {"answer": secret}, 409))["error"]["message"]
        answered = await served.post(f"{path}/secret", {"value": secret}, 202)
        assert answered["command"]["answer"] == "stored"
        await served.until(session, "turn_finished", after=sent["seq"])
        assert (await served.get("/credentials"))["names"] == ["SHOP_TOKEN"]
        await served.post(f"{path}/secret", {"value": secret}, 409)


async def test_cancel_ends_the_turn(tmp_path: Path) -> None:
    async with serving(tmp_path, ENDLESS) as served:
        session = await served.session()
        sent = await served.post(f"/sessions/{session}/messages", {"text": "go on"}, 202)
        await served.until(session, "delta", after=sent["seq"])
        await served.post(f"/sessions/{session}/cancel", status=202)
        ended = (await served.until(session, "turn_finished", after=sent["seq"]))[-1]
        assert ended.data["event"]["reason"] == "cancelled"


async def test_plan_is_edited_as_text_and_only_if_it_is_the_one_that_was_read(tmp_path: Path) -> None:
    async with serving(tmp_path, {"text": "Hi."}) as served:
        session = await served.session()
        path = f"/sessions/{session}/plan"
        await served.get(path, 404)
        plan = {"objective": "One file", "steps": [{"description": "Write a.txt", "check": "test -f a.txt"}]}
        await served.post(f"/sessions/{session}/commands", {"type": "set_plan", "plan": plan}, 202)
        await served.until(session, "plan_changed")
        shown = await served.get(path)
        assert shown["text"] == "Objective: One file\n\n1. Write a.txt\n   check: test -f a.txt"
        await served.put(path, {"plan_id": "p_other", "text": shown["text"]}, 409)
        wrong = await served.put(path, {"plan_id": shown["plan_id"], "text": "Words."}, 409)
        assert "no steps" in wrong["error"]["message"]
        edited = shown["text"].replace("a.txt", "b.txt")
        sent = await served.put(path, {"plan_id": shown["plan_id"], "text": edited}, 202)
        await served.until(session, "plan_changed", after=sent["seq"])
        after = await served.get(path)
        assert (after["text"], after["approved"]) == (edited, False)


async def test_any_command_is_sent_by_its_type_and_a_wrong_one_says_where(tmp_path: Path) -> None:
    async with serving(tmp_path, {"text": "Hi."}) as served:
        session = await served.session()
        path = f"/sessions/{session}/commands"
        accepted = await served.post(path, {"type": "set_mode", "mode": "explore"}, 202)
        assert accepted["command"] == {"type": "set_mode", "mode": "explore"}
        await served.until(session, "mode_set", after=accepted["seq"])
        wrong = [{"type": "set_mode", "mode": "x"}, {"type": "nothing"}, {}, {"type": "rename"}, [], "x"]
        for body in wrong:
            error = (await served.post(path, body, 400))["error"]
            assert error["code"] == "invalid_request"
        error = (await served.post(path, {"type": "set_model", "model": "no/body"}, 409))["error"]
        assert error["code"] == "usage"
        for empty in ({"text": " "}, {"text": "x", "message_id": "no"}):
            await served.post(f"/sessions/{session}/messages", empty, 409)


async def test_image_is_stored_for_a_message_and_other_bytes_are_refused(tmp_path: Path) -> None:
    async with serving(tmp_path, {"text": "A picture."}) as served:
        bytes_ = {"content-type": "application/octet-stream"}
        response = await served.client.post("/api/images", content=png(3, 2), headers=bytes_)
        assert response.status_code == 201
        image = response.json()
        assert (image["media_type"], image["width"], image["height"]) == ("image/png", 3, 2)
        session = await served.session()
        sent = await served.post(
            f"/sessions/{session}/messages", {"text": "what is it?", "images": [image]}, 202
        )
        found = await served.until(session, "turn_finished", after=sent["seq"])
        message = next(each for each in found if each.type == "user_message").data["event"]
        assert [each["sha256"] for each in message["images"]] == [image["sha256"]]
        response = await served.client.post("/api/images", content=b"GIF89a", headers=bytes_)
        assert response.status_code == 409


async def test_end_of_the_server_interrupts_the_turn_and_ends_the_streams(tmp_path: Path) -> None:
    async with serving(tmp_path, ENDLESS, {"text": "Later."}) as served:
        session = await served.session()
        sent = await served.post(f"/sessions/{session}/messages", {"text": "go on"}, 202)
        async with anyio.create_task_group() as tasks:
            ended = anyio.Event()

            async def follow() -> None:
                async with events(served.client, session, after=sent["seq"]) as stream:
                    assert "turn_finished" not in [each.type async for each in stream]
                ended.set()

            tasks.start_soon(follow)
            await served.until(session, "delta", after=sent["seq"])
            served.ending.set()
            with anyio.fail_after(DEADLINE):
                await ended.wait()
    async with serving(tmp_path, ENDLESS, {"text": "Later."}) as served:
        found = await served.until(session, "turn_finished", after=sent["seq"])
        assert found[-1].data["event"]["reason"] == "interrupted"
