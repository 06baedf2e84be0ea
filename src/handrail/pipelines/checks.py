"""Checks that agents can use as gates: pure functions of stage outputs."""

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Annotated, Any

from msgspec import Meta

from handrail.engine.pipeline import Failed, Output, Outputs, Passed, Verdict
from handrail.pipelines.agent_file import (
    OwnField,
    OwnFindings,
    OwnFlag,
    OwnTexts,
    Passages,
    RegisteredFunction,
    look_up,
    values_at,
)
from handrail.pipelines.call_results import collapse_whitespace
from handrail.pipelines.plan_file import KeepsPlanOptions, keeps_plan
from handrail.pipelines.steps import WORD, word_stems
from handrail.protocol.values import Value

MAX_ISSUES, MAX_SHOWN = 8, 160
MAX_COMPARED, MAX_SENTENCE = 400, 400  # sentences that a wrong quote is compared with, and characters of each
MIN_SIMILARITY = 0.4  # a sentence with this share of a wrong quote's words may be what it meant


class FieldOptions(Value):
    field: OwnField


class CountOptions(FieldOptions):
    count: Annotated[int, Meta(ge=0, le=10_000)]


class FlagOptions(Value):
    field: OwnFlag


class QuoteOptions(Value):
    field: OwnTexts
    passages: Passages  # where the quotes have to be, such as `gather.passages`
    least: Annotated[int, Meta(ge=1, le=1_000)] = 12
    """Letters and digits that a quote must have; a shorter one would match anything."""


class ClaimOptions(Value):
    field: OwnFindings
    percent: Annotated[int, Meta(ge=1, le=100)] = 40  # of the claim's words, in its quote
    passages: Passages = ""  # where a better quote is looked for


def not_empty(options: FieldOptions, output: Output, _outputs: Outputs) -> Verdict:
    values = _values(output, options.field)
    if values and all(not isinstance(value, str) or collapse_whitespace(value) for value in values):
        return Passed()
    return Failed((f"{options.field} is empty; it has to say something.",))


def empty(options: FieldOptions, output: Output, outputs: Outputs) -> Verdict:
    full = isinstance(not_empty(options, output, outputs), Passed)
    return Failed((f"{options.field} is not empty.",)) if full else Passed()


def at_most(options: CountOptions, output: Output, _outputs: Outputs) -> Verdict:
    return _check_size(output, options, at_most=True)


def at_least(options: CountOptions, output: Output, _outputs: Outputs) -> Verdict:
    return _check_size(output, options, at_most=False)


def is_true(options: FlagOptions, output: Output, _outputs: Outputs) -> Verdict:
    if _values(output, options.field) == [True]:
        return Passed()
    why = collapse_whitespace(output.get("problem", ""))
    return Failed((f"{options.field} is not true{f': {why}' if why else '.'}",))


def found(options: FieldOptions, output: Output, _outputs: Outputs) -> Verdict:
    if _values(output, options.field):
        return Passed()
    asked = "; ".join(collapse_whitespace(each) for each in values_at(output, ["missing"]))
    about = f" for: {asked}" if asked else ""
    end = "" if about.endswith(("?", ".", "!")) else "."
    return Failed((f"Nothing was found{about}{end} Without a source there is no answer.",))


def quotes_match(options: QuoteOptions, output: Output, outputs: Outputs) -> Verdict:
    """Whether every quote is in a passage, word for word."""
    passages = [collapse_whitespace(text) for text in _texts(look_up(outputs, options.passages))]
    quotes = _quotes(output, options.field)
    if not quotes:
        return Failed((f"There is no quote in {options.field}; every claim needs one.",))
    sentences = _sentences(passages)
    return _verdict(
        _quote_problem(number, quote, passages, sentences, options.least)
        for number, quote in enumerate(quotes, 1)
    )


def claims_rest(options: ClaimOptions, output: Output, outputs: Outputs) -> Verdict:
    """Whether most words of every claim are in its quote."""
    items = values_at(output, options.field.split("."))
    if not items:
        return Failed((f"There is no claim in {options.field}.",))
    sentences = _sentences(map(collapse_whitespace, _texts(look_up(outputs, options.passages))))
    return _verdict(
        _claim_problem(number, item if isinstance(item, dict) else {}, sentences, options.percent)
        for number, item in enumerate(items, 1)
    )


