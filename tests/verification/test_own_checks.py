"""What Handrail itself checks of a change, beside the project's own tools."""

import os
from pathlib import Path

import pytest

from handrail.changes.forms.document import CreateChange, Document
from handrail.config.places import find_places, workspace_folder
from handrail.config.settings import CheckCommand, CheckSettings
from handrail.engine.admin.proposals import Proposals
from handrail.sessions.session_list import find_session
from handrail.storage.log_repair import open_log
from handrail.verification.base_tree import git_base, session_base
from handrail.workspace.files import Workspace
from handrail.workspace.intents_file import IntentFile
from tests.verification.projects import commit, origins, statuses, verify, write

pytestmark = pytest.mark.anyio
ONE_CHECK = CheckSettings(detect=False, commands=(CheckCommand("tests", "true"),))
FILES = {
    "pyproject.toml": '[project]\nname = "shop"\nversion = "1"\ndependencies = []\n',
    "shop/__init__.py": "",
    "shop/cart.py": "def total() -> int:\n    return 1\n",
    "shop/page.py": "from shop.cart import total\n\nprint(total())\n",
    "CHANGELOG.md": "# Changelog\n\n## [2026-01-02] - second\n\n- two\n\n## [2026-01-01] - first\n\n- one\n",
}


async def test_what_a_change_leaves_dangling_fails_beside_the_projects_own_checks(tmp_path: Path) -> None:
    root = commit(write(tmp_path / "shop", FILES))
    clean = await verify(root, ONE_CHECK)
    assert statuses(clean) == {"tests": "passed"}  # nothing has changed
    write(root, {"shop/cart.py": "def sum_up() -> int:\n    return 1\n"})
    verdict = await verify(root, ONE_CHECK)
    assert (verdict.status, statuses(verdict)) == ("failed", {"tests": "passed", "consistency": "failed"})
    assert {(issue.path, issue.origin) for issue in verdict.issues} == {("shop/page.py", "change")}
    skipped = CheckSettings(detect=False, skip=("consistency",), commands=ONE_CHECK.commands)
    assert (await verify(root, skipped)).status == "passed"


async def test_own_checks_alone_verify_nothing(tmp_path: Path) -> None:
    root = commit(write(tmp_path / "shop", FILES))
    write(root, {"shop/cart.py": f"{FILES['shop/cart.py']}\n\nx = 1\n"})
    verdict = await verify(root, CheckSettings(detect=False))
    assert (verdict.status, statuses(verdict)) == ("unverified", {"consistency": "passed"})


async def test_a_person_may_correct_a_changelog_and_an_agent_may_not(tmp_path: Path) -> None:
    root = commit(write(tmp_path / "shop", FILES))
    write(root, {"CHANGELOG.md": FILES["CHANGELOG.md"].replace("- one", "- the first one")})
    person = await verify(root, ONE_CHECK)
    assert (person.status, statuses(person)["docs"]) == ("passed", "passed")
    assert [issue.severity for issue in person.issues] == ["low"]


async def test_a_session_is_compared_with_its_own_start(tmp_path: Path) -> None:
    root = commit(write(tmp_path / "shop", FILES))
    write(root, {"mine.txt": "older than the session\n"})
    os.utime(root / "mine.txt", (1, 1))
    places = find_places(os.environ)
    workspace = Workspace(root, state_folders=(places.data, places.settings.parent))
    log = open_log(workspace_folder(places, root))
    new = CreateChange("shop/new.py", "from shop.cart import nothing\n")
    proposals = Proposals(log, workspace, IntentFile(workspace))
    finished = await proposals.apply(Document((new,)), title="x", word=None)
    assert finished.status == "ok"
    session_id = find_session(log, "")
    base = session_base(log, session_id)
    assert base is not None
    assert (base.files, base.is_session) == ({"shop/new.py": None}, True)
    write(root, {"left-behind.txt": "by nobody\n"})
    verdict = await verify(root, ONE_CHECK, session_id=session_id)
    assert statuses(verdict) == {"tests": "passed", "consistency": "failed", "ghost": "passed"}
    assert {issue.path: issue.severity for issue in verdict.issues} == {
        "shop/new.py": "high",
        "left-behind.txt": "low",
    }
    assert set(origins(verdict).values()) == {"change"}


@pytest.mark.promise("VERIFY-3")
async def test_the_base_has_every_file_as_it_was(tmp_path: Path) -> None:
    files = {"a b.py": "1\n", "sub/run.sh": "x\n", "gone.py": "2\n", "sub/ü.py": "3\n"}
    top = write(tmp_path / "top", {f"part/{name}": text for name, text in files.items()})
    (top / "part/sub/run.sh").chmod(0o755)
    commit(write(top, {"outside.py": "4\n"}))
    part = top / "part"
    write(part, {"a b.py": "one\n", "sub/ü.py": "three\n", "new.py": "", "sub/run.sh": "y\n"})
    write(top, {"outside.py": "four\n"})
    (part / "gone.py").unlink()
    base = await git_base(part)
    assert base is not None
    found = {path: before and (before.data, before.mode) for path, before in base.files.items()}
    assert found == {
        "a b.py": (b"1\n", 0o644),
        "sub/run.sh": (b"x\n", 0o755),
        "gone.py": (b"2\n", 0o644),
        "sub/ü.py": (b"3\n", 0o644),
        "new.py": None,
    }
    assert await git_base(tmp_path) is None
