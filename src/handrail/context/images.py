"""Which pictures a model is shown: those it can see, that are not too old, and for which there is room.

What is hidden is said in its place. Pictures are hidden at fixed turns and several at a time, so that prompt
caches hold between those moments.
"""

from collections.abc import Callable, Sequence

from handrail.models.base import Image
from handrail.protocol.values import AttachedImage
from handrail.sessions.transcript import Entry, Replied, Resulted, Said, without_images
from handrail.workspace.images import IMAGE_LIMIT

SHOWN_TURNS = 10
"""Turns that a picture is shown for at least; it is hidden at the second full ten after it came."""
MOST_SHOWN, MOST_BYTES, SHARE = 20, 20_000_000, 3
"""Of one request: so many pictures, so many bytes, one third of the window."""
PIXELS_PER_TOKEN, LEAST, MOST = 600, 100, 5_000

BLIND = (
    "[You cannot see pictures, so this was not shown to you: {names}. Say so; do not guess what is in it.]"
)
HIDDEN = "[{names}: left out here, to save room. Read it again, or ask the user to attach it again.]"
LOST = "[{names}: its bytes are no longer kept.]"

Stored = Callable[[str], bytes | None]
"""The blob of a hash."""


def image_tokens(image: AttachedImage) -> int:
    """What a picture will cost, on the safe side for all providers."""
    return min(MOST, LEAST + image.width * image.height // PIXELS_PER_TOKEN)


def visible(transcript: Sequence[Entry], *, sees: bool, turns: int, window: int) -> Sequence[Entry]:
    """The transcript as a model can be shown it, words in the place of pictures that it is not shown."""
    if not any(_images(entry) for entry in transcript):
        return transcript
    hidden = _old(transcript, turns) | _beyond(transcript, window // SHARE) if sees else set[int]()
    result: list[Entry] = []
    for entry in transcript:
        if isinstance(entry, Replied) or not entry.images or (sees and entry.seq not in hidden):
            result.append(entry)
        else:
            result.append(without_images(entry, HIDDEN if sees else BLIND))
    return result


def load(image: AttachedImage, stored: Stored) -> Image | None:
    """The picture with its bytes; None where they are gone, or are not what the event says."""
    data = stored(image.sha256)
    if data is None or len(data) != image.size or len(data) > IMAGE_LIMIT:
        return None
    return Image(image.media_type, data, image_tokens(image))


def with_images(entry: Said | Resulted, stored: Stored) -> tuple[Said | Resulted, tuple[Image, ...]]:
    """The entry and its pictures; where one is gone, the entry says so."""
    found = [(image, load(image, stored)) for image in entry.images]
    lost = tuple(image for image, loaded in found if loaded is None)
    if lost:
        kept = tuple(image for image, loaded in found if loaded is not None)
        entry = without_images(entry.changed(images=lost), LOST).changed(images=kept)
    return entry, tuple(loaded for _, loaded in found if loaded is not None)


def _images(entry: Entry) -> tuple[AttachedImage, ...]:
    return () if isinstance(entry, Replied) else entry.images


def _old(transcript: Sequence[Entry], turns: int) -> set[int]:
    """Sequence numbers of entries whose pictures have been shown long enough."""
    found, turn = set(), turns
    for entry in reversed(transcript):
        if _images(entry) and turns >= (turn // SHOWN_TURNS + 2) * SHOWN_TURNS:
            found.add(entry.seq)
        if isinstance(entry, Said) and entry.by == "user" and not entry.steering:
            turn -= 1
    return found


def _beyond(transcript: Sequence[Entry], tokens: int) -> set[int]:
    """Those whose pictures have to make room for later ones; half of the room is freed at a time."""
    hidden: set[int] = set()
    shown: list[Entry] = []
    for entry in transcript:
        if not _images(entry):
            continue
        shown.append(entry)
        if _filled(shown, tokens) > 1:
            while len(shown) > 1 and _filled(shown, tokens) > 1 / 2:
                hidden.add(shown.pop(0).seq)
    if shown and not fits(_images(shown[-1]), tokens * SHARE):
        hidden.add(shown[-1].seq)
    return hidden


def fits(images: Sequence[AttachedImage], window: int) -> bool:
    """Whether the pictures of one message leave room for an answer."""
    return sum(image_tokens(image) for image in images) <= window * 2 / 3


def _filled(entries: Sequence[Entry], tokens: int) -> float:
    """The share of the room that pictures take, by the measure of which they take most."""
    images = [image for entry in entries for image in _images(entry)]
    return max(
        len(images) / MOST_SHOWN,
        sum(image.size for image in images) / MOST_BYTES,
        sum(image_tokens(image) for image in images) / max(1, tokens),
    )
