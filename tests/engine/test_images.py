"""Pictures: attached by a mention or by the user's own hand, kept as blobs, and shown to models that see."""

from pathlib import Path
from typing import Any

import pytest

from handrail.models.model import ToolResult, UserTurn
from handrail.protocol.commands import SendMessage
from handrail.protocol.errors import UsageProblem
from handrail.protocol.events import RequestStarted, ToolFinished, TurnFinished, UserMessage
from tests.engine.conversation import call, conversation, words
from tests.pictures import jpeg, png

pytestmark = pytest.mark.anyio

DONE: dict[str, Any] = {"text": "I see.", "when": ""}
REFUSED = {"kind": "fix_request", "message": "Could not process image", "times": 1}


@pytest.mark.promise("IMG-3")
async def test_a_mentioned_picture_is_seen_by_the_model_and_only_its_hash_is_in_the_log(
    tmp_path: Path,
) -> None:
    data = png(800, 600)
    (tmp_path / "shot.png").write_bytes(data)
    (tmp_path / "a.py").write_text("x = 1\n")
    async with conversation(tmp_path, [DONE], images=True) as talk:
        await talk.turn("what is in @shot.png and in @a.py?")
        event = talk.all(UserMessage)[-1]
        assert [(image.name, image.width, image.height) for image in event.images] == [("shot.png", 800, 600)]
        assert event.unattached == ()
        assert "### shot.png [picture: PNG, 800 x 600]" in event.attached
        assert talk.app.log.blob(event.images[0].sha256) == data
        rows = talk.app.log.read(f"session:{talk.id}")
        assert sum(len(row.data) for row in rows) < 6_000
        assert talk.all(RequestStarted)[-1].prompt_tokens_estimate < 5_000
    asked = talk.requests[-1].messages[0]
    assert isinstance(asked, UserTurn)
    assert [(image.media_type, image.data) for image in asked.images] == [("image/png", data)]
    assert "x = 1" in asked.text


@pytest.mark.promise("IMG-4")
async def test_with_a_blind_model_the_user_is_told_and_the_model_is_told_not_to_guess(tmp_path: Path) -> None:
    (tmp_path / "shot.png").write_bytes(png())
    async with conversation(tmp_path, [DONE]) as talk:
        await talk.turn("what is in @shot.png?")
        (told,) = talk.all(UserMessage)[-1].unattached
    assert "scripted/test cannot see pictures" in told
    assert "/model" in told
    asked = talk.requests[-1].messages[0]
    assert isinstance(asked, UserTurn)
    assert asked.images == ()
    assert "You cannot see pictures" in asked.text
    async with conversation(tmp_path, [DONE, DONE], images=True, session=talk.id) as seeing:
        await seeing.until(TurnFinished)
        await seeing.turn("and now?")
        first = seeing.requests[-1].messages[0]
    assert isinstance(first, UserTurn)
    assert len(first.images) == 1


@pytest.mark.promise("IMG-2")
async def test_pictures_that_cannot_be_used_are_told_one_by_one_and_the_message_goes_on(
    tmp_path: Path,
) -> None:
    root = tmp_path / "ws"
    root.mkdir()
    (tmp_path / "outside.png").write_bytes(png())
    (root / "link.png").symlink_to(tmp_path / "outside.png")
    (root / "broken.png").write_bytes(png()[:-12])
    for number in range(12):
        (root / f"{number}.png").write_bytes(png(seed=b"%d" % number))
    named = " ".join(f"@{number}.png" for number in range(12))
    async with conversation(root, [DONE], images=True) as talk:
        await talk.turn(f"see @link.png @../outside.png @broken.png {named}")
        event = talk.all(UserMessage)[-1]
    assert len(event.images) == 10
    told = "\n".join(event.unattached)
    assert "link.png: outside of this folder" in told
    assert "../outside.png: outside of this folder" in told
    assert "broken.png cannot be used as an image" in told
    assert "10.png: at most 10 pictures" in told
    assert "11.png: at most 10 pictures" in told


