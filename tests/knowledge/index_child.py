"""Indexes the same documents every time, one line of output for each commit: to be killed."""

import sys
from itertools import count
from pathlib import Path

from handrail.knowledge import base as base_module
from handrail.knowledge.base import KnowledgeBase
from handrail.storage.knowledge.rows import NewDocument, NewParagraph
from tests.knowledge.samples import WORDS

DOCUMENTS, PARAGRAPHS, BATCH = 60, 5, 16
LONG = 3_000
"""Paragraphs of the document that is replaced again and again."""


def text_of(document: int, paragraph: int) -> str:
    return f"Paragraph {paragraph} of document {document} speaks of item{document}x{paragraph} alone."


def document(number: int) -> NewDocument:
    paragraphs = tuple(
        NewParagraph(key=f"p{each}", heading=f"doc{number}", text=text_of(number, each), start=each * 100)
        for each in range(PARAGRAPHS)
    )
    source = f"/docs/{number}.md"
    return NewDocument(
        f"doc-{number}", source, f"{number}.md", "standard", "text", str(number), 1, paragraphs
    )


def version(number: int) -> NewDocument:
    """One document, another text in each of its paragraphs for each number."""
    paragraphs = tuple(
        NewParagraph(
            key=f"p{each}v{number}", heading="", text=f"Paragraph {each} of version {number}.", start=each
        )
        for each in range(LONG)
    )
    return NewDocument("long-1", "/docs/long.md", "long.md", "standard", "text", str(number), 1, paragraphs)


def told(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    base_module.EMBED_BATCH = BATCH
    base = KnowledgeBase(Path(sys.argv[1]), WORDS)
    if sys.argv[2:] == ["replace"]:
        with base.writing():
            before = base.store.document_by_source("/docs/long.md")
            for number in count(int(before.sha256) + 1 if before else 0):
                told(str(number))
                base.put([version(number)])
    with base.writing():
        for number in range(DOCUMENTS):
            if not base.store.document_by_source(f"/docs/{number}.md"):
                base.put([document(number)])
                told("document")
                if number % 20 == 19:
                    base.embed(lambda done: told(f"vectors {done}"))
        base.embed(lambda done: told(f"vectors {done}"))


if __name__ == "__main__":
    main()
