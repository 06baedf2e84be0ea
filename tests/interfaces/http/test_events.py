"""Server-sent events: none lost, none repeated, whoever is slow, cut off or killed."""

from pathlib import Path

import anyio
import pytest

from handrail.interfaces.http import event_feed
from handrail.interfaces.http.event_feed import EventFeed, Reader
from handrail.protocol.events import Delta, Nudged, Recorded
from handrail.protocol.ids import session_stream
from handrail.storage.event_log import NewRow
from tests.interfaces.http.serving import DEADLINE, TOKEN, Sent, Served, events, serving

pytestmark = pytest.mark.anyio

SLOW = {"text": [f"word{number} " for number in range(60)], "chunk_delay_ms": 5}


def ids(found: list[Sent]) -> list[int]:
    return [int(each.id) for each in found if each.id]


def text_of(found: list[Sent]) -> str:
    """The streamed text of the last message, put together as the document says."""
    texts: dict[str, str] = {}
    last = ""
    for each in found:
        if each.name == "delta" and each.data["kind"] == "text":
            last = each.data["message_id"]
            assert len(texts.get(last, "")) >= each.data["offset"]
            texts[last] = texts.get(last, "")[: each.data["offset"]] + each.data["text"]
    return texts.get(last, "")


@pytest.mark.promise("HTTP-4")
async def test_events_are_replayed_then_followed_with_the_text_as_it_streams(tmp_path: Path) -> None:
    async with serving(tmp_path, {"text": "First."}, SLOW) as served:
        session = await served.session()
        await served.turn(session, "one")
        sent = await served.post(f"/sessions/{session}/messages", {"text": "two"}, 202)
        found = await served.until(session, "turn_finished", after=sent["seq"])
        assert ids(found) == list(range(sent["seq"] + 1, sent["seq"] + 1 + len(ids(found))))
        whole = await served.until(session, "turn_finished")
        assert ids(whole) == list(range(1, 1 + len(ids(whole))))
        answer = next(each for each in found if each.type == "answered").data["event"]["text"]
        assert answer.startswith(text_of(found))
        assert len([each for each in found if each.name == "delta"]) > 3


@pytest.mark.promise("HTTP-4")
async def test_cut_connection_resumes_with_no_event_lost_or_repeated(tmp_path: Path) -> None:
    async with serving(tmp_path, SLOW) as served:
        session = await served.session()
        await served.post(f"/sessions/{session}/messages", {"text": "go"}, 202)
        found: list[Sent] = []
        last = ""
        done = False
        with anyio.fail_after(DEADLINE):
            while not done:
                count = 0
                async with events(served.client, session, last_id=last) as stream:
                    async for each in stream:
                        found.append(each)
                        last, count = each.id or last, count + 1
                        done = each.type == "turn_finished"
                        if count == 4 or done:
                            break  # the connection is closed here
        assert ids(found) == list(range(1, 1 + len(ids(found))))


@pytest.mark.promise("HTTP-4")
async def test_text_that_streamed_before_a_reader_came_is_whole(tmp_path: Path) -> None:
    async with serving(tmp_path, SLOW) as served:
        session = await served.session()
        sent = await served.post(f"/sessions/{session}/messages", {"text": "go"}, 202)
        before: list[Sent] = []
        async with events(served.client, session, after=sent["seq"]) as stream:
            async for each in stream:
                before.append(each)
                if "word9 " in text_of(before):
                    break
            late = await served.until(session, "answered", after=sent["seq"])
        answer = late[-1].data["event"]["text"]
        assert "word9 " in text_of(late)
        assert answer.startswith(text_of(late))


@pytest.mark.promise("HTTP-5")
async def test_reader_that_takes_nothing_is_dropped_and_holds_up_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_feed, "SEND_SECONDS", 0.3)
    large = {"text": ["x" * 200_000] * 40}
    async with serving(tmp_path, large, {"text": "Second."}) as served:
        session = await served.session()
        port = served.server.access.port
        async with await anyio.connect_tcp("127.0.0.1", port) as dead:
            head = f"GET /api/sessions/{session}/events HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
            await dead.send(f"{head}Authorization: Bearer {TOKEN}\r\n\r\n".encode())
            await dead.receive(1)
            path = f"/sessions/{session}"
            for number in (1, 2):
                await served.post(f"{path}/messages", {"text": "more"}, 202)
                with anyio.fail_after(DEADLINE):
                    while (now := await served.get(path))["running"] or now["turns"] < number:
                        await anyio.sleep(0.01)
            with anyio.fail_after(DEADLINE), pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)):
                while True:  # what the kernel had taken for it, then the end
                    await dead.receive()


async def test_silence_is_filled_with_comments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_feed, "HEARTBEAT_SECONDS", 0.02)
    async with serving(tmp_path) as served:
        session = await served.session()
        async with served.client.stream("GET", f"/api/sessions/{session}/events") as response:
            beats = 0
            with anyio.fail_after(DEADLINE):
                async for line in response.aiter_lines():
                    beats += line == ": heartbeat"
                    if beats == 3:
                        break


