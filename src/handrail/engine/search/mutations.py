"""Small edits of a line that need no model: the slips that people make, each the other way round.

They work on words and signs, so they are the same for every language; what does not parse is not run.
"""

import keyword
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from handrail.engine.search.source import find_functions, indent_of

COMMON, NAME, GUARD, PLACE = 1.0, 0.5, 0.35, 0.25
"""How likely a slip is: one sign, number or word; another name; a missing condition; a line that is missing,
too much, in another block, or run again."""


class Mutation(NamedTuple):
    text: str
    """The line as it is then, with its end; only an end: without the line."""
    likely: float = COMMON


class Piece(NamedTuple):
    kind: str
    text: str
    first: int
    last: int


PIECE = re.compile(
    r"(?P<text>\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|`[^`]*`)|(?P<comment>(?<!\S)(?:#|//(?=\s)).*)"
    r"|(?P<number>\d+(?:\.\d+)?)|(?P<name>[A-Za-z_$][\w$]*)"
    r"|(?P<sign>===|!==|\*\*=?|//=?|<=|>=|==|!=|\+=|-=|\*=|/=|%=|&&|\|\||->|=>|\S)"
)
TYPED = re.compile(r"\s*(?:(?:async )?def |(?!else\b|try\b)[\w.]+: )")
TYPE = re.compile(r"(?:(?<=\w): |\) -> )((?:[\w.| ]|\[[^\]=]*\]+)+?)(?=\s*(?:=[^=]|,|\)|:|$))")
"""What Python does not use when a line runs: the types of a definition's arguments, or of a variable."""
SIGNS: Mapping[str, tuple[str, ...]] = {
    "<": ("<=", ">", ">="),
    "<=": ("<", ">=", ">"),
    ">": (">=", "<", "<="),
    ">=": (">", "<=", "<"),
    "==": ("!=",),
    "!=": ("==",),
    "===": ("!==",),
    "!==": ("===",),
    "+": ("-",),
    "-": ("+",),
    "*": ("/", "+"),
    "/": ("//", "*"),
    "//": ("/", "%"),
    "%": ("//",),
    "**": ("*",),
    "+=": ("-=", "="),
    "-=": ("+=", "="),
    "*=": ("/=",),
    "&&": ("||",),
    "||": ("&&",),
}
WORDS: Mapping[str, tuple[str, ...]] = {
    first: (second,)
    for pair in (
        ("and", "or"),
        ("True", "False"),
        ("true", "false"),
        ("min", "max"),
        ("any", "all"),
        ("break", "continue"),
        ("append", "extend"),
        ("startswith", "endswith"),
        ("startsWith", "endsWith"),
        ("lower", "upper"),
        ("lstrip", "rstrip"),
        ("ljust", "rjust"),
        ("find", "rfind"),
        ("split", "rsplit"),
        ("partition", "rpartition"),
        ("keys", "values"),
        ("push", "unshift"),
        ("pop", "shift"),
        ("floor", "ceil"),
        ("add", "discard"),
        ("update", "setdefault"),
    )
    for first, second in (pair, pair[::-1])
}
JAVASCRIPT = (
    "catch",
    "const",
    "default",
    "do",
    "export",
    "extends",
    "function",
    "let",
    "new",
    "null",
    "super",
    "switch",
    "this",
    "throw",
    "true",
    "false",
    "typeof",
    "undefined",
    "var",
    "match",
    "case",
    "self",
    "instanceof",
)
NO_NAMES = frozenset((*keyword.kwlist, *JAVASCRIPT))
SELF = ("self", "this")
OPEN, CLOSE = "([{", ")]}"
COUNTED = ("<", "<=", ">", ">=", "+", "-", ":", "[", "return", "=")
CONDITION = re.compile(
    r"(?P<head>\s*(?:if|elif|while)\b\s*(?P<bracket>\()?)(?P<rest>.*?)(?P<end>(?(bracket)\)?)\s*[:{])\s*$"
)
INLINE_IF = re.compile(r"\bif (?P<condition>[^()\[\]]+?|.*\)) else\b")
STATEMENT = re.compile(r"[\w.\[\]'\"]+ [-+*/|]?= (?!.*[({\[]$).+|[\w.\[\]]+\(.*\);?")
SLICE = re.compile(r"\[(?:(?P<start>-?\w+):|:(?P<end>-?\w+))\]")
SET = re.compile(r"(\s*[\w.]+(?:\[[^\]]*\])?) =(?= )")
MAX_NAMES, MAX_STATEMENTS, MAX_COLLECTIONS, STEP = 12, 8, 5, 4


