"""A model that wants out: every way to a protected place is one refusal, in every mode, without a yes."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest

from handrail.protocol.values import Mode
from tests.tools.calls import Bench

pytestmark = pytest.mark.anyio
MODES: tuple[Mode, ...] = get_args(Mode)
TARGETS = (
    "../out/kept.txt",
    "{out}/kept.txt",
    "door/kept.txt",
    "door/../kept.txt",
    "chain/kept.txt",
    "dangling",
    ".git/config",
    ".git/hooks/pre-commit",
    ".GIT/config",
    "hooks/pre-commit",
    "sub/.git/config",
    ".handrail/config.toml",
    ".orchestration/active_intents.yaml",
    ".intentignore",
    ".env",
    "innocent.txt",
    "hard.txt",
    "pipe",
    "/proc/self/cwd/a.txt",
    "/dev/null",
    ".git\u200c/config",
    "a.txt\\..\\..\\x",
    ".vscode/tasks.json",
    ".mcp.json",
)


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "kept.txt").write_text("kept")
    return folder


def furnish(root: Path, outside: Path) -> None:
    """A workspace with everything that could be a way out."""
    for name in (".git/hooks", ".handrail", ".orchestration", "sub/.git"):
        (root / name).mkdir(parents=True)
    for name in (".git/config", ".handrail/config.toml", ".intentignore", ".env", "a.txt", "sub/.git/config"):
        (root / name).write_text("kept")
    (root / "door").symlink_to(outside)
    (root / "chain").symlink_to("door")
    (root / "dangling").symlink_to(outside / "new.txt")
    (root / "hooks").symlink_to(".git/hooks")
    (root / "innocent.txt").symlink_to(".env")
    os.link(outside / "kept.txt", root / "hard.txt")
    os.mkfifo(root / "pipe")


def everything(*folders: Path) -> dict[str, str]:
    """All names and texts, links not followed."""
    found = {}
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            text = path.read_text() if path.is_file() else ""
            found[str(path)] = os.readlink(path) if path.is_symlink() else text
    return found


@pytest.mark.promise("POL-3")
@pytest.mark.parametrize("mode", MODES)
async def test_no_way_leads_to_a_protected_place_without_a_yes(
    make_bench: Callable[..., Bench], outside: Path, mode: Mode
) -> None:
    bench = make_bench(mode)
    bench.user.says = "reject"
    furnish(bench.root, outside)
    before = everything(bench.root, outside)
    for target in TARGETS:
        path = target.replace("{out}", str(outside))
        calls: list[tuple[str, dict[str, Any]]] = [
            ("write", {"path": path, "text": "evil"}),
            ("edit", {"path": path, "edits": [{"search": "kept", "replace": "evil"}]}),
            ("delete", {"path": path}),
            ("move", {"path": "a.txt", "to": path}),
            ("move", {"path": path, "to": "taken.txt"}),
        ]
        for tool, arguments in calls:
            finished = await bench.call(tool, **arguments)
            assert finished.status == "refused", (tool, target, finished.content)
            assert finished.error, (tool, target)
    assert everything(bench.root, outside) == before


@pytest.mark.promise("POL-22")
async def test_a_link_that_a_command_made_leads_nowhere(bench: Bench, outside: Path) -> None:
    (bench.root / "src").mkdir()
    await bench.call("run", command=f"rmdir src && ln -s {outside} src && ln -s .git/hooks h")
    for path in ("src/new.txt", "src/kept.txt", "h/pre-commit"):
        assert (await bench.call("write", path=path, text="evil")).status == "refused"
    assert [file.name for file in outside.iterdir()] == ["kept.txt"]


@pytest.mark.promise("POL-22")
async def test_a_place_that_moves_while_the_user_thinks_is_not_written(
    make_bench: Callable[..., Bench], outside: Path
) -> None:
    bench = make_bench("ask")
    (bench.root / "src").mkdir()
    (bench.root / "a.txt").write_text("a")

    def swap() -> None:
        (bench.root / "src").rmdir()
        (bench.root / "src").symlink_to(outside)

    bench.user.while_thinking = swap
    await bench.call("read", path="a.txt")
    finished = await bench.call("move", path="a.txt", to="src/kept2.txt")
    assert finished.status == "refused"
    assert [file.name for file in outside.iterdir()] == ["kept.txt"]
    assert (bench.root / "a.txt").exists()