async def test_place_after_the_last_event_is_refused(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        session = await served.session()
        path = f"/sessions/{session}/events"
        assert (await served.get(path, 409, after="999"))["error"]["code"] == "unknown_event"
        for wrong in ("-1", "x", "1.5", str(10**30)):
            assert (await served.get(path, 400, after=wrong))["error"]["code"] == "invalid_request"
            response = await served.client.get(f"/api{path}", headers={"last-event-id": wrong})
            assert response.status_code == 400


@pytest.mark.promise("HTTP-6")
async def test_two_readers_and_two_servers_stay_in_step_and_either_answers(tmp_path: Path) -> None:
    script = (
        {"calls": [{"name": "write", "arguments": {"path": "new.txt", "text": "made\n"}}]},
        {"text": "Made it."},
    )
    async with serving(tmp_path, *script) as one, serving(tmp_path, *script) as two:
        session = await one.session()
        sent = await one.post(f"/sessions/{session}/messages", {"text": "make it"}, 202)
        asked = (await two.until(session, "approval_asked", after=sent["seq"]))[-1].data["event"]
        state = await two.get(f"/sessions/{session}")
        assert [each["approval_id"] for each in state["approvals"]] == [asked["approval_id"]]
        path = f"/sessions/{session}/approvals/{asked['approval_id']}"
        await two.post(path, {"decision": "once"}, 202)
        histories: list[list[int]] = []

        async def follow(served: Served) -> None:
            histories.append(ids(await served.until(session, "turn_finished")))

        async with anyio.create_task_group() as tasks:
            for served in (one, two, one, two):
                tasks.start_soon(follow, served)
        assert len(set(map(tuple, histories))) == 1
        assert (one.folder / "new.txt").read_text() == "made\n"
        assert (await one.post(path, {"decision": "once"}, 404))["error"]["code"] == "not_found"


async def test_session_without_reader_and_work_is_left_to_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path, {"text": "Hello."}) as served:
        session = await served.session()
        await served.turn(session, "hi")
        app = await served.server.workspace().app()
        with anyio.fail_after(DEADLINE):
            while served.server.workspace().feeds.followed():
                await anyio.sleep(0.01)  # the server notices that the reader has gone
        assert app.is_holder(session)
        async with events(served.client, session) as stream:
            await anext(stream)
            app.release_idle(keep=served.server.workspace().feeds.followed())
            assert app.is_holder(session)
        app.release_idle(keep=())
        assert not app.is_holder(session)


async def test_session_that_cannot_be_read_ends_its_stream_with_the_problem(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        session = await served.session()
        app = await served.server.workspace().app()
        app.detach(session)
        app.log.append(session_stream(session), [NewRow("of_the_future", 99, "{}")])
        async with events(served.client, session) as stream:
            found = [each async for each in stream]
        assert found[-1].type == "problem"
        assert found[-1].data["code"] == "storage"
        assert "another version" in found[-1].data["message"]


# The feed itself: where a reader comes in, and what it is sent when it is behind


class LogOfSession:
    """The two questions that a reader asks the application."""

    def __init__(self) -> None:
        self.events: list[Recorded] = []
        self.live: list[Delta] = []

    def read_events(self, _session_id: str, after: int, limit: int) -> list[Recorded]:
        return self.events[after : after + limit]

    def live_text(self, _session_id: str) -> list[Delta]:
        return self.live


def recorded(seq: int) -> Recorded:
    return Recorded("session:s", seq, 0.0, Nudged(turn_id="t", text=f"event {seq}"))


def seqs(data: bytes) -> list[int]:
    return [int(line.removeprefix("id: ")) for line in data.decode().splitlines() if line.startswith("id: ")]


def test_reader_that_falls_behind_the_feed_goes_back_to_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_feed, "FEED_FRAMES", 10)
    log, feed = LogOfSession(), EventFeed("s", 0)
    reader = Reader(log, feed, 0)  # type: ignore[arg-type]
    got = seqs(reader.next())
    for seq in range(1, 1001):
        log.events.append(recorded(seq))
        feed.add(log.events[-1])
        if seq % 7 == 0 and seq < 300:
            got += seqs(reader.next())
    while data := reader.next():
        got += seqs(data)
    assert got == list(range(1, 1001))
    assert feed.end - feed.start == 10


def test_reader_gets_each_character_once_however_feed_and_reader_interleave() -> None:
    log, feed = LogOfSession(), EventFeed("s", 0)
    log.events.append(recorded(1))
    log.live = [Delta("session:s", "m", "text", 0, "abcdef")]
    # The feed is behind: it has neither the event nor the end of the text.
    feed.add(Delta("session:s", "m", "text", 0, "ab"))
    reader = Reader(log, feed, 0)  # type: ignore[arg-type]
    assert seqs(reader.next()) == [1]
    assert b'"offset":0,"text":"abcdef"' in reader.next()
    feed.add(recorded(1))
    feed.add(Delta("session:s", "m", "text", 2, "cdef"))
    feed.add(Delta("session:s", "m", "text", 4, "efgh"))
    feed.add(recorded(2))
    data = reader.next()
    assert seqs(data) == [2]
    assert data.count(b"event: delta") == 1
    assert b'"offset":6,"text":"gh"' in data
    assert reader.next() == b""
