"""Markdown, plain text and source code as blocks. Each reads a text once, line by line."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from handrail.knowledge.documents.parsed import Block, Parsed, Reference

ATX = re.compile(r" {0,3}(#{1,6})(?=[ \t]|$)")
SETEXT = re.compile(r" {0,3}(=+|-{2,})[ \t]*$")
FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
LINK = re.compile(r"\[([^\]\n]{1,200})\]\(\s*<?([^)>\s]{1,500})")
MARKUP = re.compile(r"[*_`]+|!?\[([^\]]{0,200})\]\([^)]{0,500}\)")
ANCHOR = re.compile(r"\{#([\w.:-]{1,80})\}$")
NUMBERED = re.compile(
    r"(?:(?:chapter|section|article|part|appendix)\s+)?[A-Z]?\d+(?:\.\d+)*\.?[ \t)]+\S", re.IGNORECASE
)
MAX_HEADING = 90
MODIFIERS = (
    "export|default|public|private|protected|static|final|abstract|async|inline|unsafe|virtual|override"
)
DEFINES = "def|class|func|fn|function|interface|struct|enum|trait|impl|type|module|namespace|object|record"
DEFINITION = re.compile(
    rf"^(?P<indent>[ \t]*)(?:(?:{MODIFIERS}|pub(?:\([^)\n]{{0,40}}\))?)[ \t]+){{0,6}}(?:{DEFINES})\*?[ \t]+"
    r"(?:\([^)\n]{0,80}\)[ \t]*)?(?P<name>[A-Za-z_$][\w$]{0,80})",
    re.MULTILINE,
)
CODE_BLOCK = 1_200
"""A block of code ends at an empty line once it has so many characters."""


class Line(NamedTuple):
    number: int
    start: int
    text: str

    @property
    def end(self) -> int:
        return self.start + len(self.text)


def lines_of(text: str) -> Iterator[Line]:
    """The lines of a text without their ends, each with its number and offset."""
    start = 0
    for number, line in enumerate(text.split("\n"), start=1):
        yield Line(number, start, line.rstrip("\r"))
        start += len(line) + 1


def slug(name: str) -> str:
    """The anchor that a heading has on the web."""
    return re.sub(r"\s+", "-", re.sub(r"[^\w\s-]", "", name.lower()).strip())


def parse_markdown(text: str) -> Parsed:
    blocks: list[Block] = []
    waiting: list[Line] = []
    fence = ""
    lines = list(lines_of(text))
    skip = _front_matter(lines)

    def flush() -> None:
        if waiting:
            blocks.append(_body(text, waiting))
            waiting.clear()

    for line in lines[skip:]:
        if fence:
            waiting.append(line)
            if line.text.strip().startswith(fence) and not line.text.strip().strip(fence[0]):
                fence = ""
                flush()
        elif found := FENCE.match(line.text):
            flush()
            fence = found[1]
            waiting.append(line)
        elif found := ATX.match(line.text):
            flush()
            words = _without_closing(line.text[found.end() :])
            blocks.append(_heading(line.start, line.end, len(found[1]), words, line.number))
        elif waiting and (found := SETEXT.match(line.text)) and len(waiting) == 1 and not fence:
            first = waiting[0]
            waiting.clear()
            blocks.append(
                _heading(first.start, line.end, 1 if "=" in found[1] else 2, first.text, first.number)
            )
        elif line.text.strip():
            waiting.append(line)
        else:
            flush()
    flush()
    title = next((block.name for block in blocks if block.level == 1), "")
    return Parsed(kind="markdown", text=text, blocks=tuple(blocks), title=title)


def _front_matter(lines: list[Line]) -> int:
    if lines and lines[0].text.strip() == "---":
        for index, line in enumerate(lines[1:60], start=1):
            if line.text.strip() in ("---", "..."):
                return index + 1
    return 0


def _without_closing(words: str) -> str:
    """A heading's words without the blanks around them, and without `#` that close it."""
    words = words.strip(" \t")
    rest = words.rstrip("#")
    return words if rest and rest[-1] not in " \t" else rest.rstrip(" \t")


def _heading(start: int, end: int, level: int, words: str, number: int) -> Block:
    words = words.rstrip()
    anchor = ANCHOR.search(words)
    name = MARKUP.sub(lambda found: found[1] or "", words[: anchor.start()] if anchor else words).strip()
    return Block(
        start=start, end=end, level=level, name=name, line=number, anchor=anchor[1] if anchor else slug(name)
    )


def _body(text: str, lines: list[Line]) -> Block:
    start, end = lines[0].start, lines[-1].end
    links = (Reference(target=found[2], label=found[1]) for found in LINK.finditer(text, start, end))
    return Block(start=start, end=end, line=lines[0].number, references=tuple(links))


def parse_text(text: str) -> Parsed:
    """Paragraphs between empty lines; a short line alone that is numbered or in capitals is a heading."""
    blocks: list[Block] = []
    waiting: list[Line] = []
    for line in [*lines_of(text), Line(0, len(text), "")]:
        if line.text.strip():
            waiting.append(line)
        elif waiting:
            first, words = waiting[0], waiting[0].text.strip()
            underlined = len(waiting) == 2 and bool(re.fullmatch(r"\s*([=\-~^*#])\1{2,}\s*", waiting[1].text))
            if underlined or (len(waiting) == 1 and _looks_like_heading(words)):
                level = 1 + min(4, words.split(" ")[0].rstrip(".").count("."))
                blocks.append(_heading(first.start, waiting[-1].end, level, words, first.number))
            else:
                blocks.append(_body(text, waiting))
            waiting = []
    title = next((block.name for block in blocks[:1] if block.level), "")
    return Parsed(kind="text", text=text, blocks=tuple(blocks), title=title)


def _looks_like_heading(words: str) -> bool:
    if len(words) > MAX_HEADING or (
        words.endswith((".", ";", ",", ":", "?", "!")) and not words[0].isdigit()
    ):
        return False
    letters = [each for each in words if each.isalpha()]
    return bool(letters) and (bool(NUMBERED.match(words)) or all(each.isupper() for each in letters))


def parse_code(text: str) -> Parsed:
    """Pieces that begin at a definition or after an empty line, named by what they define."""
    blocks: list[Block] = []
    waiting: list[Line] = []
    owners: list[tuple[int, str]] = []
    name = ""
    after_empty = True

    def flush() -> None:
        nonlocal name
        while waiting and not waiting[-1].text.strip():
            waiting.pop()
        if waiting:
            first = waiting[0]
            blocks.append(Block(start=first.start, end=waiting[-1].end, line=first.number, name=name))
            waiting.clear()
        name = ""

    for line in lines_of(text):
        found = DEFINITION.match(line.text) if len(line.text) < 500 else None
        length = line.start - waiting[0].start if waiting else 0
        outer = bool(found) and not (found and found["indent"])
        if (outer and after_empty) or (after_empty and length > CODE_BLOCK):
            flush()
        if found:
            indent = len(found["indent"].expandtabs())
            while owners and owners[-1][0] >= indent:
                owners.pop()
            owners.append((indent, found["name"]))
            name = name or ".".join(owner for _, owner in owners[-3:])
        if waiting or line.text.strip():
            waiting.append(line)
        after_empty = not line.text.strip() or line.text.lstrip().startswith(("@", "#", "//", "/*", "*"))
    flush()
    return Parsed(kind="code", text=text, blocks=tuple(blocks))
