"""What an answer is worth: the file that it makes, and what the tests say about it.

Many small edits of a file are screened at once; answers of the model are tested one by one.
"""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from hashlib import sha256
from typing import NamedTuple

from anyio.to_thread import run_sync
from msgspec.structs import replace

from handrail.engine.context import TurnContext
from handrail.engine.search.answers import NewText, code_key, read_answer
from handrail.engine.search.mutations import GUARD, mutations
from handrail.engine.search.places import Files, without_body
from handrail.engine.search.policy import Question, Result
from handrail.engine.search.source import function_text, with_function
from handrail.protocol.events import CandidateTried
from handrail.tools.reports.issue import Issue
from handrail.verification.candidates import Candidates, Tested
from handrail.verification.protection import asks_for_tests, copied_answer, special_cases

Accepts = Callable[[Mapping[str, str]], Awaitable[bool]]
MAX_CHANGE, MAX_WHY = 200, 160
MOST_VARIED, VARY_SECONDS, MOST_HOPEFUL = 80, 5.0, 3
NONE_PASSES = "none of the failing tests passes"


class Screening(NamedTuple):
    """What is known of edits after they were tried at once."""

    asked: Mapping[str, Result]
    """Those that need no further test, by key."""
    failed: Sequence[CandidateTried]


class Trials:
    """The files of a search, and what was tried with them."""

    def __init__(self, context: TurnContext, candidates: Candidates, task: str) -> None:
        self._turn_id = context.turn.turn_id
        self._stage_id = context.session.state.stage_id
        self._candidates = candidates
        self._task = task
        self.files = Files({}, {}, {})
        self.writes = False
        """Whether there is a missing file or a stub at the start."""
        self.best_files: dict[str, str] = {}
        self.known: set[str] = set()
        """Code that was tried, and the code that is there, as hashes."""
        self.drafts: list[tuple[str, str]] = []
        """Whole files that were drafted: {path, text}."""
        self.accepts: Accepts = accept_all
        """What else has to agree with files that pass the tests."""
        self.hopeful: set[str] = set()
        """Edits that let a failing test pass, by key."""

    @property
    def screens(self) -> bool:
        """Whether many texts of a file can be tried at once."""
        return self._candidates.screens

    def shown(self, question: Question) -> str:
        """The text that a question is about."""
        path, now = question.path, self.files.sources[question.path]
        if not question.fresh:
            return now
        start = self.files.start[path]
        return without_body(path, now, start, question.name) if question.name else start

    def is_untried(self, path: str, name: str, code: str) -> bool:
        """Whether a function can take the place of the one that is there, and has not done so."""
        text = with_function(path, self.files.sources[path], name, code)
        return bool(text) and code_hash(path, text) not in self.known

    def begun(self, question: Question) -> CandidateTried:
        """The record of a question before anything came of it."""
        return CandidateTried(
            turn_id=self._turn_id,
            stage_id=self._stage_id,
            number=0,
            key=question.key,
            asked="line" if question.kind == "weighing" else question.kind,
            path=question.path,
            name=question.name,
            line=question.line,
            temperature=question.temperature,
            result="unusable",
        )

    def read(self, question: Question, answer: str, *, cut: bool) -> tuple[CandidateTried, str]:
        """What the answer would change, and the file with it; empty where it is not worth a test."""
        path, old, tried = question.path, self.shown(question), self.begun(question)
        if question.kind == "graft":
            new = self._grafted(question, old)
        else:
            new = read_answer(question, old, answer, cut=cut)
        code = code_hash(path, new.text)
        tried = replace(tried, change=new.change[:MAX_CHANGE], code=code)
        if problem := new.problem or self._forbidden(path, new.text):
            return replace(tried, why=problem[:MAX_WHY]), ""
        if code in self.known:
            return replace(tried, result="unchanged" if code == code_hash(path, old) else "repeated"), ""
        return tried, new.text

    async def test(
        self,
        question: Question,
        tried: CandidateTried,
        text: str,
        best: Tested,
        before: int,
    ) -> tuple[CandidateTried, Tested]:
        """The record with what the tests say about a file; `before` is how many tests there were."""
        self.known.add(tried.code)
        files = {**self.best_files, tried.path: text}
        tested = await self._candidates.test(files)
        passed = tested.passed and await self.accepts(files)
        better = tested.total >= before and self._is_better(tested, best)
        is_draft = question.fresh and question.kind == "file"
        tried = replace(
            tried,
            result="passed" if passed else "better" if better else "failed",
            why="" if passed else _failure(tested),
            passing=tested.passing,
            total=tested.total,
            text=text if passed or better or is_draft else "",
        )
        return tried, tested

    async def vary(
        self, question: Question, tried: CandidateTried, text: str, best: Tested, before: int
    ) -> tuple[CandidateTried, Tested] | None:
        """The best small edit of the lines that an answer wrote; None where none is better than the files."""
        if not best.failing:
            return None
        path, varied = question.path, await run_sync(self._varied, question, text)
        texts = list(varied)
        if not texts:
            return None
        screened = await self._candidates.screen(self.best_files, path, texts, best.failing, VARY_SECONDS)
        hopeful = [number for number in screened if screened[number].passed]
        found: tuple[CandidateTried, Tested] | None = None
        for number in sorted(hopeful, key=lambda each: -screened[each].passed)[:MOST_HOPEFUL]:
            new = texts[number]
            if self._forbidden(path, new):
                continue
            change = f"{tried.change} with {varied[new]}"[:MAX_CHANGE]
            one = replace(tried, change=change, code=code_hash(path, new))
            done, tested = await self.test(question, one, new, best, before)
            if done.result in ("passed", "better") and (not found or tested.passing > found[1].passing):
                found = done, tested
            if done.result == "passed":
                break
        return found

    def _varied(self, question: Question, text: str) -> dict[str, str]:
        """Versions of the text with a small edit of a new line, and that edit; one of each line first."""
        path, written = question.path, set(self.shown(question).splitlines())
        lines = text.splitlines(keepends=True)
        new = [at for at, line in enumerate(lines, 1) if line.strip() and line.rstrip() not in written]
        edits = [
            (rank, number, edit.text)
            for number in new[:MOST_VARIED]
            for rank, edit in enumerate(mutations(path, text, number))
            if edit.likely >= GUARD
        ]
        found = {
            "".join([*lines[: number - 1], edit, *lines[number:]]): edit.strip()
            for _, number, edit in sorted(edits)[:MOST_VARIED]
        }
        return {each: edit for each, edit in found.items() if code_hash(path, each) not in self.known}

    def can_screen(self, question: Question) -> bool:
        """Whether it is one of many edits that are still to be tried at once."""
        return question.kind == "mutation" and self.screens and question.key not in self.hopeful

    async def screen(self, questions: Sequence[Question], best: Tested, seconds: float) -> Screening:
        """Try the edits of one file, as many as fit into the time; those that may help are `hopeful` then."""
        asked: dict[str, Result] = {}
        waiting: list[tuple[CandidateTried, str]] = []
        for question in questions:
            tried, text = self.read(question, "", cut=False)
            if not text:
                asked[question.key] = tried.result
            elif not waiting or question.path == waiting[0][0].path:
                waiting.append((tried, text))
        if not waiting:
            return Screening(asked, ())
        path, texts = waiting[0][0].path, [text for _, text in waiting]
        started = time.monotonic()
        found = await self._candidates.screen(self.best_files, path, texts, best.failing, seconds)
        if not found:
            return Screening(asked, ())
        each = round((time.monotonic() - started) / len(found), 3)
        failed: list[CandidateTried] = []
        for number, (tried, _) in enumerate(waiting[: max(found) + 1]):
            if number in found and found[number].passed:
                self.hopeful.add(tried.key)
                continue
            failed.append(replace(tried, result="failed", seconds=each, why=NONE_PASSES))
            self.known.add(tried.code)
            asked[tried.key] = "failed"
        return Screening(asked, failed)

    def _grafted(self, question: Question, old: str) -> NewText:
        path, name = question.path, question.name
        text = with_function(path, old, name, function_text(path, self.drafts[question.line][1], name))
        return NewText(text or old, "" if text else "it has no such function", f"`{name}` of another draft")

    def _is_better(self, tested: Tested, best: Tested) -> bool:
        """Whether more tests pass. Where all is to be written, a test that gets further counts too."""
        if tested.passing != best.passing or not self.writes or tested.names != best.names:
            return tested.passing > best.passing
        steps = [(_depth(new), _depth(old)) for new, old in zip(tested.failing, best.failing, strict=True)]
        return all(new >= old for new, old in steps) and any(new > old for new, old in steps)

    def _forbidden(self, path: str, new: str) -> str:
        """Why code that could pass the tests is not what the task asks for; empty where it may be."""
        old = self.files.start.get(path, "")
        tests = list(self.files.tests.values())
        if case := next(iter(special_cases(path, old, new, tests)), None):
            return case.words
        if value := copied_answer(old, new, tests, self._task):
            return f"it returns {value}, which only the tests know"
        return asks_for_tests(path, old, new)


async def accept_all(_files: Mapping[str, str]) -> bool:
    return True


def _depth(issue: Issue) -> tuple[int, bool]:
    """How far a test gets: to which line, and whether it can compare something there."""
    return issue.line, issue.message.startswith("assert") or "AssertionError" in issue.message


def _failure(tested: Tested) -> str:
    """How it failed, in a line."""
    issue: Issue | None = next(iter(tested.failing), None)
    if issue is None:
        return "" if tested.passed else "the check fails"
    return " ".join(f"{issue.test.rpartition('.')[2]} {issue.message}".split())[:MAX_WHY]


def code_hash(path: str, text: str) -> str:
    """The same for files that differ only in layout and comments."""
    return sha256(code_key(path, text).encode(errors="replace")).hexdigest()
