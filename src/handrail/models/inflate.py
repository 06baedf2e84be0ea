"""The body of a response as it was before compression, in pieces of bounded size."""

import zlib
from collections.abc import AsyncGenerator
from contextlib import aclosing

from handrail.models.http_client import Reply
from handrail.protocol.errors import GiveUp

PIECE_BYTES = 64 * 1024
GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS


async def plain_bytes(response: Reply, host: str) -> AsyncGenerator[bytes, None]:
    """The bytes, however far a few compressed ones unfold: whoever reads can stop after any piece.

    Raises zlib.error where they are damaged.
    """
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in {"identity", "gzip", "x-gzip", "deflate"}:
        raise GiveUp(
            f"{host} compressed its answer as {encoding[:40]!r}, which nobody asked for: "
            "check base_url of the connection, or the proxy in between."
        )
    inflater = zlib.decompressobj(GZIP_OR_ZLIB)
    async with aclosing(response.pieces()) as raw:
        async for data in raw:
            if encoding == "identity":
                yield data
                continue
            rest = data
            # Asked again also when all input is taken: it may hold more output than one piece.
            while piece := inflater.decompress(rest, PIECE_BYTES):
                yield piece
                rest = inflater.unconsumed_tail