@pytest.mark.promise("IMG-7")
async def test_a_picture_outside_is_the_users_to_attach_and_never_the_models(tmp_path: Path) -> None:
    root = tmp_path / "ws"
    root.mkdir()
    outside = tmp_path / "outside.jpg"
    outside.write_bytes(jpeg(640, 480))
    answers = [call("read", path=str(outside)) | {"when": "read it"}, DONE]
    async with conversation(root, answers, images=True) as talk:
        image = talk.app.images.named(outside)
        await talk.send(SendMessage(text="what is this?", images=(image,)))
        await talk.until(TurnFinished)
        assert talk.all(UserMessage)[-1].images == (image,)
        asked = talk.requests[-1].messages[0]
        assert isinstance(asked, UserTurn)
        assert asked.images[0].data == jpeg(640, 480)
        with pytest.raises(UsageProblem, match="not a PNG"):
            talk.app.images.named(Path("/etc/passwd"))
        with pytest.raises(UsageProblem, match="does not exist"):
            talk.app.images.named(tmp_path / "missing.png")
    async with conversation(root, answers, images=True, answerable=False) as alone:
        await alone.turn("read it")
        finished = alone.all(ToolFinished)[-1]
        assert finished.status == "refused"
        assert finished.images == ()


@pytest.mark.promise("IMG-3")
async def test_a_picture_that_the_model_reads_comes_with_the_result(tmp_path: Path) -> None:
    (tmp_path / "shot").write_bytes(png(30, 40))
    async with conversation(
        tmp_path, [call("read", path="shot") | {"when": "look"}, DONE], images=True
    ) as talk:
        await talk.turn("look at the picture")
        finished = talk.all(ToolFinished)[-1]
        assert finished.summary == "PNG, 30 x 40"
        assert talk.app.log.blob(finished.images[0].sha256) == png(30, 40)
    result = talk.requests[-1].messages[-1]
    assert isinstance(result, ToolResult)
    assert [image.data for image in result.images] == [png(30, 40)]


@pytest.mark.promise("IMG-8")
async def test_a_picture_that_the_provider_refuses_does_not_end_the_session(tmp_path: Path) -> None:
    (tmp_path / "shot.png").write_bytes(png())
    answers = [{"text": "never", "error": REFUSED, "when": "shot.png"}, DONE]
    async with conversation(tmp_path, answers, images=True) as talk:
        assert (await talk.turn("what is in @shot.png?")).reason == "failed"
        assert (await talk.turn("go on")).reason == "answered"
        assert "shot.png: not shown, because" in words(talk.requests[-1])
        assert not any(m.images for m in talk.requests[-1].messages if isinstance(m, UserTurn))
        last = talk.app.last_seq(talk.id)
    async with conversation(tmp_path, answers, images=True, session=talk.id, after=last) as again:
        await again.turn("still there?")
        assert "shot.png: not shown, because" in words(again.requests[-1])


@pytest.mark.promise("IMG-8")
async def test_a_picture_of_a_request_that_failed_for_another_reason_is_shown_again(tmp_path: Path) -> None:
    (tmp_path / "shot.png").write_bytes(png())
    wrong = {"kind": "fix_request", "message": "no such model", "times": 1}
    async with conversation(tmp_path, [{"error": wrong, "when": "shot.png"}, DONE], images=True) as talk:
        assert (await talk.turn("what is in @shot.png?")).reason == "failed"
        assert (await talk.turn("go on")).reason == "answered"
    asked = talk.requests[-1].messages[0]
    assert isinstance(asked, UserTurn)
    assert len(asked.images) == 1


@pytest.mark.promise("IMG-6")
async def test_an_exported_session_carries_its_pictures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "ws"
    root.mkdir()
    (root / "shot.png").write_bytes(png(5, 6))
    file = tmp_path / "session.jsonl"
    async with conversation(
        root, [call("read", path="shot.png") | {"when": "see"}, DONE], images=True
    ) as talk:
        await talk.turn("see @shot.png")
        talk.app.export(talk.id, file)
        forked = talk.app.fork(talk.id)
        last = talk.app.last_seq(forked)
    async with conversation(root, [DONE], images=True, session=forked, after=last) as fork:
        await fork.turn("still?")
        first = fork.requests[-1].messages[0]
        assert isinstance(first, UserTurn)
        assert len(first.images) == 1
    (root / "shot.png").unlink()
    monkeypatch.setenv("HANDRAIL_HOME", str(tmp_path / "other"))
    async with conversation(root, [DONE], images=True) as other:
        session = other.app.import_session(file)
        last = other.app.last_seq(session)
    async with conversation(root, [DONE], images=True, session=session, after=last) as there:
        await there.turn("and here?")
        shown = [m.images for m in there.requests[-1].messages if isinstance(m, UserTurn | ToolResult)]
        assert [image.data for images in shown for image in images] == [png(5, 6)] * 2
