"""HTML, PDF and DOCX as blocks; run in a child process, because such files can be made to harm a reader."""

import io
import re
import zipfile
from html.parser import HTMLParser
from typing import TYPE_CHECKING

from handrail.knowledge.documents.parsed import Block, Parsed, Reference, Unreadable
from handrail.knowledge.documents.plain import slug

if TYPE_CHECKING:
    from pypdf import PdfReader

MAX_UNPACKED = 200_000_000
"""Bytes of the parts of a DOCX, unpacked."""
MAX_PAGES = 10_000
SKIPPED = {"script", "style", "noscript", "template", "svg", "iframe", "object", "head"}
BLOCKS = re.compile(
    r"address|article|aside|blockquote|d[dlt]|div|fieldset|figcaption|figure|footer|form|h[1-6]|header|hr|li|main"
    r"|nav|ol|p|pre|section|table|tr|ul|body|html"
)
HEADING_STYLE = re.compile(r"heading (\d)")


class _Builder:
    """Collects blocks and the text that they are parts of."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.length = 0
        self.blocks: list[Block] = []

    def add(self, text: str, *, level: int = 0, line: int = 0, page: int = 0, **more: object) -> None:
        if not text.strip():
            return
        if self.parts:
            self.parts.append("\n\n")
            self.length += 2
        name = " ".join(text.split()) if level else ""
        block = Block(
            start=self.length, end=self.length + len(text), level=level, name=name, line=line, page=page
        )
        self.blocks.append(_with(block, more) if more else block)
        self.parts.append(text)
        self.length += len(text)

    @property
    def text(self) -> str:
        return "".join(self.parts)


def _with(block: Block, more: dict[str, object]) -> Block:
    from msgspec.structs import replace

    return replace(block, **more)


def parse_html(data: bytes) -> Parsed:
    """The text that a reader of the page would see; nothing is run or loaded."""
    text = data.decode(_charset(data), errors="replace")
    reader = _HtmlReader()
    reader.feed(text)
    reader.close()
    reader.end_block()
    title = " ".join("".join(reader.title).split())
    return Parsed(kind="html", text=reader.out.text, blocks=tuple(reader.out.blocks), title=title)


def _charset(data: bytes) -> str:
    import codecs

    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    found = re.search(rb"charset\s*=\s*[\"']?\s*([\w-]{1,40})", data[:2048])
    name = found[1].decode() if found else "utf-8"
    try:
        codecs.lookup(name)
        "".encode(name)
    except (LookupError, UnicodeError):
        return "utf-8"
    return name


class _HtmlReader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.out = _Builder()
        self.title: list[str] = []
        self._skipped: list[str] = []
        self._words: list[str] = []
        self._line = 0
        self._level = 0
        self._anchor = ""
        self._preformatted = 0
        self._in_title = False
        self._links: list[Reference] = []
        self._link: tuple[str, int] | None = None

    def parse_html_declaration(self, i: int) -> int:
        # The parser fails on sections of this kind that it does not know.
        if self.rawdata.startswith("<![", i):
            return self.parse_bogus_comment(i)
        return super().parse_html_declaration(i)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "title":
            self._in_title = True
        elif tag == "body":  # a head that was never closed does not hide the page
            self._skipped = [name for name in self._skipped if name != "head"]
            self._in_title = False
        if tag in SKIPPED:
            self._skipped.append(tag)
        if BLOCKS.fullmatch(tag) or tag == "br":
            if tag == "br":
                self._words.append("\n")
            else:
                self.end_block()
        values = dict(attrs)
        if anchor := values.get("id") or (values.get("name") if tag == "a" else ""):
            self._anchor = self._anchor or anchor[:80]
        if tag in ("h1", "h2", "h3", "h4", "h5", "h6"):
            self._level = int(tag[1])
        elif tag == "pre":
            self._preformatted += 1
        elif tag == "li":
            self._words.append("- ")
        elif tag in ("td", "th") and self._words:
            self._words.append(" | ")
        elif tag == "a" and (target := values.get("href")):
            self._link = (target[:500], len(self._words))

    def handle_endtag(self, tag: str) -> None:
        if tag == "title":
            self._in_title = False
        if tag in self._skipped:
            while self._skipped.pop() != tag:
                pass
        if tag == "a" and self._link:
            target, since = self._link
            self._links.append(
                Reference(target=target, label=" ".join("".join(self._words[since:]).split())[:200])
            )
            self._link = None
        if BLOCKS.fullmatch(tag):
            self.end_block()
        if tag == "pre" and self._preformatted:
            self._preformatted -= 1

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.title.append(data)
        elif not self._skipped:
            if not self._line and data.strip():
                self._line = self.getpos()[0]
            self._words.append(data if self._preformatted else re.sub(r"\s+", " ", data))

    def end_block(self) -> None:
        text = "".join(self._words).strip("\n") if self._preformatted else _tidy("".join(self._words))
        level = self._level
        if text.strip(" -\n"):
            anchor = self._anchor or (slug(text) if level else "")
            references = tuple(self._links)
            self.out.add(text, level=level, line=self._line, anchor=anchor, references=references)
            self._anchor, self._links = "", []
        self._words, self._line, self._level, self._link = [], 0, 0, None


def _tidy(text: str) -> str:
    return "\n".join(filter(None, (line.strip() for line in text.split("\n"))))


def parse_pdf(data: bytes) -> Parsed:
    """The text layer, page by page; headings from the bookmarks."""
    from pypdf import PdfReader
    from pypdf.errors import PyPdfError

    try:
        reader = PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            raise Unreadable("is encrypted. Save a copy without a password, and add that.")
        return _pdf_pages(reader)
    except RecursionError as error:
        raise Unreadable("is a broken PDF: its parts refer to one another in a circle.") from error
    except (PyPdfError, ValueError, KeyError, TypeError, AttributeError, IndexError, OSError) as error:
        raise Unreadable(f"is a broken PDF ({type(error).__name__}: {str(error)[:120]}).") from error


def _pdf_pages(reader: "PdfReader") -> Parsed:
    pages = len(reader.pages)
    if pages > MAX_PAGES:
        raise Unreadable(f"has {pages:,} pages, more than {MAX_PAGES:,}. Split it.")
    out, empty = _Builder(), list[int]()
    bookmarks = _bookmarks(reader)
    for number, page in enumerate(reader.pages, start=1):
        text = page.extract_text().replace("\0", "").replace("\r\n", "\n")
        for level, name in bookmarks.get(number, ()):
            out.add(name, level=level, page=number)
        paragraphs = [each.strip() for each in re.split(r"\n\s*\n", text) if each.strip()]
        for each in paragraphs:
            out.add(each, page=number)
        if not paragraphs:
            empty.append(number)
    if len(empty) == pages:
        raise Unreadable("has no text, only pictures of pages. Run a text recognition (OCR) over it first.")
    notice = f"No text on {len(empty)} of {pages} pages (first: page {empty[0]})." if empty else ""
    title = str((reader.metadata and reader.metadata.title) or "")
    return Parsed(
        kind="pdf", text=out.text, blocks=tuple(out.blocks), title=" ".join(title.split()), notice=notice
    )


def _bookmarks(reader: "PdfReader") -> dict[int, list[tuple[int, str]]]:
    found: dict[int, list[tuple[int, str]]] = {}

    def walk(items: list[object], level: int) -> None:
        for item in items:
            if isinstance(item, list):
                walk(item, level + 1)
            else:
                number = reader.get_destination_page_number(item)  # type: ignore[arg-type]
                name = " ".join(str(getattr(item, "title", "")).split())
                if number is not None and name:
                    found.setdefault(number + 1, []).append((min(level, 6), name))

    walk(list(reader.outline), 1)
    return found


def parse_docx(data: bytes) -> Parsed:
    """Paragraphs and tables in their order; headings by their styles."""
    from docx import Document
    from docx.opc.exceptions import OpcError
    from docx.table import Table
    from lxml.etree import LxmlError  # type: ignore[import-untyped]

    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            unpacked = sum(each.file_size for each in archive.infolist())
            if unpacked > MAX_UNPACKED:
                raise Unreadable(f"unpacks to {unpacked / 1e6:,.0f} MB, which no document needs.")
        document = Document(io.BytesIO(data))
        out, title = _Builder(), ""
        for each in document.iter_inner_content():
            if isinstance(each, Table):
                rows = (" | ".join(" ".join(cell.text.split()) for cell in row.cells) for row in each.rows)
                out.add("\n".join(row for row in rows if row.strip(" |")))
                continue
            style = (each.style.name or "").lower() if each.style else ""
            if style == "title":
                title = title or " ".join(each.text.split())
            found = HEADING_STYLE.match(style)
            level = 1 if style == "title" else min(6, int(found[1])) if found else 0
            links = tuple(
                Reference(target=link.url[:500], label=link.text[:200])
                for link in each.hyperlinks
                if link.url
            )
            anchor = slug(each.text) if level else ""
            out.add(each.text.strip(), level=level, references=links, anchor=anchor)
    except (OpcError, LxmlError, zipfile.BadZipFile, zipfile.LargeZipFile) as error:
        raise Unreadable(f"is a broken DOCX ({type(error).__name__}: {str(error)[:120]}).") from error
    except (ValueError, KeyError, AttributeError, IndexError, EOFError, OSError, RecursionError) as error:
        raise Unreadable(f"is a broken DOCX ({type(error).__name__}: {str(error)[:120]}).") from error
    if not out.blocks:
        raise Unreadable("has no text.")
    title = title or " ".join((document.core_properties.title or "").split())
    return Parsed(kind="docx", text=out.text, blocks=tuple(out.blocks), title=title)
