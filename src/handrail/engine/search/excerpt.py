"""What a small model is shown of a file that is too long for it: the part in question, and what it uses."""

import re
from collections.abc import Iterable, Iterator, Sequence

from handrail.engine.search.source import Function, find_functions, indent_of

NAME = re.compile(r"[A-Za-z_$][\w$]*")
CONSTRUCTORS = ("__init__", "__new__", "constructor")
CLASS = re.compile(r"\s*(?:export )?(?:abstract )?(?:class|interface|struct|impl|enum)\b")
LEFT_OUT = "..."


def excerpt(path: str, text: str, first: int, last: int, *, words: str, room: int) -> str:
    """The lines from `first` to `last`, with others in file order until there are `room` characters.

    Added are, in this order: headers of classes, the constructor, functions that the part uses, lines outside
    of functions that share a name with the part, functions that `words` names, headers of all functions,
    and last whole functions of the same class, the shortest first.
    """
    lines = text.splitlines(keepends=True)
    shown = set(range(first, last + 1))
    for numbers in _helpful(find_functions(path, text), lines, first, last, words):
        more = shown | numbers
        if sum(len(lines[number - 1]) for number in more) <= room:
            shown = more
    return "".join(_with_gaps(lines, sorted(shown)))


def _helpful(
    functions: Sequence[Function], lines: Sequence[str], first: int, last: int, words: str
) -> Iterator[set[int]]:
    """Line numbers that belong together, the most helpful first."""
    part = "".join(lines[first - 1 : last])
    used = set(NAME.findall(part))
    around = [each for each in functions if each.first <= first and last <= each.last]
    owner = around[-1].owner if around else ""
    yield from ({number} for number, line in enumerate(lines, 1) if CLASS.match(line))
    siblings = [each for each in functions if each.owner == owner and owner]
    yield from (_whole(each) for each in siblings if each.name in CONSTRUCTORS)
    named = set(NAME.findall(words))
    yield from (_whole(each) for each in functions if each.name in used)
    inside = {number for each in functions for number in range(each.first, each.last + 1)}
    outside = [number for number in range(1, len(lines) + 1) if number not in inside]
    yield from ({number} for number in outside if used & set(NAME.findall(lines[number - 1])))
    yield from (_whole(each) for each in functions if each.name in named)
    yield from (_header(each) for each in siblings)
    yield from (_header(each) for each in functions)
    yield from (_whole(each) for each in sorted(siblings, key=lambda each: each.last - each.first))


def _whole(function: Function) -> set[int]:
    return set(range(function.first, function.last + 1))


def _header(function: Function) -> set[int]:
    return set(range(function.first, max(function.first + 1, function.body)))


def _with_gaps(lines: Sequence[str], numbers: Iterable[int]) -> Iterator[str]:
    before = 0
    for number in numbers:
        left_out = lines[before : number - 1]
        if any(line.strip() for line in left_out):
            yield f"{' ' * indent_of(next(filter(str.strip, left_out)))}{LEFT_OUT}\n"
        elif left_out:
            yield "\n"
        yield lines[number - 1]
        before = number
    if any(line.strip() for line in lines[before:]):
        yield f"{LEFT_OUT}\n"
