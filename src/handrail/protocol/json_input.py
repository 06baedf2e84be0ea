"""JSON that a user hands in, such as a file that names what to do, as a value of its type."""

from typing import TypeVar

from msgspec import DecodeError, ValidationError, convert
from msgspec.json import decode

from handrail.protocol.errors import UsageProblem
from handrail.protocol.problems import problems_in

MAX_PROBLEMS = 4
T = TypeVar("T")


def read_json(data: bytes, kind: type[T], name: str, whole: str) -> T:
    """Raises UsageProblem that says what is wrong and where: `This is not a NAME: the WHOLE ...`."""
    try:
        json = decode(data)
    except (DecodeError, UnicodeError, RecursionError) as error:
        raise UsageProblem(f"This is not a {name}: the {whole} is not JSON ({error}).") from error
    try:
        return convert(json, kind)
    except ValidationError as error:
        problems = problems_in(json, kind)[:MAX_PROBLEMS]
        found = "; ".join(f"{each.where or f'the {whole}'} {each.should}" for each in problems)
        raise UsageProblem(f"This is not a {name}: {found or error}.") from error
