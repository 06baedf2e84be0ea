"""A knowledge base: documents that can be searched, read in their place, followed along their links."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from handrail.config.places import Places, make_private, workspace_path
from handrail.knowledge.ranking import DEPTH, WordSearch, fuse_searches, rerank_hits
from handrail.knowledge.words import normal_key
from handrail.protocol.errors import ModelProblem, UsageProblem
from handrail.protocol.values import Value
from handrail.storage.knowledge.rows import Document, NewDocument, Paragraph
from handrail.storage.knowledge.store import FILE, KnowledgeStore, Waiting
from handrail.storage.knowledge.vectors import DIMENSIONS, VectorFiles

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

TIER_ORDER = ("guide", "standard", "code")
EMBED_BATCH = 128
MODEL, NUMBERS = "embedding model", "numbers of a vector"
"""The states that name the model of the vectors, and how long they are."""
Where = Literal["workspace", "user"]
MAX_EXPANSIONS = 6


class Encoder(Protocol):
    """What makes vectors of texts: normalised, all of the same length; may raise ModelProblem."""

    def encode(self, texts: Sequence[str]) -> "Vectors": ...


class EmbeddingModel(NamedTuple):
    name: str
    load: Callable[[], Encoder]
    missing: str = ""
    """What to do before it can be loaded; empty if nothing."""
    told: Callable[[int], str] = lambda _characters: ""
    """For the user, before so many characters are sent to somebody: to whom, and what that costs."""


class Hit(Value):
    """A paragraph that was found, and why."""

    paragraph: Paragraph
    document: Document
    score: float
    by_words: int
    """Its rank in the search by words, from 1; 0 if it was not found that way."""
    by_meaning: int
    """Its rank in the search by vectors, from 1; 0 if it was not found that way."""

    @property
    def place(self) -> str:
        return place_of(self.document, self.paragraph)


class Status(Value):
    """What a base holds, and what its search can do."""

    folder: str
    documents: int
    paragraphs: int
    without_vector: int
    tiers: dict[str, int]
    bytes: int
    meaning: bool
    """Whether searches compare meanings, too: the embedding model is here, and there are vectors."""
    note: str
    """What is missing for that, and what to do; empty if nothing."""


class Filters(Value):
    """Which documents to search; empty fields allow all."""

    tier: str = ""
    kind: str = ""
    documents: tuple[str, ...] = ()
    """Ids, names or sources."""


EVERYTHING = Filters()


def place_of(document: Document, paragraph: Paragraph) -> str:
    """`Audit guide > Scope, p. 3`: where a paragraph is, for people."""
    heading = paragraph.heading
    first = heading.split(" > ", 1)[0]
    whole = heading if first in ("", document.name) else f"{document.name}: {heading}"
    at = f", p. {paragraph.page}" if paragraph.page else f", line {paragraph.line}" if paragraph.line else ""
    return f"{whole or document.name}{at}"


def base_folder(places: Places, workspace: Path, where: Where) -> Path:
    """The folder of the base of a workspace or of the user; it may not exist yet."""
    return (places.data if where == "user" else workspace_path(places, workspace)) / "knowledge"


def has_base(folder: Path) -> bool:
    return (folder / FILE).is_file()


class KnowledgeBase:
    """One base in its folder. Methods block; they may be called from several threads."""

    def __init__(self, folder: Path, model: "EmbeddingModel | None" = None) -> None:
        _use_one_blas_thread()
        self.folder = make_private(folder)
        self.store = KnowledgeStore(folder)
        self.vectors = VectorFiles(folder)
        self._read_dimensions()
        self.words = WordSearch(self.store)
        self.model = model or EmbeddingModel("", _no_model, "no embedding model is set up.")
        self._failed = ""
        """Why the last search went by words alone; empty if it did not, or was to."""

    def close(self) -> None:
        self.store.close()

    @cached_property
    def encoder(self) -> Encoder | None:
        """The embedding model, loaded; None if it is not on this machine."""
        return None if self.model.missing else self.model.load()

    def reload_model(self, model: EmbeddingModel) -> None:
        """Use this embedding model from now on, for example after it was downloaded."""
        self.model = model
        self.__dict__.pop("encoder", None)

    # Search

    def search(
        self,
        query: str,
        limit: int = 10,
        filters: Filters = EVERYTHING,
        *,
        expand: bool = False,
        rerank: bool = False,
    ) -> list[Hit]:
        """The best paragraphs, by words and by meaning; by words alone without vectors (see `status`)."""
        if not query.strip():
            return []
        vector = self._query_vector(query)
        with self.store.snapshot():
            asked = " ".join([query, *self.expansions(query)]) if expand else query
            documents = self._chosen(filters)
            by_words = self.words.search(asked, self.store.last_number(), documents)
            by_meaning = self._nearest(vector, documents) if vector is not None else {}
            ranked = fuse_searches(by_words, by_meaning)
            numbers = ranked.numbers[: max(limit, 50) if rerank else limit]
            hits = self._hits(numbers, ranked.scores, by_words, by_meaning)
            return rerank_hits(query, hits)[:limit] if rerank else hits

    def search_tiers(
        self, query: str, quotas: Mapping[str, int], filters: Filters = EVERYTHING, **how: bool
    ) -> dict[str, list[Hit]]:
        """The best of each tier, tiers in their order: guides, standards, code, then the others."""
        known = self.store.tiers()
        order = sorted(
            quotas,
            key=lambda tier: (
                tier not in TIER_ORDER,
                TIER_ORDER.index(tier) if tier in TIER_ORDER else 0,
                tier,
            ),
        )
        found: dict[str, list[Hit]] = {}
        for tier in order:
            within = Filters(tier=tier, kind=filters.kind, documents=filters.documents)
            found[tier] = self.search(query, quotas[tier], within, **how) if tier in known else []
        return found

    def expansions(self, query: str) -> list[str]:
        """Other writings of the query's terms that the documents define: short forms and their long ones."""
        from handrail.knowledge.hops import term_keys

        found: list[str] = []
        for each in self.store.find_links("defines", "term", term_keys(query), 3):
            here, name = self.store.links_of(each.paragraph), each.link.label
            labels = {link.label for link in here if link.kind == "term" and link.role == "defines"} - {name}
            # Of a paragraph that defines several terms, only the two that belong together.
            found += (label for label in labels if _initials(label) == name or _initials(name) == label)
        known = normal_key(query)
        return list(dict.fromkeys(each for each in found if normal_key(each) not in known))[:MAX_EXPANSIONS]

    def _query_vector(self, query: str) -> "Vectors | None":
        self._failed = ""
        if not self._has_usable_vectors():
            return None
        try:
            encoder = self.encoder
            vector = encoder.encode([query])[0] if encoder else None
        except ModelProblem as problem:  # a provider that is out of reach is no reason to find nothing
            self._failed = f"The last search went by words alone: {problem}"
            return None
        return vector if vector is not None and len(vector) == self.vectors.dimensions else None

    def _has_usable_vectors(self) -> bool:
        """False also if they are of another model, which `status` tells."""
        self.vectors.dimensions = int(
            self.store.state(NUMBERS) or DIMENSIONS
        )  # another process may change it
        return self.store.slots_used() > 0 and self.store.state(MODEL) == self.model.name

    def _read_dimensions(self) -> None:
        """Another process may have made the vectors again, with another model."""
        self.vectors.dimensions = int(self.store.state(NUMBERS) or DIMENSIONS)

    def _nearest(self, vector: "Vectors", documents: Sequence[int] | None) -> dict[int, float]:
        found = self.vectors.search(vector, self.store.slots_used(), DEPTH, documents)
        numbers = self.store.by_slots([slot for slot, _ in found])
        return {numbers[slot]: cosine for slot, cosine in found if slot in numbers}

    def _chosen(self, filters: Filters) -> list[int] | None:
        if filters == EVERYTHING:
            return None
        if filters.documents:
            return [each.number for each in self.documents(filters)]
        return self.store.document_numbers(tier=filters.tier, kind=filters.kind)

    def _hits(
        self,
        numbers: Sequence[int],
        scores: Sequence[float],
        by_words: Iterable[int],
        by_meaning: Iterable[int],
    ) -> list[Hit]:
        words = {number: rank for rank, number in enumerate(by_words, start=1)}
        meaning = {number: rank for rank, number in enumerate(by_meaning, start=1)}
        score = dict(zip(numbers, scores, strict=False))
        documents: dict[int, Document | None] = {}
        hits = []
        for each in self.store.paragraphs(numbers):
            if each.document not in documents:
                documents[each.document] = self.store.document(each.document)
            if document := documents[each.document]:
                rank = words.get(each.number, 0), meaning.get(each.number, 0)
                hits.append(Hit(each, document, score[each.number], *rank))
        return hits

    # Documents and paragraphs

    def documents(self, filters: Filters = EVERYTHING) -> list[Document]:
        """Those that the filters allow; raises UsageProblem if one that they name is not there."""
        wanted = set(filters.documents)
        found = self.store.documents(tier=filters.tier, kind=filters.kind)
        chosen = [each for each in found if not wanted or {each.id, each.name, each.source} & wanted]
        missing = wanted - {name for each in chosen for name in (each.id, each.name, each.source)}
        for name in sorted(missing):
            self.document(name)
        return chosen

    def document(self, name: str) -> Document:
        """The document with this id, source, path or name; raises UsageProblem."""
        for found in (self.store.document_by_id(name), self.store.document_by_source(name)):
            if found:
                return found
        if "://" not in name and (found := self.store.document_by_source(os.path.abspath(name))):
            return found
        named = [each for each in self.store.documents() if each.name == name]
        if len(named) == 1:
            return named[0]
        if named:
            ids = ", ".join(each.id for each in named)
            raise UsageProblem(f"{len(named)} documents have the name {name!r}. Give one by its id: {ids}.")
        raise UsageProblem(f"There is no document {name!r}. `handrail kb list` shows all of them.")

    def paragraph(self, id: str) -> tuple[Paragraph, Document]:  # noqa: A002
        """The paragraph with this id, and its document; raises UsageProblem."""
        name, _, key = id.rpartition(":")
        document = self.store.document_by_id(name)
        found = self.store.paragraph(document.number, key) if document else None
        if document is None or found is None:
            raise UsageProblem(f"There is no paragraph {id!r}. A search shows the ids of what it finds.")
        return found, document

    def around(self, paragraph: Paragraph, before: int = 2, after: int = 2) -> list[Paragraph]:
        """The paragraph and its neighbours, in the order of the text."""
        first = max(0, paragraph.ordinal - before)
        return self.store.in_order(paragraph.document, first, paragraph.ordinal - first + 1 + after)

    def remove(self, documents: Sequence[Document]) -> None:
        """Remove documents completely: text, words, links, vectors."""
        with self.writing():
            self.store.remove([each.number for each in documents])
            self._clear_slots()

    # Writing

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Be the only writer; what a killed one left behind is cleaned up first."""
        with self.store.writing():
            self._read_dimensions()
            self._clear_slots()
            self.vectors.trim(self.store.slots_used())
            yield

    def _clear_slots(self) -> None:
        if slots := self.store.slots_to_clear():
            self.vectors.clear(slots)
            self.store.slots_cleared()

    def put(self, documents: Sequence[NewDocument]) -> None:
        """Add or replace documents in one transaction. Call it within `writing`."""
        self.store.put(documents)
        self._clear_slots()

    def waiting(self) -> Waiting:
        """What `embed` would make vectors of."""
        return self.store.waiting(everything=self.store.state(MODEL) != self.model.name)

    def embed(self, told: Callable[[int], None] = lambda _done: None) -> int:
        """Make the vectors that are missing; the number of them. Call it within `writing`.

        They are committed batch by batch: when the process is killed, the next call makes the rest.
        """
        encoder = self.encoder
        if encoder is None:
            return 0
        if self.store.state(MODEL) != self.model.name:
            self.forget_vectors()
            self.store.set_state(MODEL, self.model.name)
        done = 0
        while batch := self.store.without_vector(EMBED_BATCH):
            vectors = encoder.encode([embedded_text(heading, text) for _, _, heading, text in batch])
            if vectors.shape[1] != self.vectors.dimensions:
                others = self.store.slots_used()
                self.forget_vectors(vectors.shape[1])
                if others:
                    continue
            slots = self.store.next_slots(len(batch))
            self.vectors.write(slots, [document for _, document, _, _ in batch], vectors)
            numbers = (number for number, _, _, _ in batch)
            self.store.set_slots(list(zip(slots, numbers, strict=True)))
            done += len(batch)
            told(done)
        return done

    def forget_vectors(self, numbers: int = DIMENSIONS) -> None:
        """Drop all vectors: `embed` makes them again, of so many numbers. Call it within `writing`."""
        self.store.forget_vectors()
        self.store.set_state(NUMBERS, str(numbers))
        self.vectors.remove(numbers)

    def status(self) -> Status:
        counts = self.store.counts()
        files = self.vectors.size + sum(
            path.stat().st_size for path in self.folder.glob(f"{FILE}*") if path.is_file()
        )
        found = not self.model.missing and counts.without_vector < counts.paragraphs
        return Status(
            folder=str(self.folder),
            documents=counts.documents,
            paragraphs=counts.paragraphs,
            without_vector=counts.without_vector,
            tiers=self.store.tiers(),
            bytes=files,
            meaning=found and self._has_usable_vectors(),
            note=self._note(counts.paragraphs, counts.without_vector),
        )

    def _note(self, paragraphs: int, without: int) -> str:
        if self._failed:
            return self._failed
        if self.model.missing:
            return f"Search is by words alone, not by meaning: {self.model.missing}"
        if paragraphs and self.store.state(MODEL) not in ("", self.model.name):
            return "The vectors are of another model. `handrail kb index` makes them again."
        if without:
            some = f"{without:,} of {paragraphs:,} paragraphs have no vector yet"
            return f"{some}. `handrail kb index` makes them."
        return ""


def _no_model() -> Encoder:
    raise AssertionError("there is no model to load")


def embedded_text(heading: str, text: str) -> str:
    """What the vector of a paragraph is made of."""
    return f"{heading}\n{text}" if heading else text


def _initials(label: str) -> str:
    words = [
        word
        for word in label.replace("-", " ").split()
        if word.lower() not in ("of", "and", "the", "for", "in")
    ]
    return "".join(word[0].upper() for word in words) if len(words) > 1 else ""


def _use_one_blas_thread() -> None:
    """Let numpy multiply in one thread: several wait for one another whenever the machine is busy."""
    if "numpy" not in sys.modules:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        os.environ.setdefault("OMP_NUM_THREADS", "1")
