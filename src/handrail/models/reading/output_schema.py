"""Answers by a JSON Schema that the user gave: is the schema valid, and does an answer fit it."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from handrail.models.reading.json_reader import read_object, read_value, unwrap_answer
from handrail.models.reading.sanitize import why_unstorable
from handrail.protocol.values import is_deeper

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError
    from referencing import Resource
    from referencing._core import Resolver

MAX_PROBLEMS, PROBLEM_CHARACTERS = 8, 300
MAX_DEPTH = 100
MAX_REFERENCES = 20_000
REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
NULL = re.compile(r"\s*(?:```(?:json)?\s*null\s*```|null)\s*")


class FittedOutput(NamedTuple):
    json: str
    """The value as JSON in ASCII; empty where the answer does not fit."""
    problems: tuple[str, ...] = ()


def schema_problem(schema: Any) -> str:
    """Why this cannot be used as the JSON Schema of an answer; empty where it can."""
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import validator_for

    if not isinstance(schema, Mapping):
        return "it is not a JSON object"
    if is_deeper(schema, MAX_DEPTH):
        return "it is nested too deeply"
    try:
        json.dumps(schema, ensure_ascii=False, allow_nan=False).encode()
    except ValueError:
        return "it contains a number that is not finite, or half of a character"
    named = schema.get("$schema", "")
    if not isinstance(named, str) or (named and validator_for(schema, default=None) is None):
        return f"$schema is {named!r}, which is no known version of JSON Schema"
    try:
        validator_for(schema).check_schema(schema)
    except SchemaError as error:
        return f"{error.json_path}: {_short(error.message)}"
    if problem := _reference_problem(schema):
        return problem
    checked = _check({}, schema)
    return checked if isinstance(checked, str) else ""


def read_output(answer: str, schema: Mapping[str, Any]) -> FittedOutput:
    """The JSON value in an answer, where it fits the schema; no value is changed to make it fit."""
    value = read_value(answer)
    is_null = value is None and NULL.fullmatch(unwrap_answer(answer) or "")
    if (value is None or isinstance(value, str)) and not is_null:
        found = read_object(answer)
        if value is None and found.value is None:
            return FittedOutput("", (found.problem,))
        value = value if found.value is None else found.value
    if problem := why_unstorable(value):
        return FittedOutput("", (f"it contains {problem}",))
    errors = _check(value, schema)
    if isinstance(errors, str):
        return FittedOutput("", (f"it cannot be checked: {errors}",))
    problems = tuple(f"{each.json_path}: {_short(each.message)}" for each in errors[:MAX_PROBLEMS])
    return FittedOutput("" if problems else json.dumps(value, allow_nan=False), problems)


class _TooManyReferences(Exception): ...


def _check(value: Any, schema: Mapping[str, Any]) -> "list[ValidationError] | str":
    """What does not fit, or why that cannot be said."""
    from referencing.exceptions import Unresolvable

    try:
        errors = list(_validator(schema).iter_errors(value))
        return sorted(errors, key=lambda each: each.json_path)
    except RecursionError:
        return "the schema refers to itself without end"
    except _TooManyReferences:
        return f"the schema leads through more than {MAX_REFERENCES:,} references"
    except Unresolvable as error:
        return f"the schema refers to {_short(error.ref)!r}, which is not in it"
    # A reference can lead to something that is no schema, and a number can be too large to be divided.
    except (ValueError, TypeError, AttributeError, LookupError, ArithmeticError, re.error) as error:
        return _short(str(error))


def _validator(schema: Mapping[str, Any]) -> Any:
    from jsonschema.validators import extend, validator_for
    from referencing import Registry

    kind, count = validator_for(schema), 0

    def counted(follow: Callable[..., Any]) -> Callable[..., Any]:
        def check(*given: Any) -> Iterator[Any]:
            # Twenty definitions that each refer twice to the next lead through a million of them.
            nonlocal count
            count += 1
            if count > MAX_REFERENCES:
                raise _TooManyReferences
            yield from follow(*given) or ()

        return check

    known = {name: counted(kind.VALIDATORS[name]) for name in REFERENCES if name in kind.VALIDATORS}
    # An empty registry: nothing is fetched from addresses in the schema.
    return extend(kind, known)(schema, registry=Registry())


def _reference_problem(schema: Mapping[str, Any]) -> str:
    from referencing import Registry, Resource
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import DRAFT202012

    reference = ""

    def follow(resource: "Resource[Any]", resolver: "Resolver[Any]") -> None:
        nonlocal reference
        found = resource.contents if isinstance(resource.contents, Mapping) else {}
        for reference in (found[name] for name in REFERENCES if isinstance(found.get(name), str)):
            if not isinstance(resolver.lookup(reference).contents, Mapping | bool):
                raise LookupError(reference)
        for inner in resource.subresources():
            follow(inner, resolver.in_subresource(inner))

    whole = Resource.from_contents(schema, default_specification=DRAFT202012)
    try:
        known = Registry().with_resource(whole.id() or "", whole).crawl()
        follow(whole, known.resolver(whole.id() or ""))
    except Unresolvable:
        return f"it refers to {_short(reference)!r}, which is not in it; other documents are not loaded"
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        named = f"it refers to {_short(reference)!r}, which is no schema" if reference else ""
        return named or f"an address in it cannot be read: {_short(str(error))}"
    return ""


def _short(text: str) -> str:
    return text if len(text) <= PROBLEM_CHARACTERS else f"{text[:PROBLEM_CHARACTERS]}..."
