"""Commands in a scratch copy: they see it at the path of the workspace, and the workspace stays as it is."""

import os
import shutil
import sys
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from handrail.protocol.errors import UsageProblem
from handrail.tools.process import run_for_output
from handrail.tools.sandbox.copy_mounts import no_copy_reason
from handrail.tools.sandbox.protected_paths import SandboxSetup
from handrail.tools.sandbox.sandbox import Protection, Sandbox
from handrail.tools.secrets import without_secrets
from handrail.workspace.files import Workspace
from handrail.workspace.scratch_copy.copies import ScratchCopies
from handrail.workspace.scratch_copy.copy import ScratchCopy
from tests.tools.sandbox.machine import working
from tests.tools.sandbox.room import Room, furnished
from tests.workspace.scratch_copy.test_copy import put, tree

pytestmark = pytest.mark.anyio
DEADLINE = 60.0
BUBBLEWRAP = [found for found in working() if found.name == "bubblewrap"]


@pytest.fixture(params=BUBBLEWRAP, ids=lambda found: found.name)
def room(home: Path, request: pytest.FixtureRequest) -> Room:
    return furnished(home, request.param)


@pytest.fixture
def copy(room: Room) -> Iterator[ScratchCopy]:
    put(room.workspace, "shop.py", "price = 1\n")
    put(room.workspace, ".gitignore", "node_modules/\n.env\n.venv/\n")
    put(room.workspace, ".env", "KEY=secret")
    put(room.workspace, "node_modules/left/index.js", "left")
    put(room.workspace, ".git/HEAD", "ref: refs/heads/main\n")
    workspace = Workspace(room.workspace, (room.state,))
    with ScratchCopies(workspace, room.state / "copies").take() as taken:
        yield taken


async def run(
    room: Room, copy: ScratchCopy, *words: str, secrets: tuple[str, ...] = (), reads: bool = False
) -> str:
    """What a command in the copy prints."""
    environ = without_secrets(os.environ)
    setup = SandboxSetup(
        room.workspace, (room.state,), environ, secrets=secrets, reads=reads, copy=copy.shown()
    )
    async with Sandbox(found=room.protection).confine(words, setup) as confined:
        done = await run_for_output(
            confined.words,
            folder=room.workspace,
            environment=confined.environ,
            timeout=DEADLINE,
            limit=100_000,
        )
    return done.data.decode()


@pytest.mark.promise("COPY-9")
async def test_a_command_sees_and_changes_the_copy_at_the_path_of_the_workspace(
    room: Room, copy: ScratchCopy
) -> None:
    before = tree(room.workspace)
    copy.write("shop.py", b"price = 2\n")
    script = f"pwd; cat {room.workspace}/shop.py; echo made > {room.workspace}/new.txt; echo more >> shop.py"
    assert await run(room, copy, "sh", "-c", script) == f"{room.workspace}\nprice = 2\n"
    assert tree(room.workspace) == before
    assert copy.differences() == (("new.txt",), ("shop.py",), ())
    copy.refresh()
    assert copy.differences() == ((), (), ())
    assert not (copy.root / "new.txt").exists()


@pytest.mark.promise("COPY-9")
async def test_packages_git_and_handrails_files_are_read_only_and_the_copy_is_not_seen_twice(
    room: Room, copy: ScratchCopy
) -> None:
    before = tree(room.workspace)
    script = f"""
    cat node_modules/left/index.js .git/HEAD .env
    for file in node_modules/left/index.js node_modules/new .git/HEAD .git/hooks/x .handrail/x .env; do
        (echo x > $file) 2>/dev/null && echo "wrote $file"
    done
    echo cached > node_modules/.cache && cat node_modules/.cache
    ls {room.state}/copies/0; cat {room.state}/log 2>/dev/null
    echo kept > {copy.cache}/kept && cat {copy.cache}/kept
    """
    said = await run(room, copy, "sh", "-c", script)
    assert said == "leftref: refs/heads/main\nKEY=secretwrote node_modules/new\ncached\ncache\nkept\n"
    assert tree(room.workspace) == before
    copy.refresh()
    assert await run(room, copy, "cat", f"{copy.cache}/kept") == "kept\n"


@pytest.mark.promise("COPY-9")
async def test_secrets_stay_hidden_and_a_command_that_only_reads_sees_the_copy(
    room: Room, copy: ScratchCopy
) -> None:
    assert "secret" not in await run(room, copy, "cat", ".env", secrets=(".env",))
    copy.write("shop.py", b"price = 2\n")
    script = "cat shop.py node_modules/left/index.js; echo x > shop.py"
    said = await run(room, copy, "sh", "-c", script, reads=True)
    assert said.startswith("price = 2\nleft")
    assert (copy.root / "shop.py").read_text() == "price = 2\n"


@pytest.mark.promise("COPY-9")
async def test_what_a_copy_has_in_place_of_a_package_folder_leads_nowhere(
    room: Room, copy: ScratchCopy, tmp_path: Path
) -> None:
    await run(room, copy, "true")
    shutil.rmtree(copy.root / "node_modules")
    (copy.root / "node_modules").symlink_to(tmp_path / "made-by-the-sandbox")
    assert await run(room, copy, "cat", "node_modules/left/index.js") == "left"
    assert not (tmp_path / "made-by-the-sandbox").exists()


@pytest.mark.promise("COPY-10")
async def test_an_editable_install_imports_the_code_of_the_copy(
    room: Room, copy: ScratchCopy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    venv.create(room.workspace / ".venv", symlinks=True)
    packages = next((room.workspace / ".venv/lib").glob("python*/site-packages"))
    put(packages, "__editable__.shop.pth", f"{room.workspace}\n")
    python = f"{room.workspace}/.venv/bin/python"
    show = (python, "-c", "import shop; print(shop.price, shop.__file__)")
    copy.refresh()
    assert await run(room, copy, *show) == f"1 {room.workspace}/shop.py\n"
    assert (copy.root / "__pycache__").is_dir()
    # The same size within the same second: Python would believe the compiled file of before.
    copy.write("shop.py", b"price = 2\n")
    assert await run(room, copy, *show) == f"2 {room.workspace}/shop.py\n"
    put(room.workspace, "shop.py", "price = 3\n")
    copy.refresh()
    assert await run(room, copy, *show) == f"3 {room.workspace}/shop.py\n"


@pytest.mark.promise("COPY-11")
async def test_where_a_copy_cannot_be_shown_the_command_does_not_run_and_the_reason_is_given(
    home: Path, protection: Protection
) -> None:
    room = furnished(home, protection)
    put(room.workspace, "shop.py", "price = 1\n")
    workspace = Workspace(room.workspace, (room.state,))
    for found in (protection, Protection()):
        reason = no_copy_reason(found.name)
        if found.name == "bubblewrap":
            assert not reason
            continue
        assert reason.startswith("checked in the workspace itself, because ")
        assert "install bubblewrap" in reason.lower()
        with ScratchCopies(workspace, room.state / "copies").take() as copy:
            setup = SandboxSetup(room.workspace, (room.state,), os.environ, copy=copy.shown())
            with pytest.raises(UsageProblem, match="did not run in a scratch copy"):
                async with Sandbox(found=found).confine((sys.executable, "-c", "pass"), setup):
                    pass
