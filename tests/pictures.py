"""Small real pictures, made without an image library."""

import struct
import zlib


def png(width: int = 4, height: int = 3, *, seed: bytes = b"") -> bytes:
    """A whole PNG; `seed` makes it another one of the same size."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = zlib.compress((b"\0" + b"\0\0\0" * width) * height)
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    note = chunk(b"tEXt", b"seed\0" + seed) if seed else b""
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + note + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def jpeg(width: int = 4, height: int = 3) -> bytes:
    """The head of a JPEG, as far as its size, and its end."""
    app = b"\xff\xe0" + struct.pack(">H", 16) + b"JFIF\0\1\1\0\0\1\0\1\0\0"
    frame = b"\xff\xc2" + struct.pack(">HBHHB", 17, 8, height, width, 3) + bytes(9)
    return b"\xff\xd8" + app + frame + b"\xff\xda\0\2\xff\xd9"


def gif(width: int = 4, height: int = 3) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height) + b"\0\0\0;"


def webp(width: int = 4, height: int = 3) -> bytes:
    """The extended form."""
    sizes = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    body = b"WEBP" + b"VP8X" + struct.pack("<I", 10) + bytes(4) + sizes
    return b"RIFF" + struct.pack("<I", len(body)) + body


def webp_lossy(width: int = 4, height: int = 3) -> bytes:
    body = b"WEBP" + b"VP8 " + struct.pack("<I", 10) + bytes(3) + b"\x9d\x01\x2a"
    body += struct.pack("<HH", width, height)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def webp_lossless(width: int = 4, height: int = 3) -> bytes:
    body = (
        b"WEBP" + b"VP8L" + struct.pack("<I", 5) + b"\x2f" + struct.pack("<I", (height - 1) << 14 | width - 1)
    )
    return b"RIFF" + struct.pack("<I", len(body)) + body
