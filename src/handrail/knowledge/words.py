"""Words of a text: tokens, stop words, stems, sentences. Search and checks take them from here."""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

TOKEN = re.compile(r"\w+(?:['’]\w+)?")
STOP_WORDS = frozenset(
    """
    a about above after again against all also am an and any are as at be because been before being below
    between both but by can could did do does doing down during each etc few for from further had has have
    having he her here hers herself him himself his how i if in into is it its itself just may me might more
    most must my myself no nor not now of off on once only or other our ours ourselves out over own same
    shall she should so some such than that the their theirs them themselves then there these they this
    those through to too under until up very was we were what when where which while who whom why will with
    would you your yours yourself yourselves
    """.split()
)
ABBREVIATIONS = (
    "e.g",
    "i.e",
    "etc",
    "cf",
    "vs",
    "no",
    "art",
    "sec",
    "fig",
    "dr",
    "mr",
    "mrs",
    "st",
    "approx",
    "al",
)
SENTENCE_END = re.compile(
    r"(?<=[.!?])[\"'”’)\]]*\s+(?=[\"'“‘(\[]*[A-Z0-9])|\n\s*\n|\n(?=\s*(?:[-*+•]|\d+[.)])\s)"
)


class Span(NamedTuple):
    """A piece of a text and where it begins."""

    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


def tokens(text: str) -> list[str]:
    """The words of a text in lower case, without possessive endings."""
    return [re.sub(r"['’]s?$", "", each.lower()) for each in TOKEN.findall(text)]


def content_words(text: str) -> list[str]:
    """The words that say something, in lower case: no stop words."""
    return [word for word in tokens(text) if word not in STOP_WORDS and (len(word) > 1 or word.isdigit())]


def stems(text: str) -> list[str]:
    """The stems of the words that say something."""
    return [stem(word) for word in content_words(text)]


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """A word without its usual English endings: `audited`, `audits` and `auditing` are one."""
    if len(word) < 4 or not word.isalpha():
        return word
    for ending, instead in (
        ("sses", "ss"),
        ("ies", "i"),
        ("ss", "ss"),
        ("us", "us"),
        ("is", "is"),
        ("s", ""),
    ):
        if word.endswith(ending):
            word = word[: -len(ending)] + instead
            break
    for ending in (
        "ational",
        "ization",
        "isation",
        "ations",
        "ation",
        "ments",
        "ment",
        "ness",
        "ingly",
        "edly",
    ):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            word = word[: -len(ending)]
            break
    for ending in ("ing", "ed", "ly", "er", "or", "ion"):
        base = word[: -len(ending)]
        if word.endswith(ending) and len(base) >= 3 and re.search(r"[aeiouy]", base):
            word = base[:-1] if len(base) > 3 and base[-1] == base[-2] and base[-1] not in "lsz" else base
            break
    for ending in ("ate", "ize", "ise", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)]
            break
    return word[:-1] + "i" if word.endswith("y") and len(word) > 3 else word


def sentences(text: str) -> Iterator[Span]:
    """The sentences of a text with their places; list items count as sentences."""
    start = 0
    for found in SENTENCE_END.finditer(text):
        before = text[start : found.start()]
        last = before.rstrip("\"'”’)]").rsplit(None, 1)[-1:] or [""]
        abbreviated = last[0].lower().lstrip("(").rstrip(".") in ABBREVIATIONS or re.fullmatch(
            r"[A-Z]\.", last[0]
        )
        if abbreviated and "\n" not in found[0]:
            continue
        if span := _trimmed(text, start, found.end()):
            yield span
        start = found.end()
    if span := _trimmed(text, start, len(text)):
        yield span


def _trimmed(text: str, start: int, end: int) -> Span | None:
    piece = text[start:end]
    stripped = piece.strip()
    return Span(stripped, start + len(piece) - len(piece.lstrip())) if stripped else None


def normal_key(text: str) -> str:
    """What two writings of a term have in common: its words' stems."""
    return " ".join(stem(word) for word in tokens(text))
