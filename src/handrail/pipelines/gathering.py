"""Finding passages in the workspace's documents: by the words of questions, with exact text and lines."""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Annotated, NamedTuple

from pydantic import Field

from handrail.engine.pipeline.definition import Output, Work
from handrail.pipelines.calls import Hit, hits_of, why_not
from handrail.protocol.errors import GiveUp

Pattern = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^!/~\x00-\x1f][^\x00-\x1f]*$")]
MostPassages = Annotated[int, Field(ge=1, le=50)]
MostCharacters = Annotated[int, Field(ge=200, le=60_000)]

WORDS = 12
"""Of one question."""
QUESTIONS = 12
AROUND = 3
"""Lines before and behind a hit that may belong to its paragraph."""
APART = 1
"""Hits that are no further apart are looked at together."""
LONGEST = 12
"""Lines of a passage."""
WORD = re.compile(r"[^\W_]{3,}")
ENDING = re.compile(r"(?:ies|es|ed|ing|(?<!s)s|y|e)$")
COMMON = frozenset(
    WORD.findall(
        """
    about after again all also and any are because been before being between both but can could did
    does doing document documents done down during each else every few find for from get give goes
    had has have having her here him his how into its just let like look made make many may more
    most much must need nor not now off one only other our out over own please say says see she
    should some step such tell than that the their them then there these they this those through too
    under until use very want was way were what when where which while who whom why will with would
    yes you your
    """
    )
)
"""Words that say nothing of what is sought."""
PROMPT = re.compile(r"agents/[^/]+/prompts/")
"""What an agent is told is no document."""
ROW = re.compile(r"^(\d+)\t(.*)$")


class Sought(NamedTuple):
    asked: tuple[str, ...]
    """All that is looked for, the first of it before the rest."""
    questions: tuple[str, ...]
    """Those of it that have to be told of where nothing was found."""
    files: tuple[str, ...]
    most: int
    characters: int


class Spot(NamedTuple):
    """Hits that stand together."""

    path: str
    first: int
    last: int
    score: float = 0.0


class Passage(NamedTuple):
    """A paragraph as it stands in its file."""

    path: str
    first: int
    last: int
    text: str

    def overlaps(self, other: "Passage") -> bool:
        return self.path == other.path and self.first <= other.last and other.first <= self.last


async def gathered(work: Work, sought: Sought) -> Output:
    """Passages, the best of each question first, and the questions that nothing was found for."""
    ranked, missing = [], []
    for question in sought.asked[:QUESTIONS]:
        found = await _spots(work, question, sought.files)
        ranked.append(found)
        if not found and question in sought.questions:
            missing.append(question)
    passages: list[Passage] = []
    left = sought.characters
    for spot in _in_turn(ranked):
        if len(passages) == sought.most:
            break
        passage = await _passage(work, spot)
        if passage and len(passage.text) <= left and not any(map(passage.overlaps, passages)):
            left -= len(passage.text)
            passages.append(passage)
    told = [
        {"id": f"P{number}", "path": each.path, "lines": f"{each.first}-{each.last}", "text": each.text}
        for number, each in enumerate(passages, 1)
    ]
    return {"passages": told, "missing": missing}


async def _spots(work: Work, question: str, files: Sequence[str]) -> list[Spot]:
    """Where the words of a question stand, the best first."""
    words = _sought(question)
    stems = list(words)
    hits: list[Hit] = []
    for pattern in files if stems else ():
        given = {
            "pattern": rf"(?i)\b(?:{'|'.join(re.escape(stem) for stem in stems)})",
            "regex": True,
            "glob": pattern,
            "rows": True,
            "sought": f"{', '.join(words.values())} in {pattern}",
        }
        end = await work.call("search", given)
        if not end.ok:
            raise GiveUp(f"The documents cannot be searched: {why_not(end).message}")
        hits += [hit for hit in hits_of(end) if not PROMPT.match(hit.path)]
    return ranked_spots(hits, stems)


def stems_of(question: str) -> list[str]:
    """The words that say what is sought, without their endings."""
    return list(_sought(question))


def _sought(question: str) -> dict[str, str]:
    """{word without its ending: word}."""
    found: dict[str, str] = {}
    for word in WORD.finditer(question):
        if len(found) == WORDS:
            break
        if (small := word[0].lower()) not in COMMON:
            found.setdefault(_stem(small), small)
    return found


def _stem(word: str) -> str:
    for _ in range(2):  # crossings, crossing, cross
        short = ENDING.sub("", word)
        word = short if len(short) >= 4 else word
    return word


def ranked_spots(hits: Sequence[Hit], stems: Sequence[str]) -> list[Spot]:
    """Hits that stand together, by how many words they hold and how rare these are."""
    found = {
        hit: [stem for stem in stems if re.search(rf"\b{re.escape(stem)}", hit.text.lower())] for hit in hits
    }
    often = Counter(stem for each in found.values() for stem in each)
    spots = [_scored(group, found, often, len(hits)) for group in _groups(sorted(found))]
    return sorted(spots, key=lambda spot: (-spot.score, spot.path, spot.first))


def _groups(hits: Sequence[Hit]) -> Iterator[list[Hit]]:
    group: list[Hit] = []
    for hit in hits:
        near = group and hit.path == group[-1].path and hit.line - group[-1].line <= APART
        if group and (not near or hit.line - group[0].line >= LONGEST):
            yield group
            group = []
        group.append(hit)
    if group:
        yield group


def _scored(
    group: Sequence[Hit], found: Mapping[Hit, Sequence[str]], often: Mapping[str, int], total: int
) -> Spot:
    held = {stem for hit in group for stem in found[hit]}
    score = sum(math.log(1 + total / often[stem]) for stem in held)
    return Spot(group[0].path, group[0].line, group[-1].line, score)


def _in_turn(ranked: Sequence[Sequence[Spot]]) -> Iterator[Spot]:
    """The best of each question, then the second best: so that none goes without."""
    taken: list[Spot] = []
    for row in zip_longest(*ranked):
        for spot in row:
            if spot and spot._replace(score=0) not in taken:
                taken.append(spot._replace(score=0))
                yield spot


async def _passage(work: Work, spot: Spot) -> Passage | None:
    """The paragraph of a spot as it stands in the file."""
    window = {"path": spot.path, "start": max(1, spot.first - AROUND), "end": spot.last + AROUND}
    end = await work.call("read", window)
    if not end.ok:
        return None  # it has gone since it was found
    rows = {int(row[1]): row[2] for line in end.content.split("\n") if (row := ROW.match(line))}
    first, last = spot.first, spot.last
    while rows.get(first - 1, "").strip():
        first -= 1
    while rows.get(last + 1, "").strip():
        last += 1
    lines = [rows[number] for number in range(first, last + 1) if number in rows]
    says = any(line.strip() and not line.startswith("#") for line in lines)  # a heading alone says nothing
    return Passage(spot.path, first, last, "\n".join(lines)) if says else None
