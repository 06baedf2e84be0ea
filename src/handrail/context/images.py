"""Which images a model is shown: those it can see, that are recent, and that fit.

A note replaces each hidden image. Images are hidden at fixed turns and several at a time, so that prompt
caches stay valid in between.
"""

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from handrail.models.model import Image
from handrail.protocol.values import AttachedImage
from handrail.sessions.transcript import (
    AssistantEntry,
    ToolResultEntry,
    TranscriptEntry,
    UserEntry,
    without_images,
)
from handrail.workspace.images import IMAGE_LIMIT

SHOWN_TURNS = 10
"""An image is shown for at least this many turns, and hidden at the second multiple of ten after it."""
MAX_IMAGES_SHOWN, MAX_BYTES_SHOWN, WINDOW_SHARE = 20, 20_000_000, 3
"""Limits of one request: images, bytes, and one third of the window."""
PIXELS_PER_TOKEN, MIN_IMAGE_TOKENS, MAX_IMAGE_TOKENS = 600, 100, 5_000

CANNOT_SEE = (
    "[You cannot see pictures, so this was not shown to you: {names}. Say so; do not guess what is in it.]"
)
HIDDEN = "[{names}: left out here, to save room. Read it again, or ask the user to attach it again.]"
LOST = "[{names}: its bytes are no longer kept.]"

ReadBlob = Callable[[str], bytes | None]


def image_tokens(image: AttachedImage) -> int:
    """Estimated tokens of an image, on the safe side for all providers."""
    return min(MAX_IMAGE_TOKENS, MIN_IMAGE_TOKENS + image.width * image.height // PIXELS_PER_TOKEN)


def with_visible_images(
    transcript: Sequence[TranscriptEntry], *, sees: bool, turns: int, window: int
) -> Sequence[TranscriptEntry]:
    """The transcript with notes in place of images that the model is not shown."""
    if not any(_images(entry) for entry in transcript):
        return transcript
    hidden = _old(transcript, turns) | _over_budget(transcript, window // WINDOW_SHARE)
    return [
        entry
        if isinstance(entry, AssistantEntry) or not entry.images or (sees and entry.seq not in hidden)
        else without_images(entry, HIDDEN if sees else CANNOT_SEE)
        for entry in transcript
    ]


def load_image(image: AttachedImage, stored: ReadBlob) -> Image | None:
    data = stored(image.sha256)
    if data is None or len(data) != image.size or len(data) > IMAGE_LIMIT:
        return None
    return Image(image.media_type, data, image_tokens(image))


def with_images(
    entry: UserEntry | ToolResultEntry, stored: ReadBlob
) -> tuple[UserEntry | ToolResultEntry, tuple[Image, ...]]:
    """The entry with its images loaded; a note replaces those whose bytes are gone."""
    found = [(image, load_image(image, stored)) for image in entry.images]
    lost = tuple(image for image, loaded in found if loaded is None)
    if lost:
        kept = tuple(image for image, loaded in found if loaded is not None)
        entry = replace(without_images(replace(entry, images=lost), LOST), images=kept)
    return entry, tuple(loaded for _, loaded in found if loaded is not None)


def _images(entry: TranscriptEntry) -> tuple[AttachedImage, ...]:
    return () if isinstance(entry, AssistantEntry) else entry.images


def _old(transcript: Sequence[TranscriptEntry], turns: int) -> set[int]:
    """Sequence numbers of entries whose images were shown long enough."""
    found, turn = set(), turns
    for entry in reversed(transcript):
        if _images(entry) and turns >= (turn // SHOWN_TURNS + 2) * SHOWN_TURNS:
            found.add(entry.seq)
        if isinstance(entry, UserEntry) and entry.by == "user" and not entry.steering:
            turn -= 1
    return found


def _over_budget(transcript: Sequence[TranscriptEntry], tokens: int) -> set[int]:
    """Sequence numbers of entries whose images make room for later ones; frees half of the room."""
    hidden: set[int] = set()
    shown: list[TranscriptEntry] = []
    for entry in transcript:
        if not _images(entry):
            continue
        shown.append(entry)
        if _share_used(shown, tokens) > 1:
            while len(shown) > 1 and _share_used(shown, tokens) > 1 / 2:
                hidden.add(shown.pop(0).seq)
    if shown and not images_fit(_images(shown[-1]), tokens * WINDOW_SHARE):
        hidden.add(shown[-1].seq)
    return hidden


def images_fit(images: Sequence[AttachedImage], window: int) -> bool:
    """Whether the images of one message leave room for an answer."""
    return sum(image_tokens(image) for image in images) <= window * 2 / 3


def _share_used(entries: Sequence[TranscriptEntry], tokens: int) -> float:
    """The share of the budget that images use, by the tightest of the three limits."""
    images = [image for entry in entries for image in _images(entry)]
    return max(
        len(images) / MAX_IMAGES_SHOWN,
        sum(image.size for image in images) / MAX_BYTES_SHOWN,
        sum(image_tokens(image) for image in images) / max(1, tokens),
    )
