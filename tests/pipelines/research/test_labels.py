"""Labels: 1,000 mutated answers, and what a label may stand on."""

import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from handrail.knowledge.checks.number_words import with_digits
from handrail.knowledge.documents.cut import cut
from handrail.knowledge.documents.plain import parse_markdown
from handrail.knowledge.words import content_words, sentences
from handrail.pipelines.research.labels import Labelled, Source, label_draft, quotes_instead
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
HEDGES = (
    *(
        "rarely",
        "seldom",
        "supposedly",
        "hardly",
        "sometimes",
        "almost",
        "perhaps",
        "formerly",
        "only",
        "not",
    ),
    *("used to", "it is rare that", "if it rains", "unless paid", "in theory", "except in spring"),
)


def numbers_of(text: str) -> list[str]:
    """The words of a text that are numbers, in digits or not."""
    return [word for word in text.split() if re.search(r"\d", with_digits(word))]


WITH_NUMBERS = [
    (source, span.text)
    for source in SOURCES
    for span in sentences(source.text)
    if len(set(numbers_of(span.text))) > 1
]


def true_draft(
    chance: random.Random, stated: Sequence[tuple[Source, str]] = STATED
) -> tuple[Draft, list[Source]]:
    """Sentences of documents as an answer, each with its label and quote; and sources that hold them."""
    chosen = chance.sample(stated, 3)
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


def negate(sentence: str, chance: random.Random) -> str:
    return NEGATED.sub(r"\1 not", sentence, count=1)


def exchange_word(sentence: str, chance: random.Random) -> str:
    """One word is another one, of another text or of the same source."""
    old = chance.choice(content_words(sentence))
    source = next(each for each in SOURCES if sentence in " ".join(each.text.split()))
    same = [word for word in content_words(source.text) if word not in sentence.lower()]
    new = chance.choice([*(word for word in WORDS if word not in sentence), *same])
    return re.sub(rf"\b{re.escape(old)}\b", new, sentence, count=1, flags=re.IGNORECASE)


def swap_words(sentence: str, chance: random.Random) -> str:
    """Two words are in each other's place: who does something, and to whom."""
    one, other = chance.sample(sorted(set(content_words(sentence))), 2)
    turned = {one: other, other: one}
    either = re.compile(rf"\b({re.escape(one)}|{re.escape(other)})\b", re.IGNORECASE)
    return either.sub(lambda found: turned[found[1].lower()], sentence)


def swap_numbers(sentence: str, chance: random.Random) -> str:
    one, other = chance.sample(sorted(set(numbers_of(sentence))), 2)
    turned = {one: other, other: one}
    return " ".join(turned.get(word, word) for word in sentence.split())


def insert_hedge(sentence: str, chance: random.Random) -> str:
    words = sentence.split()
    words.insert(chance.randrange(len(words)), chance.choice(HEDGES))
    return " ".join(words)


def leave_out(sentence: str, chance: random.Random) -> str:
    """Some words in a row are not there: a condition, a limit, whom it is about."""
    words = sentence.split()
    while True:
        start, end = sorted(chance.sample(range(len(words)), 2))
        left, kept = words[start:end], [*words[:start], *words[end:]]
        if content_words(" ".join(left)) and content_words(" ".join(kept)):
            return " ".join(kept)


def remove_labels(draft: Draft, chance: random.Random) -> None:
    for part in (draft, *draft["sections"]):
        key = "answer" if part is draft else "text"
        part[key] = re.sub(r" ?\[S\d+\]", "", part[key])


def double_labels(draft: Draft, chance: random.Random) -> None:
    for part in (draft, *draft["sections"]):
        key = "answer" if part is draft else "text"
        part[key] = re.sub(r"(\[S\d+\])", r"\1 \1\1", part[key])
    draft["evidence"] += draft["evidence"]


def change_sentences(draft: Draft, change: Callable[..., str], chance: random.Random) -> None:
    """Every sentence says something else, under its true label and quote."""

    def changed(found: re.Match[str]) -> str:
        said = change(found[1], chance)
        return f"{said[0].upper()}{said[1:]} {found[2]}"  # a small letter would not begin a sentence

    for part in (draft, *draft["sections"]):
        key = "answer" if part is draft else "text"
        part[key] = re.sub(r"(\S[^\[]*?) (\[S\d+\][.!?])", changed, part[key])


STILL_TRUE: tuple[Callable[[Draft, random.Random], None], ...] = (
    alter_quote,
    swap_sources,
    remove_labels,
    double_labels,
)
UNTRUE: tuple[Callable[[str, random.Random], str], ...] = (
    negate,
    exchange_word,
    swap_words,
    swap_numbers,
    insert_hedge,
    leave_out,
)


def labels_of(found: Labelled) -> dict[str, list[str]]:
    return {each.text: [one.label for one in each.passages] for each in found.sentences}


@pytest.mark.promise("RESEARCH-2")
def test_no_mutated_answer_gets_a_label_that_its_source_does_not_support() -> None:
    """Catches: a label taken over from the model, a quote accepted because it is nearly right."""
    chance, seen = random.Random(22), Counter[str]()
    mutations: tuple[Callable[..., Any], ...] = (*STILL_TRUE, *UNTRUE)
    texts = {source.label: " ".join(source.text.split()) for source in SOURCES}
    for number in range(MUTATED):
        mutation = mutations[number % len(mutations)]
        draft, sources = true_draft(chance, WITH_NUMBERS if mutation is swap_numbers else STATED)
        truth = labels_of(label_draft(draft, sources))
        assert all(truth.values()), draft
        if mutation in UNTRUE:
            change_sentences(draft, mutation, chance)
        else:
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
        if mutation in UNTRUE:
            assert len(labels) == len(truth)
            assert not any(labels.values()), (mutation.__name__, labels)
        else:  # the sentences are still true: code finds the labels again, and no others
            assert labels == truth, mutation.__name__
        seen[mutation.__name__] += 1
    assert set(seen.values()) <= {MUTATED // len(mutations), MUTATED // len(mutations) + 1}


@pytest.mark.promise("RESEARCH-2")
def test_quotes_that_take_the_place_of_an_answer_are_checked_as_sentences_are() -> None:
    """Catches: an item of a list of what is forbidden, delivered as the answer."""
    source = Source(
        "S1", "Ferries carry goats. They rest at noon.\n\nIt is forbidden to:\n\n- sell eels on Sundays\n"
    )
    quotes = ("sell eels on Sundays", "Ferries carry goats. They rest at noon.")
    draft = {"evidence": [{"source": "S1", "quote": each} for each in quotes], "answer": "Eels are sold."}
    found = quotes_instead(label_draft(draft, [source]), [source])
    assert labels_of(found) == {
        "Ferries carry goats.": ["S1"],
        "They rest at noon.": ["S1"],
        "Eels are sold.": [],
    }
