"""What two sentences have in common: words, numbers, what is denied, words of opposite meaning."""

import re
from functools import lru_cache
from typing import NamedTuple

from handrail.knowledge.checks.number_words import with_digits
from handrail.knowledge.words import STOP_WORDS, Span, sentences, stem, stems, tokens

NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:[.,]\d+)*(?:%|st\b|nd\b|rd\b|th\b)?")
NUMBER_WORDS = {
    "zero": "0",
    "one": "1",
    "two": "2",
    "three": "3",
    "four": "4",
    "five": "5",
    "six": "6",
    "seven": "7",
    "eight": "8",
    "nine": "9",
    "ten": "10",
    "eleven": "11",
    "twelve": "12",
    "thirteen": "13",
    "fourteen": "14",
    "fifteen": "15",
    "sixteen": "16",
    "seventeen": "17",
    "eighteen": "18",
    "nineteen": "19",
    "twenty": "20",
    "thirty": "30",
    "forty": "40",
    "fifty": "50",
    "sixty": "60",
    "seventy": "70",
    "eighty": "80",
    "ninety": "90",
    "hundred": "100",
    "thousand": "1000",
    "million": "1000000",
    "once": "1",
    "twice": "2",
    "first": "1",
    "second": "2",
    "third": "3",
    "half": "0.5",
}
NEGATIONS = frozenset(
    """
    not no never none neither nor cannot without nobody nothing nowhere hardly unless except lacks lack
    forbids forbidden prohibits prohibited isn't aren't wasn't weren't don't doesn't didn't can't couldn't
    won't wouldn't shouldn't mustn't needn't hasn't haven't hadn't
    """.split()
)
WITH_TO = frozenset("fail fails failed refuse refuses refused forbidden prohibited unable".split())
"""Negations where `to` follows."""
CONDITIONS = frozenset("without unless except".split())
REACH = 5
"""A negation covers so many words after it, at most to the end of its clause."""
OPPOSITES = (
    *("before after", "above below", "more less", "more fewer", "over under", "up down", "always never"),
    *("must may", "shall may", "all none", "every no", "minimum maximum", "least most", "increase decrease"),
    *("increases decreases", "rise fall", "rises falls", "higher lower", "highest lowest", "first last"),
    *("allowed forbidden", "allow forbid", "allows forbids", "permitted prohibited", "accept reject"),
    *("include exclude", "includes excludes", "start end", "starts ends", "open closed", "opens closes"),
    *("same different", "true false", "earlier later", "left right", "inside outside", "with without"),
    *("enable disable", "enables disables", "enabled disabled", "required optional", "add remove"),
    *("high low", "large small", "long short", "early late", "east west", "north south", "public private"),
)
OPPOSITE: dict[str, frozenset[str]] = {}
for _pair in OPPOSITES:
    _one, _two = _pair.split()
    OPPOSITE[_one] = OPPOSITE.get(_one, frozenset()) | {_two}
    OPPOSITE[_two] = OPPOSITE.get(_two, frozenset()) | {_one}
CLAUSE = re.compile(r"[,;:()]|\s[–—-]\s|\b(?:but|however|although|whereas|while|because|if|when)\b")


class Statement(NamedTuple):
    """A sentence as the checks see it."""

    text: str
    words: tuple[str, ...]
    """In lower case, in order."""
    stems: tuple[str, ...]
    """Of the words that say something, in order."""
    numbers: frozenset[str]
    denied: frozenset[str]
    """The stems that a negation covers."""
    denied_twice: frozenset[str]
    """Those that two cover, as in `not forbidden`: that says the opposite of one."""


@lru_cache(maxsize=4_096)
def read_statement(text: str) -> Statement:
    digits = with_digits(text)
    denied = denials(digits)
    twice = frozenset(each for each, times in denied.items() if times and times % 2 == 0)
    return Statement(
        text, tuple(tokens(digits)), tuple(stems(digits)), numbers_in(text), frozenset(denied), twice
    )


