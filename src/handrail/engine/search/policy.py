"""What a small model is asked next: a pure function of where tests point, what was tried, and the time left.

A model that copies the old text, or an answer that was tried, helps nobody. So a line is *weighed* first: the
model says, after each of its words, how likely it would go on in another way. Each of these ways is a branch,
and its answer differs from the old line and from all others by its first word. Where a model cannot be
weighed, answers become different by temperature alone.

The usual slips of a suspicious line need no model: each edit of one sign or word takes one run of the tests.

What is still to be written is *drafted*: several times from the stub, so that no draft follows a wrong one.
Then functions of one draft are tried in another.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from handrail.engine.search.mutations import COMMON, Mutation

Kind = Literal["file", "function", "line", "insertion", "weighing", "graft", "mutation"]
Result = Literal["passed", "better", "failed", "unusable", "unchanged", "repeated", "weighed"]
WASTED: tuple[Result, ...] = ("unchanged", "repeated")
WITHOUT_MODEL: tuple[Kind, ...] = ("graft", "mutation")


class Line(NamedTuple):
    path: str
    number: int
    """From 1."""


class FunctionAt(NamedTuple):
    path: str
    name: str
    """With its class, such as `Cart.total`."""
    line: int
    is_stub: bool = False


class Draft(NamedTuple):
    """A file or a function to write as if it were not written yet."""

    base: str
    """Stands for the text that is shown."""
    path: str
    name: str = ""
    """The function; empty: the whole file."""
    line: int = 0
    """Where its body begins."""


class Graft(NamedTuple):
    """A function of an earlier draft that can replace the one that is there."""

    path: str
    name: str
    draft: int


class Branch(NamedTuple):
    """A way in which the model would write a line, other than it is."""

    line: Line
    prefix: str
    """How the line begins then."""
    probability: float
    at_start: bool = False
    """It has nothing of the old line, so it can also be a line before it."""
    after: bool = False
    """It is a line to write after the old one, at the end of its block."""


class Question(NamedTuple):
    kind: Kind
    path: str
    name: str = ""
    """The function that it is about."""
    line: int = 0
    prefix: str = ""
    temperature: float = 0.0
    base: str = ""
    """Stands for the files that it is about."""
    fresh: bool = False
    """A draft: the answer is not led by an earlier one."""

    @property
    def topic(self) -> str:
        """The same for questions that differ only in temperature and beginning."""
        fresh = "draft " if self.fresh else ""
        return f"{self.base} {fresh}{self.kind} {self.path} {self.name} {self.line} "

    @property
    def key(self) -> str:
        """The same for the same question about the same files."""
        return f"{self.topic}{self.temperature:g} {self.prefix}"


class Situation(NamedTuple):
    """What is known when the next question is chosen."""

    base: str = ""
    """Stands for the best files; questions about others are other questions."""
    drafts: tuple[Draft, ...] = ()
    """What was missing or a stub at the start: whole files first, then functions, the likeliest first."""
    openings: Mapping[Draft, Sequence[str]] = {}
    """Ways to begin a function, the likeliest first."""
    grafts: tuple[Graft, ...] = ()
    rewrites: tuple[Draft, ...] = ()
    """Functions to write again without a look at how they are, the likeliest first."""
    short: tuple[str, ...] = ()
    """Files that are short enough to be written as a whole, the likeliest first."""
    functions: tuple[FunctionAt, ...] = ()
    """The likeliest first."""
    lines: tuple[Line, ...] = ()
    """Those that failing tests run, the most suspicious first."""
    mutations: Mapping[Line, Sequence[Mutation]] = {}
    """Edits of these lines."""
    asked: Mapping[str, Result] = {}
    """By key."""
    branches: Mapping[Line, Sequence[Branch]] = {}
    """Of lines that were weighed."""
    written: Mapping[Line, Mapping[str, str]] = {}
    """Lines that were tried in place of each, by how they were asked for."""
    weighs: bool = True
    """Whether the model can be weighed, as far as is known."""
    screens: bool = False
    """Whether many edits are tried at once, so that more of them fit into the time."""
    seconds_left: float = float("inf")
    seconds_of: Mapping[Kind, float] = {}
    """How long an answer of each kind took."""


ROUNDS = ((3, 0.08, 8), (7, 0.02, 14), (12, 0.003, 24))
"""Lines that are weighed, how likely a branch must be at least, and how many branches are tried."""
FIRST_MUTATIONS, MUTATIONS = 50, (110, 190, 320)
"""How many edits are tried before lines are weighed, and in all after the branches of each round."""
MOST_AT_ONCE, MORE_IF_SCREENED = 100, 2
RANK_WEIGHT = 0.12  # how much less a line counts than the one before it
PLACE_WEIGHT = 0.03  # how much less an edit of a line counts than the one before it
RIVALS = 20
UNLIKELY = 0.001  # an edit that the model does not name among its alternatives
WARMER = (0.4, 0.7, 0.9, 1.1)
DRAFTED_FILE, DRAFTED_FUNCTION = (0.0, 0.5, 0.8, 1.0), (0.6, 0.9)
ONCE_MORE = tuple(round(0.6 + 0.03 * (7 * number % 17), 2) for number in range(17))  # while there is time
LINES_WITHOUT_WEIGHING, INSERTIONS, MAX_OPENINGS = 8, 4, 5
MAX_WASTED, MAX_WASTED_PART = 2, 0.3
GUESSED_SECONDS: Mapping[Kind, float] = {"file": 8.0, "function": 4.0}


def next_question(now: Situation) -> Question | None:
    """The next question; None where nothing is left that fits into the time. The first is always asked."""
    return next(_open_questions(now), None)


def edits_ahead(now: Situation) -> list[Question]:
    """The next question, where it is an edit, and the edits that follow it."""
    found: dict[str, Question] = {}
    for question in _open_questions(now):
        if question.kind != "mutation" or len(found) == MOST_AT_ONCE:
            break
        found[question.key] = question
    return list(found.values())


def _open_questions(now: Situation) -> Iterator[Question]:
    for question in _questions(now):
        if question.key in now.asked or _says_the_same(now, question):
            continue
        needs = now.seconds_of.get(question.kind, GUESSED_SECONDS.get(question.kind, 1.0))
        if not now.asked or needs <= now.seconds_left:
            yield question


def _says_the_same(now: Situation, question: Question) -> bool:
    """Whether answers to this question, at other temperatures, were nothing new: more would be the same."""
    if not question.temperature:
        return False
    results = [result for key, result in now.asked.items() if key.startswith(question.topic)]
    wasted = sum(result in WASTED for result in results)
    return wasted >= max(MAX_WASTED, MAX_WASTED_PART * len(results))


def _questions(now: Situation) -> Iterator[Question]:
    """All questions, the most promising first; those after an unanswered one may change with its answer."""
    files = [each for each in now.drafts if not each.name]
    functions = [each for each in now.drafts if each.name]
    yield from _drafted(files, DRAFTED_FILE)
    for graft in now.grafts:
        yield Question("graft", graft.path, graft.name, graft.draft, base=now.base)
    yield from _begun(now, functions)
    yield from _drafted(functions, DRAFTED_FUNCTION)
    likely = COMMON if now.drafts else 0.0  # what the model just wrote has no missing lines and other names
    edits = (each for line in now.lines for each in _edits(now, line, likely))
    most = FIRST_MUTATIONS // 2 if now.drafts and not now.screens else FIRST_MUTATIONS
    yield from _mutated(now, edits, most)
    yield from _drafted(functions[:1], WARMER)
    yield from _weighed(now) if now.weighs else _warmed(now)
    yield from _begun(now, now.rewrites)
    for temperature in (*WARMER, *ONCE_MORE):
        yield from _drafted([*functions[:2], *files], (temperature,))
        if not now.drafts:
            for path in now.short[:1]:
                yield Question("file", path, temperature=temperature, base=now.base)
        yield from _drafted(now.rewrites, (temperature,))


def _drafted(drafts: Sequence[Draft], temperatures: Sequence[float]) -> Iterator[Question]:
    for temperature in temperatures:
        for base, path, name, line in drafts:
            kind: Kind = "function" if name else "file"
            yield Question(kind, path, name, line, temperature=temperature, base=base, fresh=True)


def _begun(now: Situation, drafts: Sequence[Draft]) -> Iterator[Question]:
    """Functions as the model writes them, then each likely beginning, which makes another function."""
    yield from _drafted(drafts, (0.0,))
    if now.weighs:
        for base, path, name, line in drafts:
            yield Question("weighing", path, name, line, base=base, fresh=True)
        for draft in drafts:
            for prefix in now.openings.get(draft, ())[:MAX_OPENINGS]:
                yield Question(
                    "function", draft.path, draft.name, draft.line, prefix, base=draft.base, fresh=True
                )


def _whole(
    now: Situation, functions: Sequence[FunctionAt], temperatures: Sequence[float]
) -> Iterator[Question]:
    for temperature in temperatures:
        for each in functions:
            if not each.is_stub:
                yield Question(
                    "function", each.path, each.name, each.line, temperature=temperature, base=now.base
                )


def _weighed(now: Situation) -> Iterator[Question]:
    for number, (most, likely, tries) in enumerate(ROUNDS):
        lines = now.lines[:most]
        yield from (Question("weighing", line.path, line=line.number, base=now.base) for line in lines)
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
            yield Question("insertion", line.path, line=line.number, prefix=branch.prefix, base=now.base)
        yield from _mutated(
            now, (each for line in now.lines for each in _edits(now, line)), MUTATIONS[number]
        )
        if number < len(ROUNDS) - 1:  # some corrections take more than one line
            yield from _drafted(now.rewrites[number : number + 1], (0.0,))
            if not now.rewrites:
                yield from _whole(now, now.functions[:2], (WARMER[number],))


class _Edit(NamedTuple):
    line: Line
    text: str
    score: float


def chance(weighed: Sequence[Branch], text: str) -> float:
    """How likely the model would write this line in place of the one that was weighed."""
    ways = [each for each in weighed if not each.after and text.startswith(each.prefix)]
    return max(ways, key=lambda each: len(each.prefix)).probability if ways else UNLIKELY


def rivals(now: Situation, passed: Question) -> list[Question]:
    """What could pass as well: the function written anew, untried edits of the line, then of other lines."""
    line = Line(passed.path, passed.line)
    around = [each for each in now.functions if each.path == line.path and each.line <= line.number]
    name = max(around, key=lambda each: each.line).name if around else passed.name
    again = [each for each in now.rewrites if each[1:3] == (line.path, name)] if not passed.fresh else []
    here = _mutated(now, _edits(now, line), RIVALS) if line in now.lines else iter(())
    others = (each for other in now.lines if other != line for each in _edits(now, other, COMMON))
    found = [*_drafted(again, (0.0,)), *here, *_mutated(now, others, RIVALS)]
    return [each for each in found if each.key not in now.asked]


def _edits(now: Situation, line: Line, likely: float = 0.0) -> Iterator[_Edit]:
    """The edits of a line with how likely each is: by the model too, where the line was weighed."""
    rank = now.lines.index(line)
    weighed = now.branches.get(line, ())
    edits = [each for each in now.mutations.get(line, ()) if each.likely >= likely]
    places = Counter[float]()
    for edit in edits:
        score = edit.likely * chance(weighed, edit.text)
        score /= (1 + RANK_WEIGHT * rank) * (1 + PLACE_WEIGHT * places[edit.likely])
        places[edit.likely] += 1
        yield _Edit(line, edit.text, score)


def _mutated(now: Situation, edits: Iterator[_Edit], most: int) -> Iterator[Question]:
    most *= MORE_IF_SCREENED if now.screens else 1
    for line, text, _ in sorted(edits, key=lambda each: -each.score)[:most]:
        yield Question("mutation", line.path, line=line.number, prefix=text, base=now.base)


def _is_known(now: Situation, branch: Branch) -> bool:
    """Whether a line that was tried goes this way, so that its answer is known."""
    tried = now.written.get(branch.line, {})
    return not branch.after and any(
        prefix != branch.prefix and text.startswith(branch.prefix) for prefix, text in tried.items()
    )


def _branch(now: Situation, branch: Branch) -> Iterator[Question]:
    line = branch.line
    question = Question("line", line.path, line=line.number, prefix=branch.prefix, base=now.base)
    if branch.after:
        question = question._replace(kind="insertion", line=line.number + 1)
    yield question
    text = now.written.get(line, {}).get(branch.prefix, "")
    if now.asked.get(question.key) == "unusable" and text.rstrip().endswith((":", "{")):
        yield question._replace(kind="function")  # the line opens a block


def _warmed(now: Situation) -> Iterator[Question]:
    """A few whole functions, then one line at a time, then a line to insert; each warmer after a round."""
    yield from _whole(now, now.functions[:2], (0.0,))
    yield from _whole(now, now.functions[:1], WARMER[1:2])
    lines = now.lines[:LINES_WITHOUT_WEIGHING]
    yield from _mutated(now, (each for line in lines for each in _edits(now, line)), MUTATIONS[0])
    for temperature in (0.0, *WARMER[1:3]):
        for each in lines:
            yield Question("line", each.path, line=each.number, temperature=temperature, base=now.base)
        for each in lines[:INSERTIONS]:
            yield Question("insertion", each.path, line=each.number, temperature=temperature, base=now.base)
