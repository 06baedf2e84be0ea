"""The vectors of a knowledge base, in three files that are mapped into memory for a search.

Each vector has a slot. `vectors.rows` holds it in bytes with a scale, `vectors.bits` one bit for each of its
numbers, and `vectors.documents` the number of its document (0: the slot is free). A search in many vectors
compares bits, and then only the nearest with their numbers. Files are written with `pwrite`, so that a full
disk is an error and not the end of the process, and synced before the slots are committed in SQLite.
"""

import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from handrail.protocol.errors import StorageDamaged, StorageFull, StorageProblem

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

DIMENSIONS = 384
"""Numbers of a vector, unless the model has more or fewer."""
BLOCK = 65_536
"""Slots in a block of bits: the first 64 bits of all its vectors, then the next, and so on."""
EXACT = 20_000
"""So many vectors are all compared with their numbers."""
CANDIDATES = 1_500
"""Beyond that, the numbers of so many with the nearest bits."""
CACHED = 32_768
"""Vectors whose bits are compared at once: what is made of them stays in the processor's cache."""
SAMPLE = 16
NAMES = ("vectors.rows", "vectors.bits", "vectors.documents")
REBUILD = "`handrail kb index --rebuild` makes the vectors again."


class _Mapped(NamedTuple):
    rows: "NDArray[np.void]"
    bits: "NDArray[np.uint64]"
    documents: "NDArray[np.uint32]"


