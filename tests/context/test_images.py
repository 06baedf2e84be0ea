"""Which pictures a model is shown, and what it is told of the others."""

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from handrail.context.images import (
    MAX_IMAGES_SHOWN,
    SHOWN_TURNS,
    image_tokens,
    load_image,
    with_images,
    with_visible_images,
)
from handrail.context.token_budget import entry_tokens
from handrail.protocol.values import AttachedImage, ToolCall
from handrail.sessions.transcript import AssistantEntry, ToolResultEntry, TranscriptEntry, UserEntry

WINDOW = 200_000


def picture(name: str = "shot.png", width: int = 800, height: int = 600, size: int = 40_000) -> AttachedImage:
    return AttachedImage(
        sha256="ab" * 32, media_type="image/png", size=size, width=width, height=height, name=name
    )


def turns(count: int, images: dict[int, AttachedImage]) -> list[TranscriptEntry]:
    """Turns of one message and one answer; some messages with a picture, by the number of their turn."""
    entries: list[TranscriptEntry] = []
    for number in range(1, count + 1):
        own = (images[number],) if number in images else ()
        entries += [
            UserEntry(2 * number, f"message {number}", images=own),
            AssistantEntry(2 * number + 1, "yes", "m"),
        ]
    return entries


def names(entries: Sequence[TranscriptEntry]) -> list[str]:
    return [
        image.name for entry in entries if not isinstance(entry, AssistantEntry) for image in entry.images
    ]


@pytest.mark.promise("IMG-5")
def test_a_picture_is_shown_for_ten_turns_and_then_hidden_with_words_in_its_place() -> None:
    shown_at = {
        count: bool(
            names(with_visible_images(turns(count, {3: picture()}), sees=True, turns=count, window=WINDOW))
        )
        for count in range(3, 40)
    }
    hidden = min(count for count, shown in shown_at.items() if not shown)
    assert hidden - 3 >= SHOWN_TURNS
    assert hidden == 20
    assert not any(shown for count, shown in shown_at.items() if count >= hidden)
    first = with_visible_images(turns(20, {3: picture()}), sees=True, turns=20, window=WINDOW)[4]
    assert isinstance(first, UserEntry)
    assert first.text.startswith("message 3")
    assert "shot.png: left out here" in first.text


@pytest.mark.promise("IMG-5")
@pytest.mark.promise("CTX-3")
def test_earlier_messages_change_only_now_and_then_with_a_picture_in_every_turn() -> None:
    changed = 0
    before: Sequence[TranscriptEntry] = []
    for count in range(1, 61):
        images = {number: picture(f"{number}.png", 100, 100) for number in range(1, count + 1)}
        now = with_visible_images(turns(count, images), sees=True, turns=count, window=WINDOW)
        changed += list(now[: len(before)]) != list(before)
        assert 1 <= len(names(now)) <= MAX_IMAGES_SHOWN
        assert names(now)[-1] == f"{count}.png"
        before = now
    assert changed < 60 / 5


@pytest.mark.promise("IMG-5")
def test_many_pictures_in_one_turn_make_room_several_at_a_time() -> None:
    call = ToolCall(id="c", name="read")
    entries: list[TranscriptEntry] = [UserEntry(1, "look at all")]
    changed, before = 0, list[str]()
    for number in range(100):
        entries.append(AssistantEntry(10 + 2 * number, "", "m", (call,)))
        shot = picture(f"{number}.png", size=1_500_000)
        entries.append(ToolResultEntry(11 + 2 * number, "c", "read", "x", is_error=False, images=(shot,)))
        now = names(with_visible_images(entries, sees=True, turns=1, window=WINDOW))
        changed += now[: len(before)] != before
        assert now[-1] == f"{number}.png"
        assert len(now) * 1_500_000 <= 20_000_000
        before = now
    assert changed < 20


@pytest.mark.promise("IMG-5")
def test_a_small_window_gets_as_many_as_leave_room_for_words() -> None:
    images = {number: picture(f"{number}.png", 1000, 1000) for number in range(1, 6)}
    now = with_visible_images(turns(5, images), sees=True, turns=5, window=4_096)
    assert names(now) == ["5.png"]
    assert not names(
        with_visible_images(turns(1, {1: picture("big", 2000, 2000)}), sees=True, turns=1, window=4_096)
    )


@pytest.mark.promise("IMG-4")
def test_a_model_that_cannot_see_is_told_what_it_does_not_see() -> None:
    entries: list[TranscriptEntry] = [
        UserEntry(1, "what is this?", images=(picture("a.png"), picture("b.png"))),
        AssistantEntry(2, "", "m", (ToolCall(id="c", name="read"),)),
        ToolResultEntry(3, "c", "read", "### c.png", is_error=False, images=(picture("c.png"),)),
    ]
    asked, _, result = with_visible_images(entries, sees=False, turns=1, window=WINDOW)
    assert isinstance(asked, UserEntry)
    assert "cannot see pictures" in asked.text
    assert "a.png, b.png" in asked.text
    assert asked.images == ()
    assert isinstance(result, ToolResultEntry)
    assert "c.png" in result.content
    assert "do not guess" in result.content


@pytest.mark.promise("IMG-6")
def test_bytes_that_are_gone_or_are_not_what_the_event_says_are_told_and_not_sent() -> None:
    entry = UserEntry(1, "look", images=(picture("kept.png", size=3), picture("gone.png", size=4)))
    shown, images = with_images(entry, lambda _: b"abc")
    assert isinstance(shown, UserEntry)
    assert [image.data for image in images] == [b"abc"]
    assert shown.text == "look\n\n[gone.png: its bytes are no longer kept.]"
    assert load_image(picture(size=3), lambda _: None) is None


def test_pictures_count_in_the_budget_by_their_size() -> None:
    bare = UserEntry(1, "look")
    small, large = picture(width=100, height=100), picture(width=8_000, height=8_000)
    assert entry_tokens(replace(bare, images=(small,))) == entry_tokens(bare) + image_tokens(small)
    assert 100 < image_tokens(small) < 200
    assert image_tokens(large) == 5_000
