"""Which sentences of a draft the sources support, by code: only those get a label.

A sentence gets the label of a source if one sentence of that source says the same, in the same words
(`find_support`). The model's own labels and quotes only say where to look first: a label that is wrong is
dropped, a missing one is put in, and none is there twice.
"""

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any, NamedTuple

from msgspec.structs import replace

from handrail.knowledge.checks.citation import check_claim, find_quote, find_support
from handrail.knowledge.words import Span, sentences
from handrail.protocol.values import Value

LABEL = re.compile(r"[\[(]\s*([SWP]\d+(?:\s*[,;&]\s*[SWP]\d+)*)\s*[\])]")
ONE_LABEL = re.compile(r"[SWP]\d+")
BEHIND = re.compile(rf"([.!?])((?:\s*{LABEL.pattern})+)")
"""Labels behind the end of the sentence that they belong to."""
MARKUP = re.compile(r"^\s*(?:#{1,6}\s+|[-*+•]\s+|\d+[.)]\s+|>\s*)", re.MULTILINE)
MOST_LABELS = 3
"""Of one sentence."""
MOST_SENTENCES = 200
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
    quoted = {each.label for each in evidence}
    written = [each for each in draft.get("sections") or () if isinstance(each, Mapping)]
    parts = [("", draft.get("answer", ""))]
    parts += [(str(each.get("title", "")), each.get("text", "")) for each in written]
    sections, seen, left = [], set[str](), MOST_SENTENCES
    for title, text in parts:
        given = [each for each in _sentences(str(text)) if each.sentence.casefold() not in seen][:left]
        given = list({each.sentence.casefold(): each for each in given}.values())
        seen |= {each.sentence.casefold() for each in given}
        left -= len(given)
        found = tuple(support(each.sentence, each.labels, quoted, sources) for each in given)
        sections.append(Section(" ".join(LABEL.sub("", title).split())[:80], found))
    return Labelled(tuple(sections), tuple(bad), tuple(evidence))


def quotes_instead(labelled: Labelled, sources: Sequence[Source]) -> Labelled:
    """The draft, with the model's quotes as the answer where no source supports a sentence of it."""
    if any(each.passages for each in labelled.sentences):
        return labelled
    quoted = {given.sentence: each.label for each in labelled.evidence for given in _sentences(each.quote)}
    found = [support(text, frozenset((label,)), frozenset(), sources) for text, label in quoted.items()]
    said = [each for each in found if each.passages][:MOST_QUOTES]
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


def support(sentence: str, labels: frozenset[str], quoted: Set[str], sources: Sequence[Source]) -> Sentence:
    """The sentence with the passages that say it; those of sources that the model named or quoted, if any."""
    ranked = sorted(sources, key=lambda each: each.label not in labels)
    spans = [(each, find_support(sentence, each.text)) for each in ranked]
    found = [_passage(source, span) for source, span in spans if span]
    chosen = [each for each in found if each.label in labels | quoted] or found[:1]
    if chosen:
        return Sentence(sentence, tuple(chosen[:MOST_LABELS]))
    return Sentence(sentence, problem=_why_unsupported(sentence, labels, sources))


def _why_unsupported(sentence: str, labels: frozenset[str], sources: Sequence[Source]) -> str:
    named = [each for each in sources if each.label in labels] or sources
    checks = [check_claim(sentence, each.text) for each in named]
    best = max(checks, key=lambda check: check.covered, default=None)
    return best.problem if best else "There is no source."
