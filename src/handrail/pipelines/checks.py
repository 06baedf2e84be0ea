"""Checks that agents in folders can name as gates: pure functions of outputs."""

from collections.abc import Iterable
from itertools import islice
from typing import Annotated, Any, NamedTuple

from pydantic import Field

from handrail.engine.pipeline.definition import Check, Failed, Output, Outputs, Passed, Verdict
from handrail.pipelines.calls import squeezed
from handrail.pipelines.gathering import WORD, stems_of
from handrail.pipelines.registered import (
    Own,
    OwnFindings,
    OwnFlag,
    OwnTexts,
    Passages,
    Registered,
    looked_up,
    within,
)
from handrail.protocol.values import Value

ISSUES = 8
SHOWN = 160
MOST_COMPARED = 400
"""Sentences that are looked at for what a wrong quote may have meant."""
LONGEST = 400
"""Characters of a sentence that is named for it."""
NEAR = 0.4
"""How many of the words of a wrong quote a sentence has to hold, to be what it may have meant."""


class OfField(Value):
    field: Own


class OfCount(OfField):
    count: Annotated[int, Field(ge=0, le=10_000)]


class OfFlag(Value):
    field: OwnFlag


class OfQuotes(Value):
    field: OwnTexts
    passages: Passages
    """Where they have to stand, such as `gather.passages`."""
    least: Annotated[int, Field(ge=1, le=1_000)] = 12
    """Letters and digits that a quote must have: of less anything would be an exact match."""


class OfClaims(Value):
    field: OwnFindings
    percent: Annotated[int, Field(ge=1, le=100)] = 40
    """How many of the claim's words have to be in its quote."""
    passages: Passages = ""
    """Where a better quote may stand, for the repair."""


def not_empty(options: OfField) -> Check:
    def check(output: Output, _outputs: Outputs) -> Verdict:
        values = _values(output, options.field)
        if values and all(squeezed(value) if isinstance(value, str) else True for value in values):
            return Passed()
        return Failed((f"{options.field} is empty; it has to say something.",))

    return check


def at_most(options: OfCount) -> Check:
    def check(output: Output, _outputs: Outputs) -> Verdict:
        return _sized(output, options, at_most=True)

    return check


def at_least(options: OfCount) -> Check:
    def check(output: Output, _outputs: Outputs) -> Verdict:
        return _sized(output, options, at_most=False)

    return check


def is_true(options: OfFlag) -> Check:
    def check(output: Output, _outputs: Outputs) -> Verdict:
        if _values(output, options.field) == [True]:
            return Passed()
        why = squeezed(output.get("problem", ""))
        return Failed((f"{options.field} is not true{f': {why}' if why else '.'}",))

    return check


def found(options: OfField) -> Check:
    def check(output: Output, _outputs: Outputs) -> Verdict:
        if _values(output, options.field):
            return Passed()
        asked = "; ".join(squeezed(each) for each in within(output, ["missing"]))
        about = f" for: {asked}" if asked else ""
        end = "" if about.endswith(("?", ".", "!")) else "."
        return Failed((f"Nothing was found{about}{end} Without a source nothing is answered.",))

    return check


def quotes_match(options: OfQuotes) -> Check:
    def check(output: Output, outputs: Outputs) -> Verdict:
        passages = [squeezed(text) for text in _texts(looked_up(outputs, options.passages))]
        quotes = _quotes(output, options.field)
        if not quotes:
            return Failed((f"There is no quote in {options.field}; every claim needs one.",))
        sentences = _sentences(passages)
        wrong = (_unmatched(number, each, passages, options.least) for number, each in enumerate(quotes, 1))
        return _verdict(f"{issue}{_meant(quote, sentences)}" for issue, quote in filter(None, wrong))

    return check


def claims_rest(options: OfClaims) -> Check:
    def check(output: Output, outputs: Outputs) -> Verdict:
        items = within(output, options.field.split("."))
        if not items:
            return Failed((f"There is no claim in {options.field}.",))
        sentences = _sentences(map(squeezed, _texts(looked_up(outputs, options.passages))))
        return _verdict(
            _unrested(number, claim, stems, sentences)
            for number, (claim, stems, quote) in enumerate(map(_claim, items), 1)
            if _shared(stems, quote) * 100 < options.percent
        )

    return check


def _verdict(issues: Iterable[str]) -> Verdict:
    """The first of the issues; none of the others is looked for."""
    found = tuple(islice(issues, ISSUES))
    return Failed(found) if found else Passed()


