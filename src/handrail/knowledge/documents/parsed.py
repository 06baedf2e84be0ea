"""A document as text with the places of its blocks: what every reader of a kind of file returns."""

import os
from typing import Literal

from handrail.protocol.values import Value

Kind = Literal["markdown", "text", "html", "pdf", "docx", "code"]
ENDINGS: dict[str, Kind] = {
    **dict.fromkeys((".md", ".markdown", ".mdx"), "markdown"),
    **dict.fromkeys((".txt", ".text", ".rst", ".adoc", ".org", ".log", ".tex", ".csv", ".tsv"), "text"),
    **dict.fromkeys((".html", ".htm", ".xhtml"), "html"),
    ".pdf": "pdf",
    ".docx": "docx",
    **dict.fromkeys(
        (".py", ".pyi", ".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".go", ".rs"), "code"
    ),
    **dict.fromkeys(
        (".java", ".kt", ".c", ".h", ".cc", ".cpp", ".hpp", ".cs", ".rb", ".php", ".swift"), "code"
    ),
    **dict.fromkeys((".scala", ".sh", ".bash", ".sql", ".lua", ".pl", ".r", ".jl", ".ex", ".exs"), "code"),
    **dict.fromkeys((".css", ".scss", ".vue", ".toml", ".yaml", ".yml", ".json", ".xml", ".ini"), "code"),
}


class Reference(Value):
    """A link in the text: where it leads, and its words."""

    target: str
    label: str


class Block(Value):
    """A piece of the text: a heading (`level` 1 to 6) or anything else (0)."""

    start: int
    end: int
    level: int = 0
    name: str = ""
    """Of a heading: its words. Of code: what it defines."""
    line: int = 0
    page: int = 0
    anchor: str = ""
    references: tuple[Reference, ...] = ()


class Parsed(Value):
    """The text of a document; blocks are parts of it, in order, and do not overlap."""

    kind: Kind
    text: str
    blocks: tuple[Block, ...]
    title: str = ""
    notice: str = ""
    """What could not be read, for the user; empty if all was."""


class Unreadable(Exception):
    """Why a document cannot be read, as a sentence for the user that starts after its name."""


def kind_of(name: str, data: bytes) -> Kind:
    """The kind of a document by its content and name; raises Unreadable."""
    if data.startswith(b"%PDF-"):
        return "pdf"
    if data.startswith(b"\xd0\xcf\x11\xe0"):
        raise Unreadable("is an old or encrypted Office file. Save it as .docx without a password.")
    if data.startswith(b"PK\x03\x04"):
        if name.lower().endswith(".docx"):
            return "docx"
        raise Unreadable("is an archive. Unpack it, and add what is in it.")
    found = ENDINGS.get(os.path.splitext(name.lower())[1], "text")
    if found == "pdf":
        raise Unreadable("is no PDF: it does not begin like one.")
    if found == "docx":
        raise Unreadable("is no DOCX: it is not a zip archive.")
    return found


def decode_text(data: bytes) -> str:
    """UTF-8, or UTF-16 with its mark; raises Unreadable for other bytes."""
    try:
        if data.startswith((b"\xff\xfe", b"\xfe\xff")):
            return data.decode("utf-16")
        if b"\0" in data:
            raise Unreadable("is not text: it has zero bytes in it.")
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unreadable(f"is not UTF-8 text (byte {error.start:,}). Convert it to UTF-8.") from error
