"""What a small model is told: the task, files that it names, the failing tests, and one thing to write."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from handrail.engine.search.excerpt import excerpt
from handrail.engine.search.policy import Question
from handrail.engine.search.source import Function, find_functions, indent_of, language
from handrail.models.model import Request, UserTurn

SYSTEM = (
    "You are a careful programmer. Do what is asked with the smallest change that is right for every input."
)
FENCE = "```"
# \u2139 is the sign before what node's runner says of itself.
NOISE = re.compile(
    r"\s*(at |# |duration_ms|type:|\.\.\.$|---$|code:|name:|stack:|generatedMessage|location:|failureType"
    r"|TAP |1\.\.|ok |operator:|\u2139|\^+$|[=-]+$|Ran \d|FAILED|$)|.*node:internal"
)
PLACE = re.compile(r"(?P<path>[\w./-]+\.\w+)(?:\", line |:)(?P<line>\d+)")
MAX_LINES, MAX_FAILURE = 14, 900
LINES_BEFORE, LINES_AFTER = 8, 1
"""Lines shown around a failing line; the test's name stands before it."""
MAX_WORDS, MAX_NAMED, MAX_TESTS, SHOWN_WHOLE, EXCERPT = 3_000, 3_000, 2_400, 2_400, 1_800
"""Characters: a small model reads about sixty tokens a second."""
AROUND = 12
"""Lines before and after one that is in no function."""
MAX_TRIED = 4
LINE_TOKENS, INSERTION_TOKENS, FUNCTION_TOKENS, MOST_FUNCTION_TOKENS, FILE_TOKENS = 64, 64, 400, 800, 2_000
"""A warm answer may never end: 400 tokens take 20 seconds, and are more than most functions need."""


class Material(NamedTuple):
    """What the questions of a search are about."""

    task: str
    named: Mapping[str, str]
    """Files that the task names and that are not to be changed, by path."""
    tests: Mapping[str, str]
    """Tests that fail, or that speak of what is asked for."""
    command: str
    output: str
    """What the failing tests print; empty: nothing fails."""
    first: tuple[str, ...] = ()
    """Tests that passed before an answer which is kept broke them."""
    root: str = ""
    attached: str = ""
    """What mentions such as `@diff` or `@task:ID` in the task stand for."""


class Tried(NamedTuple):
    """A change that did not do it."""

    path: str
    change: str
    failure: str


class Part(NamedTuple):
    """The lines that an answer replaces."""

    path: str
    name: str
    first: int
    last: int
    """0: the whole file."""


def relevant_lines(output: str, root: str) -> str:
    """The first lines about the failure, without the test runner's own output."""
    lines = [line.rstrip() for line in output.replace(f"{root}/", "").splitlines() if not NOISE.match(line)]
    return "\n".join(lines[:MAX_LINES])[:MAX_FAILURE]


def part_of(question: Question, text: str) -> Part:
    """The function of a question, or the lines around its line."""
    if question.kind == "file":
        return Part(question.path, "", 1, 0)
    around = [
        each
        for each in find_functions(question.path, text)
        if each.holds(question.line) and (not question.name or each.full_name == question.name)
    ]
    lines = text.splitlines()
    if around and _size(lines, around[-1]) <= SHOWN_WHOLE:
        inner = around[-1]
        return Part(question.path, inner.full_name, inner.first, inner.last)
    first, last = max(1, question.line - AROUND), min(len(lines), question.line + AROUND)
    return Part(question.path, "", first, last)


def _size(lines: Sequence[str], function: Function) -> int:
    return sum(len(line) + 1 for line in lines[function.first - 1 : function.last])


