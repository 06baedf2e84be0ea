"""What a paragraph defines and refers to, found by code: sections, terms, symbols, links."""

import os
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple
from urllib.parse import unquote, urldefrag, urljoin

from handrail.knowledge.documents.parsed import Block, Kind
from handrail.knowledge.documents.plain import DEFINITION
from handrail.knowledge.words import normal_key
from handrail.storage.knowledge.rows import Link, LinkKind, Role

GENERIC = frozenset(
    """
    introduction overview summary scope notes note example examples usage references reference contents
    background purpose general definitions terms appendix conclusion details description see also
    """.split()
)
"""Headings of one word that say nothing about what follows."""
DEFINES = (
    re.compile(
        r"[\"“'‘*_]{1,3}(?P<term>[A-Za-z][\w -]{1,60}?)[\"”'’*_]{1,3}\s*"
        r"(?:means|is defined as|refers to|denotes)\b"
    ),
    re.compile(r"\*\*(?P<term>[A-Za-z][\w -]{1,60}?)\*\*\s*(?::|—|–|-\s|means|is |are )"),
    re.compile(
        r"^(?:- |\* )?(?:An?|The)? ?(?P<term>[A-Za-z][\w-]*(?: [\w-]+){0,3})"
        r" (?:means|is defined as|denotes)\b",
        re.MULTILINE,
    ),
    re.compile(r"\b(?:the term|known as|called) [\"“*_]{1,2}(?P<term>[A-Za-z][\w -]{1,60}?)[\"”*_]{1,2}"),
)
MAY_DEFINE = re.compile(r"means|is defined as|refers to|denotes|\*\*|the term|known as|called")
ACRONYM = re.compile(r"\b(?P<long>[A-Za-z][\w-]*(?: [\w-]+){1,6}) \((?P<short>[A-Z][A-Za-z]*[A-Z])\)")
SECTION_NUMBER = re.compile(
    r"(?:(?:chapter|section|article|part|appendix|rule|clause|§)\s*)?([A-Z]?\d+(?:\.\d+)*)\b", re.IGNORECASE
)
PARAGRAPH_NUMBER = re.compile(r"(?:§\s*)?([A-Z]?\d+(?:\.\d+)+|[A-Z]\d+)[.)]?\s")
REFERS = re.compile(
    r"(?:\b(?:sections?|chapters?|articles?|clauses?|paragraphs?|parts?|appendix|rules?)|§)\s*"
    r"([A-Z]?\d+(?:\.\d+)*(?:(?:\s*,\s*|\s+and\s+|\s+or\s+|\s*,\s*and\s+)[A-Z]?\d+(?:\.\d+)*){0,6})",
    re.IGNORECASE,
)
NUMBER = re.compile(r"[A-Z]?\d+(?:\.\d+)*")
SYMBOL = re.compile(r"`([A-Za-z_$][\w$]*(?:(?:\.|::)[A-Za-z_$][\w$]*)*)(?:\(\))?`")
MAX_LINKS = 60


def defined_acronyms(text: str) -> Iterator[tuple[str, str]]:
    """Long and short form of each `long form (LF)` whose letters fit."""
    for found in ACRONYM.finditer(text) if "(" in text else ():
        words, short = found["long"].split(" "), found["short"]
        letters = [each for each in short if each.isupper()]
        for start in range(max(0, len(words) - len(letters) - 2), len(words) - 1):
            some = words[start:]
            initials = [
                word[0].upper() for word in some if word.lower() not in ("of", "and", "the", "for", "in")
            ]
            if initials == letters:
                yield " ".join(some), short
                break


class _Links:
    """Links without doubles, up to a limit."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str, str], Link] = {}

    def add(self, role: Role, kind: LinkKind, key: str, label: str) -> None:
        if key and len(self._found) < MAX_LINKS:
            self._found.setdefault((role, kind, key), Link(role, kind, key, label))

    def all(self) -> list[Link]:
        return list(self._found.values())


class Place(NamedTuple):
    """The document that a paragraph is in."""

    document: str
    source: str
    kind: Kind


def links_of(text: str, blocks: Sequence[Block], headings: Sequence[Block], place: Place) -> list[Link]:
    """The links of a paragraph made of these blocks; `headings` stand right above it."""
    links = _Links()
    for heading in headings:
        if number := SECTION_NUMBER.match(heading.name):
            links.add("defines", "section", f"{place.document} {number[1].lower()}", heading.name)
        if heading.anchor:
            links.add("defines", "target", f"{place.source}#{heading.anchor}", heading.name)
        words = re.sub(r"^[A-Z]?\d+(?:\.\d+)*\.?\s*", "", heading.name)
        if 1 <= len(words.split()) <= 5 and words.lower() not in GENERIC:
            links.add("defines", "term", normal_key(words), heading.name)
    if number := PARAGRAPH_NUMBER.match(text):
        links.add("defines", "section", f"{place.document} {number[1].lower()}", number[1])
    if place.kind == "code":
        for symbol in DEFINITION.finditer(text):
            links.add("defines", "symbol", symbol["name"], symbol["name"])
    else:
        _add_terms(links, text)
    _add_references(links, text, place)
    for block in blocks:
        for reference in block.references:
            links.add("refers", "target", resolve_target(reference.target, place.source), reference.label)
    return links.all()


def _add_terms(links: _Links, text: str) -> None:
    for pattern in DEFINES if MAY_DEFINE.search(text) else ():
        for term in pattern.finditer(text):
            links.add("defines", "term", normal_key(term["term"]), term["term"])
    for long, short in defined_acronyms(text):
        links.add("defines", "term", normal_key(long), long)
        links.add("defines", "term", short.lower(), short)


def _add_references(links: _Links, text: str, place: Place) -> None:
    for numbers in REFERS.finditer(text):
        for each in NUMBER.findall(numbers[1]):
            links.add("refers", "section", f"{place.document} {each.lower()}", numbers[0])
    for symbol in SYMBOL.finditer(text):
        links.add("refers", "symbol", re.split(r"\.|::", symbol[1])[-1], symbol[1])


def resolve_target(target: str, source: str) -> str:
    """The absolute path or URL that a link in a document leads to; empty for one that leads nowhere."""
    if "://" in source:
        return urljoin(source, target)
    if "://" in target:
        return target
    if target.startswith(("mailto:", "javascript:", "data:")):
        return ""
    path, anchor = urldefrag(target)
    place = os.path.normpath(os.path.join(os.path.dirname(source), unquote(path))) if path else source
    return f"{place}#{anchor}" if anchor else place