def _quotes(output: Output, field: str) -> list[str]:
    """All quotes; an empty one for each item that has none."""
    *path, name = field.split(".")
    if not path:
        return [squeezed(quote) for quote in within(output, [name])]
    found = (within(item, [name]) for item in within(output, path) if isinstance(item, dict))
    return [squeezed(quote) for quotes in found for quote in quotes or [""]]


class Claim(NamedTuple):
    text: str
    stems: list[str]
    """Of the words that say something."""
    quote: str


def _claim(item: object) -> Claim:
    fields = item if isinstance(item, dict) else {}
    text = squeezed(fields.get("claim", ""))
    return Claim(text, stems_of(text), squeezed(fields.get("quote", "")))


def _unrested(number: int, claim: str, stems: list[str], sentences: list[str]) -> str:
    best = max(sentences, key=lambda sentence: _shared(stems, sentence), default="")
    better = f"The quote for it may be: {best!r}" if _shared(stems, best) else "Say what the quote says."
    return f"Claim {number} says what its quote does not: {claim[:SHOWN]!r}. {better}"


def _shared(stems: list[str], quote: str) -> float:
    """How many of the words of a claim are in its quote, from 0 to 1."""
    words = [word.lower() for word in WORD.findall(quote)]
    held = sum(any(word.startswith(stem) for word in words) for stem in stems)
    return held / len(stems) if stems else 0.0


def _unmatched(number: int, quote: str, passages: list[str], least: int) -> tuple[str, str] | None:
    """What is wrong with a quote, and the quote where another may be meant; None where all is well."""
    if (count := sum(map(str.isalnum, quote))) < least:
        short = f"Quote {number} has {count} letters and digits, at least {least} are wanted: "
        return f"{short}{quote[:SHOWN]!r}", ""
    if any(quote in passage for passage in passages):
        return None
    return f"Quote {number} stands in no passage: {quote[:SHOWN]!r}.", quote[:SHOWN]


def _meant(quote: str, sentences: list[str]) -> str:
    """The sentence that holds most of a wrong quote's words."""
    if not quote:
        return ""
    words = _words(quote)
    best = max(sentences, key=lambda sentence: len(words & _words(sentence)), default="")
    if words and len(words & _words(best)) >= NEAR * len(words):
        return f" Copy a sentence as it stands, such as: {best!r}"
    return " Copy a sentence as it stands."


def _words(text: str) -> set[str]:
    return {word.lower() for word in WORD.findall(text)}


def _sentences(passages: Iterable[str]) -> list[str]:
    """Of the passages, the first ones; of each what can be shown."""
    parts = (part.strip() for passage in passages for part in passage.replace(". ", ".\n").split("\n"))
    return [part[:LONGEST] for part in islice(filter(None, parts), MOST_COMPARED)]


def _texts(passages: Iterable[Any]) -> Iterable[str]:
    return (str(each.get("text", "")) if isinstance(each, dict) else str(each) for each in passages)


def _values(output: Output, field: str) -> list[Any]:
    return [value for value in within(output, field.split(".")) if value not in (None, "", {})]


def _sized(output: Output, options: OfCount, *, at_most: bool) -> Verdict:
    values = within(output, options.field.split("."))
    one = values[0] if len(values) == 1 else None
    size: float = len(values)
    what = f"{options.field} has {len(values)} items"
    if isinstance(one, int | float) and not isinstance(one, bool):
        size, what = one, f"{options.field} is {one}"
    if size <= options.count if at_most else size >= options.count:
        return Passed()
    return Failed((f"{what}, at {'most' if at_most else 'least'} {options.count} are wanted.",))


CHECKS: dict[str, Registered[Check]] = {
    "not_empty": Registered(OfField, not_empty, "the field says something"),
    "at_most": Registered(OfCount, at_most, "the list has at most so many items, or the number is no larger"),
    "at_least": Registered(
        OfCount, at_least, "the list has at least so many items, or the number is no less"
    ),
    "is_true": Registered(OfFlag, is_true, "the field is true, such as `written`"),
    "found": Registered(OfField, found, "something was found: an empty retrieval is refused"),
    "quotes_match": Registered(OfQuotes, quotes_match, "every quote stands, to the letter, in a passage"),
    "claims_rest": Registered(
        OfClaims, claims_rest, "every claim is in words of its quote, for the most part"
    ),
}
