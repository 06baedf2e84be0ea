from pathlib import Path

import pytest

from handrail.protocol.errors import PathProblem
from handrail.workspace.files import Workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    (tmp_path / "ws" / "src").mkdir(parents=True)
    return Workspace(tmp_path / "ws", state_folders=(tmp_path / "ws" / "data",))


@pytest.mark.parametrize(
    ("given", "shown", "inside"),
    [
        ("src/a.py", "src/a.py", True),
        ("./src/../src/a.py", "src/a.py", True),
        ("", ".", True),
        ("..", None, False),
        ("../ws/a", "a", True),
        ("../ws2/a", None, False),
        ("/etc/passwd", "/etc/passwd", False),
    ],
)
def test_a_path_is_resolved_before_it_is_judged(
    workspace: Workspace, given: str, shown: str | None, inside: bool
) -> None:
    place = workspace.resolve(given)
    assert place.inside is inside
    assert shown is None or place.path == shown


def test_an_absolute_path_into_the_workspace_is_inside(workspace: Workspace) -> None:
    assert workspace.resolve(str(workspace.root / "src/a.py")).path == "src/a.py"


@pytest.mark.promise("WORK-1")
def test_a_link_is_judged_by_where_it_leads(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (workspace.root / "door").symlink_to(tmp_path / "outside")
    (workspace.root / "repo").symlink_to(workspace.root / ".git")
    (workspace.root / "innocent").symlink_to(workspace.root / ".env")
    assert not workspace.resolve("door/file").inside
    assert not workspace.resolve("door/../outside/file").inside
    assert workspace.resolve("repo/config").in_git
    assert workspace.resolve("innocent").secret


def test_a_link_loop_is_a_path_problem(workspace: Workspace) -> None:
    (workspace.root / "one").symlink_to("two")
    (workspace.root / "two").symlink_to("one")
    with pytest.raises(PathProblem):
        workspace.read("one")


@pytest.mark.parametrize(
    "name", [".env", ".ENV", ".env.local", "sub/id_rsa", "tls/server.key", ".ssh/config"]
)
def test_likely_secrets_are_recognised(workspace: Workspace, name: str) -> None:
    assert workspace.resolve(name).secret


@pytest.mark.parametrize("name", [".env.example", "environment.py", "keyboard.txt", "id_rsa.pub", "src/a.py"])
def test_ordinary_files_are_no_secrets(workspace: Workspace, name: str) -> None:
    assert not workspace.resolve(name).secret


def test_a_link_named_like_a_secret_is_one(workspace: Workspace) -> None:
    (workspace.root / ".env").symlink_to("settings.txt")
    assert workspace.resolve(".env").secret


@pytest.mark.parametrize("name", [".git/config", "sub/.git/hooks/x", ".GIT/config"])
def test_git_is_recognised_at_any_depth(workspace: Workspace, name: str) -> None:
    assert workspace.resolve(name).in_git


@pytest.mark.parametrize("name", [".handrail/config.toml", ".orchestration/x.yaml", "data/log.db"])
def test_our_own_files_are_recognised(workspace: Workspace, name: str) -> None:
    assert workspace.resolve(name).in_state


@pytest.mark.parametrize("given", ["a\0b", "\ud800"])
def test_what_is_no_path_is_refused_in_words(workspace: Workspace, given: str) -> None:
    with pytest.raises(PathProblem) as caught:
        workspace.resolve(given)
    assert caught.value.reason == "invalid_path"
    str(caught.value).encode()


def test_a_circle_of_links_is_told_when_it_is_read_and_not_before(workspace: Workspace) -> None:
    (workspace.root / "one").symlink_to("one")
    assert workspace.resolve("one/below").inside
    assert workspace.sha256("one") is None
    with pytest.raises(PathProblem):
        workspace.read("one/below")
