"""Whether a sentence says what another one says: the same words in the same order, and no others."""

import re
from functools import lru_cache
from itertools import zip_longest
from typing import NamedTuple

from handrail.knowledge.checks.number_words import with_digits

WORD = re.compile(
    r"[!<>=]=|(?<!\w)[-+]?\.?\d+(?:[.,]\d+)*|[^\W_]+(?:['’][^\W_]+)*|[^\w\s.,;:!()\[\]{}\"'“”‘’«»*`\\…–—-]"
)
"""Numbers with their sign, words, and signs that mean something, such as `%`, `?` and `!=`."""
LAYOUT = re.compile(r"(?:[-*+•>#]+|\d+[.)]|\d+(?:\.\d+)+\.?(?=\s+[A-Z]))\s+(?=[^\W\d])")
"""The mark of a list item or quotation, or the number of a paragraph."""
ARTICLES = frozenset(("a", "an", "the"))
QUANTITIES = frozenset(("few", "little", "most"))
"""An article before them counts: `a few` are not `few`. So does a letter: `vitamin A`."""
SAME = {"are": "is", "am": "is", "were": "was", "have": "has", "does": "do"}


class _Word(NamedTuple):
    written: str
    form: str
    """What the writings of a word have in common: `Ferries` and `ferry`, `nineteen` and `19`."""


def difference(claim: str, sentence: str) -> str:
    """The first thing in which a claim differs from a sentence; empty if it says the same.

    Articles, the number of a noun or verb, case, punctuation, and how numbers are written may differ.
    """
    if not _words(claim):
        return "the claim has no words"
    for said, written in zip_longest(_words(claim), _words(sentence)):
        if written is None:
            return f"the claim goes on with {said.written!r}"
        if said is None:
            return f"the source goes on with {written.written!r}"
        if said.form != written.form:
            return f"{said.written!r} in the place of {written.written!r}"
    return ""


@lru_cache(maxsize=4_096)
def _words(text: str) -> tuple[_Word, ...]:
    layout = LAYOUT.match(text)
    plain = with_digits(text[layout.end() :] if layout else text)
    found = [_Word(each, _form(each.lower())) for each in WORD.findall(plain)]
    following = [each.form for each in found[1:]] + [""] * bool(found)
    return tuple(
        word
        for at, (word, after) in enumerate(zip(found, following, strict=True))
        if word.form not in ARTICLES or after in QUANTITIES or (at and not word.written.islower())
    )


def _form(word: str) -> str:
    if word[-1].isdigit():
        return re.sub(r",(?=\d{3}(?!\d))", "", word)
    word = re.sub(r"['’]s?$", "", word.replace("’", "'"))
    if word in SAME or len(word) < 4 or word.endswith(("ss", "us", "is")):
        return SAME.get(word, word)
    word = re.sub(r"(?<=[^aeiou])ies$", "y", word)
    return re.sub(r"(?<=ss|ch|sh|zz)es$|(?<=x)es$|s$", "", word)
