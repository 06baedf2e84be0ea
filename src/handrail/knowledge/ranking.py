"""How search results are ranked: words, vectors, and both fused."""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from handrail.knowledge.words import TOKEN, content_words, stem, stems, tokens
from handrail.storage.knowledge.store import KnowledgeStore

if TYPE_CHECKING:
    from handrail.knowledge.base import Hit

RRF = 60
SCORES_COUNT = 3.0
"""As much as so many rankings: the one by scores, beside words and meaning."""
DEPTH = 1_000
"""How many results of words and of vectors are fused."""
SMALL_BASE = 10_000
"""With so few paragraphs, every word of a query counts."""
MOST_MATCHES = 8_000
"""Beyond that, the rarest words count, as long as they occur in no more paragraphs than this together."""


class Ranked(NamedTuple):
    """Paragraphs by number, best first, with their scores."""

    numbers: list[int]
    scores: list[float]


def fuse(lists: Iterable[tuple[float, Iterable[int]]]) -> Ranked:
    """Reciprocal rank fusion: a result is as good as the sum of weight / (60 + its rank) in each list."""
    scores: dict[int, float] = {}
    for weight, each in lists:
        for rank, number in enumerate(each, start=1):
            scores[number] = scores.get(number, 0.0) + weight / (RRF + rank)
    best = sorted(scores, key=scores.__getitem__, reverse=True)  # where equal: of the list before
    return Ranked(best, [scores[number] for number in best])


def fuse_searches(words: Mapping[int, float], meaning: Mapping[int, float]) -> Ranked:
    """What both searches found, in one order: by their ranks, and more by the sum of their scores."""
    both = by_scores(words, meaning) if meaning else []
    return fuse([(1, words), (1, meaning), (SCORES_COUNT, both)])


def by_scores(words: Mapping[int, float], meaning: Mapping[int, float]) -> list[int]:
    """Best first by the sum of both scores, each as a share of its best: how far apart results are counts."""
    total: dict[int, float] = {}
    for scores in (words, meaning):
        best = max(scores.values(), default=0.0)
        for number, score in scores.items() if best > 0 else ():
            total[number] = total.get(number, 0.0) + score / best
    return sorted(total, key=total.__getitem__, reverse=True)


class WordSearch:
    """Full-text search with bm25; how often a word occurs is remembered until the base changes."""

    def __init__(self, store: KnowledgeStore) -> None:
        self._store = store
        self._counted: dict[str, int] = {}
        self._version = -1

    def search(self, query: str, paragraphs: int, documents: Sequence[int] | None = None) -> dict[int, float]:
        """The paragraphs that have some of the query's words with their bm25, best (highest) first."""
        words = query_words(query)
        if not words:
            return {}
        expression = " OR ".join(map(quoted, words))
        most = SMALL_BASE
        if paragraphs > SMALL_BASE:
            expression, most = self._affordable(words), MOST_MATCHES
        return {number: -score for number, score in self._store.match(expression, DEPTH, most, documents)}

    def _affordable(self, words: list[str]) -> str:
        """An expression for the rarest words: bm25 costs a microsecond for every paragraph that matches."""
        if (version := self._store.version()) != self._version:
            self._counted, self._version = {}, version
        for word in words:
            if word not in self._counted:
                self._counted[word] = self._store.count_matches(quoted(word), MOST_MATCHES + 1)
        rarest = sorted((word for word in words if self._counted[word]), key=self._counted.__getitem__)
        chosen, left = list[str](), MOST_MATCHES
        for word in rarest:
            left -= self._counted[word]
            if left < 0:
                break
            chosen.append(word)
        if chosen:
            return " OR ".join(map(quoted, chosen))
        # All are frequent: paragraphs with several of them.
        for count in (len(rarest), 3, 2):
            together = " AND ".join(map(quoted, rarest[:count]))
            if count <= len(rarest) and self._store.count_matches(together, 10) >= 10:
                return together
        return " OR ".join(map(quoted, (rarest or words)[:1]))


def query_words(query: str) -> list[str]:
    """The words to search for; if all are stop words, these."""
    return list(dict.fromkeys(content_words(query) or tokens(query)))[:64]


def quoted(word: str) -> str:
    """A word for FTS5, in which nothing is an operator."""
    return '"' + word.replace('"', '""') + '"'


def highlights(text: str, query: str) -> list[tuple[int, int]]:
    """Where words of the query are in a text, in any of their forms."""
    wanted = {stem(word) for word in query_words(query)}
    found = []
    for each in TOKEN.finditer(text):
        word = re.sub(r"['’]s?$", "", each[0].lower())
        if stem(word) in wanted:
            found.append((each.start(), each.start() + len(word)))
    return found


def rerank_hits(query: str, hits: "list[Hit]") -> "list[Hit]":
    """The hits by how much of the query each has: rare words count more, and words close together."""
    wanted = list(dict.fromkeys(stems(query)))
    texts = [stems(f"{hit.paragraph.heading} {hit.paragraph.text}") for hit in hits]
    weight = {word: 1.0 / (1 + sum(word in text for text in texts)) for word in wanted}
    total = sum(weight.values()) or 1.0

    def coverage(text: list[str]) -> float:
        present = set(text)
        pairs = sum(1 for one, two in pairwise(wanted) if _near(text, one, two))
        return sum(weight[word] for word in wanted if word in present) / total + pairs / max(
            1, len(wanted) - 1
        )

    covered = sorted(range(len(hits)), key=lambda index: -coverage(texts[index]))
    scored = fuse([(1, range(len(hits))), (1, covered)])
    return [hits[index] for index in scored.numbers]


def _near(text: list[str], one: str, two: str) -> bool:
    places = [index for index, word in enumerate(text) if word == one]
    return any(two in text[max(0, index - 3) : index + 4] for index in places[:20])
