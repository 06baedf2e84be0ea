"""The tools that change files, through the gate."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from handrail.protocol.events import ChangePrepared
from tests.tools.calls import Bench, open_bench

pytestmark = pytest.mark.anyio
LONG = "".join(f"line {number}\n" for number in range(30))


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = open_bench(tmp_path)
    yield bench
    bench.close()


async def read(bench: Bench, path: str, text: str) -> None:
    (bench.root / path).write_text(text)
    await bench.call("read", path=path)


async def test_a_file_is_edited_by_line_numbers(bench: Bench) -> None:
    await read(bench, "a", "one\ntwo\n")
    edit = {"op": "replace", "start": 2, "end": 2, "lines": ["2"], "expected": ["two"]}
    assert (await bench.call("edit", path="a", lines=[edit])).status == "ok"
    assert (bench.root / "a").read_text() == "one\n2\n"


@pytest.mark.parametrize("number", [True, 2.0, "2"])
async def test_a_line_number_is_a_number(bench: Bench, number: object) -> None:
    await read(bench, "a", "one\ntwo\n")
    edit = {"op": "delete", "start": number, "end": number, "expected": ["two"]}
    finished = await bench.call("edit", path="a", lines=[edit])
    assert finished.error
    assert finished.error.reason == "invalid_arguments"


async def test_an_edit_is_made_in_one_way(bench: Bench) -> None:
    await read(bench, "a", "one\n")
    for arguments in ({}, {"edits": [{"search": "o", "replace": "p"}], "lines": [{"op": "delete"}]}):
        finished = await bench.call("edit", path="a", **arguments)
        assert finished.status == "refused"


async def test_a_file_is_changed_by_a_diff(bench: Bench) -> None:
    await read(bench, "a", "one\ntwo\n")
    diff = "--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"
    assert (await bench.call("apply_diff", path="a", diff=diff)).status == "ok"
    assert (bench.root / "a").read_text() == "one\n2\n"


async def test_a_file_is_deleted_and_its_content_kept(bench: Bench) -> None:
    await read(bench, "a", "one\n")
    finished = await bench.call("delete", path="a")
    assert finished.content == "Deleted a (+0 -1)."
    assert not (bench.root / "a").exists()
    (prepared,) = [event for event in bench.events() if isinstance(event, ChangePrepared)]
    assert bench.session.log.blob(prepared.files[0].old_sha256) == b"one\n"


async def test_a_file_is_moved_with_its_hash(bench: Bench) -> None:
    await read(bench, "a", "one\n")
    (bench.root / "a").chmod(0o640)
    finished = await bench.call("move", path="a", to="d/b")
    assert "### d/b [hash: " in finished.content
    assert (bench.root / "d/b").read_text() == "one\n"
    assert (bench.root / "d/b").stat().st_mode & 0o777 == 0o640
    assert not (bench.root / "a").exists()
    assert (await bench.call("edit", path="d/b", edits=[{"search": "one", "replace": "1"}])).status == "ok"


@pytest.mark.promise("TOOL-20")
@pytest.mark.parametrize("to", ["../b", ".git/config", ".env", ".handrail/b"])
async def test_both_ends_of_a_move_are_decided_about(bench: Bench, to: str) -> None:
    await read(bench, "a", "one\n")
    finished = await bench.call("move", path="a", to=to)
    assert finished.error
    assert finished.error.reason in ("outside_workspace", "protected_path")
    assert bench.types(1) == ["tool_finished"]
    assert (bench.root / "a").exists()


@pytest.mark.parametrize("tool", ["delete", "move"])
async def test_a_link_is_not_taken_for_what_it_leads_to(bench: Bench, tool: str) -> None:
    await read(bench, "a", "one\n")
    (bench.root / "link").symlink_to("a")
    arguments = {"to": "b"} if tool == "move" else {}
    assert (await bench.call(tool, path="link", **arguments)).status == "refused"
    assert (bench.root / "a").exists()


async def test_the_step_that_found_the_place_is_in_the_events(bench: Bench) -> None:
    await read(bench, "a", "if x:\n    one()\n    two()\n")
    finished = await bench.call("edit", path="a", edits=[{"search": "one()\ntwo()\n", "replace": "two()\n"}])
    assert finished.summary == "+0 -1, found by indentation"
    (prepared,) = [event for event in bench.events() if isinstance(event, ChangePrepared)]
    assert prepared.files[0].matched == "indentation"


@pytest.mark.promise("CHG-32")
async def test_a_large_loss_is_asked_about_in_every_mode_and_each_time(tmp_path: Path) -> None:
    bench = open_bench(tmp_path, "auto")
    bench.user.says = "always"
    for path in ("a", "a"):
        await read(bench, path, LONG)
        assert (await bench.call("write", path=path, text="line 1\n")).status == "ok"
    assert [asked.why for asked in bench.user.asked] == ["a would lose 29 of its 30 lines"] * 2
    bench.user.says = "reject"
    await read(bench, "a", LONG)
    assert (await bench.call("write", path="a", text="line 1\n")).status == "refused"
    assert (bench.root / "a").read_text() == LONG
    bench.close()


@pytest.mark.promise("CHG-32")
async def test_a_large_loss_is_refused_where_nobody_can_be_asked(tmp_path: Path) -> None:
    bench = open_bench(tmp_path, "auto", answerable=False)
    await read(bench, "a", LONG)
    finished = await bench.call("write", path="a", text="line 1\n")
    assert finished.error
    assert finished.error.reason == "nobody_to_ask"
    assert "29 of its 30 lines" in finished.error.message
    assert (bench.root / "a").read_text() == LONG
    bench.close()
