"""The search of a small model: ask, try the answer in a copy, keep the best files, until the checks pass.

Each answer is on record with what was asked and what came of it, so another process goes on where this one
ended. Nothing here writes to the workspace.
"""

import time
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from anyio.to_thread import run_sync
from msgspec.structs import replace

from handrail.context.mentions import mentioned_names
from handrail.engine.context import TurnContext
from handrail.engine.requests.model_requests import SIDE_CALL_CUT, SideCall
from handrail.engine.search.answers import (
    is_written,
    read_weights,
    weighed_beginnings,
)
from handrail.engine.search.places import (
    look,
    missing_sources,
    read_files,
    shown_tests,
)
from handrail.engine.search.policy import (
    WASTED,
    WITHOUT_MODEL,
    Draft,
    Graft,
    Kind,
    Line,
    Question,
    Result,
    Situation,
    edits_ahead,
    next_question,
    rivals,
)
from handrail.engine.search.prompts import Material, Tried, write_request
from handrail.engine.search.rivals import WRITTEN_FREELY, Passing, choose, likelihood
from handrail.engine.search.source import find_functions, function_text, indent_of, text_hash
from handrail.engine.search.trials import Accepts, Trials, accept_all, code_hash
from handrail.engine.user_input import turn_message
from handrail.models.model import Request
from handrail.protocol.errors import GiveUp
from handrail.protocol.events import CandidateTried, SideAnswered
from handrail.tools.tool import pluralize
from handrail.verification.candidates import Candidates, Tested, open_candidates

MAX_FAILED_REQUESTS = 3
RIVAL_SECONDS, MOST_PASSING = 10.0, 6
SCREENING_SECONDS = 20.0
NOT_RUN = (*WASTED, "unusable")
PAGE = 500


class SearchTask(NamedTuple):
    words: str
    """The user's own."""
    command: str
    """What is run, in words for the model."""
    seconds: float
    targets: tuple[str, ...] = ()
    """The only files that may change; empty: all that are open."""
    start: Mapping[str, str] = {}
    """Files that are already better than those of the workspace."""


class Found(NamedTuple):
    """The end of a search."""

    files: dict[str, str]
    """The best files; empty where no answer was better than what is there."""
    passed: bool
    answers: int
    wasted: int
    mutations: int
    best: Tested
    doubt: str = ""
    """Why passing tests do not decide: another change that passes, and how it differs."""

    @property
    def words(self) -> str:
        best = self.best
        tests = f"{best.passing} of {best.total} tests pass" if best.total > 1 else "the check fails"
        wasted = f" ({self.wasted} changed nothing new)" if self.wasted else ""
        edits = f" and {pluralize(self.mutations, 'small edit')}" if self.mutations else ""
        tried = f"{pluralize(self.answers, 'answer')}{edits} tried{wasted}"
        return f"{tried}; the check passes" if self.passed else f"{tried}; at best {tests}"


