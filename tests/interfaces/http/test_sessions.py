"""Sessions over HTTP: made, listed, found, changed, copied, hidden, moved."""

from pathlib import Path

import pytest

from tests.interfaces.http.serving import serving

pytestmark = pytest.mark.anyio


async def test_session_is_created_with_settings_renamed_deleted_and_restored(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        session = await served.session(mode="plan")
        path = f"/sessions/{session}"
        assert (await served.get(path))["mode"] == "plan"
        changed = await served.patch(path, {"title": "  Fix   the cart ", "mode": "edit", "route": "agent"})
        assert (changed["title"], changed["mode"], changed["route"]) == ("Fix the cart", "edit", "agent")
        assert (await served.delete(path))["deleted"]
        assert (await served.get("/sessions"))["sessions"] == []
        assert len((await served.get("/sessions", deleted="true"))["sessions"]) == 1
        assert not (await served.post(f"{path}/restore"))["deleted"]
        await served.session()
        found = (await served.get("/sessions", search="CART fix"))["sessions"]
        assert [each["id"] for each in found] == [session]


async def test_sessions_are_sorted_by_status_and_label(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        one, two = await served.session(), await served.session()
        changed = await served.patch(f"/sessions/{one}", {"status": "done", "add_labels": ["cart", "v2"]})
        assert (changed["status"], changed["labels"]) == ("done", ["cart", "v2"])
        await served.patch(f"/sessions/{two}", {"status": "archived", "add_labels": ["cart"]})

        async def listed(**query: str) -> set[str]:
            return {each["id"] for each in (await served.get("/sessions", **query))["sessions"]}

        assert await listed() == {one}
        assert await listed(status="archived") == {two}
        assert await listed(label="v2") == {one}
        assert await listed(label="other") == set()
        changed = await served.patch(f"/sessions/{one}", {"remove_labels": ["cart"]})
        assert changed["labels"] == ["v2"]
        await served.patch(f"/sessions/{one}", {"remove_labels": ["cart"]}, 409)
        await served.patch(f"/sessions/{one}", {"status": "lost"}, 400)


async def test_wrong_setting_is_refused_and_leaves_no_session(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        unlike_document = [{"mode": "yolo"}, {"other": 1}, {"mode": None}, {"model": ""}]
        impossible = [{"model": "nobody/knows"}, {"route": "nowhere"}, {"intent": "INT-1"}]
        for wrong in (*unlike_document, *impossible):
            status, code = (400, "invalid_request") if wrong in unlike_document else (409, "usage")
            error = (await served.post("/sessions", wrong, status))["error"]
            assert error["code"] == code
            assert error["message"]
            assert error["advice"]
        assert (await served.get("/sessions"))["sessions"] == []


async def test_unknown_session_is_not_found(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        for name in ("s_none", "..", "%2e%2e%2fetc", "workspace", "s_none/todos"):
            response = await served.client.get(f"/api/sessions/{name}")
            assert response.status_code in (404, 405), name


async def test_session_is_forked_exported_and_imported_whole(tmp_path: Path) -> None:
    async with serving(tmp_path, {"text": "The answer."}) as served:
        session = await served.session()
        await served.turn(session, "Tell me something")
        fork = await served.post(f"/sessions/{session}/fork", {"turn": 1}, 201)
        assert (fork["copied"], fork["turns"]) == ("fork", 1)
        exported = await served.client.get(f"/api/sessions/{session}/export")
        assert exported.headers["content-disposition"].startswith("attachment")
        bytes_ = {"content-type": "application/octet-stream"}
        response = await served.client.post("/api/sessions/import", content=exported.content, headers=bytes_)
        assert response.status_code == 201
        imported = response.json()
        assert (imported["copied"], imported["title"]) == ("import", "Tell me something")
        response = await served.client.post("/api/sessions/import", content=b"\xff\x00", headers=bytes_)
        assert response.status_code == 409
        assert response.json()["error"]["message"].startswith("The file is not an exported session")
        listed = (await served.get("/sessions"))["sessions"]
        assert {each["id"] for each in listed} == {session, fork["id"], imported["id"]}


async def test_text_in_a_session_is_found_in_the_log(tmp_path: Path) -> None:
    async with serving(tmp_path, {"text": "It is in the Basement."}, {"text": "Nothing."}) as served:
        session = await served.session()
        await served.turn(session, "Where is the boiler?")
        await served.turn(session, "Thanks")
        found = (await served.get(f"/sessions/{session}/search", text="basement"))["matches"]
        assert [each["type"] for each in found] == ["answered"]
        assert "in the Basement" in found[0]["excerpt"]
        page = await served.get(f"/sessions/{session}/log", after=str(found[0]["seq"] - 1), limit="1")
        assert page["events"][0]["event"]["text"] == "It is in the Basement."
        assert page["last"] > found[0]["seq"]


async def test_several_workspaces_have_addresses_of_their_own(tmp_path: Path) -> None:
    names = ("shop", "other/shop")
    async with serving(tmp_path, {"text": "Hi."}, names=names) as served:
        listed = (await served.get("/workspaces"))["workspaces"]
        assert [each["name"] for each in listed] == ["shop", "shop-2"]
        created = await served.post("/w/shop-2/sessions", {}, 201)
        assert (await served.get("/w/shop/sessions"))["sessions"] == []
        assert (await served.get(f"/w/shop-2/sessions/{created['id']}"))["id"] == created["id"]
        await served.get(f"/w/shop/sessions/{created['id']}", 404)
        assert "shop-2" in (await served.get("/sessions", 404))["error"]["advice"]
        await served.get("/w/nothing/sessions", 404)


async def test_todo_is_completed_by_the_user(tmp_path: Path) -> None:
    todos = {"todos": [{"text": "first"}, {"text": "second"}]}
    call = {"calls": [{"name": "todos", "arguments": todos}]}
    async with serving(tmp_path, call, {"text": "Planned."}) as served:
        session = await served.session(mode="edit", route="agent")
        await served.turn(session, "plan it")
        found = (await served.get(f"/sessions/{session}/todos"))["todos"]
        assert [each["done"] for each in found] == [False, False]
        path = f"/sessions/{session}/todos/{found[1]['id']}/complete"
        assert [each["done"] for each in (await served.post(path))["todos"]] == [False, True]
        await served.post(f"/sessions/{session}/todos/none/complete", status=404)


async def test_place_after_the_last_event_is_an_empty_page_and_not_damage(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        session = await served.session()
        last = (await served.get(f"/sessions/{session}/log"))["last"]
        for after in (last, last + 1, 2**53 - 1, 2**53):
            page = await served.get(f"/sessions/{session}/log", after=str(after), limit="200")
            assert page == {"events": [], "last": last}, after
        await served.get(f"/sessions/{session}/log", 400, after=str(2**53 + 1))
        await served.get(f"/sessions/{session}/events", 409, after=str(2**53))
        pages = f"/w/workspace/s/{session}"
        for path in ("part/run?start={}", "earlier?before={}"):
            response = await served.client.get(f"{pages}/{path.format(10**15 - 1)}")
            assert response.status_code == 200, path
        for path in ("feed?after={}", "feed?start={}"):
            response = await served.client.get(f"{pages}/{path.format(10**15 - 1)}")
            assert response.status_code == 404, path
