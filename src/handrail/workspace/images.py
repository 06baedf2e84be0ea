"""Recognise images by their first bytes, and read their size without decoding."""

import hashlib
import struct
import zlib
from typing import NamedTuple

from handrail.protocol.values import AttachedImage, ImageType

IMAGE_LIMIT = 5 * 1024 * 1024 * 3 // 4  # bytes: providers accept 5 MiB of base64, a third larger
MAX_SIDE = 8_000  # pixels; providers refuse larger images
HEADER_BYTES = 16  # enough to recognise an image
MAX_SEGMENTS = 2_000  # of a JPEG before its size; a normal one has a few dozen
PNG, GIF, PNG_END = b"\x89PNG\r\n\x1a\n", (b"GIF87a", b"GIF89a"), b"IEND\xaeB`\x82"


class NotImage(ValueError):
    """The bytes begin like an image, but it cannot be used; the message says why."""


class ImageFile(NamedTuple):
    image: AttachedImage
    data: bytes


class PixelSize(NamedTuple):
    width: int
    height: int


BROKEN = PixelSize(0, 0)


def image_type(head: bytes) -> ImageType | None:
    if head.startswith(PNG):
        return "image/png"
    if head.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if head.startswith(GIF):
        return "image/gif"
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "image/webp"
    return None


def parse_image(name: str, data: bytes) -> ImageFile | None:
    """The image in the bytes; None if they are something else; raises NotImage if it cannot be used."""
    kind = image_type(data[:HEADER_BYTES])
    # Every block of a GIF ends with a NUL: without one it is a text.
    if kind is None or (kind == "image/gif" and b"\0" not in data):
        return None
    try:
        size = _pixel_size(kind, data)
    except (struct.error, IndexError):
        size = BROKEN
    if min(size) < 1:
        raise NotImage(f"it begins like a {kind.removeprefix('image/').upper()} and is broken")
    if max(size) > MAX_SIDE:
        raise NotImage(f"it has {size.width:,} x {size.height:,} pixels; the limit per side is {MAX_SIDE:,}")
    digest = hashlib.sha256(data).hexdigest()
    return ImageFile(AttachedImage(digest, kind, len(data), size.width, size.height, name), data)


def _pixel_size(kind: ImageType, data: bytes) -> PixelSize:
    match kind:
        case "image/png":
            length, head, width, height = struct.unpack_from(">I4sII", data, 8)
            (checksum,) = struct.unpack_from(">I", data, 29)
            intact = checksum == zlib.crc32(data[12:29]) and PNG_END in data[-1024:]
            return PixelSize(width, height) if length == 13 and head == b"IHDR" and intact else BROKEN
        case "image/gif":
            return PixelSize(*struct.unpack_from("<HH", data, 6))
        case "image/jpeg":
            return _jpeg(data)
        case "image/webp":
            return _webp(data)


def _jpeg(data: bytes) -> PixelSize:
    at = 2
    for _ in range(MAX_SEGMENTS):
        mark, kind = data[at], data[at + 1]
        if mark != 0xFF:
            return BROKEN
        if kind == 0xFF:
            at += 1
            continue
        if 0xC0 <= kind <= 0xCF and kind not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack_from(">HH", data, at + 5)
            return PixelSize(width, height)
        (length,) = struct.unpack_from(">H", data, at + 2)
        if length < 2 or kind == 0xDA:
            return BROKEN
        at += 2 + length
    return BROKEN


def _webp(data: bytes) -> PixelSize:
    (length,) = struct.unpack_from("<I", data, 4)
    if length + 8 > len(data):
        return BROKEN
    match data[12:16]:
        case b"VP8X":
            return PixelSize(*(int.from_bytes(data[at : at + 3], "little") + 1 for at in (24, 27)))
        case b"VP8L" if data[20] == 0x2F:
            (bits,) = struct.unpack_from("<I", data, 21)
            return PixelSize((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1)
        case b"VP8 " if data[23:26] == b"\x9d\x01\x2a":
            width, height = struct.unpack_from("<HH", data, 26)
            return PixelSize(width & 0x3FFF, height & 0x3FFF)
        case _:
            return BROKEN
