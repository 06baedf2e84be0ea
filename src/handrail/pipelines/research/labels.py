"""Which sentences of a draft the sources support, by code: only those get a label.

A sentence gets the label of a source if a passage of that source, whole sentences word for word, says the
same (`check_claim`). The model's own labels and quotes only say where to look first: a label that is wrong is
dropped, a missing one is put in, and none is there twice.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from msgspec.structs import replace

from handrail.knowledge.checks.citation import check_claim, find_quote
from handrail.knowledge.checks.number_words import with_digits
from handrail.knowledge.checks.statements import coverage, read_statement
from handrail.knowledge.words import Span, sentences, stems
from handrail.protocol.values import Value

LABEL = re.compile(r"[\[(]\s*([SWP]\d+(?:\s*[,;&]\s*[SWP]\d+)*)\s*[\])]")
ONE_LABEL = re.compile(r"[SWP]\d+")
BEHIND = re.compile(rf"([.!?])((?:\s*{LABEL.pattern})+)")
"""Labels behind the end of the sentence that they belong to."""
MARKUP = re.compile(r"^\s*(?:#{1,6}\s+|[-*+•]\s+|\d+[.)]\s+|>\s*)", re.MULTILINE)
MOST_LABELS = 3
"""Of one sentence."""
MOST_SENTENCES = 200
MIN_SAID = 0.8
"""Of the words of a sentence, more are in one passage. What is added to a true sentence gets no label."""
MOST_QUOTES = 3
"""That take the place of an answer."""


class Source(Value):
    """A text to quote from, under its label: S a paragraph, W a web page, P a quote of an earlier answer."""

    label: str
    text: str
    place: str = ""
    link: str = ""
    paragraph: str = ""
    document: str = ""
    line: int = 0
    """Of the document, where the text begins; 0: not known."""


class Passage(Value):
    """Whole sentences of a source, word for word."""

    label: str
    quote: str
    line: int = 0


class Sentence(Value):
    """A sentence of the draft without labels, and the passages that support it."""

    text: str
    passages: tuple[Passage, ...] = ()
    problem: str = ""
    """Why no label: what no source says."""


class Section(Value):
    title: str
    sentences: tuple[Sentence, ...]


class Labelled(Value):
    """A draft with the support of each sentence; the first section, without a title, is the answer."""

    sections: tuple[Section, ...]
    bad_quotes: tuple[str, ...]
    """Quotes of the model that are in no source, word for word, each with its label."""
    evidence: tuple[Passage, ...]
    """The others, as whole sentences."""

    @property
    def sentences(self) -> list[Sentence]:
        return [each for section in self.sections for each in section.sentences]

    @property
    def unsupported(self) -> list[Sentence]:
        return [each for each in self.sentences if not each.passages]


class _Given(NamedTuple):
    sentence: str
    labels: frozenset[str]


def label_draft(draft: Mapping[str, Any], sources: Sequence[Source]) -> Labelled:
    """Check every sentence and quote of a draft against the sources."""
    evidence, bad = _check_quotes(draft, sources)
    written = [each for each in draft.get("sections") or () if isinstance(each, Mapping)]
    parts = [("", draft.get("answer", ""))]
    parts += [(str(each.get("title", "")), each.get("text", "")) for each in written]
    sections, seen, left = [], set[str](), MOST_SENTENCES
    for title, text in parts:
        given = [each for each in _sentences(str(text)) if each.sentence.casefold() not in seen][:left]
        given = list({each.sentence.casefold(): each for each in given}.values())
        seen |= {each.sentence.casefold() for each in given}
        left -= len(given)
        found = tuple(support(each.sentence, each.labels, evidence, sources) for each in given)
        sections.append(Section(" ".join(LABEL.sub("", title).split())[:80], found))
    return Labelled(tuple(sections), tuple(bad), tuple(evidence))


def quotes_instead(labelled: Labelled) -> Labelled:
    """The draft, with the model's quotes as the answer where no source supports a sentence of it."""
    if any(each.passages for each in labelled.sentences):
        return labelled
    quotes = {" ".join(each.quote.split()): each for each in labelled.evidence}
    said = tuple(Sentence(text, (each,)) for text, each in [*quotes.items()][:MOST_QUOTES])
    first, *rest = labelled.sections
    return replace(labelled, sections=(replace(first, sentences=(*said, *first.sentences)), *rest))


