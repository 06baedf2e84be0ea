"""The names, numbers and terms of a text, and which of them its sources mention."""

import re
from collections.abc import Sequence

from handrail.knowledge.checks.statements import NUMBER, has_number, numbers_in
from handrail.knowledge.words import STOP_WORDS, normal_key, sentences
from handrail.protocol.values import Value

NAME = re.compile(
    r"\b[A-Z][\w’'-]*(?:\.\d+)?(?:[ ](?:(?:of|the|and|for|de|von|van)[ ])?[A-Z0-9][\w’'-]*){0,5}"
)
CODE = re.compile(r"`([^`\n]{1,80})`")
QUOTED = re.compile(r"[“\"]([^”\"\n]{2,60})[”\"]")
LABEL = re.compile(r"\[[SWP]\d+\]")


class EntityCheck(Value):
    """The entities of a text and how many its sources mention."""

    entities: tuple[str, ...]
    missing: tuple[str, ...]
    rate: float
    """The part that is mentioned; 1 if there are none."""


def check_entities(text: str, sources: Sequence[str]) -> EntityCheck:
    """Which names, numbers and quoted terms of a text occur in its sources."""
    found = [*entities_in(text), *sorted(numbers_in(LABEL.sub("", text)))]
    missing = [each for each in found if not is_grounded(each, sources)]
    rate = 1 - len(missing) / len(found) if found else 1.0
    return EntityCheck(tuple(found), tuple(missing), round(rate, 4))


def entities_in(text: str) -> list[str]:
    """Names, short forms, code and quoted terms. A word that only begins a sentence is no name."""
    text = LABEL.sub("", text)
    found: dict[str, None] = {}
    for each in CODE.finditer(text):
        found[each[1]] = None
    plain = CODE.sub(" ", text)
    for each in QUOTED.finditer(plain):
        if len(each[1].split()) <= 5:
            found[each[1]] = None
    for sentence in sentences(plain):
        for each in NAME.finditer(sentence.text):
            words = each[0].split(" ")
            begins = not re.search(r"\w", sentence.text[: each.start()])
            if begins and not _is_name(words[0]):
                # The first word of a sentence has a capital letter anyway.
                words = words[1:]
                while words and words[0] in ("of", "the", "and", "for"):
                    words = words[1:]
            while words and words[0].lower() in STOP_WORDS:
                words = words[1:]
            if words and not all(word[0].isdigit() for word in words):
                found[" ".join(words)] = None
    return list(found)


def _is_name(word: str) -> bool:
    """Whether a word is a name wherever it stands: it has further capitals, or digits."""
    return any(each.isupper() or each.isdigit() for each in word[1:])


def is_grounded(entity: str, sources: Sequence[str]) -> bool:
    """Whether a source mentions an entity, in any form of its words."""
    if NUMBER.fullmatch(entity):
        return any(has_number(next(iter(numbers_in(entity)), entity), source) for source in sources)
    wanted = f" {normal_key(entity)} "
    return any(wanted in f" {normal_key(source)} " for source in sources)