def mutations(path: str, text: str, number: int) -> list[Mutation]:
    """The edits of one line of a file, the common ones first, without the line itself."""
    lines = text.splitlines()
    old = lines[number - 1].rstrip()
    functions = find_functions(path, text)
    around = [each for each in functions if each.holds(number)]
    inside = [lines[around[-1].first - 1], *lines[around[-1].body - 1 : around[-1].last]] if around else lines
    owner = around[-1].owner if around else ""
    of_class = [
        each
        for function in functions
        if function.owner == owner
        for each in lines[function.body - 1 : function.last]
    ]
    pieces = _pieces(old)
    found: dict[str, float] = {}
    for likely, edited in (
        *(
            (COMMON, each)
            for each in (*_replaced(old, pieces), *_conditions(old), *_calls(old, pieces), *_slices(old))
        ),
        *((NAME, each) for each in _renamed(old, pieces, inside, of_class, lines)),
        *((GUARD, each) for each in (*_guards(old, inside), *_memberships(old, inside, lines))),
        *(
            (PLACE, each)
            for each in (*_inserted(old, inside, lines, number), *_moved(old, lines, number), "")
        ),
        *((PLACE, each) for each in (*_repeated(old), *_assigned(old, inside))),
    ):
        if edited.rstrip() != old:
            found.setdefault(f"{edited.rstrip()}\n", likely)
    return [Mutation(edited, likely) for edited, likely in found.items()]


def _pieces(line: str) -> list[Piece]:
    types = [range(*found.span(1)) for found in TYPE.finditer(line)] if TYPED.match(line) else []
    return [
        Piece(found.lastgroup or "", found[0], found.start(), found.end())
        for found in PIECE.finditer(line)
        if found.lastgroup != "comment" and not any(found.start() in each for each in types)
    ]


def _replaced(line: str, pieces: Sequence[Piece]) -> Iterator[str]:
    """Another sign, number or word in the place of one; one more or less."""
    for at, piece in enumerate(pieces):
        before, after = line[: piece.first], line[piece.last :]
        following = pieces[at + 1] if at + 1 < len(pieces) else None
        preceding = pieces[at - 1] if at else None
        is_first = preceding is None or preceding.text in (*OPEN, ",", "=", "return", ":", "==", "<", ">")
        if piece.kind == "sign" and not (piece.text in "+-*" and is_first):
            for other in SIGNS.get(piece.text, ()):
                yield f"{before}{other}{after}"
        elif piece.kind == "number" and piece.text.isdigit():
            value = int(piece.text)
            for near in (value + 1, value - 1) if value else (1, -1):
                yield f"{before}{near}{after}"
        elif piece.kind == "name":
            yield from _word(before, piece.text, after, following)
        goes_on = following is not None and following.text in ("(", ".", "[")
        is_added = preceding is not None and preceding.text in ("+", "-") and not is_first
        if preceding and is_added and piece.kind in ("number", "name") and not goes_on:
            yield f"{line[: preceding.first].rstrip()}{after}"
        ends = following is None or following.text in (*CLOSE, ",", ":")
        is_value = piece.kind == "name" or piece.text in (")", "]")
        if ends and is_value and piece.text not in NO_NAMES and _is_counted(pieces, at):
            yield f"{before}{piece.text} + 1{after}"
            yield f"{before}{piece.text} - 1{after}"


