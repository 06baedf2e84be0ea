"""The SQLite file of a knowledge base: documents, their paragraphs, the word index, the links."""

import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from handrail.config.files import FileLock
from handrail.protocol.errors import StorageBusy
from handrail.storage.database import truncate_wal
from handrail.storage.knowledge.rows import (
    Document,
    Link,
    LinkKind,
    NewDocument,
    NewParagraph,
    Paragraph,
    Role,
)
from handrail.storage.knowledge.tables import connect, knowledge_errors, transaction

FILE = "knowledge.db"
LOCK_SECONDS = 1.0
MANY = 500
"""Values in one `IN (...)`."""
DOCUMENT_COLUMNS = "number, id, source, name, tier, kind, sha256, size, at, paragraphs, notice"
PARAGRAPH_COLUMNS = (
    *(
        "p.number",
        "p.document",
        "d.id || ':' || p.key",
        "p.ordinal",
        "p.heading",
        "p.text",
        "p.start",
        "p.line",
    ),
    *("p.page", "p.slot"),
)
PARAGRAPHS = (
    f"SELECT {', '.join(PARAGRAPH_COLUMNS)} FROM paragraphs p JOIN documents d ON d.number = p.document"
)

UNRELATED = (
    "FROM paragraphs WHERE NOT EXISTS (SELECT 1 FROM links WHERE paragraph = paragraphs.number"
    " AND role = 'refers' AND kind = 'entity' AND key = '')"
)


class Counts(NamedTuple):
    documents: int
    paragraphs: int
    without_vector: int


class Waiting(NamedTuple):
    """Paragraphs that something has not been done for yet, and their characters."""

    paragraphs: int
    characters: int


class FoundLink(NamedTuple):
    paragraph: int
    link: Link


