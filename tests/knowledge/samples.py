"""Documents and an encoder for tests of the knowledge base."""

import hashlib
import io
import zipfile
from collections.abc import Sequence
from typing import TYPE_CHECKING

from handrail.knowledge.base import EmbeddingModel
from handrail.knowledge.words import stems

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class WordEncoder:
    """Vectors by the stems of a text: texts with the same words are near one another."""

    def encode(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        import numpy as np

        found = np.zeros((len(texts), 384), np.float32)
        for index, text in enumerate(texts):
            for word in stems(text):
                digest = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "little")
                found[index] += np.random.default_rng(digest).standard_normal(384, np.float32)
            found[index] /= max(float(np.linalg.norm(found[index])), 1e-9)
        return found


WORDS = EmbeddingModel("words", WordEncoder)


def make_pdf(pages: Sequence[str], *, extra: bytes = b"", content: bytes | None = None) -> bytes:
    """A PDF with a text layer; the lines of a page are its lines."""
    objects: list[bytes] = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"",
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    kids = []
    for page in pages:
        lines = "".join(f"({_escaped(line)}) Tj 0 -14 Td " for line in page.split("\n"))
        stream = content if content is not None else f"BT /F1 12 Tf 72 720 Td {lines}ET".encode("latin-1")
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream))
        kids.append(len(objects) + 1)
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R"
            b" /Resources << /Font << /F1 3 0 R >> %s >> >>" % (len(objects), extra)
        )
    listed = b" ".join(b"%d 0 R" % number for number in kids)
    objects[1] = b"<< /Type /Pages /Kids [%s] /Count %d >>" % (listed, len(kids))
    return write_pdf(objects)


def write_pdf(objects: Sequence[bytes]) -> bytes:
    out = io.BytesIO()
    out.write(b"%PDF-1.4\n")
    places = []
    for number, each in enumerate(objects, start=1):
        places.append(out.tell())
        out.write(b"%d 0 obj\n%s\nendobj\n" % (number, each))
    start = out.tell()
    out.write(b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1))
    for place in places:
        out.write(b"%010d 00000 n \n" % place)
    out.write(b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, start))
    return out.getvalue()


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")


def endless_pdf() -> bytes:
    """A small PDF that takes minutes to read: thousands of pages show the same long text."""
    stream = b"BT /F1 12 Tf (again) Tj ET\n" * 5_000
    pages = range(5, 5 + 5_000)
    page = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 4 0 R"
    page += b" /Resources << /Font << /F1 3 0 R >> >> >>"
    return write_pdf(
        [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Kids [%s] /Count %d >>"
            % (b" ".join(b"%d 0 R" % number for number in pages), len(pages)),
            b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
            b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream),
            *[page] * len(pages),
        ]
    )


def encrypted_pdf() -> bytes:
    from pypdf import PdfReader, PdfWriter

    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(make_pdf(["A secret text"]))))
    writer.encrypt("password", algorithm="AES-256")
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def make_docx(*paragraphs: tuple[str, str]) -> bytes:
    """A DOCX of (style, text)."""
    from docx import Document

    document = Document()
    for style, text in paragraphs:
        document.add_paragraph(text, style=style or None)
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def zip_bomb() -> bytes:
    """A DOCX whose text unpacks to 300 MB."""
    out = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(make_docx(("", "x")))) as good,
        zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive,
    ):
        for name in good.namelist():
            if name != "word/document.xml":
                archive.writestr(name, good.read(name))
        with archive.open("word/document.xml", "w", force_zip64=True) as member:
            block = b" " * (1 << 20)
            for _ in range(300):
                member.write(block)
    return out.getvalue()