def _verdict(problems: Iterable[str]) -> Verdict:
    """Failed with the first problems; later items are not checked."""
    issues = tuple(islice(filter(None, problems), MAX_ISSUES))
    return Failed(issues) if issues else Passed()


def _quotes(output: Output, field: str) -> list[str]:
    """All quotes; an empty one for each item that has none."""
    *path, name = field.split(".")
    if not path:
        return [collapse_whitespace(quote) for quote in values_at(output, [name])]
    found = (values_at(item, [name]) for item in values_at(output, path) if isinstance(item, dict))
    return [collapse_whitespace(quote) for quotes in found for quote in quotes or [""]]


def _claim_problem(number: int, item: Mapping[str, Any], sentences: list[str], percent: int) -> str:
    claim, quote = (collapse_whitespace(item.get(name, "")) for name in ("claim", "quote"))
    stems = word_stems(claim)
    if _shared_words(stems, quote) * 100 >= percent:
        return ""
    best = max(sentences, key=lambda sentence: _shared_words(stems, sentence), default="")
    better = f"A better quote may be: {best!r}" if _shared_words(stems, best) else "Say what the quote says."
    return f"Claim {number} says what its quote does not: {claim[:MAX_SHOWN]!r}. {better}"


def _shared_words(stems: list[str], quote: str) -> float:
    """How many of the words of a claim are in its quote, from 0 to 1."""
    words = [word.lower() for word in WORD.findall(quote)]
    held = sum(any(word.startswith(stem) for word in words) for stem in stems)
    return held / len(stems) if stems else 0.0


def _quote_problem(number: int, quote: str, passages: list[str], sentences: list[str], least: int) -> str:
    """What is wrong with a quote, and the sentence that may be meant; empty where it is right."""
    if (count := sum(map(str.isalnum, quote))) < least:
        short = f"{count} letters and digits, at least {least} are needed"
        return f"Quote {number} has {short}: {quote[:MAX_SHOWN]!r}"
    if any(quote in passage for passage in passages):
        return ""
    words = _words(quote[:MAX_SHOWN])
    best = max(sentences, key=lambda sentence: len(words & _words(sentence)), default="")
    similar = words and len(words & _words(best)) >= MIN_SIMILARITY * len(words)
    such_as = f" exactly, such as: {best!r}" if similar else " exactly."
    return f"Quote {number} is in no passage: {quote[:MAX_SHOWN]!r}. Copy a sentence{such_as}"


def _words(text: str) -> set[str]:
    return {word.lower() for word in WORD.findall(text)}


def _sentences(passages: Iterable[str]) -> list[str]:
    """The first sentences of the passages, each cut to what can be shown."""
    parts = (part.strip() for passage in passages for part in passage.replace(". ", ".\n").split("\n"))
    return [part[:MAX_SENTENCE] for part in islice(filter(None, parts), MAX_COMPARED)]


def _texts(passages: Iterable[Any]) -> Iterable[str]:
    return (str(each.get("text", "")) if isinstance(each, dict) else str(each) for each in passages)


def _values(output: Output, field: str) -> list[Any]:
    return [value for value in values_at(output, field.split(".")) if value not in (None, "", {})]


def _check_size(output: Output, options: CountOptions, *, at_most: bool) -> Verdict:
    values = values_at(output, options.field.split("."))
    one = values[0] if len(values) == 1 else None
    size: float = len(values)
    what = f"{options.field} has {len(values)} items"
    if isinstance(one, int | float) and not isinstance(one, bool):
        size, what = one, f"{options.field} is {one}"
    if size <= options.count if at_most else size >= options.count:
        return Passed()
    return Failed((f"{what}, at {'most' if at_most else 'least'} {options.count} are needed.",))


CHECKS = {
    "empty": RegisteredFunction(FieldOptions, empty),
    "not_empty": RegisteredFunction(FieldOptions, not_empty),
    "at_most": RegisteredFunction(CountOptions, at_most),
    "at_least": RegisteredFunction(CountOptions, at_least),
    "is_true": RegisteredFunction(FlagOptions, is_true),
    "found": RegisteredFunction(FieldOptions, found),
    "quotes_match": RegisteredFunction(QuoteOptions, quotes_match),
    "claims_rest": RegisteredFunction(ClaimOptions, claims_rest),
    "keeps_plan": RegisteredFunction(KeepsPlanOptions, keeps_plan),
}
