"""One function at a time: what a small model is asked in each attempt at a failing check.

It is shown the test, the failure and the file, and its answer is begun for it with the function's header, so
that all it has to write is a better body. Which function: the one that the failing test speaks of most.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from handrail.context.briefing import Attempt, Briefing, brief
from handrail.context.failing import lines_named, telling_lines
from handrail.context.functions import functions
from handrail.context.prompt import IS_TEST, Prompt
from handrail.context.small import source_files
from handrail.models.one_action import code_language
from handrail.models.small_answers import FENCE
from handrail.protocol.errors import PathProblem
from handrail.protocol.values import SHOWN_DIGITS, Excerpt, FileSeen
from handrail.workspace.files import TextFile, Workspace

SHOWN_WHOLE = 2_400
"""Characters of a file that are shown whole: a small model reads some sixty tokens a second."""
LARGEST = 100_000
WHOLE_FILE = -1
ORDER = (0, 0, 1, 0, WHOLE_FILE, 1, 0, 2)
"""Which candidate each attempt is about: the likeliest most often, and a file as a whole now and then."""
FAILS = "The command `{command}` fails:\n{fence}\n{output}\n{fence}"
PASSES = "The command `{command}` passes, and still has to."
ASK = "{aim}: correct `{what}` in {path}. Answer with the corrected `{what}` in one code block."
ASK_FILE = "{aim}: answer with the whole corrected {path} in one code block."


class Candidate(NamedTuple):
    """A function that may be at fault."""

    file: TextFile
    excerpt: Excerpt
    score: int


def brief_small(workspace: Workspace, prompt: Prompt, attempt: Attempt) -> Briefing:
    """What a small model is told: to rewrite one thing, or to look itself where no file is small enough."""
    rewriting = choose(workspace, prompt, attempt)
    return rewriting.briefing(attempt.number) if rewriting else brief(attempt)


def choose(workspace: Workspace, prompt: Prompt, attempt: Attempt) -> "Rewriting | None":
    """All that the attempts of a turn choose from; None where nothing can be rewritten."""
    output = "" if attempt.before.passed else attempt.before.content
    telling = telling_lines(output, str(workspace.root))
    files = list(_read(workspace, [entry.path for entry in source_files(workspace)]))
    tests = [file for file in files if IS_TEST.search(file.path) and _is_about(file, output)]
    spoken = "\n".join([attempt.task, telling, *(_near(file, output) for file in tests)])
    sources = [file for file in files if file.path in prompt.writable and FENCE not in file.text]
    candidates = [candidate for file in sources for candidate in _candidates(file, spoken)]
    wholes = [file for file in sources if 0 < len(file.text) <= SHOWN_WHOLE]
    likely = [candidate for candidate in candidates if candidate.score] or ([] if wholes else candidates)
    if not likely and not wholes:
        return None
    words = FAILS if telling else PASSES
    return Rewriting(
        tests=tests,
        failure=words.format(command=attempt.command, output=telling, fence=FENCE),
        aim="Make it pass" if telling else "Do what was asked",
        output=output,
        likely=sorted(likely, key=lambda candidate: -candidate.score),
        wholes=wholes,
    )


class Rewriting(NamedTuple):
    """All that the attempts of a turn choose from."""

    tests: list[TextFile]
    failure: str
    aim: str
    output: str
    likely: list[Candidate]
    wholes: list[TextFile]

    def briefing(self, number: int) -> Briefing:
        """What the attempt with this number, from 1, is asked."""
        turn = ORDER[(number - 1) % len(ORDER)]
        if self.likely and (turn != WHOLE_FILE or not self._whole()):
            candidate = self.likely[max(turn, 0) % len(self.likely)]
            ask = ASK.format(aim=self.aim, what=candidate.excerpt.name, path=candidate.file.path)
            return self._briefing(candidate.file, candidate.excerpt, ask)
        file = self._whole() or self.wholes[(number - 1) % len(self.wholes)]
        excerpt = Excerpt(path=file.path, name="", text=file.text, kept="")
        return self._briefing(file, excerpt, ASK_FILE.format(aim=self.aim, path=file.path))

    def _whole(self) -> TextFile | None:
        """The file of the likeliest function, where it is short."""
        likeliest = self.likely[0].file if self.likely else None
        return likeliest if likeliest in self.wholes else None

    def _briefing(self, file: TextFile, excerpt: Excerpt, ask: str) -> Briefing:
        shown = [_shown(test, _near(test, self.output)) for test in self.tests]
        parts = [*shown, self.failure, _shown(file, excerpt.text), ask]
        seen = tuple(
            FileSeen(path=each.path, sha256=each.sha256, how="auto", whole=len(each.text) <= SHOWN_WHOLE)
            for each in (*self.tests, file)
        )
        return Briefing("\n\n".join(parts), seen, excerpt)


def _read(workspace: Workspace, paths: Sequence[str]) -> Iterator[TextFile]:
    for path in paths:
        with suppress(PathProblem, OSError):  # gone or unreadable since it was listed
            file = workspace.read(workspace.resolve(path))
            if len(file.text) <= LARGEST:
                yield file


def _is_about(test: TextFile, output: str) -> bool:
    return test.path.rpartition("/")[2].partition(".")[0] in output


def _near(file: TextFile, output: str) -> str:
    lines = file.text.splitlines()
    return "\n".join(lines[number] for number in lines_named(output, file.path, file.text))


def _candidates(file: TextFile, spoken: str) -> Iterator[Candidate]:
    for function in functions(file.text):
        if len(function.text) <= SHOWN_WHOLE:
            score = len(re.findall(rf"(?<![\w$]){re.escape(function.name)}(?![\w$])", spoken))
            excerpt = Excerpt(path=file.path, name=function.name, text=function.text, kept=function.head)
            yield Candidate(file, excerpt, score)


def _shown(file: TextFile, part: str) -> str:
    """The file, or the part of it that matters where all of it would be too much to read."""
    text = file.text if len(file.text) <= SHOWN_WHOLE else part[:SHOWN_WHOLE]
    text = text if text.endswith("\n") else f"{text}\n"
    partly = "" if len(file.text) <= SHOWN_WHOLE else " (a part of it)"
    header = f"### {file.path} [hash: {file.sha256[:SHOWN_DIGITS]}]{partly}"
    return f"{header}\n{FENCE}{code_language(file.path)}\n{text}{FENCE}"