class KnowledgeStore:
    """One knowledge base. Readers may be many; a writer holds `writing` and is alone."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / FILE
        self._connection = connect(self.path)
        self._guard = threading.RLock()

    def close(self) -> None:
        self._connection.close()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Be the only writer; raises StorageBusy while another process adds or removes documents."""
        with FileLock(self.folder / "writer.lock") as lock:
            if not lock.wait(LOCK_SECONDS):
                raise StorageBusy(
                    f"Another process is changing the knowledge base in {self.folder}. Wait until it is done."
                )
            yield

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Everything read in the block is of one moment; other threads wait."""
        with self._guard, knowledge_errors(self.path):
            self._connection.execute("BEGIN")
            try:
                yield
            finally:
                self._connection.execute("COMMIT")

    def version(self) -> int:
        """A number that changes with every commit, of this process or another."""
        (count,) = self._row("SELECT total_changes()")
        (version,) = self._row("PRAGMA data_version")
        return int(count) + int(version) * 1_000_003

    # Documents

    def documents(self, *, tier: str = "", kind: str = "") -> list[Document]:
        """All documents, by name; only those of a tier or kind, if these are given."""
        query = (
            f"SELECT {DOCUMENT_COLUMNS} FROM documents WHERE (? = '' OR tier = ?) AND (? = '' OR kind = ?)"
        )
        return [Document(*row) for row in self._rows(f"{query} ORDER BY name, id", tier, tier, kind, kind)]

    def document_numbers(self, *, tier: str, kind: str) -> list[int] | None:
        """The numbers of the documents of a tier and kind; None if that is all of them."""
        query = "SELECT number FROM documents WHERE (? = '' OR tier = ?) AND (? = '' OR kind = ?)"
        found = [number for (number,) in self._rows(query, tier, tier, kind, kind)]
        return None if len(found) == self._row("SELECT count(*) FROM documents")[0] else found

    def document(self, number: int) -> Document | None:
        return self._document("number = ?", number)

    def document_by_source(self, source: str) -> Document | None:
        return self._document("source = ?", source)

    def document_by_id(self, id: str) -> Document | None:  # noqa: A002
        return self._document("id = ?", id)

    def _document(self, where: str, value: object) -> Document | None:
        row = self._row(f"SELECT {DOCUMENT_COLUMNS} FROM documents WHERE {where}", value)
        return Document(*row) if row else None

    def counts(self) -> Counts:
        row = self._row(
            "SELECT count(*), coalesce(sum(paragraphs), 0),"
            " (SELECT count(*) FROM paragraphs WHERE slot IS NULL) FROM documents"
        )
        return Counts(*row)

    def last_number(self) -> int:
        """The number of the last paragraph: about how many there are, known at once."""
        return int(self._row("SELECT coalesce(max(number), 0) FROM paragraphs")[0])

    def tiers(self) -> dict[str, int]:
        """The paragraphs of each tier."""
        return dict(self._rows("SELECT tier, sum(paragraphs) FROM documents GROUP BY tier ORDER BY tier"))

    def put(self, documents: Iterable[NewDocument]) -> None:
        """Add the documents or replace those with the same source, in one transaction.

        A paragraph whose text and heading are as before keeps its vector.
        """
        with self._guard, transaction(self._connection, self.path):
            for document in documents:
                self._put(document)

    def _put(self, new: NewDocument) -> None:
        run = self._connection.execute
        found = run("SELECT number FROM documents WHERE source = ?", (new.source,)).fetchone()
        values = (
            *(new.id, new.source, new.name, new.tier, new.kind, new.sha256, new.size),
            *(round(time.time() * 1000), len(new.paragraphs), new.notice),
        )
        before: dict[tuple[str, str], int] = {}
        if found:
            number: int = found[0]
            run(
                "UPDATE documents SET (id, source, name, tier, kind, sha256, size, at, paragraphs, notice) ="
                " (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) WHERE number = ?",
                (*values, number),
            )
            rows = run("SELECT key, heading, number FROM paragraphs WHERE document = ?", (number,))
            before = {(key, heading): row for key, heading, row in rows}
        else:
            inserted = run(
                "INSERT INTO documents (id, source, name, tier, kind, sha256, size, at, paragraphs, notice)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                values,
            )
            number = inserted.lastrowid or 0
        kept = {(each.key, each.heading) for each in new.paragraphs}
        self._delete_paragraphs([row for key, row in before.items() if key not in kept])
        for ordinal, each in enumerate(new.paragraphs):
            self._put_paragraph(number, ordinal, each, before.get((each.key, each.heading)))

    def _put_paragraph(self, document: int, ordinal: int, new: NewParagraph, row: int | None) -> None:
        run = self._connection.execute
        if row is None:
            inserted = run(
                "INSERT INTO paragraphs (document, key, ordinal, heading, text, start, line, page)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (document, new.key, ordinal, new.heading, new.text, new.start, new.line, new.page),
            )
            row = inserted.lastrowid or 0
            run("INSERT INTO words (rowid, heading, text) VALUES (?, ?, ?)", (row, new.heading, new.text))
        else:
            run(
                "UPDATE paragraphs SET (ordinal, start, line, page) = (?, ?, ?, ?) WHERE number = ?",
                (ordinal, new.start, new.line, new.page, row),
            )
            run("DELETE FROM links WHERE paragraph = ? AND kind <> 'entity'", (row,))
        self._connection.executemany(
            "INSERT OR IGNORE INTO links (paragraph, role, kind, key, label) VALUES (?, ?, ?, ?, ?)",
            ((row, each.role, each.kind, each.key, each.label) for each in new.links),
        )

    def remove(self, numbers: Sequence[int]) -> None:
        """Remove documents with all that was made of them; their text is overwritten in the file, too.

        Their vectors are gone when `clear_slots` was called.
        """
        run = self._connection.execute
        with self._guard, knowledge_errors(self.path):
            run("PRAGMA secure_delete = ON")
        try:
            with self._guard, transaction(self._connection, self.path):
                for number in numbers:
                    rows = run("SELECT number FROM paragraphs WHERE document = ?", (number,)).fetchall()
                    self._delete_paragraphs([row for (row,) in rows])
                    run("DELETE FROM documents WHERE number = ?", (number,))
                run("INSERT INTO words (words) VALUES ('optimize')")  # else removed words stay in the index
        finally:
            with self._guard, knowledge_errors(self.path):
                run("PRAGMA secure_delete = OFF")
        with self._guard, knowledge_errors(self.path):
            truncate_wal(self._connection)

    def _delete_paragraphs(self, numbers: list[int]) -> None:
        run = self._connection.execute
        for number in numbers:
            row = run("SELECT heading, text, slot FROM paragraphs WHERE number = ?", (number,)).fetchone()
            heading, text, slot = row
            run(
                "INSERT INTO words (words, rowid, heading, text) VALUES ('delete', ?, ?, ?)",
                (number, heading, text),
            )
            if slot is not None:
                run("INSERT INTO free_slots (slot, cleared) VALUES (?, 0)", (slot,))
            run("DELETE FROM links WHERE paragraph = ?", (number,))
            run("DELETE FROM paragraphs WHERE number = ?", (number,))

    # Paragraphs

    def paragraphs(self, numbers: Sequence[int]) -> list[Paragraph]:
        """These paragraphs, in this order; those that are gone are left out."""
        found = {
            row[0]: Paragraph(*row) for row in self._in(f"{PARAGRAPHS} WHERE p.number IN ({{}})", numbers)
        }
        return [found[number] for number in numbers if number in found]

    def paragraph(self, document: int, key: str) -> Paragraph | None:
        row = self._row(f"{PARAGRAPHS} WHERE p.document = ? AND p.key = ?", document, key)
        return Paragraph(*row) if row else None

    def in_order(self, document: int, first: int, count: int) -> list[Paragraph]:
        """Paragraphs of a document in the order of its text, from the one with this ordinal."""
        query = f"{PARAGRAPHS} WHERE p.document = ? AND p.ordinal >= ? ORDER BY p.ordinal LIMIT ?"
        return [Paragraph(*row) for row in self._rows(query, document, first, count)]

    # Links

    def links_of(self, paragraph: int) -> list[Link]:
        rows = self._rows("SELECT role, kind, key, label FROM links WHERE paragraph = ?", paragraph)
        return [Link(*row) for row in rows]

    def find_links(self, role: Role, kind: LinkKind, keys: Sequence[str], most: int) -> list[FoundLink]:
        """Links with one of these keys; at most so many of each key, in the order of the base."""
        query = (
            "SELECT paragraph, role, kind, key, label FROM links"
            f" WHERE kind = '{kind}' AND role = '{role}' AND key IN ({{}}) ORDER BY key, paragraph"
        )
        found: list[FoundLink] = []
        seen: dict[str, int] = {}
        for number, *link in self._in(query, keys):
            each = Link(*link)
            seen[each.key] = seen.get(each.key, 0) + 1
            if seen[each.key] <= most:
                found.append(FoundLink(number, each))
        return found

    def without_relations(self) -> Waiting:
        """The paragraphs in which no model has looked for relations."""
        return Waiting(*self._row(f"SELECT count(*), coalesce(sum(length(text)), 0) {UNRELATED}"))

    def next_without_relations(self) -> list[tuple[int, str]]:
        """Some of them: number and text."""
        return self._rows(f"SELECT number, text {UNRELATED} ORDER BY number LIMIT {MANY}")

    def put_relations(self, paragraph: int, links: Sequence[Link]) -> None:
        """Keep what a model has found in a paragraph, and that it has looked."""
        looked = Link("refers", "entity", "", "")
        with self._guard, transaction(self._connection, self.path):
            self._connection.executemany(
                "INSERT OR REPLACE INTO links (paragraph, role, kind, key, label) VALUES (?, ?, ?, ?, ?)",
                ((paragraph, each.role, each.kind, each.key, each.label) for each in (looked, *links)),
            )

    # The word index

    def count_matches(self, expression: str, most: int) -> int:
        """How many paragraphs match an FTS5 expression, counted up to so many."""
        query = "SELECT count(*) FROM (SELECT 1 FROM words WHERE words MATCH ? LIMIT ?)"
        return int(self._row(query, expression, most)[0])

    def match(
        self, expression: str, limit: int, most: int, documents: Sequence[int] | None = None
    ) -> list[tuple[int, float]]:
        """The best matches with their bm25, the best (lowest) first; only the first `most` are looked at."""
        within = ""
        if documents is not None:
            chosen = ",".join(str(int(number)) for number in documents)
            within = f" AND (SELECT document FROM paragraphs WHERE number = words.rowid) IN ({chosen})"
        query = (
            "SELECT number, score FROM"
            f" (SELECT rowid AS number, rank AS score FROM words WHERE words MATCH ?{within} LIMIT ?)"
            " ORDER BY score, number LIMIT ?"
        )
        return [(number, score) for number, score in self._rows(query, expression, most, limit)]

    # Vectors

    def without_vector(self, limit: int) -> list[tuple[int, int, str, str]]:
        """Paragraphs that still need a vector: number, document, heading, text."""
        query = "SELECT number, document, heading, text FROM paragraphs WHERE slot IS NULL LIMIT ?"
        return list(self._rows(query, limit))

    def waiting(self, *, everything: bool) -> Waiting:
        """What needs a vector; `everything`: also what has one."""
        query = (
            "SELECT count(*), coalesce(sum(length(heading) + length(text)), 0) FROM paragraphs"
            " WHERE ? OR slot IS NULL"
        )
        return Waiting(*self._row(query, everything))

    def next_slots(self, count: int) -> list[int]:
        """Slots for so many vectors: those of removed ones first, then new ones."""
        free = [slot for (slot,) in self._rows("SELECT slot FROM free_slots ORDER BY slot LIMIT ?", count)]
        end = self.slots_used()
        return [*free, *range(end, end + count - len(free))]

    def slots_used(self) -> int:
        """How many slots the files of vectors have, free ones included."""
        row = self._row("SELECT value FROM state WHERE name = 'slots'")
        return int(row[0]) if row else 0

    def set_slots(self, slots: Sequence[tuple[int, int]]) -> None:
        """Commit where vectors were written: slot and paragraph."""
        with self._guard, transaction(self._connection, self.path):
            run = self._connection.execute
            end = max([self.slots_used(), *(slot + 1 for slot, _ in slots)])
            self._connection.executemany("UPDATE paragraphs SET slot = ? WHERE number = ?", slots)
            self._connection.executemany(
                "DELETE FROM free_slots WHERE slot = ?", ((slot,) for slot, _ in slots)
            )
            run("INSERT OR REPLACE INTO state (name, value) VALUES ('slots', ?)", (str(end),))

    def slots_to_clear(self) -> list[int]:
        """The slots whose removed vectors may still be in the files."""
        return [slot for (slot,) in self._rows("SELECT slot FROM free_slots WHERE cleared = 0")]

    def slots_cleared(self) -> None:
        with self._guard, transaction(self._connection, self.path):
            self._connection.execute("UPDATE free_slots SET cleared = 1")

    def forget_vectors(self) -> None:
        """All paragraphs need a vector again; the files can be removed."""
        with self._guard, transaction(self._connection, self.path):
            run = self._connection.execute
            run("UPDATE paragraphs SET slot = NULL WHERE slot IS NOT NULL")
            run("DELETE FROM free_slots")
            run("DELETE FROM state WHERE name = 'slots'")

    def by_slots(self, slots: Sequence[int]) -> dict[int, int]:
        """The paragraph of each slot that has one."""
        return dict(self._in("SELECT slot, number FROM paragraphs WHERE slot IN ({})", slots))

    def slots_of(self, documents: Sequence[int]) -> list[int]:
        query = "SELECT slot FROM paragraphs WHERE slot IS NOT NULL AND document IN ({})"
        return [slot for (slot,) in self._in(query, documents)]

    # State

    def state(self, name: str) -> str:
        """A value that was kept under this name; empty if there is none."""
        row = self._row("SELECT value FROM state WHERE name = ?", name)
        return str(row[0]) if row else ""

    def set_state(self, name: str, value: str) -> None:
        with self._guard, transaction(self._connection, self.path):
            self._connection.execute(
                "INSERT OR REPLACE INTO state (name, value) VALUES (?, ?)", (name, value)
            )

    def problems(self) -> list[str]:
        """What is wrong with the file; reads all of it."""
        found = [text for (text,) in self._rows("PRAGMA integrity_check(20)") if text != "ok"]
        with self._guard:
            try:
                self._connection.execute("INSERT INTO words (words, rank) VALUES ('integrity-check', 1)")
            except sqlite3.DatabaseError as error:
                found.append(f"the word index does not fit the paragraphs ({error})")
        return found

    def _rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        with self._guard, knowledge_errors(self.path):
            return self._connection.execute(query, values).fetchall()

    def _row(self, query: str, *values: object) -> Any:
        with self._guard, knowledge_errors(self.path):
            return self._connection.execute(query, values).fetchone()

    def _in(self, query: str, values: Sequence[object]) -> Iterator[tuple[Any, ...]]:
        """The rows of a query with `IN ({})`, asked in several steps where there are many values."""
        for start in range(0, len(values), MANY):
            some = values[start : start + MANY]
            yield from self._rows(query.format(",".join("?" * len(some))), *some)
