"""Cut a document into paragraphs: not too small to be understood, not too large for their vector."""

import hashlib
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator

from handrail.knowledge.documents.links import PARAGRAPH_NUMBER, Place, links_of
from handrail.knowledge.documents.parsed import Block, Parsed
from handrail.knowledge.words import normal_key, sentences
from handrail.storage.knowledge.rows import Link, NewDocument, NewParagraph

SMALL, LARGE = 200, 1_200
"""A paragraph shorter than the first is joined with the next, one longer than the second is split."""
KEY_DIGITS = 12
MAX_HEADING_PATH = 300


def cut(parsed: Parsed, *, name: str, source: str, tier: str, sha256: str, size: int) -> NewDocument:
    """The document as it is stored: every character of its blocks is in one paragraph, or is a heading."""
    title = parsed.title or name
    id_ = document_id(name, source)
    path: list[Block] = []
    group: list[Block] = []
    above: list[Block] = []
    made: list[NewParagraph] = []
    seen: Counter[str] = Counter()

    def flush() -> None:
        if not group:
            return
        heading = _heading_path(title, [each.name for each in path], group[0].name)
        whole = parsed.text[group[0].start : group[-1].end]
        place, first = Place(id_, source, parsed.kind), group[0]
        before, line = 0, first.line
        for start, text in _pieces(whole):
            line += whole.count("\n", before, start) if line else 0
            before = start
            made.append(
                NewParagraph(
                    key=paragraph_key(text, seen),
                    heading=heading,
                    text=text,
                    start=first.start + start,
                    line=line,
                    page=first.page,
                    links=tuple(links_of(text, group, above, place)),
                )
            )
            group.clear()
            above.clear()

    for block in parsed.blocks:
        if block.level:
            flush()
            if above and block.level <= above[-1].level:
                group.append(above.pop())  # a heading without a text of its own is a paragraph
                flush()
            path = [each for each in path if each.level < block.level]
            path.append(block)
            above.append(block)
            continue
        if group and not _belong_together(group, block, parsed.text):
            flush()
        group.append(block)
    flush()
    if above:
        group.append(above.pop())
        flush()
    if made:
        start = (
            Link("defines", "target", source, title),
            Link("defines", "document", normal_key(title), title),
        )
        made[0] = _with_links(made[0], (*start, Link("defines", "document", normal_key(name), name)))
    return NewDocument(
        id=id_,
        source=source,
        name=name,
        tier=tier,
        kind=parsed.kind,
        sha256=sha256,
        size=size,
        paragraphs=tuple(made),
        notice=parsed.notice,
    )


def _belong_together(group: list[Block], block: Block, text: str) -> bool:
    """Whether a block goes into the paragraph of those before it: while that is small."""
    first, length = group[0], group[-1].end - group[0].start
    small = length < SMALL and length + block.end - block.start <= LARGE
    numbered = PARAGRAPH_NUMBER.match(text, block.start, block.end)
    return small and not numbered and (first.page, first.name) == (block.page, block.name)


def _with_links(paragraph: NewParagraph, links: tuple[Link, ...]) -> NewParagraph:
    from msgspec.structs import replace

    return replace(paragraph, links=(*links, *paragraph.links))


def document_id(name: str, source: str) -> str:
    """Readable, and the same for the same source."""
    words = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40].strip("-")
    return f"{words or 'document'}-{hashlib.sha256(source.encode()).hexdigest()[:8]}"


def paragraph_key(text: str, seen: "Counter[str]") -> str:
    """The key of the next paragraph with this text in a document."""
    digest = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:KEY_DIGITS]
    seen[digest] += 1
    return digest if seen[digest] == 1 else f"{digest}-{seen[digest]}"


def _heading_path(title: str, names: list[str], symbol: str) -> str:
    parts = [
        title,
        *(name for name in names if name != title),
        *([symbol] if symbol and symbol not in names else []),
    ]
    return " > ".join(filter(None, parts))[:MAX_HEADING_PATH]


def _pieces(text: str) -> Iterator[tuple[int, str]]:
    """The text, split at lines or sentences if it is too large; every character that is not blank is kept."""
    if len(text) <= LARGE:
        yield 0, text
        return
    wanted = LARGE * 3 // 4
    start = 0
    breaks = _break_points(text)
    while len(text) - start > LARGE:
        end = start + wanted
        low, high = bisect_left(breaks, start + wanted // 2), bisect_right(breaks, start + LARGE)
        good = min(breaks[low:high], key=lambda point: abs(point - end), default=0)
        cut_at = good or _blank_before(text, start, start + LARGE)
        if piece := text[start:cut_at].strip():
            yield start + text[start:cut_at].index(piece), piece
        start = cut_at
    if piece := text[start:].strip():
        yield start + text[start:].index(piece), piece


def _break_points(text: str) -> list[int]:
    ends = [span.start for span in sentences(text)]
    return sorted({*ends, *(found.end() for found in re.finditer(r"\n", text))})


def _blank_before(text: str, start: int, end: int) -> int:
    at = max(text.rfind(" ", start + LARGE // 2, end), text.rfind("\n", start + LARGE // 2, end))
    return at if at > start else end
