from collections.abc import Callable
from pathlib import Path

import pytest

from tests.tools.calls import Bench

pytestmark = pytest.mark.anyio


@pytest.mark.promise("TOOL-4")
async def test_a_file_is_shown_with_its_hash_and_can_then_be_edited(bench: Bench) -> None:
    (bench.root / "a.py").write_text("x = 1\ny = 2\n")
    finished = await bench.call("read", path="a.py")
    digits = (bench.workspace.sha256("a.py") or "")[:12]
    assert finished.content == f"### a.py [hash: {digits}]\n1\tx = 1\n2\ty = 2"
    assert finished.summary == "2 lines"
    assert (await bench.call("edit", path="a.py", edits=[{"search": "1", "replace": "3"}])).status == "ok"
    assert (bench.root / "a.py").read_text() == "x = 3\ny = 2\n"


async def test_a_long_file_is_cut_and_says_how_to_go_on(bench: Bench) -> None:
    (bench.root / "a").write_text("".join(f"{n}\n" for n in range(1, 1001)))
    finished = await bench.call("read", path="a")
    assert finished.content.endswith("400\t400\n[lines 401-1000 not shown; read with start=401]")
    assert finished.summary == "lines 1-400 of 1,000"
    assert not bench.session.state.files.files["a"].whole
    part = await bench.call("read", path="a", start=990, end=1000)
    assert part.content.split("\n")[1:] == [f"{n}\t{n}" for n in range(990, 1001)]


async def test_wide_lines_are_cut_by_size(bench: Bench) -> None:
    (bench.root / "a").write_text(("x" * 1_500 + "\n") * 50 + "y" * 5_000 + "\n")
    finished = await bench.call("read", path="a")
    assert len(finished.content) < 16_500
    assert "not shown" in finished.content
    last = await bench.call("read", path="a", start=51)
    assert "very long lines are cut" in last.content
    assert len(last.content) < 2_200


async def test_a_range_beyond_the_end_says_how_long_the_file_is(bench: Bench) -> None:
    (bench.root / "a").write_text("x\n")
    assert "only 1 line" in (await bench.call("read", path="a", start=5)).content
    (bench.root / "b").write_text("")
    assert "empty" in (await bench.call("read", path="b")).content


@pytest.mark.parametrize(
    ("name", "reason"),
    [("missing", "file_missing"), ("folder", "not_text"), ("binary", "not_text"), ("huge", "too_large")],
)
async def test_what_cannot_be_read_is_refused_with_its_reason(bench: Bench, name: str, reason: str) -> None:
    (bench.root / "folder").mkdir()
    (bench.root / "binary").write_bytes(b"\0")
    (bench.root / "huge").write_text("x\n" * 600_000)
    finished = await bench.call("read", path=name)
    assert finished.status == "refused"
    assert finished.error is not None
    assert finished.error.reason == reason
    assert finished.error.file == name


async def test_a_range_of_a_huge_file_is_read(bench: Bench) -> None:
    (bench.root / "huge").write_text("x\n" * 600_000)
    assert (await bench.call("read", path="huge", start=1, end=2)).content.endswith("start=3]")


async def test_secrets_and_files_outside_are_read_only_with_the_users_word(
    make_bench: Callable[..., Bench], tmp_path: Path
) -> None:
    bench = make_bench("auto")
    (tmp_path / "out.txt").write_text("outside\n")
    (bench.root / ".env").write_text("KEY=1\n")
    (bench.root / "link").symlink_to(tmp_path / "out.txt")
    bench.user.says = "reject"
    for path in (".env", "../out.txt", "link"):
        assert (await bench.call("read", path=path)).status == "refused"
    assert len(bench.user.asked) == 3
    bench.user.says = "once"
    assert "KEY=1" in (await bench.call("read", path=".env")).content


async def test_a_missing_file_is_told_in_words_that_forbid_guessing(bench: Bench) -> None:
    finished = await bench.call("read", path="missing.py")
    assert finished.error
    assert "missing.py does not exist." in finished.error.message
    assert finished.error.message.endswith("Do not guess its content.")
