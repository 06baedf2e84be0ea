"""Checks that agents in folders can name as gates: pure functions of outputs."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Annotated, Any

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
    """Characters that a quote must have: of less anything would be an exact match."""


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
        return Failed((f"Nothing was found{about}. Without a source nothing is answered.",))

    return check


def quotes_match(options: OfQuotes) -> Check:
    def check(output: Output, outputs: Outputs) -> Verdict:
        passages = [squeezed(text) for text in _texts(looked_up(outputs, options.passages))]
        quotes = [squeezed(quote) for quote in within(output, options.field.split("."))]
        if not quotes:
            return Failed((f"There is no quote in {options.field}; every claim needs one.",))
        issues = [
            issue
            for number, quote in enumerate(quotes, 1)
            if (issue := _unmatched(number, quote, passages, options.least))
        ]
        return Failed(tuple(issues[:ISSUES])) if issues else Passed()

    return check


def claims_rest(options: OfClaims) -> Check:
    def check(output: Output, outputs: Outputs) -> Verdict:
        items = [each for each in within(output, options.field.split(".")) if isinstance(each, dict)]
        texts = _texts(looked_up(outputs, options.passages)) if options.passages else ()
        sentences = [each for text in texts for each in _sentences(squeezed(text))][:MOST_COMPARED]
        issues = [
            _unrested(number, squeezed(item.get("claim", "")), sentences)
            for number, item in enumerate(items, 1)
            if _shared(str(item.get("claim", "")), str(item.get("quote", ""))) * 100 < options.percent
        ]
        return Failed(tuple(issues[:ISSUES])) if issues else Passed()

    return check


def _unrested(number: int, claim: str, sentences: list[str]) -> str:
    best = max(sentences, key=lambda sentence: _shared(claim, sentence), default="")
    better = f"The quote for it may be: {best!r}" if _shared(claim, best) else "Say what the quote says."
    return f"Claim {number} says what its quote does not: {claim[:SHOWN]!r}. {better}"


def _shared(claim: str, quote: str) -> float:
    """How many of the words of a claim that say something are in its quote, from 0 to 1."""
    stems = stems_of(claim)
    words = [word.lower() for word in WORD.findall(quote)]
    held = sum(any(word.startswith(stem) for word in words) for stem in stems)
    return held / len(stems) if stems else 0.0


def _unmatched(number: int, quote: str, passages: list[str], least: int) -> str:
    if len(quote) < least:
        return f"Quote {number} has {len(quote)} characters, at least {least} are wanted: {quote!r}"
    if any(quote in passage for passage in passages):
        return ""
    sentences = [part for passage in passages for part in _sentences(passage)][:MOST_COMPARED]
    near = get_close_matches(quote[:SHOWN], [each[:SHOWN] for each in sentences], n=1, cutoff=0.4)
    meant = (
        f" Copy a sentence as it stands, such as: {near[0]!r}" if near else " Copy a sentence as it stands."
    )
    return f"Quote {number} stands in no passage: {quote[:SHOWN]!r}.{meant}"


def _sentences(passage: str) -> Iterable[str]:
    return (part.strip() for part in passage.replace(". ", ".\n").split("\n") if part.strip())


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
