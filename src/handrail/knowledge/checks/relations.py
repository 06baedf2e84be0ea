"""Whether a source relates things as a statement does: who does what to whom, and whether it is denied."""

import re
from bisect import bisect_left
from collections.abc import Sequence

from handrail.knowledge.checks.number_words import with_digits
from handrail.knowledge.checks.statements import Statement, opposed, read_statement, statements_of
from handrail.knowledge.words import sentences, stem, stems, tokens
from handrail.protocol.values import Value

MIN_SHARED = 0.6
"""Of a statement's words, so many are in the sentence of the source."""
MIN_ORDER = 0.75
"""And so many of those in the same order."""
PASSIVE = re.compile(
    r"(?P<subject>.*?)\b(?:is|are|was|were|be|been|being)\s+(?P<verb>(?:\w+\s+)?\w+(?:ed|en|wn|ne|pt|lt|nt|de|ld|ut))"
    r"\b(?P<between>[^.;]*?)\bby\s+(?P<agent>.*?)(?P<rest>\s(?:after|at|before|for|from|in|on|until|when|with)\s.*|$)",
    re.DOTALL,
)


class RelationCheck(Value):
    """How many statements of a text its sources make in the same way."""

    kept: int
    lost: tuple[str, ...]
    """The sentences whose relations no source has."""
    reasons: tuple[str, ...]
    rate: float


class Relation(Value):
    """Whether a source says that a subject has a relation to an object."""

    ok: bool
    sentence: str = ""
    problem: str = ""


def check_relations(text: str, sources: Sequence[str]) -> RelationCheck:
    """Which sentences of a text relate things in the same way as a sentence of its sources."""
    known = [statement for source in sources for _, statement in statements_of(source)]
    kept, lost, reasons = 0, list[str](), list[str]()
    for sentence in sentences(text):
        said = read_statement(sentence.text)
        if len(set(said.stems)) < 2:
            continue
        why = _why_lost(said, known)
        if why:
            lost.append(sentence.text)
            reasons.append(why)
        else:
            kept += 1
    total = kept + len(lost)
    return RelationCheck(kept, tuple(lost), tuple(reasons), round(kept / total, 4) if total else 1.0)


def _why_lost(said: Statement, known: Sequence[Statement]) -> str:
    wanted = set(said.stems)
    why = "no sentence of the sources has these words together"
    for each in sorted(known, key=lambda other: -len(wanted & set(other.stems))):
        if len(wanted & set(each.stems)) < MIN_SHARED * len(wanted):
            break
        if problem := opposed(said, each):
            why = problem
        elif not _same_order(said, each):
            why = "the source relates them in another direction"
        else:
            return ""
    return why


def _same_order(one: Statement, two: Statement) -> bool:
    first, second = _active(one), _active(two)
    place = {word: index for index, word in reversed(list(enumerate(second)))}
    order = [place[word] for word in dict.fromkeys(first) if word in place]
    return len(order) < 2 or _longest_rising(order) >= MIN_ORDER * len(order)


def _active(statement: Statement) -> list[str]:
    """The stems in the order of an active sentence: `B is done by A` as `A done B`."""
    if not (found := PASSIVE.match(statement.text)):
        return list(statement.stems)
    active = " ".join(found[part] for part in ("agent", "verb", "subject", "between", "rest"))
    return stems(with_digits(active))


def _longest_rising(order: list[int]) -> int:
    ends: list[int] = []
    for each in order:
        at = bisect_left(ends, each)
        ends[at : at + 1] = [each]
    return len(ends)


def check_relation(subject: str, relation: str, object: str, sources: Sequence[str]) -> Relation:  # noqa: A002
    """Whether a sentence of the sources has all three in this order, and does not deny them."""
    problem = "No sentence of the sources has subject, relation and object together."
    asked = read_statement(f"{subject} {relation} {object}")
    for source in sources:
        for span, statement in statements_of(source):
            words = [stem(word) for word in tokens(span.text)]
            places = [_place(words, part) for part in (subject, relation, object)]
            if min(places) < 0:
                continue
            forward = places[0] < places[2]
            if forward == bool(PASSIVE.match(span.text)):
                problem = "The source has it the other way round."
            elif why := opposed(asked, statement):
                problem = f"The source differs: {why}."
            else:
                return Relation(ok=True, sentence=span.text)
    return Relation(ok=False, problem=problem)


def _place(words: list[str], part: str) -> int:
    """Where the words of a part begin, one after the other."""
    wanted = [stem(word) for word in tokens(part)]
    for start in range(len(words) - len(wanted) + 1):
        if wanted and words[start : start + len(wanted)] == wanted:
            return start
    return -1