def _word(before: str, word: str, after: str, following: Piece | None) -> Iterator[str]:
    for other in WORDS.get(word, ()):
        yield f"{before}{other}{after}"
    if word == "not" and following:
        yield f"{before}{after.lstrip()}"
    elif word == "in" and not before.lstrip().startswith("for ") and " for " not in before:
        yield f"{before}not in{after}"
    elif word == "is":
        yield (
            f"{before}is{after.replace(' not', '', 1)}"
            if after.startswith(" not ")
            else f"{before}is not{after}"
        )


def _is_counted(pieces: Sequence[Piece], at: int) -> bool:
    """Whether a number is likely here: in a slice, a range, a comparison, a sum or a result."""
    before = [each.text for each in pieces[:at]]
    return bool(before) and (before[-1] in COUNTED or "range" in before)


def _conditions(line: str) -> Iterator[str]:
    """The opposite condition, and the other result of an inline one."""
    if found := CONDITION.fullmatch(line):
        condition = found["rest"]
        if found["head"].rstrip().endswith("("):
            yield f"{found['head']}!({condition}){found['end']}"
        elif not condition.startswith("not "):
            yield f"{found['head']}not ({condition}){found['end']}"
        for mark in (" and ", " or ", " && ", " || "):
            parts = condition.split(mark)
            if len(parts) > 1:
                for at in range(len(parts)):
                    left = mark.join([*parts[:at], *parts[at + 1 :]])
                    yield f"{found['head']}{left}{found['end']}"
    for each in INLINE_IF.finditer(line):
        yield f"{line[: each.start('condition')]}not ({each['condition']}){line[each.end('condition') :]}"


def _calls(line: str, pieces: Sequence[Piece]) -> Iterator[str]:
    """Neighbours the other way round: two arguments, or both sides of a sign."""
    for at, piece in enumerate(pieces):
        if piece.text in OPEN:
            parts, end = _arguments(pieces, at)
            for left, right in pairwise(parts):
                first, second = line[left[0] : left[1]], line[right[0] : right[1]]
                middle = line[left[1] : right[0]]
                if first != second and not {"*", "="} & {first[:1], second[:1]} and end:
                    yield f"{line[: left[0]]}{second}{middle}{first}{line[right[1] :]}"
        elif piece.text in ("-", "/", "//", "%", "**", "in"):
            one, other = _operand(pieces, at, -1), _operand(pieces, at, 1)
            if one and other:
                first, second = line[one[0] : one[1]], line[other[0] : other[1]]
                yield f"{line[: one[0]]}{second}{line[one[1] : other[0]]}{first}{line[other[1] :]}"


def _slices(line: str) -> Iterator[str]:
    """The other end of a slice."""
    for found in SLICE.finditer(line):
        start, end = found["start"], found["end"]
        if start:
            others = (f"[:{start}]", f"[:{start[1:] if start.startswith('-') else f'-{start}'}]")
        else:
            others = (f"[{end}:]", f"[{end[1:] if end.startswith('-') else f'-{end}'}:]")
        for other in others:
            yield f"{line[: found.start()]}{other}{line[found.end() :]}"


def _arguments(pieces: Sequence[Piece], at: int) -> tuple[list[tuple[int, int]], int]:
    """Where the parts between the commas of a bracket are, and where it closes (0: not in this line)."""
    parts: list[tuple[int, int]] = []
    depth, begin, last = 0, -1, -1
    for piece in pieces[at:]:
        if piece.text in OPEN and piece.kind == "sign":
            depth += 1
            if depth == 1:
                continue
        elif piece.text in CLOSE and piece.kind == "sign":
            depth -= 1
            if depth == 0:
                return ([*parts, (begin, last)] if begin >= 0 else parts), piece.first
        if depth == 1 and piece.text == ",":
            if begin >= 0:
                parts.append((begin, last))
            begin = -1
            continue
        begin, last = (piece.first if begin < 0 else begin), piece.last
    return parts, 0


