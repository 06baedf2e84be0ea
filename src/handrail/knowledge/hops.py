"""Hop retrieval: from paragraphs to those they refer to, with the reason for every step."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from handrail.knowledge.words import STOP_WORDS, stem, tokens
from handrail.protocol.values import Value
from handrail.storage.knowledge.rows import Document, Paragraph
from handrail.storage.knowledge.store import FoundLink

if TYPE_CHECKING:
    from handrail.knowledge.base import KnowledgeBase

Why = Literal["start", "section", "term", "document", "symbol", "target", "referred", "relation"]
MAX_TERM_WORDS = 5
MAX_KEYS = 400
EACH_KEY = 4
"""Paragraphs that one key leads to."""
WRITTEN: tuple[Literal["target", "section", "symbol"], ...] = ("target", "section", "symbol")
"""The kinds that are found when a document is added, not only when something is looked for."""
SECTION_AFTER = r"[,.:]?\s*(?:\(|sections?|paragraphs?|articles?|§|para\.?)?\s*([A-Z]?\d+(?:\.\d+)*)"
DEFAULT_HOPS, DEFAULT_LIMIT, MAX_VISITED = 2, 20, 300
STRENGTH: dict[str, float] = {
    "start": 1.0,
    "target": 0.9,
    "section": 0.9,
    "referred": 0.7,
    "document": 0.6,
    "term": 0.6,
    "symbol": 0.6,
    "relation": 0.6,
}


class Step(Value):
    """One step of a trace: from which paragraph, by what, to which."""

    paragraph: str
    why: Why
    label: str
    source: str = ""
    """The paragraph that the step began at; empty for the start."""
    score: float = 1.0


class Reached(Value):
    paragraph: Paragraph
    document: Document
    score: float
    trace: tuple[Step, ...]
    """From the start to this paragraph."""


class HopTrace(Value):
    """Everything that a hop retrieval looked at."""

    reached: tuple[Reached, ...]
    considered: tuple[Step, ...]
    """All steps, also to paragraphs that were reached before or left out."""


def hop(
    base: "KnowledgeBase",
    start: Sequence[str],
    *,
    hops: int = DEFAULT_HOPS,
    limit: int = DEFAULT_LIMIT,
    tier: str = "",
) -> HopTrace:
    """The paragraphs that can be reached from these ids in so many steps, the strongest first.

    With a tier, only paragraphs of it are returned; others may be on the way. What is at the start is not.
    """
    with base.store.snapshot():
        documents: dict[int, Document | None] = {}

        def document(number: int) -> Document:
            if number not in documents:
                documents[number] = base.store.document(number)
            found = documents[number]
            if found is None:
                raise AssertionError("a paragraph has no document")
            return found

        begin = [base.paragraph(each)[0] for each in start]
        first = (Step(each.id, "start", "") for each in begin)
        reached = {
            each.number: Reached(each, document(each.document), 1.0, (step,))
            for each, step in zip(begin, first, strict=True)
        }
        edge, considered = list(begin), list[Step]()
        for _ in range(hops):
            following: list[Paragraph] = []
            for paragraph in edge:
                before = reached[paragraph.number]
                for number, why, label in _steps(base, paragraph):
                    if len(reached) >= MAX_VISITED or number == paragraph.number:
                        continue
                    found = reached[number].paragraph if number in reached else _paragraph(base, number)
                    if found is None:
                        continue
                    score = before.score * STRENGTH[why]
                    step = Step(found.id, why, label, paragraph.id, round(score, 4))
                    considered.append(step)
                    if number not in reached:
                        reached[number] = Reached(
                            found, document(found.document), score, (*before.trace, step)
                        )
                        following.append(found)
            edge = following
        started = {each.number for each in begin}
        result = [
            each
            for number, each in reached.items()
            if number not in started and tier in ("", each.document.tier)
        ]
        result.sort(key=lambda each: (-each.score, len(each.trace), each.paragraph.number))
        return HopTrace(tuple(result[:limit]), tuple(considered))


def _paragraph(base: "KnowledgeBase", number: int) -> Paragraph | None:
    found = base.store.paragraphs([number])
    return found[0] if found else None


def _steps(base: "KnowledgeBase", paragraph: Paragraph) -> list[tuple[int, Why, str]]:
    """Where one step leads from a paragraph: to what it refers to, and to what refers to it."""
    store, found = base.store, list[tuple[int, Why, str]]()
    links = store.links_of(paragraph.number)
    for kind in WRITTEN:
        wanted = {each.key: each.label for each in links if each.role == "refers" and each.kind == kind}
        for each in store.find_links("defines", kind, list(wanted), EACH_KEY):
            found.append((each.paragraph, kind, wanted[each.link.key]))
    keys = term_keys(paragraph.text)
    for each in store.find_links("defines", "document", keys, EACH_KEY):
        found += _in_document(base, paragraph.text, each)
    for each in store.find_links("defines", "term", keys, EACH_KEY):
        found.append((each.paragraph, "term", each.link.label))
    things = [each.key for each in links if each.kind == "entity" and each.key]
    for each in store.find_links("refers", "entity", things, EACH_KEY + 1):  # the paragraph itself is one
        found.append((each.paragraph, "relation", each.link.label))
    own = {(each.kind, each.key): each.label for each in links if each.role == "defines"}
    for kind in WRITTEN:
        mine = [key for of, key in own if of == kind]
        for each in store.find_links("refers", kind, mine, EACH_KEY):
            found.append((each.paragraph, "referred", own[kind, each.link.key]))
    return found


def _in_document(base: "KnowledgeBase", text: str, named: FoundLink) -> list[tuple[int, Why, str]]:
    """What a text refers to in a named document, such as `Standard 7, section 3.2`; or its start."""
    label, found = named.link.label, list[tuple[int, Why, str]]()
    start = base.store.paragraphs([named.paragraph])
    document = base.store.document(start[0].document) if start else None
    for number in re.findall(rf"{re.escape(label)}{SECTION_AFTER}", text, re.IGNORECASE) if document else ():
        key = f"{document.id} {number.lower()}" if document else ""
        for each in base.store.find_links("defines", "section", [key], EACH_KEY):
            found.append((each.paragraph, "section", f"{label} {number}"))
    return found or [(named.paragraph, "document", label)]


def term_keys(text: str) -> list[str]:
    """The keys of all terms that could be in a text: every one to five words in a row."""
    words = tokens(text)
    stemmed = [stem(word) for word in words]
    found: dict[str, None] = {}
    for length in range(MAX_TERM_WORDS, 0, -1):
        for start in range(len(words) - length + 1):
            if words[start] in STOP_WORDS or words[start + length - 1] in STOP_WORDS:
                continue
            found[" ".join(stemmed[start : start + length])] = None
            if length == 1:
                found[words[start]] = None  # short forms are kept as they are
    return list(found)[-MAX_KEYS * 4 :]
