"""A collection in BEIR layout: corpus.jsonl, queries.jsonl, qrels/test.tsv; indexed and searched."""

import hashlib
import json
import math
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from handrail.knowledge.base import KnowledgeBase
from handrail.knowledge.documents.cut import cut, document_id, paragraph_key
from handrail.knowledge.documents.plain import parse_text
from handrail.storage.knowledge.rows import NewDocument, NewParagraph

CORPUS = "/corpus/"
BATCH = 500
DEPTH = 100


class Figures(NamedTuple):
    documents: int
    paragraphs: int
    queries: int
    index_seconds: float
    embed_seconds: float
    ndcg10: float
    recall100: float
    query_ms: float
    """Median of a search without making the query's vector."""
    vector_ms: float
    """Median of making the query's vector."""


class Row(NamedTuple):
    id: str
    title: str
    text: str


def rows(path: Path) -> Iterator[Row]:
    """Documents or queries; ids may be numbers, and a title may be missing, empty or null."""
    with path.open(encoding="utf-8-sig") as file:
        for line in file:
            if line.strip():
                row = json.loads(line)
                title, text = (row.get(name) or "" for name in ("title", "text"))
                yield Row(str(row["_id"]), title, text)


def relevant(folder: Path) -> dict[str, dict[str, int]]:
    """{query: {document: grade}} of the judgements of a collection, in BEIR's form or in TREC's."""
    files = [folder / "qrels" / name for name in ("test.tsv", "dev.tsv", "test.txt", "test.qrels")]
    path = next(
        (path for path in [*files, folder / "qrels.tsv", folder / "qrels.txt"] if path.is_file()), None
    )
    if path is None:
        raise SystemExit(f"There are no judgements: {files[0]} is missing.")
    found: dict[str, dict[str, int]] = defaultdict(dict)
    for number, line in enumerate(path.read_text(encoding="utf-8-sig").splitlines(), start=1):
        # query, document, grade after a header; or query, a number, document, grade
        parts = line.split("\t") if line.count("\t") >= 2 else line.split()
        if not parts:
            continue
        try:
            query, document, grade = parts[0], parts[-2], float(parts[-1])
        except (IndexError, ValueError):
            if number == 1:
                continue
            raise SystemExit(f"{path}, line {number} is not a judgement: {line!r}.") from None
        if grade > 0:
            found[query.strip()][document.strip()] = round(grade)
    if not found:
        raise SystemExit(f"{path} has no judgement that a document is relevant.")
    return found


def document(name: str, title: str, text: str, *, whole: bool) -> NewDocument:
    """One row of a corpus: as one paragraph, or cut as `handrail kb add` does."""
    source = f"{CORPUS}{name}"
    digest = hashlib.sha256(f"{title}\n{text}".encode()).hexdigest()
    if not whole:
        parsed = parse_text(text)
        made = cut(parsed, name=title, source=source, tier="standard", sha256=digest, size=len(text))
        if made.paragraphs:
            return made
    paragraph = NewParagraph(paragraph_key(text, Counter()), title, text, 0)
    return NewDocument(
        document_id(name, source), source, name, "standard", "text", digest, len(text), (paragraph,)
    )


def index(base: KnowledgeBase, corpus: Path, *, whole: bool) -> tuple[float, float]:
    """Seconds for texts and words, and for vectors; what is there already is not done again."""
    started = time.monotonic()
    with base.writing():
        batch: list[NewDocument] = []
        for row in rows(corpus):
            made = document(*row, whole=whole)
            if not made.paragraphs[0].text and not made.paragraphs[0].heading:
                continue
            before = base.store.document_by_source(made.source)
            if before is None or before.sha256 != made.sha256:
                batch.append(made)
            if len(batch) == BATCH:
                base.put(batch)
                batch = []
        base.put(batch)
        texts_done = time.monotonic()
        base.embed(lambda done: print(f"\r  {done:,} vectors", end="", flush=True))
    print()
    return texts_done - started, time.monotonic() - texts_done


def run(base: KnowledgeBase, folder: Path, *, whole: bool) -> Figures:
    index_seconds, embed_seconds = index(base, folder / "corpus.jsonl", whole=whole)
    wanted = relevant(folder)
    queries = {row.id: row.text for row in rows(folder / "queries.jsonl") if row.id in wanted}
    if not queries:
        raise SystemExit(f"No query of {folder / 'queries.jsonl'} is in the judgements.")
    ndcg, recall, took, vectors = list[float](), list[float](), list[float](), list[float]()
    for name, query in queries.items():
        encoder, spent = base.encoder, 0.0
        if encoder:
            started = time.perf_counter()
            encoder.encode([query])
            spent = time.perf_counter() - started
            vectors.append(spent)
        started = time.perf_counter()
        hits = base.search(query, DEPTH if whole else 4 * DEPTH)
        took.append(max(0.0, time.perf_counter() - started - spent))
        # A document is as good as its best paragraph.
        ranking = list(dict.fromkeys(hit.document.source.removeprefix(CORPUS) for hit in hits))
        ndcg.append(ndcg_at(ranking, wanted[name], 10))
        recall.append(len(set(ranking[:DEPTH]) & wanted[name].keys()) / len(wanted[name]))
    counts = base.store.counts()
    return Figures(
        counts.documents,
        counts.paragraphs,
        len(queries),
        index_seconds,
        embed_seconds,
        statistics.mean(ndcg),
        statistics.mean(recall),
        1e3 * statistics.median(took),
        1e3 * statistics.median(vectors) if vectors else 0.0,
    )


def ndcg_at(ranking: Sequence[str], grades: dict[str, int], depth: int) -> float:
    """Normalised discounted cumulative gain, with the grades as gains, as trec_eval has it."""
    gained = sum(grades.get(name, 0) / math.log2(rank + 2) for rank, name in enumerate(ranking[:depth]))
    best = sorted(grades.values(), reverse=True)[:depth]
    return gained / sum(grade / math.log2(rank + 2) for rank, grade in enumerate(best))