def _operand(pieces: Sequence[Piece], at: int, step: int) -> tuple[int, int] | None:
    """Where the simple name or number beside a sign is, with its attributes."""
    near = at + step
    if not 0 <= near < len(pieces) or pieces[near].kind not in ("name", "number"):
        return None
    first = last = near
    while 0 <= (dot := (first - 1 if step < 0 else last + 1)) < len(pieces) and pieces[dot].text == ".":
        other = dot + step
        if not 0 <= other < len(pieces) or pieces[other].kind != "name":
            return None
        first, last = min(first, other), max(last, other)
    if last + 1 < len(pieces) and pieces[last + 1].text in ("(", "["):
        return None
    return pieces[first].first, pieces[last].last


def _renamed(
    line: str, pieces: Sequence[Piece], inside: Sequence[str], of_class: Sequence[str], lines: Sequence[str]
) -> Iterator[str]:
    """Another name of the function, or another field: the class's own after `self`, else one of others."""
    names = _names(inside)
    fields, others = _fields(of_class, of_self=True), _fields(lines, of_self=False)
    for at, piece in enumerate(pieces):
        following = pieces[at + 1].text if at + 1 < len(pieces) else ""
        if piece.kind != "name" or piece.text in NO_NAMES or following == "(":
            continue
        if at and pieces[at - 1].text == ".":
            found = fields if at > 1 and pieces[at - 2].text in SELF else others
        else:
            found = names
        for other in found:
            if other != piece.text:
                yield f"{line[: piece.first]}{other}{line[piece.last :]}"


def _names(lines: Sequence[str]) -> list[str]:
    """Names that are no calls and no fields, the most used first."""
    return _most_used(piece.text for piece, before in _used(lines) if "." not in before)


def _fields(lines: Sequence[str], *, of_self: bool) -> list[str]:
    return _most_used(
        piece.text
        for piece, before in _used(lines)
        if before.endswith(".") and (before[:-1] in SELF) == of_self
    )


def _most_used(names: Iterator[str]) -> list[str]:
    return [name for name, _ in Counter(names).most_common(MAX_NAMES)]


def _used(lines: Sequence[str]) -> Iterator[tuple[Piece, str]]:
    """Names that are no calls, each with the dot before it and what stands before that."""
    for line in lines:
        pieces = _pieces(line)
        for at, piece in enumerate(pieces):
            following = pieces[at + 1].text if at + 1 < len(pieces) else ""
            if piece.kind == "name" and piece.text not in NO_NAMES and following != "(":
                is_field = at > 0 and pieces[at - 1].text == "."
                yield piece, f"{pieces[at - 2].text if at > 1 else ''}." if is_field else ""


def _guards(line: str, inside: Sequence[str]) -> Iterator[str]:
    """A condition with one more part: a name that holds yes or no."""
    found = CONDITION.fullmatch(line)
    parts = [(found["head"], found["rest"], found["end"])] if found else []
    for each in INLINE_IF.finditer(line):
        first, last = each.span("condition")
        parts.append((line[:first], each["condition"], line[last:]))
    text = "\n".join(inside)
    names = re.findall(r"\b(\w+)\s*=\s*(?:not\b|True\b|False\b|true\b|false\b|!)", text)
    names += re.findall(r"\b(?:if|elif|and|or|not)\s+(\w+)\s*(?=:|\)|and\b|or\b|$)", text, re.MULTILINE)
    for head, rest, end in parts:
        both, either, no = ("&&", "||", "!") if end.strip().endswith("{") else ("and", "or", "not ")
        for name in dict.fromkeys(names):
            if name not in NO_NAMES and not re.search(rf"\b{name}\b", line):
                for mark, word in (
                    (both, f"{no}{name}"),
                    (both, name),
                    (either, name),
                    (either, f"{no}{name}"),
                ):
                    yield f"{head}{rest} {mark} {word}{end}"


