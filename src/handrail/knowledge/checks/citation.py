"""Whether a quote is in its source, and whether the source says what is claimed. By code, with no model."""

import re
from collections.abc import Sequence

from msgspec.structs import replace

from handrail.knowledge.checks.entities import entities_in, is_grounded
from handrail.knowledge.checks.number_words import with_digits
from handrail.knowledge.checks.statements import (
    best_statement,
    coverage,
    exchanged_word,
    has_number,
    opposed,
    read_statement,
)
from handrail.knowledge.words import Span, stems, tokens
from handrail.protocol.values import Value

MIN_QUOTE_WORDS = 3
MAX_CLAIM_WORDS = 150
MIN_COVERAGE = 0.6
"""Of the words of a claim, so many occur in its source."""
MIN_IN_SENTENCE = 0.4
"""And so many in one sentence of it, or in two that follow one another."""
DOUBTS = frozenset("false untrue incorrect wrong mistaken myth contrary unlikely doubtful".split())
"""They turn what a sentence says, wherever they stand in it."""
MARKS = "\"'“”‘’«»`"


class CitationCheck(Value):
    """Whether a quote is in a text and, if there is a claim, whether the text supports it."""

    ok: bool
    problem: str = ""
    """Why not, as a sentence."""
    start: int = -1
    """Where the quote is in the text."""
    end: int = -1
    covered: float = 1.0
    """Which part of the claim's words is in the text."""
    missing: tuple[str, ...] = ()
    """Words, numbers and names of the claim that are not in the text."""


def check_citation(quote: str, text: str, claim: str = "") -> CitationCheck:
    """Whether a quote is an exact part of a text, white space aside, and the text says what is claimed."""
    found = find_quote(quote, text)
    if found is None:
        short = len(tokens(quote)) < MIN_QUOTE_WORDS
        problem = (
            f"The quote has fewer than {MIN_QUOTE_WORDS} words, which shows nothing."
            if short
            else "The quote is not in the source, word for word."
        )
        return CitationCheck(ok=False, problem=problem)
    if not claim.strip():
        return CitationCheck(ok=True, start=found.start, end=found.end)
    supported = check_claim(claim, text)
    return replace(supported, start=found.start, end=found.end)


def find_quote(quote: str, text: str) -> Span | None:
    """Where a quote is in a text: whole words, in the same writing; only white space may differ."""
    words = quote.strip().strip(MARKS).split()
    if len(tokens(" ".join(words))) < MIN_QUOTE_WORDS and " ".join(words) != " ".join(text.split()):
        return None
    if not words:
        return None
    pattern = r"(?<!\w)" + r"\s+".join(map(re.escape, words)) + r"(?!\w)"
    if not re.match(r"\w", words[0]):
        pattern = pattern.removeprefix(r"(?<!\w)")
    if not re.search(r"\w$", words[-1]):
        pattern = pattern.removesuffix(r"(?!\w)")
    found = re.search(pattern, text)
    return Span(found[0], found.start()) if found else None


def check_claim(claim: str, text: str) -> CitationCheck:
    """Whether a text supports a claim, as far as its words tell.

    Its numbers and names occur in the text, most of its words do, in one place of it, and that place denies
    nothing that the claim asserts, or the other way round.
    """
    said, written, text = read_statement(claim), text, with_digits(text)
    known = set(stems(text))
    covered = coverage(said, known)
    numbers = [number for number in sorted(said.numbers) if not has_number(number, text)]
    names = [each for each in entities_in(claim) if not is_grounded(each, [written])]
    words = sorted(set(said.stems) - known)
    if not said.stems:
        return CitationCheck(ok=False, problem="The claim says nothing that could be checked.")
    if len(said.stems) > MAX_CLAIM_WORDS:
        return CitationCheck(ok=False, problem="The claim is too long. Check its sentences one by one.")
    if numbers:
        return CitationCheck(
            ok=False,
            problem=f"The source does not have {numbers[0]}.",
            covered=covered,
            missing=tuple(numbers),
        )
    if names:
        return CitationCheck(
            ok=False,
            problem=f"The source does not mention {names[0]}.",
            covered=covered,
            missing=tuple(names),
        )
    if denied := sorted(said.denied - known):
        problem = f"The source does not speak of {denied[0]!r}, which the claim denies."
        return CitationCheck(ok=False, problem=problem, covered=covered, missing=tuple(words))
    if doubts := sorted(DOUBTS & set(said.words) - set(tokens(text))):
        problem = f"The claim has {doubts[0]!r}, and the source does not."
        return CitationCheck(ok=False, problem=problem, covered=covered, missing=tuple(words))
    if covered < MIN_COVERAGE:
        problem = f"The source has only {covered:.0%} of the claim's words."
        return CitationCheck(ok=False, problem=problem, covered=covered, missing=tuple(words))
    best = best_statement(said, text)
    near = set(best[1].stems) if best else set()
    if best:
        near |= set(stems(text[max(0, best[0].start - 1) : _end_of_next(text, best[0])]))
    if best is None or coverage(said, near) < MIN_IN_SENTENCE:
        problem = "The claim's words are scattered over the source; no sentence of it says this."
        return CitationCheck(ok=False, problem=problem, covered=covered, missing=tuple(words))
    if why := opposed(said, best[1]) or exchanged_word(said, best[1]):
        problem = f"The claim and the source differ: {why}."
        return CitationCheck(
            ok=False,
            problem=problem,
            start=best[0].start,
            end=best[0].end,
            covered=covered,
            missing=tuple(words),
        )
    return CitationCheck(ok=True, start=best[0].start, end=best[0].end, covered=covered, missing=tuple(words))


def _end_of_next(text: str, sentence: Span) -> int:
    found = re.search(r"[.!?](?:\s|$)", text[sentence.end + 2 :])
    return sentence.end + 2 + found.end() if found else len(text)


def best_support(claim: str, texts: Sequence[str]) -> int:
    """The index of the text that supports a claim best; -1 if none does."""
    checks = [(check_claim(claim, text), index) for index, text in enumerate(texts)]
    good = [(check.covered, -index) for check, index in checks if check.ok]
    return -max(good)[1] if good else -1