def _check_quotes(draft: Mapping[str, Any], sources: Sequence[Source]) -> tuple[list[Passage], list[str]]:
    """The passages that the model's quotes stand in, and the quotes that are in no source."""
    evidence, bad = list[Passage](), list[str]()
    for each in draft.get("evidence") or ():
        if not isinstance(each, Mapping):
            continue
        quote, named = str(each.get("quote", "")), ONE_LABEL.findall(str(each.get("source", "")).upper())
        # A quote under the wrong label counts for the source that it is in.
        for source in sorted(sources, key=lambda other: other.label not in named):
            if found := find_quote(quote, source.text):
                evidence.append(_passage(source, _whole_sentences(source.text, found)))
                break
        else:
            bad.append(" ".join(quote.split())[:200])
    return evidence, bad


def _whole_sentences(text: str, part: Span) -> Span:
    """The sentences that a part of a text stands in: a quote cut out of a denial does not hide it."""
    inside = [each for each in sentences(text) if each.start < part.end and part.start < each.end]
    return Span(text[inside[0].start : inside[-1].end], inside[0].start) if inside else part


def _passage(source: Source, span: Span) -> Passage:
    line = source.line + source.text.count("\n", 0, span.start) if source.line else 0
    return Passage(source.label, span.text, line)


def _sentences(text: str) -> Iterator[_Given]:
    """The sentences of a text without markup and labels, with the labels that the model put there."""
    text = BEHIND.sub(lambda found: f"{found[2]}{found[1]} ", MARKUP.sub("", text))
    for span in sentences(text):
        labels = frozenset(
            label for group in LABEL.finditer(span.text) for label in ONE_LABEL.findall(group[1])
        )
        plain = " ".join(LABEL.sub(" ", span.text).split())
        plain = re.sub(r"\s+([.!?,;:])", r"\1", plain)
        if re.search(r"\w", plain):
            yield _Given(plain, labels)


def support(
    sentence: str, labels: frozenset[str], evidence: Sequence[Passage], sources: Sequence[Source]
) -> Sentence:
    """The sentence with the passages that support it; those of the model's labels and quotes first."""
    found = [each for each in evidence if _says(each.quote, sentence)]
    found.sort(key=lambda each: each.label not in labels)
    for source in sources:
        if source.label in labels and all(each.label != source.label for each in found):
            found += _best_passage(sentence, source)
    if not found:
        found = [each for source in sources for each in _best_passage(sentence, source)]
        found.sort(key=lambda each: -_says(each.quote, sentence))
        found = found[:1]
    once = tuple({each.label: each for each in reversed(found)}.values())[::-1][:MOST_LABELS]
    if once:
        return Sentence(sentence, once)
    return Sentence(sentence, problem=_why_unsupported(sentence, labels, sources))


def _says(quote: str, sentence: str) -> float:
    """Which part of a sentence's words a quote has; 0 where it does not say the same."""
    check = check_claim(sentence, quote)
    return check.covered if check.ok and check.covered > MIN_SAID else 0.0


def _best_passage(sentence: str, source: Source) -> list[Passage]:
    """The sentence of a source, or two that follow one another, that supports a sentence best; or none."""
    if coverage(read_statement(sentence), _stems(source.text)) <= MIN_SAID:
        return []  # most sources are about something else
    spans = list(sentences(source.text))
    best: tuple[float, Span] | None = None
    for length in (1, 2):
        for first, last in zip(spans, spans[length - 1 :], strict=False):
            quote = source.text[first.start : last.end]
            covered = _says(quote, sentence)
            if covered > (best[0] if best else 0.0):
                best = (covered, Span(quote, first.start))
        if best:
            break
    return [_passage(source, best[1])] if best else []


@lru_cache(maxsize=1_000)
def _stems(text: str) -> frozenset[str]:
    return frozenset(stems(with_digits(text)))


def _why_unsupported(sentence: str, labels: frozenset[str], sources: Sequence[Source]) -> str:
    named = [each for each in sources if each.label in labels] or sources
    checks = [check_claim(sentence, each.text) for each in named]
    failed = [check for check in checks if not check.ok]
    if not failed:
        return (
            "No sentence of a source says this; its words are in several places."
            if checks
            else "There is no source."
        )
    return max(failed, key=lambda check: check.covered).problem
