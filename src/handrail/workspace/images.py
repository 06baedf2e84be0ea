"""Pictures: recognised by their first bytes, never by name, and measured without being decoded."""

import hashlib
import struct
import zlib
from collections.abc import Callable
from typing import NamedTuple

from handrail.protocol.values import AttachedImage, ImageType

IMAGE_LIMIT = 5 * 1024 * 1024 * 3 // 4
"""Bytes of one picture: as base64, in which it is sent, it has a third more, and 5 MiB are taken."""
LONGEST_SIDE = 8_000
"""Pixels; larger pictures are refused by providers."""
HEAD = 16
"""Bytes that tell a picture from everything else."""
MOST_SEGMENTS = 2_000
"""Of a JPEG before its size is told; an honest one has a few dozen."""
PNG, GIF, PNG_END = b"\x89PNG\r\n\x1a\n", (b"GIF87a", b"GIF89a"), b"IEND\xaeB`\x82"


class NotImage(ValueError):
    """The bytes begin like a picture's and are none that can be used; the message says why."""


class ImageFile(NamedTuple):
    """A picture as it was at one moment."""

    image: AttachedImage
    data: bytes


class Size(NamedTuple):
    width: int
    height: int


def image_type(head: bytes) -> ImageType | None:
    """The kind of picture that begins so; None for everything else."""
    if head.startswith(PNG):
        return "image/png"
    if head.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if head.startswith(GIF):
        return "image/gif"
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "image/webp"
    return None


def image_of(name: str, data: bytes) -> ImageFile | None:
    """The picture that the bytes are; None where they are something else, NotImage where it is unfit."""
    kind = image_type(data[:HEAD])
    # Every block of a GIF ends with a NUL: without one it is a text that begins so.
    if kind is None or (kind == "image/gif" and b"\0" not in data):
        return None
    try:
        size = SIZES[kind](data)
    except (struct.error, IndexError):
        size = Size(0, 0)
    word = kind.removeprefix("image/").upper()
    if min(size) < 1:
        raise NotImage(f"it begins like a {word} and is broken")
    if max(size) > LONGEST_SIDE:
        raise NotImage(f"it has {size.width:,} x {size.height:,} pixels; a side may have {LONGEST_SIDE:,}")
    digest = hashlib.sha256(data).hexdigest()
    image = AttachedImage(
        sha256=digest, media_type=kind, size=len(data), width=size.width, height=size.height, name=name
    )
    return ImageFile(image, data)


def _png(data: bytes) -> Size:
    length, kind, width, height = struct.unpack_from(">I4sII", data, 8)
    (checksum,) = struct.unpack_from(">I", data, 29)
    whole = (
        length == 13 and kind == b"IHDR" and checksum == zlib.crc32(data[12:29]) and PNG_END in data[-1024:]
    )
    return Size(width, height) if whole else Size(0, 0)


def _gif(data: bytes) -> Size:
    return Size(*struct.unpack_from("<HH", data, 6))


def _jpeg(data: bytes) -> Size:
    at = 2
    for _ in range(MOST_SEGMENTS):
        mark, kind = data[at], data[at + 1]
        if mark != 0xFF:
            return Size(0, 0)
        if kind == 0xFF:
            at += 1
            continue
        if 0xC0 <= kind <= 0xCF and kind not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack_from(">HH", data, at + 5)
            return Size(width, height)
        (length,) = struct.unpack_from(">H", data, at + 2)
        if length < 2 or kind == 0xDA:
            return Size(0, 0)
        at += 2 + length
    return Size(0, 0)


def _webp(data: bytes) -> Size:
    (length,) = struct.unpack_from("<I", data, 4)
    if length + 8 > len(data):
        return Size(0, 0)
    match data[12:16]:
        case b"VP8X":
            return Size(*(int.from_bytes(data[at : at + 3], "little") + 1 for at in (24, 27)))
        case b"VP8L" if data[20] == 0x2F:
            (bits,) = struct.unpack_from("<I", data, 21)
            return Size((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1)
        case b"VP8 " if data[23:26] == b"\x9d\x01\x2a":
            width, height = struct.unpack_from("<HH", data, 26)
            return Size(width & 0x3FFF, height & 0x3FFF)
        case _:
            return Size(0, 0)


SIZES: dict[ImageType, Callable[[bytes], Size]] = {
    "image/png": _png,
    "image/jpeg": _jpeg,
    "image/gif": _gif,
    "image/webp": _webp,
}
