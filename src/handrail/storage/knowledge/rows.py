"""What a knowledge base stores: documents, paragraphs, links between them."""

from typing import Literal

from handrail.protocol.values import Value

Role = Literal["defines", "refers"]
LinkKind = Literal["section", "term", "document", "symbol", "target", "entity"]
"""A numbered section, a defined term, a document by its title, a name in code, a target of links, and
something that a model has found to be related to others."""


class Link(Value):
    """Something that a paragraph defines, or refers to, by which another one is found."""

    role: Role
    kind: LinkKind
    key: str
    label: str = ""


class NewParagraph(Value):
    key: str
    """Its id within the document: the same for the same text."""
    heading: str
    text: str
    start: int
    line: int = 0
    page: int = 0
    links: tuple[Link, ...] = ()


class NewDocument(Value):
    id: str
    source: str
    name: str
    tier: str
    kind: str
    sha256: str
    size: int
    paragraphs: tuple[NewParagraph, ...]
    notice: str = ""


class Document(Value):
    """A document in the base; `source` is an absolute path or a URL."""

    number: int
    id: str
    source: str
    name: str
    tier: str
    kind: str
    sha256: str
    size: int
    at: int
    """When it was added, in milliseconds since 1970."""
    paragraphs: int
    notice: str = ""


class Paragraph(Value):
    """A paragraph with its place: `start` and `end` are offsets in the document's text, in characters."""

    number: int
    document: int
    id: str
    """`DOCUMENT:KEY`, which stays the same as long as its text does."""
    ordinal: int
    heading: str
    text: str
    start: int
    line: int
    page: int
    slot: int | None = None

    @property
    def end(self) -> int:
        return self.start + len(self.text)
