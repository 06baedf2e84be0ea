"""The bytes of requests as chains of pieces: what several requests begin with is stored once.

A link is a blob: the hash of the link before it (zeros for the first), then a mark, then the piece itself or,
for a larger one, the hash of the piece as a blob of its own. The hash of its last link stands for a request.
"""

import hashlib
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

FIRST = bytes(32)
INLINE, BY_HASH = b"=", b"#"
MAX_INLINE = 512
"""Larger pieces are shared by all chains, also after what comes before them has changed."""
TRUSTED_SECONDS = 1800
"""For so long a stored link counts as stored: pruning spares what was used in the last two hours."""

ReadBlob = Callable[[str], bytes | None]


class ChainedPieces(NamedTuple):
    head: str
    """The hash that stands for all of the pieces."""
    blobs: list[bytes]
    """What has to be stored for it."""
    links: list[bytes]


class PieceChain:
    """Chains the pieces of requests, and knows the links that this process has stored."""

    def __init__(self) -> None:
        self._stored: set[bytes] = set()
        self._since = time.monotonic()

    def chain(self, pieces: Sequence[bytes]) -> ChainedPieces:
        if time.monotonic() - self._since > TRUSTED_SECONDS:
            self._stored, self._since = set(), time.monotonic()
        link, blobs, new = FIRST, list[bytes](), list[bytes]()
        for piece in pieces:
            large = len(piece) > MAX_INLINE
            data = link + (BY_HASH + hashlib.sha256(piece).digest() if large else INLINE + piece)
            link = hashlib.sha256(data).digest()
            if link not in self._stored:
                blobs += [piece, data] if large else [data]
                new.append(link)
        return ChainedPieces(link.hex(), blobs, new)

    def stored(self, chained: ChainedPieces) -> None:
        """Remember links whose commit has succeeded."""
        self._stored.update(chained.links)


def chain_hashes(read: ReadBlob, head: str, known: Collection[str] = ()) -> Iterator[str]:
    """The hashes of all contents of a chain, last link first, as far as they are not known."""
    while head and head not in known:
        yield head
        data = read(head)
        if data is None or len(data) <= len(FIRST):
            return
        if data[32:33] == BY_HASH:
            yield data[33:].hex()
        head = data[:32].hex() if data[:32] != FIRST else ""


def read_chain(read: ReadBlob, head: str) -> bytes | None:
    """The bytes that the chain stands for; None if a part of them is no longer stored."""
    pieces: list[bytes] = []
    while head:
        data = read(head)
        piece = data[33:] if data else None
        if data and piece is not None and data[32:33] == BY_HASH:
            piece = read(piece.hex())
        if data is None or piece is None:
            return None
        pieces.append(piece)
        head = data[:32].hex() if data[:32] != FIRST else ""
    return b"".join(reversed(pieces))
