"""One function at a time: what a small model is asked in each attempt at a failing check.

It is shown the test, the failure and the file, and its answer starts with the function's header, so that it
only has to write a better body. The function is the one that the failing test mentions most.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import PurePath
from typing import NamedTuple

from handrail.context.prompt import Prompt
from handrail.context.small.one_action_model import FENCE, code_language
from handrail.context.small.prompt import TEST_FILE, source_files
from handrail.context.strategy import Attempt, Briefing
from handrail.models.model import ActionChoices
from handrail.protocol.errors import PathProblem
from handrail.protocol.values import HASH_DIGITS, Excerpt, FileSeen
from handrail.workspace.files import TextFile, Workspace

# \u2139 is the sign before what node's runner says of itself.
NOISE = re.compile(
    r"\s*(at |# |duration_ms|type:|\.\.\.$|---$|code:|name:|stack:|generatedMessage|location:|failureType"
    r"|TAP |1\.\.|ok |operator:|\u2139|\^+$|[=-]+$|Ran \d|FAILED|$)|.*node:internal"
)
PLACE = re.compile(r"(?P<path>[\w./-]+\.\w+)(?:\", line |:)(?P<line>\d+)")
MAX_LINES, MAX_CHARACTERS = 14, 900
LINES_BEFORE, LINES_AFTER = 8, 1
"""Lines shown around a failing line; the test's name stands before it."""


def relevant_lines(output: str, root: str) -> str:
    """The first lines about the failure, without the test runner's own output."""
    lines = [line.rstrip() for line in output.replace(f"{root}/", "").splitlines() if not NOISE.match(line)]
    return "\n".join(lines[:MAX_LINES])[:MAX_CHARACTERS]


def named_lines(output: str, path: str, text: str) -> list[int]:
    """Numbers, from 0, of the lines around the places in this file that the output names."""
    count = len(text.splitlines())
    found: set[int] = set()
    for place in PLACE.finditer(output):
        if place["path"] == path or place["path"].endswith(f"/{path}"):
            line = int(place["line"]) - 1
            found.update(range(max(0, line - LINES_BEFORE), min(count, line + LINES_AFTER + 1)))
    return sorted(found)


HEADER = re.compile(
    r"(?P<indent>[ \t]*)(?:func \([^()\n]*\) )?[^\n()=]*?(?<![\w$])(?P<name>[A-Za-z_$][\w$]*)"
    r"(?:\s*=\s*(?:async\s*)?)?\s*\([^\n]*(?:[{:]|=>)[ \t]*\n?\Z"
)
NOT_FUNCTIONS = re.compile(r"if|for|while|switch|with|catch|match|case|elif|return|except|describe|it|test")


class Function(NamedTuple):
    name: str
    head: str
    """The header with its docstring."""
    body: str

    @property
    def text(self) -> str:
        return self.head + self.body


def find_functions(source: str) -> list[Function]:
    """Functions with a one-line header and an indented body, in file order; none that occurs twice."""
    lines = source.splitlines(keepends=True)
    found: dict[str, Function] = {}
    for at, line in enumerate(lines):
        header = HEADER.match(line)
        if header is None or NOT_FUNCTIONS.fullmatch(header["name"]):
            continue
        end = _function_end(lines, at, len(header["indent"]))
        head = _head_end(lines, at, end)
        if head < end:
            function = Function(header["name"], "".join(lines[at:head]), "".join(lines[head:end]))
            found.setdefault(function.text, function)
    return [function for text, function in found.items() if source.count(text) == 1]


def _function_end(lines: list[str], at: int, indent: int) -> int:
    """The end of the indented lines, including a closing brace."""
    last = at
    for number in range(at + 1, len(lines)):
        text = lines[number].strip()
        if text and _indent(lines[number]) <= indent:
            closes = lines[at].rstrip().endswith("{") and text.startswith("}")
            return number + 1 if closes else last + 1
        last = number if text else last
    return last + 1


def _head_end(lines: list[str], at: int, end: int) -> int:
    opened = lines[at + 1].strip() if at + 1 < end else ""
    if not opened.startswith(('"""', "'''")):
        return at + 1
    mark = opened[:3]
    if mark in opened[3:]:
        return at + 2
    return next((number + 1 for number in range(at + 2, end) if mark in lines[number]), at + 1)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


SHOWN_WHOLE = 2_400
"""Longer files are shown in part: a small model reads about sixty tokens a second."""
MAX_FILE_CHARACTERS = 100_000
WHOLE_FILE = -1
CANDIDATE_ORDER = (0, 0, 1, 0, WHOLE_FILE, 1, 0, 2)
"""The candidate of each attempt: mostly the likeliest, sometimes a whole file."""


class Candidate(NamedTuple):
    """A function that may have the bug."""

    file: TextFile
    excerpt: Excerpt
    score: int