class Search:
    """One search; what it knows is restored from the log."""

    def __init__(self, context: TurnContext, candidates: Candidates, task: SearchTask) -> None:
        self._context = context
        self._session = context.session
        self._candidates = candidates
        self._task = task
        chain = context.main
        self._side = SideCall(chain.session, chain.models[0], "main", chain.cost, chain.afford)
        self._trials = Trials(context, candidates, task.words)
        self._trials.best_files.update(task.start)
        self._passed: list[Passing] = []
        """Changes of the best files with which the tests pass, from before a restart."""
        self._tried: list[Tried] = []
        self._number = self._answers = self._wasted = self._mutations = self._failed_requests = 0
        self._took: dict[Kind, list[float]] = {}

    async def run(self, before: Tested, accepts: Accepts) -> Found:
        """The files with which the tests pass and `accepts` agrees, else the best ones."""
        began, self._trials.accepts = time.monotonic(), accepts
        await run_sync(self._read_files, before)
        now = self._restored()
        best = await self._candidates.test(self._trials.best_files) if self._trials.best_files else before
        if self._passed:  # before a restart
            return await self._chosen(best, self._passed)
        now = await self._look(now, best, before)
        edit: tuple[CandidateTried, Tested] | None = None  # the best one that does not pass all tests
        while True:
            left = self._task.seconds - (time.monotonic() - began)
            averages = {kind: sum(each) / len(each) for kind, each in self._took.items()}
            now = now._replace(seconds_left=left, seconds_of=averages)
            question = next_question(now)
            if edit and (question is None or question.kind != "mutation"):  # one edit is better than two
                now, best, edit = await self._kept(now, *edit, before), edit[1], None
                continue
            if question is None or self._context.limit_reached:
                return self._found(best, passed=False)
            started = time.monotonic()
            if self._trials.can_screen(question):
                now = await self._screened(now, edits_ahead(now), best, min(left, SCREENING_SECONDS))
                continue
            if question.kind == "weighing":
                now = await self._weighed(now, question, best, before)
            else:
                tried, tested = await self._try(question, best, before)
                if tried.asked == "mutation" and tried.result in NOT_RUN:
                    now = now._replace(asked={**now.asked, tried.key: tried.result})
                    continue
                self._count(tried)
                self._record(tried, started)
                now = _answered(now, question, tried)
                if tried.result == "passed" and tested:
                    passing = await self._passing(now, question, tried, best, before)
                    return await self._chosen(tested, passing)
                if tried.result == "better" and tested and question.kind == "mutation":
                    if not set(tested.names) <= set(best.names):
                        continue  # it breaks others
                    edit = max(edit or (tried, tested), (tried, tested), key=lambda each: each[1].passing)
                elif tried.result == "better" and tested:
                    now, best = await self._kept(now, tried, tested, before), tested
                elif _is_draft(tried):
                    now = now._replace(grafts=await run_sync(self._grafts, now))
            self._took.setdefault(question.kind, []).append(time.monotonic() - started)

    async def _kept(self, now: Situation, tried: CandidateTried, tested: Tested, before: Tested) -> Situation:
        """The situation with files that are better: what follows starts from them."""
        self._trials.best_files[tried.path] = self._trials.files.sources[tried.path] = tried.text
        return await self._look(now._replace(branches={}, written={}), tested, before)

    async def _passing(
        self,
        now: Situation,
        question: Question,
        tried: CandidateTried,
        best: Tested,
        before: Tested,
    ) -> list[Passing]:
        """The change that passes, and others that do."""
        if not self._candidates.shows_behaviour:
            return [Passing(tried.path, tried.text, tried.change, WRITTEN_FREELY)]
        found = [(question, tried)]
        others = rivals(now, question)
        if self._trials.screens and (edits := [each for each in others if each.kind == "mutation"]):
            now = await self._screened(now, edits, best, RIVAL_SECONDS)
        end = time.monotonic() + RIVAL_SECONDS
        for rival in others:
            if time.monotonic() > end or len(found) >= MOST_PASSING or self._context.limit_reached:
                break
            if rival.key in now.asked:
                continue
            started = time.monotonic()
            other, _ = await self._try(rival, best, before)
            if other.result not in NOT_RUN:
                self._count(other)
                self._record(other, started)
            if other.result == "passed":
                found.append((rival, other))
        line = Line(question.path, question.line)
        is_line = question.kind in ("line", "mutation")
        if len(found) > 1 and is_line and now.weighs and line not in now.branches:
            weighing = Question("weighing", line.path, line=line.number, base=now.base)
            now = await self._weighed(now, weighing, best, before)
        return [
            Passing(each.path, each.text, each.change, likelihood(now, asked, each)) for asked, each in found
        ]

    async def _chosen(self, tested: Tested, passing: Sequence[Passing]) -> Found:
        choice = await choose(self._candidates, self._trials.best_files, passing, self._trials.files.start)
        self._trials.best_files[choice.best.path] = choice.best.text
        return self._found(tested, passed=True)._replace(doubt=choice.doubt)

    def _found(self, best: Tested, *, passed: bool) -> Found:
        return Found(self._trials.best_files, passed, self._answers, self._wasted, self._mutations, best)

    def _record(self, tried: CandidateTried, started: float) -> None:
        self._number += 1
        took = round(time.monotonic() - started, 3)
        self._session.append(replace(tried, number=self._number, seconds=took))
        if _is_draft(tried):
            self._trials.drafts.append((tried.path, tried.text))

    # What is known

    def _read_files(self, before: Tested) -> None:
        task, workspace = self._task, self._context.workspace
        named = self._context.strategy.files_to_attach(task.words, (), workspace)
        self._trials.files = read_files(workspace, task.words, named, self._context.secrets, task.targets)
        for path in missing_sources(self._trials.files, before.output, task.words, task.targets):
            self._trials.files.sources.setdefault(path, "")
        self._trials.files = self._trials.files._replace(start=dict(self._trials.files.sources))
        self._trials.writes = any(
            not text.strip() or any(each.is_stub for each in find_functions(path, text))
            for path, text in self._trials.files.start.items()
        )
        for path, text in self._trials.files.sources.items():
            self._trials.known.add(code_hash(path, text))
        self._trials.files.sources.update(task.start)
        for path, text in task.start.items():
            self._trials.known.add(code_hash(path, text))

    def _restored(self) -> Situation:
        """What this turn has tried; the files that this stage found are its start again."""
        asked: dict[str, Result] = {}
        most = 0
        for tried in self._events():
            if tried.result != "passed" or tried.stage_id == self._session.state.stage_id:
                self._trials.known.add(
                    tried.code
                )  # another check refused the one that an earlier stage chose
            asked[tried.key] = tried.result
            if _is_draft(tried):
                self._trials.drafts.append((tried.path, tried.text))
            if tried.stage_id != self._session.state.stage_id:
                continue
            self._number += 1
            self._count(tried)
            if tried.result == "passed":
                self._passed.append(Passing(tried.path, tried.text, tried.change, WRITTEN_FREELY))
            elif tried.result == "better" and not self._passed and tried.passing >= most:
                most = tried.passing + (tried.asked == "mutation")
                self._trials.best_files[tried.path] = self._trials.files.sources[tried.path] = tried.text
        return Situation(asked=asked, screens=self._trials.screens)

    def _events(self) -> list[CandidateTried]:
        found: list[CandidateTried] = []
        after = self._session.turn.message_seq
        while page := list(self._session.read_after(after, PAGE)):
            found += [one.event for one in page if isinstance(one.event, CandidateTried)]
            after = page[-1].seq
        return found

    def _count(self, tried: CandidateTried) -> None:
        if tried.asked in WITHOUT_MODEL:
            self._mutations += tried.asked == "mutation"
            return
        self._answers += 1
        self._wasted += tried.result in WASTED
        if tried.result == "failed":
            self._tried.append(Tried(tried.path, tried.change, tried.why))

    async def _look(self, now: Situation, best: Tested, before: Tested) -> Situation:
        failing = await self._candidates.suspects(self._trials.best_files, best) if best.failing else ()
        issues = sorted(failing, key=lambda issue: issue.test in before.names)  # what was broken comes first
        words = f"{self._task.words}\n{self._task.command}\n{best.output}"
        tests = shown_tests(self._trials.files, issues, best.output, self._task.words)
        files = "".join(f"{path}\0{text}\0" for path, text in sorted(self._trials.best_files.items()))
        now = now._replace(base=text_hash(files))
        now = await run_sync(look, now, self._trials.files, issues, tests, words)
        return now._replace(grafts=await run_sync(self._grafts, now))

    def _grafts(self, now: Situation) -> tuple[Graft, ...]:
        """Functions of drafts that are not the best files' own, those where tests point first."""
        found: dict[str, Graft] = {}
        for number, (path, text) in enumerate(self._trials.drafts):
            for each in find_functions(path, text):
                code = function_text(path, text, each.full_name)
                if code and self._trials.is_untried(path, each.full_name, code):
                    found.setdefault(f"{path}\0{code}", Graft(path, each.full_name, number))
        likely = [(place.path, place.name) for place in now.functions]
        return tuple(
            sorted(
                found.values(),
                key=lambda graft: likely.index(graft[:2]) if graft[:2] in likely else len(likely),
            )
        )

    # Asking

    async def _weighed(self, now: Situation, question: Question, best: Tested, before: Tested) -> Situation:
        """The situation with the branches of one more line."""
        text, line = self._trials.shown(question), Line(question.path, question.line)
        places = weighed_beginnings(text, line.number)
        request = self._request(question, best, before)
        request = replace(request, weighs=places[:1] if question.fresh else places)
        answered = await self._ask(request, question, best)
        branches = read_weights(line, text, answered.text) if answered else []
        now = now._replace(
            asked={**now.asked, question.key: "weighed"},
            weighs=bool(branches) or any(now.branches.values()) or any(now.openings.values()),
        )
        if question.fresh:
            draft = Draft(question.base, question.path, question.name, question.line)
            return now._replace(openings={**now.openings, draft: [each.prefix for each in branches]})
        return now._replace(branches={**now.branches, line: branches})

    async def _try(
        self, question: Question, best: Tested, before: Tested
    ) -> tuple[CandidateTried, Tested | None]:
        """The answer and what came of it."""
        answer, cut, request_id = "", False, ""
        if question.kind not in WITHOUT_MODEL and not is_written(question):
            answered = await self._ask(self._request(question, best, before), question, best)
            if answered is None:
                return replace(self._trials.begun(question), why="the model did not answer"), None
            answer, cut = answered.text, answered.problem in SIDE_CALL_CUT.values()
            request_id = answered.request_id
        tried, text = self._trials.read(question, answer, cut=cut)
        tried = replace(tried, request_id=request_id)
        if not text:
            return tried, None
        tested = await self._trials.test(question, tried, text, best, before.total)
        if tested[0].result != "passed" and question.kind in ("function", "file") and self._trials.screens:
            varied = await self._trials.vary(question, tried, text, best, before.total)
            if varied and varied[1].passing > tested[1].passing:
                return varied
        return tested

    async def _screened(
        self, now: Situation, questions: Sequence[Question], best: Tested, seconds: float
    ) -> Situation:
        """The situation after all edits that let no failing test pass were tried at once."""
        screened = await self._trials.screen(questions, best, seconds)
        failed = [
            replace(each, number=number) for number, each in enumerate(screened.failed, self._number + 1)
        ]
        if failed:
            self._number += len(failed)
            self._mutations += len(failed)
            self._session.append(*failed)
        return now._replace(asked={**now.asked, **screened.asked}, screens=self._trials.screens)

    def _request(self, question: Question, best: Tested, before: Tested) -> Request:
        task, hide = self._task, self._context.secrets.hide
        shown = before if question.fresh else best
        output = "" if shown.passed else shown.output
        material = Material(
            task=hide(task.words),
            named=self._trials.files.named,
            tests=shown_tests(self._trials.files, best.failing, best.output, task.words),
            command=task.command,
            output=hide(output),
            first=tuple(name for name in best.names if name not in before.names),
            root=str(self._context.workspace.root),
            attached=hide(turn_message(self._session).attached) if mentioned_names(task.words) else "",
        )
        tried = [each for each in self._tried if each.path == question.path]
        request = write_request(question, self._trials.shown(question), material, tried)
        return replace(request, deadlines=self._context.deadlines)

    async def _ask(self, request: Request, question: Question, best: Tested) -> SideAnswered | None:
        """The answer; None where there is none. Raises GiveUp where that happens again and again."""
        where = (
            f"{question.name or 'line'} {question.path}:{question.line}" if question.line else question.path
        )
        doing = f"trying {where}, answer {self._answers + 1}, {best.passing} of {best.total} tests pass"
        answered = await self._side.ask(request, "search", doing)
        if not answered.problem or answered.problem in SIDE_CALL_CUT.values():
            self._failed_requests = 0
            return answered
        self._failed_requests += 1
        if self._failed_requests >= MAX_FAILED_REQUESTS:
            raise GiveUp(f"The model does not answer: {answered.problem}")
        return None


