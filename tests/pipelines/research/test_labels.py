"""Labels: 1,000 mutated answers, and what a label may stand on."""

import random
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from handrail.knowledge.documents.cut import cut
from handrail.knowledge.documents.plain import parse_markdown
from handrail.knowledge.words import content_words, sentences
from handrail.pipelines.research.labels import Labelled, Source, label_draft
from handrail.pipelines.research.verify import judge
from tests.pipelines.agents import EXAMPLES

Draft = dict[str, Any]
MUTATED = 1_000
WORDS = ("granite", "harvest", "seventy", "violet", "trumpet", "kettle", "tuesday", "orchard")
LABELS = re.compile(r"\[[SWP]\d+\]")
NEGATED = re.compile(r"\b(is|are|was|were|may|must|can|shall|will)\b(?! not)")


def example_sources() -> list[Source]:
    """All paragraphs of the example collection."""
    found: list[Source] = []
    for path in sorted((EXAMPLES / "knowledge").glob("*.md")):
        parsed = parse_markdown(path.read_text(encoding="utf-8"))
        made = cut(parsed, name=path.name, source=path.name, tier="standard", sha256="", size=0)
        found += [Source(f"S{len(found) + n}", each.text) for n, each in enumerate(made.paragraphs, 1)]
    return found


SOURCES = example_sources()
STATED = [
    (source, span.text)
    for source in SOURCES
    for span in sentences(source.text)
    if len(span.text.split()) > 6 and NEGATED.search(span.text) and " not " not in span.text
]


def true_draft(chance: random.Random) -> tuple[Draft, list[Source]]:
    """Sentences of documents as an answer, each with its label and quote; and sources that hold them."""
    chosen = chance.sample(STATED, 3)
    others = chance.sample(SOURCES, 6)
    sources = list({each.label: each for each in [*(source for source, _ in chosen), *others]}.values())
    said = [f"{text[:-1]} [{source.label}]{text[-1]}" for source, text in chosen]
    evidence = [{"source": source.label, "quote": text} for source, text in chosen]
    section = {"title": "More", "text": " ".join(said[2:])}
    return {"evidence": evidence, "answer": " ".join(said[:2]), "sections": [section]}, sources


def alter_quote(draft: Draft, chance: random.Random) -> None:
    """One word of every quote is another one."""
    for each in draft["evidence"]:
        words = each["quote"].split()
        at = chance.randrange(len(words))
        words[at] = chance.choice([word for word in WORDS if word not in each["quote"]])
        each["quote"] = " ".join(words)


def swap_sources(draft: Draft, chance: random.Random) -> None:
    names = [each["source"] for each in draft["evidence"]]
    for each, name in zip(draft["evidence"], [*names[1:], names[0]], strict=True):
        each["source"] = name
    turned = dict(zip(names, [*names[1:], names[0]], strict=True))
    for part in (draft, *draft["sections"]):
        key = "answer" if part is draft else "text"
        part[key] = re.sub(r"\[(S\d+)\]", lambda found: f"[{turned[found[1]]}]", part[key])


def negate(draft: Draft, chance: random.Random) -> None:
    """Every sentence says the opposite, under its true label and quote."""
    for part in (draft, *draft["sections"]):
        key = "answer" if part is draft else "text"
        spans = [each.text for each in sentences(part[key])]
        part[key] = " ".join(NEGATED.sub(r"\1 not", each, count=1) for each in spans)


def exchange_word(draft: Draft, chance: random.Random) -> None:
    """One word of every sentence is another one, under its true label and quote."""
    for part in (draft, *draft["sections"]):
        key = "answer" if part is draft else "text"
        changed = []
        for sentence in (each.text for each in sentences(part[key])):
            words = content_words(LABELS.sub("", sentence))
            old, new = chance.choice(words), chance.choice([word for word in WORDS if word not in sentence])
            changed.append(re.sub(rf"\b{re.escape(old)}\b", new, sentence, count=1, flags=re.IGNORECASE))
        part[key] = " ".join(changed)


def remove_labels(draft: Draft, chance: random.Random) -> None:
    for part in (draft, *draft["sections"]):
        key = "answer" if part is draft else "text"
        part[key] = re.sub(r" ?\[S\d+\]", "", part[key])


def double_labels(draft: Draft, chance: random.Random) -> None:
    for part in (draft, *draft["sections"]):
        key = "answer" if part is draft else "text"
        part[key] = re.sub(r"(\[S\d+\])", r"\1 \1\1", part[key])
    draft["evidence"] += draft["evidence"]


MUTATIONS: tuple[Callable[[Draft, random.Random], None], ...] = (
    alter_quote,
    swap_sources,
    negate,
    exchange_word,
    remove_labels,
    double_labels,
)


def labels_of(found: Labelled) -> dict[str, list[str]]:
    return {each.text: [one.label for one in each.passages] for each in found.sentences}


@pytest.mark.promise("RESEARCH-2")
def test_no_mutated_answer_gets_a_label_that_its_source_does_not_support() -> None:
    """Catches: a label taken over from the model, a quote accepted because it is nearly right."""
    chance, seen = random.Random(22), Counter[str]()
    texts = {source.label: " ".join(source.text.split()) for source in SOURCES}
    for number in range(MUTATED):
        draft, sources = true_draft(chance)
        truth = labels_of(label_draft(draft, sources))
        assert all(truth.values()), draft
        mutation = MUTATIONS[number % len(MUTATIONS)]
        mutation(draft, chance)
        found = label_draft(draft, sources)
        labels = labels_of(found)
        for sentence in found.sentences:
            for passage in sentence.passages:
                assert " ".join(passage.quote.split()) in texts[passage.label], "a quote that is nowhere"
            once = [one.label for one in sentence.passages]
            assert len(once) == len(set(once)), "a label that is there twice"
            assert not re.search(r"\[[SWP]\d", sentence.text)
        if mutation is alter_quote:
            assert len(found.bad_quotes) == len(draft["evidence"])
            assert (
                judge(found, sources).scores.citations
                < judge(label_draft(*true_draft(chance)), sources).scores.citations
            )
        if mutation in (negate, exchange_word):
            assert not any(labels.values()), draft
        else:  # the sentences are still true: code finds the labels again, and no others
            assert labels == truth, mutation.__name__
        seen[mutation.__name__] += 1
    assert set(seen.values()) <= {MUTATED // len(MUTATIONS), MUTATED // len(MUTATIONS) + 1}
