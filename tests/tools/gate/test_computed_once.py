"""What a call would change is computed once: before the question. After it, only hashes are compared."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

from handrail.changes.diff import diff
from handrail.changes.proposal import propose
from handrail.protocol.events import ChangePrepared
from handrail.protocol.ids import new_id
from handrail.protocol.values import ToolCall
from handrail.tools.files.edit_batch import ProposalTools
from handrail.tools.gate.gate import Gate
from handrail.workspace.files import TextFile, Workspace
from handrail.workspace.paths import ResolvedPath
from tests.tools.calls import Bench
from tests.tools.hook_programs import hook

MakeBench = Callable[..., Bench]
pytestmark = pytest.mark.anyio
CHANGE = {"edits": [{"search": "old", "replace": "new"}]}
COMPUTED: dict[CodeType, str] = {propose.__code__: "propose", diff.__code__: "diff"}


class CountingWorkspace(Workspace):
    """Notes how files are looked at."""

    def __init__(self, root: Path, state_folders: tuple[Path, ...] = ()) -> None:
        super().__init__(root, state_folders)
        self.looks: list[str] = []

    def read(self, given: str | ResolvedPath) -> TextFile:
        self.looks.append(f"read {self.resolve(given).path}")
        return super().read(given)

    def sha256(self, given: str | ResolvedPath) -> str | None:
        self.looks.append(f"hash {self.resolve(given).path}")
        return super().sha256(given)


@contextmanager
def noted(into: list[str]) -> Iterator[None]:
    """Note each proposal and each diff that is computed meanwhile, as the interpreter sees them."""

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code in COMPUTED:
            into.append(COMPUTED[frame.f_code])

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(before)


class Looks:
    """What was computed and looked at before and after the question."""

    def __init__(self, bench: Bench) -> None:
        assert isinstance(bench.workspace, CountingWorkspace)
        self._bench, self._all = bench, bench.workspace.looks
        self.before: list[str] = []
        bench.user.while_thinking = self._asked

    def _asked(self) -> None:
        self.before = sorted(self._all)
        self._all.clear()

    async def run(self, *calls: ToolCall, gate: Gate | None = None) -> list[str]:
        """What happened after the question, when the calls have been done."""
        for call in calls:
            self._bench.wanted(call)
        self._all.clear()
        with noted(self._all):
            await (gate or self._bench.gate).run_all(calls, self._bench.turn_id)
        assert [self._bench.finished(call.id).status for call in calls] == ["ok"] * len(calls)
        assert len(self._bench.user.asked) == 1
        return sorted(self._all)


def edit_of(path: str, **more: Any) -> ToolCall:
    return ToolCall(id=new_id("call"), name="edit", arguments={"path": path} | CHANGE | more)


async def open_files(make_bench: MakeBench, *paths: str, **options: Any) -> Bench:
    bench = make_bench("ask", workspace_type=CountingWorkspace, **options)
    for path in paths:
        (bench.root / path).write_text("old\n")
        await bench.call("read", path=path)
    return bench


@pytest.mark.promise("TOOL-3")
async def test_an_edit_is_read_and_computed_once_and_only_its_hash_is_looked_at_after_the_question(
    make_bench: MakeBench,
) -> None:
    bench = await open_files(make_bench, "a")
    looks = Looks(bench)
    assert await looks.run(edit_of("a")) == ["hash a"]
    assert looks.before == ["diff", "propose", "read a"]
    assert (bench.root / "a").read_text() == "new\n"


async def test_edits_of_one_answer_are_read_and_computed_once(make_bench: MakeBench) -> None:
    bench = await open_files(make_bench, "a", "b")
    looks = Looks(bench)
    assert await looks.run(edit_of("a"), edit_of("b")) == ["hash a", "hash b"]
    assert looks.before == ["diff", "diff", "propose", "read a", "read b"]


async def test_a_hook_that_lets_an_edit_pass_costs_a_hash(make_bench: MakeBench, tmp_path: Path) -> None:
    bench = await open_files(make_bench, "a", hooks=[hook(tmp_path / "mine", "before_tool", match=("edit",))])
    looks = Looks(bench)
    assert await looks.run(edit_of("a")) == ["hash a"]
    assert looks.before == ["diff", "hash a", "propose", "read a"]


async def test_a_file_that_a_hook_changes_is_computed_again_for_the_question(
    make_bench: MakeBench, tmp_path: Path
) -> None:
    """Nobody was asked yet, so the model is told what holds now: its version is out of date."""
    body = 'open(os.path.join(os.environ["HANDRAIL_WORKSPACE"], "a"), "w").write("old\\nmine\\n")'
    bench = await open_files(
        make_bench, "a", hooks=[hook(tmp_path / "mine", "before_tool", body, match=("edit",))]
    )
    finished = await bench.run(edit_of("a"))
    assert json.loads(finished.content)["reason"] == "stale_file"
    assert "not the version that was shown" in finished.content
    assert bench.user.asked == []
    assert (bench.root / "a").read_text() == "old\nmine\n"


async def test_a_declared_refactor_is_checked_on_what_was_prepared(make_bench: MakeBench) -> None:
    bench = await open_files(make_bench, "a.py")
    looks = Looks(bench)
    assert await looks.run(edit_of("a.py", mutation_class="AST_REFACTOR")) == ["hash a.py"]
    (prepared,) = [event for event in bench.events() if isinstance(event, ChangePrepared)]
    assert prepared.mutation_class == "INTENT_EVOLUTION"


async def test_a_proposal_of_a_person_is_read_and_computed_once(make_bench: MakeBench) -> None:
    bench = await open_files(make_bench, "a")
    sha256 = bench.workspace.sha256("a")
    change = {"form": "replace", "path": "a", "base_hash": sha256} | CHANGE
    new = {"form": "create", "path": "b", "text": "b\n"}
    gate = Gate(bench.session, bench.workspace, ProposalTools(), bench.user)
    looks = Looks(bench)
    call = ToolCall(id=new_id("call"), name="proposal", arguments={"changes": [change, new]})
    assert await looks.run(call, gate=gate) == ["hash a"]
    assert looks.before == ["diff", "diff", "propose", "read a"]
    assert (bench.root / "b").read_text() == "b\n"