def _answered(now: Situation, question: Question, tried: CandidateTried) -> Situation:
    now = now._replace(asked={**now.asked, tried.key: tried.result})
    if question.kind != "line":
        return now
    line, indent = Line(question.path, question.line), question.prefix[: indent_of(question.prefix)]
    lines = {**now.written.get(line, {}), question.prefix: f"{indent}{tried.change}\n"}
    return now._replace(written={**now.written, line: lines})


def _is_draft(tried: CandidateTried) -> bool:
    return tried.asked == "file" and bool(tried.text)


BUILD_SECONDS = 180.0
"""For one stage of a build."""


async def search_for_tests(
    context: TurnContext,
    words: str,
    targets: Sequence[str],
    start: Mapping[str, str],
    about: Collection[str],
) -> Found:
    """The search of a build: by the tests of the project that it is `about`. Raises NoCopy."""
    workspace_checks = context.checks()
    found = await workspace_checks.find()
    checks = [check for check in found if check.kind == "tests" and not check.missing]
    command = ", ".join(check.command for check in checks)
    task = SearchTask(words, command, BUILD_SECONDS, tuple(targets), start)
    async with open_candidates(workspace_checks, checks) as candidates:
        before = await candidates.before(about)
        return await Search(context, candidates, task).run(before, accept_all)
