"""Find placeholders that stand for code, such as `# ... existing code ...`.

A line counts only if it is new, consists of such words in a comment, and, unless the words can mean nothing
else, the edit removes code. Text about such words, in documents and strings, is left alone.
"""

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

COMMENT = re.compile(
    r"(?:\{?/\*+|//+!?|#+|--+|<!--+|;+|%+|\(\*|\{#|\{\{!-*|\"{3}|'{3}|rem\b|\*)\s*(.*?)\s*(?:\*+/\}?|--+>|\*\)|#\}|\}\}|\"{3}|'{3})?",
    re.IGNORECASE,
)
TRAILING_COMMENT = re.compile(r"\S.*?\s(?=(?:#|//|--|/\*|<!--)\s)")
DOTS = re.compile(r"\.{3,}|…|\[\.\.\.\]")
WORD = re.compile(r"[a-z']+")
NAME = re.compile(r"`[^`]*`|\b\w+\(\)|\b\w*_\w+\b")
PLAIN = re.compile(r"[\s\w.,:;…'`()\[\]{}<>/&+=-]*")
BODY_OF_DOTS = re.compile(r"\{\s*(?:\.{3}|…)\s*\}")
AS_IT_IS = re.compile(r"\bas[ -](is|before|it was|they were|above)\b|\bno changes\b|\bnot changed\b")
MAX_COMMENT_CHARS, FEW_WORDS = 120, 6


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


ALREADY_THERE = _words("existing previous original current old prior earlier")
REMAINDER = _words("rest remaining remainder")
STAYS = _words(
    "unchanged same untouched unmodified stays stay remains remain keep kept retain retained"
    " preserve preserved leave"
)
LEFT_OUT = _words("omitted elided snip snipped truncated abbreviated skipped brevity collapsed")
THINGS = _words(
    "code file files function functions method methods class classes content contents implementation"
    " implementations body logic lines imports component components module section sections script program"
    " document template markup html css styles rules tests test cases fields properties routes config items"
    " definitions declarations statements parts part stuff text page block setup"
)
SMALL_WORDS = _words(
    "the of this your my our as is are was were be it its in on here above below before after and to for from"
    " with goes go no not everything others other all else etc more exactly changes change changed needed"
    " required continue continues continued there that these those then a an end start until stand stands"
    " does do follow follows following place exact s which must"
)
STANDS_OUT = ALREADY_THERE | REMAINDER | {"unchanged", "other", "others"}
KNOWN_WORDS = ALREADY_THERE | REMAINDER | STAYS | LEFT_OUT | THINGS | SMALL_WORDS


class Elision(NamedTuple):
    line: int  # from 0
    text: str
    certain: bool


def find_elisions(old: Sequence[str], new: Sequence[str], above: str) -> list[Elision]:
    """New lines that stand for code; `above` is the line before them."""
    before = Counter(line.strip() for line in old)
    found: list[Elision] = []
    for number, line in enumerate(new):
        text = line.strip()
        if not text:
            continue
        if before[text]:
            before[text] -= 1
        elif (certain := _stands_for_code(text, above)) is not None:
            found.append(Elision(number, text[:200], certain))
        above = text
    return found


def _stands_for_code(text: str, above: str) -> bool | None:
    """True: it can mean nothing else; False: it does if code was removed; None: it does not."""
    if DOTS.fullmatch(text):
        # The body of a function that has none yet.
        return None if above.endswith((":", '"""', "'''")) else False
    if comment := COMMENT.fullmatch(text):
        return _meaning(comment[1])
    found = TRAILING_COMMENT.match(text)
    if found and _meaning(COMMENT.sub(r"\1", text[found.end() :], count=1)) is not None:
        return False
    return False if BODY_OF_DOTS.search(text) else None


def _meaning(comment: str) -> bool | None:
    """The same for the text of a comment."""
    words = comment.lower()
    if not PLAIN.fullmatch(words) or len(words) > MAX_COMMENT_CHARS:
        return None
    dots = bool(DOTS.search(words))
    found = WORD.findall(NAME.sub(" ", DOTS.sub(" ", words)))
    kinds = set(found)
    if not kinds:
        return False if dots else None
    if words.startswith((".", "…")) and kinds & STANDS_OUT and len(found) <= FEW_WORDS:
        return True  # whatever it is that the words name
    if not kinds <= KNOWN_WORDS:
        return None
    there, left_out, things = kinds & ALREADY_THERE, kinds & LEFT_OUT, kinds & THINGS
    rest = kinds & REMAINDER or {"everything", "else"} <= kinds
    stays = kinds & STAYS or AS_IT_IS.search(words)
    around = words.startswith((".", "…", "["))
    if dots and (there or rest or left_out or "unchanged" in kinds or (things and around)):
        return True
    if (rest and (stays or left_out)) or (around and (there or rest)) or (left_out and "brevity" in kinds):
        return True
    return False if stays or left_out or rest or (there and things) or (dots and things) else None