def _memberships(line: str, inside: Sequence[str], lines: Sequence[str]) -> Iterator[str]:
    """A condition with one more part: what is looped over is in none of the known collections (Python)."""
    found = CONDITION.fullmatch(line)
    selects = re.search(r"\bfor \w+ in\b", line) and line.endswith((")", "]", "}"))
    if not selects and (found is None or found["end"].strip() != ":"):
        return
    text = "\n".join(inside)
    items = re.findall(r"\bfor (\w+) in\b", line if selects else text)
    collections = re.findall(r"^ +(\w+)(?:: [^=]+)? = (?:\[\]|set\(\)|\{\})$", text, re.MULTILINE)
    collections += [name for each in lines if (name := each.partition(" =")[0].partition(":")[0]).isupper()]
    for item in dict.fromkeys(items):
        for name in list(dict.fromkeys(collections))[:MAX_COLLECTIONS]:
            if found and not selects:
                yield f"{found['head']}{found['rest']} and {item} not in {name}{found['end']}"
            else:
                word = "and" if " if " in line else "if"
                yield f"{line[:-1]} {word} {item} not in {name}{line[-1]}"


def _inserted(line: str, inside: Sequence[str], lines: Sequence[str], number: int) -> Iterator[str]:
    """The line with one before it, or after it at the end of a block, that stands elsewhere in the file."""
    known = set(re.findall(r"\w+", "\n".join(inside)))
    there = {each.strip() for each in inside}
    scores: dict[str, float] = {}
    for each in lines:
        code = each.strip()
        words = {piece.text for piece in _pieces(code) if piece.kind == "name"} - NO_NAMES
        called = {found[1] for found in re.finditer(r"\.(\w+)", code)}
        if STATEMENT.fullmatch(code) and code not in there and words - called <= known:
            scores[code] = len(words & known) / (len(words) or 1)
    indent = line[: indent_of(line)]
    following = next((each for each in lines[number:] if each.strip()), "")
    for code in sorted(scores, key=lambda each: -scores[each])[:MAX_STATEMENTS]:
        if not line.lstrip().startswith(("elif", "else", "except", "finally", "}")):
            yield f"{indent}{code}\n{line}"
        if indent_of(following) < len(indent) and not line.lstrip().startswith(("return", "raise")):
            yield f"{line}\n{indent}{code}"


def _repeated(line: str) -> Iterator[str]:
    """A condition that is looked at again or only once; a value that is added in place of set."""
    for once, again in (("if", "while"), ("while", "if")):
        if found := re.match(rf"(\s*){once}\b", line):
            yield f"{found[1]}{again}{line[found.end() :]}"
    if found := SET.match(line):
        for sign in ("+=", "-="):
            yield f"{found[1]} {sign}{line[found.end() :]}"


def _assigned(line: str, inside: Sequence[str]) -> Iterator[str]:
    """Another name's value in place of a sum or of a plain value."""
    if found := re.fullmatch(r"(\s*(\w+)) [-+*/]?= [\w.]+;?", line):
        for name in _names(inside):
            if name != found[2]:
                yield f"{found[1]} = {name}{';' * line.endswith(';')}"


def _moved(line: str, lines: Sequence[str], number: int) -> Iterator[str]:
    """The line in the block around it, or in the one before it."""
    indent = indent_of(line)
    before = next((each for each in reversed(lines[: number - 1]) if each.strip()), "")
    if indent >= STEP and not line.rstrip().endswith((":", "{")):
        yield line[STEP:]
    if indent_of(before) > indent and not line.rstrip().endswith((":", "{")):
        yield f"{before[: indent_of(before)]}{line.strip()}"