def write_request(question: Question, text: str, material: Material, tried: Sequence[Tried]) -> Request:
    """The request for an answer; it continues a code block that holds what stays as it is."""
    part = part_of(question, text)
    asked = "\n\n".join(_parts(question, part, text, material, tried))
    lines = text.splitlines()
    size = sum(map(len, lines[part.first - 1 : part.last]))
    most = {
        "line": LINE_TOKENS,
        "insertion": INSERTION_TOKENS,
        "function": min(MOST_FUNCTION_TOKENS, max(FUNCTION_TOKENS, size // 2)),
        "file": FILE_TOKENS,
    }
    stop: tuple[str, ...] = (FENCE,)
    if question.kind == "line":
        stop = ("\n", FENCE)
    elif question.kind == "function" and part.name and question.path.endswith(".py"):
        start = lines[part.first - 1]
        stop = tuple(f"\n{start[: indent_of(start)]}{word} " for word in ("def", "class")) + stop
    elif question.kind == "insertion" and (old := lines[question.line - 1].strip()):
        stop = (old, FENCE)
    kept = kept_before(question, part, text)
    return Request(
        system=SYSTEM,
        messages=(UserTurn(asked),),
        prefill=f"{fence_for(kept)}{language(question.path)}\n{kept}{question.prefix}",
        stop=stop,
        max_output_tokens=most.get(question.kind, 1),
        temperature=question.temperature,
    )


def kept_before(question: Question, part: Part, text: str) -> str:
    """What of the part stays before the answer."""
    lines = text.splitlines(keepends=True)
    if question.kind == "file":
        return _before_stubs(question.path, text)
    if question.kind == "function" and not question.prefix:
        function = next(
            (
                each
                for each in find_functions(question.path, text)
                if each.first == part.first and each.last == part.last
            ),
            None,
        )
        return "".join(lines[part.first - 1 : (function.body if function else part.first + 1) - 1])
    return "".join(lines[part.first - 1 : question.line - 1])


def _before_stubs(path: str, text: str) -> str:
    """The imports and documentation of a file, which its answer begins with."""
    stubs = [each for each in find_functions(path, text) if each.is_stub]
    lines = text.splitlines(keepends=True)
    before = "".join(lines[: stubs[0].first - 1]) if stubs else ""
    return before if re.search(r"\bclass\b", before) is None else ""


def _parts(
    question: Question, part: Part, text: str, material: Material, tried: Sequence[Tried]
) -> Iterator[str]:
    if material.task:
        yield f"The task:\n{material.task[:MAX_WORDS]}"
    room = MAX_NAMED
    for path, words in material.named.items():
        if room > 0:
            yield _block(path, words[:room])
        room -= len(words)
    if room > 0 and material.attached:
        yield material.attached[:room]
    output = material.output
    failure = relevant_lines(output, material.root)
    room = MAX_TESTS
    for path, words in material.tests.items():
        shown = words if len(words) <= room else near_failures(path, words, output)[:room]
        if shown.strip():
            yield _block(path, shown)
        room = max(0, room - len(shown))
    if failure:
        yield f"The command `{material.command}` fails:\n{FENCE}\n{failure}\n{FENCE}"
    elif material.command:
        yield f"The command `{material.command}` passes, and still has to."
    if material.first:
        yield f"These passed before your last change, and must pass again: {', '.join(material.first[:5])}."
    if text.strip():
        whole = len(text) <= SHOWN_WHOLE or not part.last
        words = "\n".join([material.task, failure])
        shown = (
            text if whole else excerpt(question.path, text, part.first, part.last, words=words, room=EXCERPT)
        )
        yield _block(question.path, shown[: 2 * SHOWN_WHOLE])
    aim = "Make it pass" if failure else "Do what was asked"
    if tried and question.temperature and not question.fresh:
        listed = "\n".join(f"- `{each.change}`: {each.failure}" for each in tried[-MAX_TRIED:])
        yield f"These were tried, and are wrong:\n{listed}"
    if not part.last:
        verb = "corrected" if text.strip() else "new"
        yield f"{aim}: answer with the whole {verb} {question.path} in one code block, without tests."
    elif part.name:
        name = f"`{part.name}`"
        yield f"{aim}: correct {name} in {question.path}. Answer with the corrected {name} in one code block."
    else:
        ask = "correct these lines. Answer with the corrected lines in one code block."
        yield f"{aim}, in {question.path}: {ask}"


def near_failures(path: str, text: str, output: str) -> str:
    """The lines of a test file around the places that the output names."""
    lines = text.splitlines()
    found: set[int] = set()
    for place in PLACE.finditer(output):
        if place["path"] == path or place["path"].endswith(f"/{path}"):
            line = int(place["line"]) - 1
            found.update(range(max(0, line - LINES_BEFORE), min(len(lines), line + LINES_AFTER + 1)))
    return "\n".join(lines[number] for number in sorted(found))


def _block(path: str, text: str) -> str:
    text = text if text.endswith("\n") else f"{text}\n"
    fence = fence_for(text)
    return f"### {path}\n{fence}{language(path)}\n{text}{fence}"


def fence_for(text: str) -> str:
    """A fence that is longer than those in the text, such as those of examples in documentation."""
    return max([FENCE, *(f"{found}`" for found in re.findall("`{3,}", text))], key=len)
