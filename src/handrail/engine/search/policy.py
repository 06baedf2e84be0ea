"""What a small model is asked next: a pure function of where tests point, what was tried, and the time left.

A model that copies the old text, or an answer that was tried, helps nobody. So a line is *weighed* first: the
model says, after each of its words, how likely it would go on in another way. Each of these ways is a branch,
and its answer differs from the old line and from all others by its first word. Where a model cannot be
weighed, answers become different by temperature alone.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

Kind = Literal["file", "function", "line", "insertion", "weighing"]
Result = Literal["passed", "better", "failed", "unusable", "unchanged", "repeated", "weighed"]
WASTED: tuple[Result, ...] = ("unchanged", "repeated")


class Line(NamedTuple):
    path: str
    number: int
    """From 1."""


class FunctionAt(NamedTuple):
    path: str
    name: str
    line: int
    is_stub: bool = False


class Branch(NamedTuple):
    """A way in which the model would write a line, other than it is."""

    line: Line
    prefix: str
    """How the line begins then."""
    probability: float
    at_start: bool
    """It has nothing of the old line, so it can also be a line before it."""


class Question(NamedTuple):
    kind: Kind
    path: str
    name: str = ""
    """The function that it is about."""
    line: int = 0
    prefix: str = ""
    temperature: float = 0.0

    def key(self, base: int) -> str:
        """The same for the same question about the same files."""
        return f"{base} {self.kind} {self.path} {self.name} {self.line} {self.temperature:g} {self.prefix}"


class Situation(NamedTuple):
    """What is known when the next question is chosen."""

    base: int = 0
    """How often the files became better; each time, questions are about other files."""
    files: tuple[str, ...] = ()
    """Files to write as a whole: missing ones, and those with stubs."""
    short: tuple[str, ...] = ()
    """Files that are short enough to be written as a whole, the likeliest first."""
    functions: tuple[FunctionAt, ...] = ()
    """The likeliest first."""
    lines: tuple[Line, ...] = ()
    """Those that failing tests run, the most suspicious first."""
    asked: Mapping[str, Result] = {}
    """By key."""
    branches: Mapping[Line, Sequence[Branch]] = {}
    """Of lines that were weighed."""
    written: Mapping[Line, Mapping[str, str]] = {}
    """Lines that were tried in place of each, by how they were asked for."""
    weighs: bool = True
    """Whether the model can be weighed, as far as is known."""
    seconds_left: float = float("inf")
    seconds_of: Mapping[Kind, float] = {}
    """How long an answer of each kind took."""


ROUNDS = ((3, 0.08, 8), (7, 0.02, 14), (12, 0.003, 24))
"""Lines that are weighed, how likely a branch must be at least, and how many branches are tried."""
RANK_WEIGHT = 0.12  # how much less a line counts than the one before it
WHOLE, WARMER = (0.0, 0.5), (0.4, 0.7, 0.9, 1.1)
ONCE_MORE = (0.6, 0.8, 1.0, 0.65, 0.85, 0.95)  # as long as there is time
LINES_WITHOUT_WEIGHING, INSERTIONS = 8, 4
MAX_WASTED = 2
GUESSED_SECONDS: Mapping[Kind, float] = {"file": 8.0, "function": 4.0}


def next_question(now: Situation) -> Question | None:
    """The next question; None where nothing is left that fits into the time. The first is always asked."""
    for question in _questions(now):
        if question.key(now.base) in now.asked or _says_the_same(now, question):
            continue
        needs = now.seconds_of.get(question.kind, GUESSED_SECONDS.get(question.kind, 1.0))
        if not now.asked or needs <= now.seconds_left:
            return question
    return None


def _says_the_same(now: Situation, question: Question) -> bool:
    """Whether answers to this question, at other temperatures, were nothing new: more would be the same."""
    if not question.temperature:
        return False
    start = question._replace(prefix="").key(now.base).rsplit(" ", 2)[0]
    results = [result for key, result in now.asked.items() if key.startswith(f"{start} ")]
    return sum(result in WASTED for result in results) >= MAX_WASTED


def _questions(now: Situation) -> Iterator[Question]:
    """All questions, the most promising first; those after an unanswered one may change with its answer."""
    for path in now.files:
        yield from (Question("file", path, temperature=each) for each in WHOLE)
    stubs = [each for each in now.functions if each.is_stub]
    yield from _whole(stubs, WHOLE)
    written = [each for each in now.functions if not each.is_stub]
    yield from _weighed(now, written) if now.weighs else _warmed(now, written)
    for temperature in (*WARMER, *ONCE_MORE):
        yield from (Question("file", path, temperature=temperature) for path in now.short[:1])
        yield from _whole([*stubs, *written][:2], (temperature,))


def _whole(functions: Sequence[FunctionAt], temperatures: Sequence[float]) -> Iterator[Question]:
    for temperature in temperatures:
        for each in functions:
            yield Question("function", each.path, each.name, each.line, temperature=temperature)


def _weighed(now: Situation, functions: Sequence[FunctionAt]) -> Iterator[Question]:
    for number, (most, likely, tries) in enumerate(ROUNDS):
        lines = now.lines[:most]
        yield from (Question("weighing", line.path, line=line.number) for line in lines)
        ranked = {line: 1 / (1 + RANK_WEIGHT * rank) for rank, line in enumerate(lines)}
        branches = [
            branch
            for line in lines
            for branch in now.branches.get(line, ())
            if branch.probability * ranked[line] >= likely and not _is_known(now, branch)
        ]
        branches.sort(key=lambda branch: -branch.probability * ranked[branch.line])
        for branch in branches[:tries]:
            yield from _branch(now, branch)
        starts = [branch for branch in branches if branch.at_start]
        for branch in starts[:INSERTIONS]:
            line = branch.line
            yield Question("insertion", line.path, line=line.number, prefix=branch.prefix)
        if number < len(ROUNDS) - 1:  # some corrections take more than one line
            yield from _whole(functions[:2], (WARMER[number],))


def _is_known(now: Situation, branch: Branch) -> bool:
    """Whether a line that was tried goes this way, so that its answer is known."""
    tried = now.written.get(branch.line, {})
    return any(prefix != branch.prefix and text.startswith(branch.prefix) for prefix, text in tried.items())


def _branch(now: Situation, branch: Branch) -> Iterator[Question]:
    line = branch.line
    question = Question("line", line.path, line=line.number, prefix=branch.prefix)
    yield question
    if now.asked.get(question.key(now.base)) == "unusable":  # such as the head of a block
        yield question._replace(kind="function")


def _warmed(now: Situation, functions: Sequence[FunctionAt]) -> Iterator[Question]:
    """A few whole functions, then one line at a time, then a line to insert; each warmer after a round."""
    yield from _whole(functions[:2], WHOLE[:1])
    yield from _whole(functions[:1], WARMER[1:2])
    lines = now.lines[:LINES_WITHOUT_WEIGHING]
    for temperature in (0.0, *WARMER[1:3]):
        yield from (Question("line", each.path, line=each.number, temperature=temperature) for each in lines)
        for each in lines[:INSERTIONS]:
            yield Question("insertion", each.path, line=each.number, temperature=temperature)