class VectorFiles:
    """The files in one folder; they may not exist yet."""

    def __init__(self, folder: Path) -> None:
        self._paths = [folder / name for name in NAMES]
        self._mapped: _Mapped | None = None
        self._file = 0
        """The inode of the mapped file."""
        self.dimensions = DIMENSIONS

    @property
    def _row(self) -> int:
        return self.dimensions + 4

    @property
    def _words(self) -> int:
        """Of 64 bits, in the bits of a vector."""
        return -(-self.dimensions // 64)

    # Writing: by the only writer

    def write(self, slots: Sequence[int], documents: Sequence[int], vectors: "Vectors") -> None:
        """Write normalised vectors; durable at the end, and not yet used until their slots are committed."""
        import numpy as np

        scales = np.abs(vectors).max(axis=1) / 127
        rows = np.zeros(len(slots), self._row_type())
        rows["scale"] = scales
        rows["values"] = np.rint(vectors / np.where(scales, scales, 1)[:, None])
        bits = [word.tobytes() for word in _bits(vectors).T]
        self._write(slots, rows.tobytes(), bits, np.array(documents, np.uint32).tobytes())

    def clear(self, slots: Sequence[int]) -> None:
        """Overwrite the vectors in these slots with zeros."""
        if count := len(slots):
            self._write(slots, bytes(count * self._row), [bytes(count * 8)] * self._words, bytes(count * 4))

    def trim(self, slots: int) -> None:
        """Clear what a killed process has written behind the committed slots."""
        rows = self._paths[0]
        if rows.exists() and (written := rows.stat().st_size // self._row) > slots:
            self.clear(range(slots, written))
            os.truncate(rows, slots * self._row)
            os.truncate(self._paths[2], slots * 4)

    def remove(self, dimensions: int) -> None:
        """Remove all; those written next have so many numbers."""
        self._mapped, self.dimensions = None, dimensions
        for path in self._paths:
            path.unlink(missing_ok=True)

    @property
    def size(self) -> int:
        """Bytes of the files."""
        return sum(path.stat().st_size for path in self._paths if path.exists())

    def _write(self, slots: Sequence[int], rows: bytes, bits: Sequence[bytes], documents: bytes) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        try:
            with ExitStack() as opened:
                files = []
                for path in self._paths:
                    files.append(os.open(path, flags, 0o600))
                    opened.callback(os.close, files[-1])
                self._grow_bits(files[1], max(slots, default=-1) + 1)
                for start, end in _runs(slots):
                    first = slots[start]
                    _write_all(files[0], rows[start * self._row : end * self._row], first * self._row)
                    _write_all(files[2], documents[start * 4 : end * 4], first * 4)
                    offset = (first // BLOCK) * BLOCK * self._words + first % BLOCK
                    for word, column in enumerate(bits):
                        _write_all(files[1], column[start * 8 : end * 8], (offset + word * BLOCK) * 8)
                for file in files:
                    os.fsync(file)
        except OSError as error:
            folder = self._paths[0].parent
            message = f"The vectors in {folder} cannot be written ({error.strerror}). Make room, then go on."
            raise StorageFull(message) from error

    def _grow_bits(self, file: int, slots: int) -> None:
        needed = -(-slots // BLOCK) * BLOCK * self._words * 8
        if os.fstat(file).st_size < needed:
            os.ftruncate(file, needed)

    # Reading

    def search(
        self, query: "Vectors", slots: int, limit: int, documents: Sequence[int] | None = None
    ) -> list[tuple[int, float]]:
        """The slots with the nearest vectors and their cosine, best first; of all documents, or of these."""
        import numpy as np

        if not slots:
            return []
        mapped = self._map(slots)
        used = mapped.documents[:slots]
        if documents is None:
            wanted = used != 0
        else:
            known = np.zeros(max(int(used.max()), *documents, 0) + 1, np.bool_)
            known[list(documents)] = True
            known[0] = False
            wanted = known[used]
        if np.count_nonzero(wanted) > EXACT:
            found = _nearest_bits(mapped.bits, query, slots, wanted, max(CANDIDATES, limit))
        else:
            found = np.flatnonzero(wanted)
        rows = mapped.rows[found]
        cosines = (rows["values"].astype(np.float32) @ query) * rows["scale"]
        best = np.argsort(-cosines, kind="stable")[:limit]
        return [(int(found[each]), float(cosines[each])) for each in best]

    def cosines(self, query: "Vectors", slots: Sequence[int], used: int) -> list[float]:
        """The cosine of each of these slots."""
        import numpy as np

        rows = self._map(used).rows[list(slots)]
        found: NDArray[np.float32] = (rows["values"].astype(np.float32) @ query) * rows["scale"]
        return [float(each) for each in found]

    def empty_slots(self, slots: int) -> "set[int]":
        """The slots that hold no vector."""
        if not slots:
            return set()
        import numpy as np

        return set(np.flatnonzero(self._map(slots).rows["scale"][:slots] == 0).tolist())

    def _map(self, slots: int) -> _Mapped:
        import numpy as np

        try:
            file = self._paths[0].stat().st_ino  # another process may have made all vectors again
            if self._mapped and file == self._file and len(self._mapped.rows) >= slots:
                return self._mapped
            # As plain arrays: a slice of a memmap is slower to make than to compare.
            found = _Mapped(
                np.asarray(
                    np.memmap(self._paths[0], self._row_type(), "r", shape=(self._length(0, self._row),))
                ),
                np.asarray(np.memmap(self._paths[1], np.uint64, "r")),
                np.asarray(np.memmap(self._paths[2], np.uint32, "r", shape=(self._length(2, 4),))),
            )
        except (OSError, ValueError) as error:
            raise StorageProblem(f"The vectors cannot be read: {error}. {REBUILD}") from error
        if min(len(found.rows), len(found.documents), len(found.bits) // self._words) < slots:
            raise StorageDamaged(f"{self._paths[0].parent} lacks some of the vectors. {REBUILD}")
        self._mapped, self._file = found, file
        return found

    def _row_type(self) -> "np.dtype[np.void]":
        import numpy as np

        return np.dtype([("scale", np.float32), ("values", np.int8, self.dimensions)])

    def _length(self, file: int, each: int) -> int:
        return self._paths[file].stat().st_size // each


def _bits(vectors: "Vectors") -> "NDArray[np.uint64]":
    import numpy as np

    packed = np.packbits(vectors > 0, axis=1)
    return np.pad(packed, ((0, 0), (0, -packed.shape[1] % 8))).view(np.uint64)


def _nearest_bits(
    bits: "NDArray[np.uint64]", query: "Vectors", slots: int, wanted: "NDArray[np.bool_]", count: int
) -> "NDArray[np.intp]":
    """At least `count` of the wanted slots, those with the fewest bits that differ from the query's."""
    import numpy as np

    words = _bits(query[None])[0]
    counts = np.uint8 if len(words) <= 6 else np.uint16  # of half the bits
    distances = np.empty((-(-slots // BLOCK), BLOCK), np.uint16)
    different, number = np.empty(CACHED, np.uint64), np.empty(CACHED, np.uint8)
    halves = np.empty((2, CACHED), counts)
    for block, into in zip(bits.reshape(-1, len(words), BLOCK), distances, strict=False):
        for start in range(0, BLOCK, CACHED):
            halves[:] = 0
            for word, wanted_bits in enumerate(words):
                np.bitwise_xor(block[word, start : start + CACHED], wanted_bits, out=different)
                np.bitwise_count(different, out=number)
                half = halves[word % 2]
                np.add(half, number, out=half)
            np.add(halves[0], halves[1], out=into[start : start + CACHED], dtype=np.uint16)
    flat = distances.reshape(-1)[:slots]
    farthest = 64 * len(words)
    flat[~wanted] = farthest + 1
    # A sample says about how far the nearest are; counting them all takes as long as comparing them.
    found = _within(flat, count, farthest, SAMPLE)
    return found if len(found) >= count else _within(flat, count, farthest, 1)


def _within(flat: "NDArray[np.uint16]", count: int, farthest: int, step: int) -> "NDArray[np.intp]":
    """The slots up to a distance that holds so many; judged by every `step`-th of them."""
    import numpy as np

    within = np.cumsum(np.bincount(flat[::step], minlength=farthest + 2)[: farthest + 1])
    enough = np.searchsorted(within, min(-(-count // step), int(within[-1])))
    return np.flatnonzero(flat <= min(int(enough), farthest))


def _runs(slots: Sequence[int]) -> list[tuple[int, int]]:
    """Where in the sequence consecutive slots of one block begin and end."""
    found: list[tuple[int, int]] = []
    start = 0
    for index in range(1, len(slots) + 1):
        if index == len(slots) or slots[index] != slots[index - 1] + 1 or slots[index] % BLOCK == 0:
            found.append((start, index))
            start = index
    return found


def _write_all(file: int, data: bytes, offset: int) -> None:
    view = memoryview(data)
    while view:
        written = os.pwrite(file, view, offset)
        view, offset = view[written:], offset + written
