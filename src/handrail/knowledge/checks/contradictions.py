"""Sentences of different paragraphs that may contradict each other, for a model or a person to judge."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise

from handrail.knowledge.checks.number_words import with_digits
from handrail.knowledge.checks.statements import NUMBER_WORDS, Statement, opposed, statements_of
from handrail.knowledge.words import STOP_WORDS, stem, tokens
from handrail.protocol.values import Value

MIN_SHARED = 0.5
"""Of the words of the shorter sentence; numbers aside."""
MIN_WORDS = 3
MAX_CANDIDATES = 50


class Contradiction(Value):
    """Two sentences that cannot both be true if they are about the same thing."""

    first: str
    """The id of the paragraph."""
    second: str
    first_sentence: str
    second_sentence: str
    reason: str
    shared: float


def find_contradictions(paragraphs: Sequence[tuple[str, str]]) -> list[Contradiction]:
    """Candidates among paragraphs, given as id and text; those with most words in common first."""
    known: list[tuple[str, Statement, frozenset[str]]] = []
    by_word: dict[str, list[int]] = defaultdict(list)
    for name, text in paragraphs:
        for _, statement in statements_of(text):
            words = frozenset(word for word in statement.stems if not word[0].isdigit())
            if len(words) >= MIN_WORDS:
                for word in words:
                    by_word[word].append(len(known))
                known.append((name, statement, words))
    found: list[Contradiction] = []
    for index, (name, statement, words) in enumerate(known):
        near = {other for word in words for other in by_word[word] if other > index}
        for other in sorted(near):
            other_name, other_statement, other_words = known[other]
            shared = len(words & other_words) / min(len(words), len(other_words))
            if other_name == name or shared < MIN_SHARED:
                continue
            reason = opposed(statement, other_statement) or _different_numbers(statement, other_statement)
            if reason:
                found.append(
                    Contradiction(
                        name, other_name, statement.text, other_statement.text, reason, round(shared, 3)
                    )
                )
    found.sort(key=lambda each: -each.shared)
    return found[:MAX_CANDIDATES]


def _different_numbers(one: Statement, two: Statement) -> str:
    """A unit that both have with different numbers: `30 days` and `14 days`."""
    first, second = _measures(one), _measures(two)
    for unit in sorted(first.keys() & second.keys()):
        if not first[unit] & second[unit]:
            return f"{min(first[unit])} {unit} against {min(second[unit])} {unit}"
    return ""


def _measures(statement: Statement) -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    words = tokens(with_digits(statement.text))
    for number, unit in pairwise(words):
        value = NUMBER_WORDS.get(number, number)
        if value[0].isdigit() and unit not in STOP_WORDS and not unit[0].isdigit():
            found[stem(unit)].add(value)
    return found
