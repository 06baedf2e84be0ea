"""A base of generated paragraphs: indexed with kills at random moments, checked, and searched.

Their vectors are generated, too: sums of random vectors of their words. The embedding model would take hours,
and the speed of a search does not depend on where its vectors come from.
"""

import random
import resource
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from handrail.knowledge import base as base_module
from handrail.knowledge.base import EmbeddingModel, KnowledgeBase
from handrail.storage.knowledge.rows import NewDocument, NewParagraph

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PARAGRAPHS_EACH = 100
WORDS = 50
VOCABULARY = 60_000
BATCH = 20
QUERIES = 200


class GeneratedVectors:
    """A random vector for each word; a text has the mean of its words."""

    def __init__(self) -> None:
        import numpy as np

        self._table = np.random.default_rng(7).standard_normal((VOCABULARY, 384), np.float32)

    def encode(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        import numpy as np

        found = np.zeros((len(texts), 384), np.float32)
        for index, text in enumerate(texts):
            words = [int(word[1:]) for word in text.split() if word[0] == "w" and word[1:].isdigit()]
            found[index] = self._table[words].mean(axis=0) if words else 1.0
        found /= np.linalg.norm(found, axis=1, keepdims=True)
        return found


MODEL = EmbeddingModel("generated", GeneratedVectors)


def words_of(number: int) -> list[str]:
    """The words of a paragraph: frequent ones often, as in natural language (Zipf)."""
    dice = random.Random(number)
    return [f"w{min(VOCABULARY - 1, int(VOCABULARY ** dice.random()) - 1)}" for _ in range(WORDS)]


def document(number: int) -> NewDocument:
    paragraphs = tuple(
        NewParagraph(
            key=f"p{each}",
            heading=f"doc{number}",
            text=f"id{number}x{each} " + " ".join(words_of(number * PARAGRAPHS_EACH + each)),
            start=each,
        )
        for each in range(PARAGRAPHS_EACH)
    )
    source = f"/generated/{number}"
    return NewDocument(
        f"doc-{number}", source, f"doc{number}", "standard", "text", str(number), 1, paragraphs
    )


def fill(folder: Path, documents: int) -> None:
    """Index what is missing."""
    base_module.EMBED_BATCH = 4_096
    base = KnowledgeBase(folder, MODEL)
    with base.writing():
        for start in range(0, documents, BATCH):
            numbers = range(start, min(start + BATCH, documents))
            missing = [n for n in numbers if not base.store.document_by_source(f"/generated/{n}")]
            base.put([document(number) for number in missing])
            if missing and start % 2_000 == 0:
                base.embed()
        base.embed()
    base.close()


def run(folder: Path, paragraphs: int, kills: int) -> None:
    documents = paragraphs // PARAGRAPHS_EACH
    dice, killed, started = random.Random(1), 0, time.monotonic()
    while True:
        child = subprocess.Popen(
            [sys.executable, "-m", "bench.retrieval", "--fill", str(folder), str(documents)]
        )
        try:
            child.wait(timeout=dice.uniform(1, 30) if killed < kills else None)
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGKILL)
            child.wait()
            killed += 1
            continue
        assert child.returncode == 0, child.returncode
        break
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    seconds = time.monotonic() - started
    print(f"indexed in {seconds:,.0f} s with {killed} kills, at most {memory:,.0f} MB of memory")
    check(folder, documents)
    search(folder, documents)


def check(folder: Path, documents: int) -> None:
    base = KnowledgeBase(folder, MODEL)
    status = base.status()
    assert (status.documents, status.paragraphs) == (documents, documents * PARAGRAPHS_EACH), status
    assert status.without_vector == 0
    assert base.store.slots_used() == status.paragraphs, "vectors are missing or there twice"
    assert not base.vectors.empty_slots(base.store.slots_used())
    dice, encoder = random.Random(3), GeneratedVectors()
    for _ in range(500):
        number, each = dice.randrange(documents), dice.randrange(PARAGRAPHS_EACH)
        assert base.store.count_matches(f'"id{number}x{each}"', 3) == 1
        found = base.store.document_by_id(f"doc-{number}")
        assert found
        [paragraph] = base.store.in_order(found.number, each, 1)
        [vector] = encoder.encode([paragraph.text])
        assert base.vectors.cosines(vector, [paragraph.slot or 0], base.store.slots_used())[0] > 0.99
    print(f"{status.paragraphs:,} paragraphs, none lost, none twice; {status.bytes / 1e9:.2f} GB on disk")
    base.close()


def search(folder: Path, documents: int) -> None:
    base = KnowledgeBase(folder, MODEL)
    dice = random.Random(5)
    encoder = base.encoder
    assert encoder
    took, busy, found = list[float](), list[float](), 0
    for _ in range(QUERIES):
        number = dice.randrange(documents * PARAGRAPHS_EACH)
        query = " ".join(dice.sample(words_of(number), 8))
        started = time.perf_counter()
        encoder.encode([query])
        spent = time.perf_counter() - started
        started, worked = time.perf_counter(), time.process_time()
        hits = base.search(query, 10)
        took.append(1e3 * (time.perf_counter() - started - spent))
        busy.append(1e3 * (time.process_time() - worked - spent))
        wanted = f"id{number // PARAGRAPHS_EACH}x{number % PARAGRAPHS_EACH} "
        found += any(hit.paragraph.text.startswith(wanted) for hit in hits)
    took.sort()
    print(f"{QUERIES} queries: p50 {statistics.median(took):.1f} ms, p95 {took[int(0.95 * QUERIES)]:.1f} ms")
    print(f"of the processor's time: p50 {statistics.median(busy):.1f} ms")
    print(f"{found / QUERIES:.0%} have their paragraph in the first 10")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"at most {memory:,.0f} MB of memory, of which {_own_memory():,.0f} MB are not mapped files")
    base.close()


def _own_memory() -> float:
    """MB of this process that are no file's; the rest can be dropped at any time."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.partition("RssAnon:")[2].split()[0]) / 1024