def rewrite_prompt(prompt: Prompt, excerpt: Excerpt) -> Prompt:
    """The prompt that asks only for a better version of one part of a file."""
    choices = (prompt.choices or ActionChoices())._replace(rewrite=excerpt)
    system = "You are a careful programmer. Fix the bug with the smallest change."
    return Prompt(system, (), choices=choices)


def choose_rewrites(workspace: Workspace, prompt: Prompt, attempt: Attempt) -> "RewriteChoices | None":
    """What the attempts of a turn choose from; None if nothing can be rewritten."""
    output = "" if attempt.before.passed else attempt.before.content
    failure = relevant_lines(output, str(workspace.root))
    files: list[TextFile] = []
    for entry in source_files(workspace):
        with suppress(PathProblem, OSError):  # gone or unreadable since it was listed
            files.append(workspace.read(workspace.resolve(entry.path)))
    files = [file for file in files if len(file.text) <= MAX_FILE_CHARACTERS]
    named = [file for file in files if PurePath(file.path).name.split(".")[0] in output]
    tests = [file for file in named if TEST_FILE.search(file.path)]
    mentions = "\n".join([attempt.task, failure, *(_lines_near(file, output) for file in tests)])
    writable = prompt.choices.writable if prompt.choices else ()
    sources = [file for file in files if file.path in writable and FENCE not in file.text]
    candidates = [candidate for file in sources for candidate in _candidates(file, mentions)]
    wholes = [file for file in sources if 0 < len(file.text) <= SHOWN_WHOLE]
    likely = [candidate for candidate in candidates if candidate.score] or ([] if wholes else candidates)
    if not likely and not wholes:
        return None
    fails = f"The command `{attempt.command}` fails:\n{FENCE}\n{failure}\n{FENCE}"
    passes = f"The command `{attempt.command}` passes, and still has to."
    return RewriteChoices(
        tests=tests,
        failure=fails if failure else passes,
        aim="Make it pass" if failure else "Do what was asked",
        output=output,
        likely=sorted(likely, key=lambda candidate: -candidate.score),
        wholes=wholes,
    )


class RewriteChoices(NamedTuple):
    tests: list[TextFile]
    failure: str
    aim: str
    output: str
    likely: list[Candidate]
    wholes: list[TextFile]

    def briefing(self, number: int) -> Briefing:
        """The briefing of the attempt with this number, from 1."""
        turn = CANDIDATE_ORDER[(number - 1) % len(CANDIDATE_ORDER)]
        if self.likely and (turn != WHOLE_FILE or not self._whole()):
            candidate = self.likely[max(turn, 0) % len(self.likely)]
            name, path = candidate.excerpt.name, candidate.file.path
            ask = f"correct `{name}` in {path}. Answer with the corrected `{name}` in one code block."
            return self._briefing(candidate.file, candidate.excerpt, ask)
        file = self._whole() or self.wholes[(number - 1) % len(self.wholes)]
        excerpt = Excerpt(path=file.path, name="", text=file.text, kept="")
        ask = f"answer with the whole corrected {file.path} in one code block."
        return self._briefing(file, excerpt, ask)

    def _whole(self) -> TextFile | None:
        """The file of the likeliest function, if it is short."""
        likeliest = self.likely[0].file if self.likely else None
        return likeliest if likeliest in self.wholes else None

    def _briefing(self, file: TextFile, excerpt: Excerpt, ask: str) -> Briefing:
        shown = [_file_block(test, _lines_near(test, self.output)) for test in self.tests]
        parts = [*shown, self.failure, _file_block(file, excerpt.text), f"{self.aim}: {ask}"]
        seen = tuple(
            FileSeen(path=each.path, sha256=each.sha256, how="auto", whole=len(each.text) <= SHOWN_WHOLE)
            for each in (*self.tests, file)
        )
        return Briefing("\n\n".join(parts), seen, excerpt)


def _lines_near(file: TextFile, output: str) -> str:
    lines = file.text.splitlines()
    return "\n".join(lines[number] for number in named_lines(output, file.path, file.text))


def _candidates(file: TextFile, mentions: str) -> Iterator[Candidate]:
    for function in find_functions(file.text):
        if len(function.text) <= SHOWN_WHOLE:
            score = len(re.findall(rf"(?<![\w$]){re.escape(function.name)}(?![\w$])", mentions))
            excerpt = Excerpt(path=file.path, name=function.name, text=function.text, kept=function.head)
            yield Candidate(file, excerpt, score)


def _file_block(file: TextFile, part: str) -> str:
    """The file, or only `part` of it if it is long."""
    whole = len(file.text) <= SHOWN_WHOLE
    text = file.text if whole else part[:SHOWN_WHOLE]
    text = text if text.endswith("\n") else f"{text}\n"
    partly = "" if whole else " (a part of it)"
    header = f"### {file.path} [hash: {file.sha256[:HASH_DIGITS]}]{partly}"
    return f"{header}\n{FENCE}{code_language(file.path)}\n{text}{FENCE}"
