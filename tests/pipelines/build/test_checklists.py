"""Runs over checklists: what is asked, attempted, ticked, and what stops them."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

import pytest
from msgspec import convert

from handrail.app.builds.checklists import ChecklistReport, DoOptions, ItemResult, run_checklist
from handrail.protocol.errors import UsageProblem
from handrail.protocol.events import ChangeApplied, Delta, Recorded, StageStarted
from handrail.protocol.ids import session_stream
from handrail.protocol.values import ChecklistItem
from handrail.sessions.checklist_runs import checklist_runs
from handrail.sessions.past_runs import past_runs
from handrail.sessions.session import event_from_row
from handrail.storage.event_log import Log
from handrail.verification.documents.checklist import Item, buildable, complete_item, progress, read_checklist
from tests.engine.commits import Commits
from tests.engine.conversation import conversation
from tests.pipelines.build.builds import COPIES, ITEM_CHECKS, item_script, whole
from tests.verification.projects import write

pytestmark = pytest.mark.anyio
AUTO = DoOptions(auto=True)
BEGINNING = 7
"""Commits until the build of the first item has begun."""
SCRIPT = [
    each
    for name in ("one", "two", "three")
    for each in item_script(f"Add {name}.py", [whole(f"{name}.py", "NUMBER = 1\n")])
]


class Answers:
    """A user who answers each question by a function, and can do something at an event."""

    def __init__(
        self,
        reply: Callable[[Item], Literal["yes", "no", "stop"] | None] = lambda _: "yes",
        *,
        more: bool = False,
        saw: Callable[[object], None] = lambda _: None,
    ) -> None:
        self.stopping = False
        self.asked: list[str] = []
        self.resumed = 0
        self.results: list[ItemResult] = []
        self._reply, self._more, self._saw = reply, more, saw

    def resumes(self, attempted: int) -> None:
        self.resumed = attempted

    def wants(self, item: Item, left: int) -> Literal["yes", "no", "stop"] | None:
        self.asked.append(item.text)
        return self._reply(item)

    def goes_on(self, attempted: int, left: int) -> bool:
        self.asked.append(f"{attempted} attempted, {left} left")
        return self._more

    async def waited(self, seconds: float) -> bool:
        self.asked.append(f"waited {seconds}")
        return True

    @asynccontextmanager
    async def building(self, item: ChecklistItem, session_id: str) -> AsyncIterator[None]:
        yield

    def saw(self, item: Recorded | Delta) -> None:
        self._saw(item.event if isinstance(item, Recorded) else item)

    def built(self, result: ItemResult) -> None:
        self.results.append(result)


def project(root: Path, checklist: str = "- [ ] Add one.py\n- [ ] Add two.py\n") -> Path:
    return write(root, {"zero.py": "ZERO = 0\n", "plan.md": checklist})


async def do(root: Path, options: DoOptions, user: Answers, settings: str = ITEM_CHECKS) -> str:
    """How the run ended."""
    async with conversation(root, SCRIPT, mode="edit", settings=settings, answerable=False) as talk:
        return (await run_checklist(talk.app, "plan.md", options, user)).ended


@pytest.mark.promise("DO-3")
async def test_item_is_built_only_after_the_user_said_yes(tmp_path: Path) -> None:
    root = project(tmp_path)
    nobody = Answers(lambda _: None)
    assert await do(root, DoOptions(), nobody) == "nobody_to_ask"
    assert (nobody.asked, nobody.results) == (["Add one.py"], [])
    picky = Answers(lambda item: "no" if "one" in item.text else "yes")
    ended = await do(root, DoOptions(pause=3), picky)
    assert picky.asked == ["Add one.py", "Add two.py"]
    if COPIES:
        assert ended == "done"
        assert (root / "plan.md").read_text() == "- [ ] Add one.py\n- [x] Add two.py\n"
        assert sorted(path.name for path in root.glob("*.py")) == ["two.py", "zero.py"]


@pytest.mark.promise("DO-3")
async def test_limit_of_items_asks_or_stops_and_the_next_call_goes_on(tmp_path: Path) -> None:
    root = project(tmp_path)
    first = Answers()
    options = DoOptions(auto=True, most=1, keep_going=True, pause=2)
    assert (await do(root, options, first), first.asked) == ("max", ["1 attempted, 1 left"])
    second = Answers()
    assert (await do(root, options, second), second.asked, second.resumed) == ("done", [], 1)
    assert [each.text for each in (*first.results, *second.results)] == ["Add one.py", "Add two.py"]
    root = project(tmp_path / "other")
    willing = Answers(more=True)
    assert await do(root, options, willing) == "done"
    assert willing.asked == ["1 attempted, 1 left", "waited 2"]


@pytest.mark.promise("BUILD-23")
async def test_item_whose_changelog_takes_no_entry_is_not_ticked(tmp_path: Path) -> None:
    root, user = project(tmp_path, "- [ ] Add one.py\n"), Answers()
    settings = f'{ITEM_CHECKS}[build]\nchangelog = "LOG.md"\n'
    assert await do(root, AUTO, user, settings) == "not_complete"
    assert [each.state for each in user.results] == ["failed"]
    assert (root / "plan.md").read_text() == "- [ ] Add one.py\n"
    assert not (root / "one.py").exists()
    assert ("which is not there" in user.results[0].detail) == COPIES


@pytest.mark.promise("DO-1")
async def test_checklist_edited_during_a_build_keeps_the_edit_and_gets_its_tick(tmp_path: Path) -> None:
    root = project(tmp_path, "- [ ] Add one.py\n")
    todo = root / "plan.md"

    def edit(event: object) -> None:
        if isinstance(event, StageStarted) and event.stage == "apply" and "two" not in todo.read_text():
            todo.write_text(f"# Mine\n- [ ] Add two.py\n{todo.read_text()}")

    user = Answers(saw=edit)
    ended = await do(root, AUTO, user)
    if COPIES:
        assert ended == "done"
        assert [each.text for each in user.results] == ["Add one.py", "Add two.py"]
        assert todo.read_text() == "# Mine\n- [x] Add two.py\n- [x] Add one.py\n"
    else:
        assert (ended, todo.read_text()) == ("not_complete", "- [ ] Add one.py\n")


@pytest.mark.promise("DO-1")
async def test_model_cannot_write_the_checklist(tmp_path: Path) -> None:
    root = project(tmp_path, "- [ ] Add one.py\n- [ ] Add two.py\n")
    cheat = item_script("Add one.py", [whole("one.py", "ONE = 1\n"), whole("plan.md", "- [x] all\n")])
    async with conversation(root, cheat, mode="edit", settings=ITEM_CHECKS, answerable=False) as talk:
        user = Answers()
        report = await run_checklist(talk.app, "plan.md", AUTO, user)
    assert (report.complete, report.ended, report.exit_status) == (0, "not_complete", 1)
    assert (root / "plan.md").read_text() == "- [ ] Add one.py\n- [ ] Add two.py\n"
    assert not (root / "one.py").exists()
    assert ("is the checklist" in user.results[0].detail) == COPIES


@pytest.mark.promise("DO-2")
async def test_run_that_is_killed_after_any_commit_goes_on_and_does_nothing_twice(
    tmp_path: Path, home: Path
) -> None:
    root = project(tmp_path / "work", "- [ ] Add one.py\n")
    commits = Commits(tmp_path / "commits", home, root)
    async with conversation(root, SCRIPT, mode="edit", settings=ITEM_CHECKS, answerable=False) as talk:
        with commits.watching(talk.app):
            await run_checklist(talk.app, "plan.md", AUTO, Answers())
    for number in commits.restored():
        if number > BEGINNING and number % 9 and number < commits.count - 3:
            continue  # how a build itself goes on is tested with builds
        async with conversation(root, SCRIPT, mode="edit", settings=ITEM_CHECKS, answerable=False) as talk:
            log = talk.app.log
            report = await run_checklist(talk.app, "plan.md", AUTO, Answers())
            runs = past_runs(log, "build")
            assert len(runs) <= 1, number
            if not COPIES:
                continue
            ended = [each for each in checklist_runs(log) if each.ended]
            if not report.attempted:  # it had ended before the kill, and nothing is open
                assert ended, number
            assert (root / "plan.md").read_text() == "- [x] Add one.py\n", number
            assert (root / "one.py").read_text() == "NUMBER = 1\n", number
            applied = sum(isinstance(one.event, ChangeApplied) for one in events_of(log, runs[0].session_id))
            assert applied == 1, number


def events_of(log: Log, session_id: str) -> list[Recorded]:
    return [event_from_row(row) for row in log.read(session_stream(session_id))]


@pytest.mark.promise("DO-4")
async def test_one_run_a_checklist_at_a_time(tmp_path: Path) -> None:
    root = project(tmp_path)
    refused: list[str] = []
    async with conversation(root, SCRIPT, mode="edit", settings=ITEM_CHECKS, answerable=False) as talk:

        class Second(Answers):
            @asynccontextmanager
            async def building(self, item: ChecklistItem, session_id: str) -> AsyncIterator[None]:
                with pytest.raises(UsageProblem, match=r"Another Handrail works on plan\.md"):
                    await run_checklist(talk.app, "./plan.md", AUTO, Answers())
                refused.append(item.text)
                yield

        await run_checklist(talk.app, "plan.md", AUTO, Second())
    assert refused


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("missing.md", "", "cannot be read"),
        ("plan.md", "# Nothing\n", "has no item"),
        ("../plan.md", "", "has to be in it"),
    ],
)
async def test_what_is_no_checklist_is_refused(tmp_path: Path, name: str, text: str, words: str) -> None:
    root = project(tmp_path / "work", text)
    write(tmp_path, {"plan.md": "- [ ] a\n"})
    async with conversation(root, [], settings=ITEM_CHECKS, answerable=False) as talk:
        with pytest.raises(UsageProblem, match=words):
            await run_checklist(talk.app, name, AUTO, Answers())


async def test_number_names_one_item_or_what_is_open_below_it(tmp_path: Path) -> None:
    text = "- [ ] Add one.py\n- [ ] Both\n  - [ ] Add two.py\n  - [-] Add never.py\n"
    root = project(tmp_path, text)
    user = Answers()
    await do(root, DoOptions(item=2, auto=True), user)
    assert [each.text for each in user.results] == ["Add two.py"]
    if COPIES:  # the item above is done with its last part
        done = "- [ ] Add one.py\n- [x] Both\n  - [x] Add two.py\n  - [-] Add never.py\n"
        assert (root / "plan.md").read_text() == done
        with pytest.raises(UsageProblem, match="Item 2 is done"):
            await do(root, DoOptions(item=2, auto=True), Answers())
    with pytest.raises(UsageProblem, match="4 items, so no number 9"):
        await do(root, DoOptions(item=9, auto=True), Answers())


NESTED = (
    b"## Phase 1\n- [ ] a\n  - [ ] b\n    - [x] c\n    - [ ] d\n  - [~] e\n## Phase 2\n- [ ] a\n- [-] f\n"
)


def test_parts_are_worked_on_before_what_they_belong_to() -> None:
    items = read_checklist(NESTED)
    assert [each.text for each in buildable(items)] == ["d", "a"]
    assert [each.text for each in buildable(items, 1)] == ["d"]
    assert [(each.phase, each.done, each.of) for each in progress(items)] == [
        ("Phase 1", 1, 5),
        ("Phase 2", 0, 1),
    ]


def test_item_is_ticked_with_what_is_settled_above_it_and_found_where_it_moved() -> None:
    item = ChecklistItem("plan.md", 4, "d", phase="Phase 1", part_of="b")
    ticked = complete_item(NESTED, item)
    # `e` is in progress, so what is above it stays open.
    assert ticked == NESTED.replace(b"- [ ] d", b"- [x] d").replace(b"- [ ] b", b"- [x] b")
    moved = b"## Phase 2\n- [ ] new\n" + NESTED
    second = ChecklistItem("plan.md", 2, "a", phase="Phase 2")
    assert complete_item(moved, second) == moved[:-16] + b"- [x] a\n- [-] f\n"


@pytest.mark.promise("DO-3")
@pytest.mark.parametrize(
    ("ended", "states", "status"),
    [
        ("done", {"complete": 2}, 0),
        ("max", {"complete": 2}, 0),
        ("nobody_to_ask", {"complete": 2}, 3),
        ("nobody_to_ask", {"unverified": 1}, 3),
        ("nobody_to_ask", {"escalated": 1}, 6),
        ("max", {"unverified": 1}, 5),
        ("done", {"paused": 1, "unverified": 1}, 3),
        ("done", {"failed": 1, "escalated": 1}, 1),
        ("stopped", {"failed": 1}, 130),
    ],
)
def test_exit_status_of_a_run_is_that_of_its_worst_item(
    ended: str, states: dict[str, int], status: int
) -> None:
    counts = dict.fromkeys(("attempted", "complete", "unverified", "failed", "escalated", "paused"), 0)
    rest = {"path": "plan.md", "items": [], "phases": [], "open": 0, "tokens": 0, "cost_usd": 0, "seconds": 0}
    report = convert({**rest, **counts, **states, "ended": ended}, ChecklistReport)
    assert report.exit_status == status
