"""Whether a quote is in its source, and whether the source says what is claimed. By code, with no model."""

import re
from collections.abc import Iterator

from msgspec.structs import replace

from handrail.knowledge.checks.entities import entities_in, is_grounded
from handrail.knowledge.checks.number_words import with_digits
from handrail.knowledge.checks.statements import (
    Statement,
    best_statement,
    coverage,
    has_number,
    read_statement,
)
from handrail.knowledge.checks.wording import difference
from handrail.knowledge.words import Span, sentences, stems, tokens
from handrail.protocol.values import Value

MIN_QUOTE_WORDS = 3
MIN_COVERAGE = 0.6
"""With less of a claim's words, a source speaks of something else: no sentence of it is compared."""
BLANK_LINE = re.compile(r"\n\s*\n")
ITEM = re.compile(r"[-*+•]\s|\d+[.)]\s")
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
    """Whether a sentence of a text says what is claimed, in the same words; see `difference`."""
    said = read_statement(claim)
    if not said.stems:
        return CitationCheck(ok=False, problem="The claim says nothing that could be checked.")
    if span := find_support(claim, text):
        return CitationCheck(ok=True, start=span.start, end=span.end)
    known = set(stems(with_digits(text)))
    return CitationCheck(
        ok=False,
        problem=_why_not(said, text),
        covered=coverage(said, known),
        missing=tuple(sorted(set(said.stems) - known)),
    )


def find_support(claim: str, text: str) -> Span | None:
    """The sentence of a text that says what is claimed, in the same words."""
    return next((each for each in _whole_sentences(text) if not difference(claim, each.text)), None)


def _whole_sentences(text: str) -> Iterator[Span]:
    """The sentences without those that a lead such as `It is forbidden to:` belongs to."""
    led, before = False, Span("", 0)
    for each in sentences(text):
        begins = BLANK_LINE.search(text, before.end, each.start) and not ITEM.match(each.text)
        led = _is_lead(each) or (led and (_is_lead(before) or not begins))
        if not led:
            yield each
        before = each


def _is_lead(sentence: Span) -> bool:
    return sentence.text.rstrip("*_ ").endswith(":")


def _why_not(said: Statement, text: str) -> str:
    if len(list(sentences(said.text))) > 1:
        return "The claim has several sentences. Check them one by one."
    for each in sorted(said.numbers):
        if not has_number(each, text):
            return f"The source does not have {each}."
    for each in entities_in(said.text):
        if not is_grounded(each, [text]):
            return f"The source does not mention {each}."
    if (covered := coverage(said, set(stems(with_digits(text))))) < MIN_COVERAGE:
        return f"The source has only {covered:.0%} of the claim's words."
    best = best_statement(said, text)
    return f"The claim and the source differ: {difference(said.text, best[1].text if best else '')}."