def statements_of(text: str) -> list[tuple[Span, Statement]]:
    """Each sentence of a text, with its place."""
    return [(span, read_statement(span.text)) for span in sentences(text)]


def numbers_in(text: str) -> frozenset[str]:
    """The numbers of a text, however they are written: `1,000`, `1000.0` and `thousand` are one.

    Small ones that are written as words are left out: `one` and `first` are often no numbers.
    """
    text = with_digits(text, smallest=10)
    found = {_plain_number(each) for each in NUMBER.findall(text)}
    return frozenset(
        found | {NUMBER_WORDS[word] for word in tokens(text) if len(NUMBER_WORDS.get(word, "")) > 1}
    )


def has_number(number: str, text: str) -> bool:
    """Whether a number is in a text, also as a word."""
    text = with_digits(text)
    return number in numbers_in(text) or any(NUMBER_WORDS.get(word) == number for word in tokens(text))


def _plain_number(text: str) -> str:
    percent = "%" if text.endswith("%") else ""
    digits = re.sub(r"(?:%|st|nd|rd|th)$", "", text).lstrip("+")
    digits = re.sub(r",(?=\d{3}(?:\D|$))", "", digits).replace(",", ".")
    if digits.count(".") == 1:
        digits = digits.rstrip("0").rstrip(".")
    whole = digits.lstrip("0") or "0"
    return f"0{whole}{percent}" if whole.startswith(".") else f"{whole}{percent}"


def denials(text: str) -> dict[str, int]:
    """The stems that a negation covers, those after it in its clause, with how many of them turn the sense.

    `without` and `unless` do not: `not without a lamp` and `without a lamp it is not allowed` are the same.
    """
    found: dict[str, int] = {}
    for clause in CLAUSE.split(text):
        words = tokens(clause)
        reaches: list[tuple[int, bool]] = []
        at = 0
        for word, following in zip(words, [*words[1:], ""], strict=False):
            negation = (
                word in NEGATIONS or word.endswith(("n't", "n’t")) or (word in WITH_TO and following == "to")
            )
            over = [turns for end, turns in reaches if at < end]
            if over and word not in STOP_WORDS | CONDITIONS:
                found[stem(word)] = found.get(stem(word), 0) + sum(over)
            if negation:
                reaches.append((at + REACH, word not in CONDITIONS))
            elif word not in STOP_WORDS:
                at += 1
    return found


def opposed_words(one: Statement, two: Statement) -> list[tuple[str, str]]:
    """Pairs of opposite words, one in each sentence, of which neither has both."""
    first, second = set(one.words), set(two.words)
    return [
        (word, other)
        for word in sorted(first - second)
        for other in sorted(OPPOSITE.get(word, ()))
        if other in second and other not in first
    ]


def opposed(one: Statement, two: Statement) -> str:
    """Why two sentences about the same thing do not say the same; empty if nothing shows that."""
    shared = set(one.stems) & set(two.stems)
    differs = (one.denied ^ two.denied) & shared
    if differs:
        return f"one denies {min(differs)!r}, the other does not"
    if twice := (one.denied_twice ^ two.denied_twice) & shared:
        return f"one denies {min(twice)!r} twice, the other does not"
    for word, other in opposed_words(one, two):
        return f"{word!r} against {other!r}"
    return ""


def coverage(claim: Statement, text_stems: "frozenset[str] | set[str]") -> float:
    """Which part of a claim's words occurs; 1 for a claim without any."""
    wanted = set(claim.stems)
    return len(wanted & text_stems) / len(wanted) if wanted else 1.0


def best_statement(claim: Statement, text: str) -> tuple[Span, Statement] | None:
    """The sentence of a text that has most in common with a claim."""
    found = statements_of(text)
    wanted = set(claim.stems)
    return max(found, key=lambda each: len(wanted & set(each[1].stems)), default=None)
